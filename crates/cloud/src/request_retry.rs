//! When a request is retried within one call, and after which delay.
//!
//! - A read is retried after a lost response, 5xx (except 501) and 429. Other requests are retried only if the service
//!   cannot have acted: no connection was made, or the response was 429. After a rejected token (401), the token is
//!   renewed and the request is sent once more, immediately.
//! - Delays double, are randomized, and are as long as the service requests (`Retry-After`), up to a cap.
//! - Retries are a small part of the traffic: each service has a [`Budget`] for them, so that they do not make an
//!   outage worse. Calls to a service that does not respond at all are suspended (`breaker.rs`).
//! - Callers that retry whole steps, such as an engine, use no retries here ([`RetryPolicy::none`]), so that only one
//!   place waits, and it waits without occupying a slot for a call.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;

use crate::transport::{HttpResponse, TransportError};

/// How often and how fast requests are retried.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Maximum number of retries.
    pub retries: u32,
    /// Delay before the first retry; it doubles with each retry.
    pub base: Duration,
    /// The longest delay, even if the service requests more (`Retry-After`).
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 3, base: Duration::from_millis(200), cap: Duration::from_secs(10) }
    }
}

impl RetryPolicy {
    /// No retries.
    pub fn none() -> Self {
        Self { retries: 0, ..Self::default() }
    }

    /// Delay before the attempt after `attempt` (from 0); `None` if there is no retry. `safe`: the request may be sent
    /// twice. `chance` is a number in 0..1 that spreads the delays over half their length.
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
            Ok(response) => safe && is_failing(response.status),
            Err(TransportError::Connect(_)) => true,
            Err(TransportError::Timeout | TransportError::Broken(_)) => safe,
            Err(TransportError::Address(_)) => false,
        };
        if !again {
            return None;
        }
        let asked = outcome.ok().and_then(retry_after);
        let backoff = self.base.saturating_mul(2u32.saturating_pow(attempt)).min(self.cap);
        let spread = backoff.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        Some(asked.map_or(spread, |asked| asked.min(self.cap).max(spread)))
    }
}

/// Whether a status means that the service failed: 501 is a definite response.
pub(crate) fn is_failing(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// The delay that a service requests: a number of seconds, or a time relative to the `Date` of the response.
pub(crate) fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let asked = response.header("retry-after")?.trim();
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|time| time.timestamp());
    let wait = time(asked)?.duration_since(time(response.header("date")?)?);
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// Budget for retries: a tenth of the requests, and some initial credit. Counted in tenths.
#[derive(Debug)]
pub(crate) struct Budget(Mutex<u32>);

/// Maximum credit.
const SAVED: u32 = 100;
/// Cost of a retry.
const COST: u32 = 10;

impl Default for Budget {
    fn default() -> Self {
        Self(Mutex::new(SAVED))
    }
}

impl Budget {
    /// Adds the credit for a sent request.
    pub(crate) fn earn(&self) {
        let mut saved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *saved = (*saved + 1).min(SAVED);
    }

    /// Whether a retry is allowed.
    pub(crate) fn spend(&self) -> bool {
        let mut saved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = saved.checked_sub(COST);
        *saved = left.unwrap_or(*saved);
        left.is_some()
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
    fn only_safe_requests_are_retried_after_5xx_and_lost_responses() {
        let lost = TransportError::Broken("gone".into());
        assert!(wait(SAFE, Ok(&answer(503, None)), 0).is_some());
        assert!(wait(!SAFE, Ok(&answer(503, None)), 0).is_none());
        assert!(wait(SAFE, Err(&lost), 0).is_some());
        assert!(wait(!SAFE, Err(&lost), 0).is_none());
        assert!(wait(SAFE, Ok(&answer(501, None)), 0).is_none());
        assert!(wait(SAFE, Ok(&answer(404, None)), 0).is_none());
    }

    #[test]
    fn unreceived_requests_are_retried() {
        let refused = TransportError::Connect("refused".into());
        assert!(wait(!SAFE, Err(&refused), 0).is_some());
        assert!(wait(!SAFE, Ok(&answer(429, None)), 0).is_some());
        assert!(RetryPolicy::none().wait(SAFE, Err(&refused), 0, 0.0).is_none());
    }

    #[test]
    fn delays_double_have_a_limit_and_respect_the_service() {
        let busy = answer(429, None);
        let at = |attempt| wait(SAFE, Ok(&busy), attempt);
        let millis = |n| Some(Duration::from_millis(n));
        assert_eq!([at(0), at(1), at(2), at(3)], [millis(200), millis(400), millis(800), None]);
        assert_eq!(wait(SAFE, Ok(&answer(429, Some("2"))), 0), Some(Duration::from_secs(2)));
        assert_eq!(wait(SAFE, Ok(&answer(429, Some("3600"))), 0), Some(Duration::from_secs(10)));
    }

    #[test]
    fn retry_after_may_be_a_date() {
        let mut response = answer(503, Some("Wed, 21 Oct 2015 07:28:30 GMT"));
        assert_eq!(retry_after(&response), None, "by whose clock?");
        response.headers.insert("date", "Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
        assert_eq!(retry_after(&response), Some(Duration::from_secs(30)));
    }

    #[test]
    fn the_budget_allows_a_tenth_of_retries() {
        let budget = Budget::default();
        assert_eq!((0..20).filter(|_| budget.spend()).count(), 10);
        (0..30).for_each(|_| budget.earn());
        assert_eq!((0..20).filter(|_| budget.spend()).count(), 3);
    }
}
