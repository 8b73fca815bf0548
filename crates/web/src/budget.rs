//! Budgets of requests, so that one client leaves room for the others.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most keys that are remembered; those with a full budget are forgotten first.
const KEYS: usize = 100_000;

/// How many requests a client may send: as many as fill a bucket, which is refilled steadily.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second, in the long run.
    pub per_second: f64,
    /// Requests at once.
    pub burst: f64,
}

/// The budgets of clients by a key: their address or project.
#[derive(Debug)]
pub(crate) struct Budgets<K> {
    /// `None`: there is no limit.
    rate: Option<Rate>,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Duration,
}

impl Bucket {
    fn refilled(self, rate: Rate, now: Duration) -> f64 {
        (self.left + now.saturating_sub(self.at).as_secs_f64() * rate.per_second).min(rate.burst)
    }
}

impl<K> Default for Budgets<K> {
    fn default() -> Self {
        Self { rate: None, buckets: Mutex::default() }
    }
}

impl<K: Eq + Hash + Clone> Budgets<K> {
    /// Budgets with this rate each.
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self { rate, buckets: Mutex::default() }
    }

    /// Takes one request from a budget. `now` is of a monotonic clock.
    ///
    /// # Errors
    /// The budget is empty: the time until it has one again.
    pub(crate) fn take(&self, key: &K, now: Duration) -> Result<(), Duration> {
        let Some(rate) = self.rate else { return Ok(()) };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= KEYS && !buckets.contains_key(key) {
            buckets.retain(|_, bucket| bucket.refilled(rate, now) < rate.burst);
            if buckets.len() >= KEYS {
                // So many clients at once have no budgets of their own.
                return Ok(());
            }
        }
        let bucket = buckets.entry(key.clone()).or_insert(Bucket { left: rate.burst, at: now });
        let left = bucket.refilled(rate, now);
        *bucket = Bucket { left, at: now };
        if left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - left) / rate.per_second));
        }
        bucket.left = left - 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_refilled_and_does_not_touch_others() {
        let budgets = Budgets::new(Some(Rate { per_second: 10.0, burst: 3.0 }));
        let take = |key: &str, ms| budgets.take(&key.to_owned(), Duration::from_millis(ms));
        assert_eq!([0, 1, 2].map(|ms| take("a", ms)), [Ok(()); 3]);
        let wait = take("a", 3).unwrap_err();
        assert!((90..100).contains(&wait.as_millis()), "{wait:?}");
        assert_eq!((take("b", 3), take("a", 101), take("a", 102).is_err()), (Ok(()), Ok(()), true));
        // Never more than the burst, and a clock that stands still gives nothing.
        assert_eq!([60_000; 3].map(|ms| take("a", ms)), [Ok(()); 3]);
        assert!(take("a", 60_000).is_err());
        assert_eq!(Budgets::default().take(&1, Duration::ZERO), Ok(()));
    }

    #[test]
    fn memory_is_bounded() {
        let budgets = Budgets::new(Some(Rate { per_second: 1.0, burst: 10.0 }));
        for key in 0..KEYS + 10 {
            budgets.take(&key, Duration::ZERO).unwrap();
        }
        assert_eq!(budgets.buckets.lock().unwrap().len(), KEYS);
        budgets.take(&(KEYS + 11), Duration::from_secs(5)).unwrap();
        assert_eq!(budgets.buckets.lock().unwrap().len(), 1);
    }
}
