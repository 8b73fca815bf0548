//! Injected time and randomness: tests can replay a whole cluster from one seed.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

/// The clock.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Wall clock time: it may be set back, and differs between machines.
    fn now(&self) -> Timestamp;
    /// Monotonic time since an arbitrary moment, for timeouts and leases.
    fn monotonic(&self) -> Duration;
    /// Waits.
    async fn sleep(&self, time: Duration);
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Randomness: IDs and jitter.
pub struct Chance(Mutex<StdRng>);

impl Chance {
    /// A deterministic source with a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// A source that is seeded by the operating system.
    pub fn from_os() -> Self {
        Self(Mutex::new(StdRng::from_os_rng()))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        let mut rng = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        draw(&mut rng)
    }

    /// A random (version 4) UUID.
    pub fn uuid(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.with(rand::Rng::random)).into_uuid()
    }

    /// A UUID that begins with the time (version 7), so that rows which are written together are together in an index.
    /// For IDs that need not be hard to guess.
    pub fn uuid_of(&self, time: Timestamp) -> Uuid {
        let milliseconds = u64::try_from(time.as_millisecond()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &self.with(rand::Rng::random)).into_uuid()
    }

    /// Random bytes.
    pub fn seed(&self) -> [u8; 32] {
        self.with(rand::Rng::random)
    }

    /// A random duration between half of `time` and `time`.
    pub fn jitter(&self, time: Duration) -> Duration {
        time.mul_f64(self.with(|rng| rng.random_range(0.5..=1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_time_are_in_its_order() {
        let chance = Chance::seeded(1);
        let times = [0_i64, 1, 999, 1_795_573_965_500].map(|time| Timestamp::from_millisecond(time).unwrap());
        let ids = times.map(|time| chance.uuid_of(time));
        assert!(ids.is_sorted(), "{ids:?}");
        assert_eq!(ids.map(|id| (id.get_version_num(), id.get_variant())), [(7, uuid::Variant::RFC4122); 4]);
        assert_ne!(chance.uuid_of(times[3]), ids[3]);
    }
}
