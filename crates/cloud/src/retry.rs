//! When and how long after a failure a request is sent again.

use std::time::Duration;

use http::StatusCode;

use crate::transport::{HttpResponse, TransportError};

/// How often and how fast requests are repeated.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub retries: u32,
    /// Wait before the first of them; doubles with each.
    pub base: Duration,
    /// The longest wait, also where the service asks for more (`Retry-After`).
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 3, base: Duration::from_millis(200), cap: Duration::from_secs(10) }
    }
}

impl RetryPolicy {
    /// How long to wait before the attempt after `attempt` (from 0); `None` if the outcome stands.
    ///
    /// What is `safe` to send twice is repeated after lost replies, 5xx and 429; all else only if the service cannot
    /// have acted: no connection, or 429. `chance` is a number in 0..1 that spreads the waits of many over half their
    /// length.
    pub(crate) fn wait(
        &self,
        safe: bool,
        outcome: Result<&HttpResponse, &TransportError>,
        attempt: u32,
        chance: f64,
    ) -> Option<Duration> {
        if attempt >= self.retries {
            return None;
        }
        let again = match outcome {
            Ok(response) if response.status == StatusCode::TOO_MANY_REQUESTS => true,
            // 501 is an answer, not an accident.
            Ok(response) => safe && response.status.is_server_error() && response.status != StatusCode::NOT_IMPLEMENTED,
            Err(TransportError::Connect(_)) => true,
            Err(TransportError::Timeout | TransportError::Broken(_)) => safe,
        };
        if !again {
            return None;
        }
        let asked = outcome.ok().and_then(|r| r.header("retry-after")?.trim().parse().ok()).map(Duration::from_secs);
        let backoff = self.base.saturating_mul(2u32.saturating_pow(attempt)).min(self.cap);
        let spread = backoff.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        Some(asked.map_or(spread, |asked| asked.min(self.cap).max(spread)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    fn answer(status: u16, retry_after: Option<&str>) -> HttpResponse {
        let mut headers = HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert("retry-after", seconds.parse().unwrap());
        }
        HttpResponse { status: StatusCode::from_u16(status).unwrap(), headers, body: Bytes::new() }
    }

    const SAFE: bool = true;

    fn wait(safe: bool, outcome: Result<&HttpResponse, &TransportError>, attempt: u32) -> Option<Duration> {
        RetryPolicy::default().wait(safe, outcome, attempt, 1.0)
    }

    #[test]
    fn only_what_is_safe_is_repeated_after_5xx_and_lost_replies() {
        let lost = TransportError::Broken("gone".into());
        assert!(wait(SAFE, Ok(&answer(503, None)), 0).is_some());
        assert!(wait(!SAFE, Ok(&answer(503, None)), 0).is_none());
        assert!(wait(SAFE, Err(&lost), 0).is_some());
        assert!(wait(!SAFE, Err(&lost), 0).is_none());
        assert!(wait(SAFE, Ok(&answer(501, None)), 0).is_none());
        assert!(wait(SAFE, Ok(&answer(404, None)), 0).is_none());
    }

    #[test]
    fn what_was_not_seen_is_repeated() {
        let refused = TransportError::Connect("refused".into());
        assert!(wait(!SAFE, Err(&refused), 0).is_some());
        assert!(wait(!SAFE, Ok(&answer(429, None)), 0).is_some());
    }

    #[test]
    fn waits_double_end_and_heed_the_service() {
        let busy = answer(429, None);
        let at = |attempt| wait(SAFE, Ok(&busy), attempt);
        let millis = |n| Some(Duration::from_millis(n));
        assert_eq!([at(0), at(1), at(2), at(3)], [millis(200), millis(400), millis(800), None]);
        assert_eq!(wait(SAFE, Ok(&answer(429, Some("2"))), 0), Some(Duration::from_secs(2)));
        assert_eq!(wait(SAFE, Ok(&answer(429, Some("3600"))), 0), Some(Duration::from_secs(10)));
    }
}
