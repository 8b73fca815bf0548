//! The clocks of services, by the `Date` of their responses.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::transport::HttpResponse;

/// How long an observed time is used: two clocks may run at different speeds.
const VALID: Duration = Duration::from_mins(1);

/// The last time of each service, in seconds since 1970, and when it was observed.
#[derive(Default)]
pub(crate) struct ServiceClocks(Mutex<HashMap<String, (i64, Instant)>>);

impl ServiceClocks {
    /// Reads the time of a response.
    pub(crate) fn observe(&self, service: String, response: &HttpResponse) {
        let date = response.header("date").and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        if let Some(date) = date {
            let seen = (date.timestamp().as_second(), Instant::now());
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(service, seen);
        }
    }

    /// The time of a service in whole seconds, rounded down; `None` if it was not observed recently.
    pub(crate) fn time(&self, service: &str) -> Option<i64> {
        let clocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (seconds, seen) = clocks.get(service)?;
        let passed = seen.elapsed();
        (passed < VALID).then(|| seconds.saturating_add_unsigned(passed.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_runs_on_for_a_minute() {
        let mut headers = HeaderMap::new();
        headers.insert("date", "Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
        let clocks = ServiceClocks::default();
        clocks.observe("network".to_owned(), &HttpResponse { status: StatusCode::OK, headers, body: Bytes::new() });
        let noted = clocks.time("network").unwrap();
        assert_eq!(jiff::Timestamp::from_second(noted).unwrap().to_string(), "2015-10-21T07:28:00Z");
        tokio::time::advance(Duration::from_millis(2_900)).await;
        assert_eq!(clocks.time("network"), Some(noted + 2));
        assert_eq!(clocks.time("compute"), None);
        tokio::time::advance(VALID).await;
        assert_eq!(clocks.time("network"), None);
    }
}
