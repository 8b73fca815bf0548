//! Injected time and randomness: tests can replay a whole cluster from one seed.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kiln_store::{Error, Store};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

/// The clock.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Wall clock time: it may be set back, and differs between machines.
    fn now(&self) -> Timestamp;
    /// Monotonic time since an arbitrary moment, for timeouts and leases. It goes on while the host is suspended, as far as
    /// the host knows.
    fn monotonic(&self) -> Duration;
    /// How far the wall clock of the machine is ahead of the monotonic time. It changes when one of them jumps: a virtual
    /// machine that was suspended learns of it only when its wall clock is set.
    fn offset(&self) -> SignedDuration {
        let monotonic = SignedDuration::try_from(self.monotonic()).unwrap_or(SignedDuration::MAX);
        self.now().as_duration().saturating_sub(monotonic)
    }
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

    #[cfg(target_os = "linux")]
    fn monotonic(&self) -> Duration {
        // Unlike `Instant`, it counts the time in which the host is suspended.
        let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(since_boot).unwrap_or_default()
    }

    #[cfg(not(target_os = "linux"))]
    fn monotonic(&self) -> Duration {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// How often [`StoreClock`] reads the clock of the database.
const LOOK: Duration = Duration::from_secs(10);

/// The clock of the database, as it was last read: all processes write times of the same clock, even if those of their
/// machines are wrong. Between two reads it runs with the monotonic clock, so a wall clock that is set back has no effect.
pub struct StoreClock {
    own: Arc<dyn Clock>,
    /// The time when the monotonic clock was 0, in microseconds since 1970.
    origin: AtomicI64,
}

impl StoreClock {
    /// Has the time of the machine's own clock until the first [`Self::read`].
    pub fn new(own: Arc<dyn Clock>) -> Self {
        let origin = own.now().as_microsecond().saturating_sub(micros(own.monotonic()));
        Self { own, origin: AtomicI64::new(origin) }
    }

    /// Reads the clock of the database.
    pub async fn read(&self, store: &dyn Store) -> Result<(), Error> {
        let asked = self.own.monotonic();
        let theirs = store.now().await?.as_microsecond();
        let answered = self.own.monotonic();
        // The database has read its clock some time between the two.
        let (earliest, latest) = (theirs.saturating_sub(micros(answered)), theirs.saturating_sub(micros(asked)));
        let known = self.origin.load(Ordering::Relaxed);
        self.origin.store(known.clamp(earliest, latest.max(earliest)), Ordering::Relaxed);
        Ok(())
    }

    /// Reads it repeatedly, until it is dropped.
    pub async fn follow(&self, store: &dyn Store) {
        loop {
            self.own.sleep(LOOK).await;
            if let Err(error) = self.read(store).await {
                tracing::debug!(%error, "failed to read the clock of the database");
            }
        }
    }
}

#[async_trait]
impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let time = self.origin.load(Ordering::Relaxed).saturating_add(micros(self.own.monotonic()));
        Timestamp::from_microsecond(time).unwrap_or_default()
    }

    fn monotonic(&self) -> Duration {
        self.own.monotonic()
    }

    fn offset(&self) -> SignedDuration {
        self.own.offset()
    }

    async fn sleep(&self, time: Duration) {
        self.own.sleep(time).await;
    }
}

/// Microseconds, as times of the database are stored.
pub fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
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
    use std::sync::atomic::AtomicU64;

    use kiln_store::MemoryStore;

    use super::*;

    /// Moments in seconds.
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// A machine: its wall clock differs from the time since its start by some seconds.
    #[derive(Default)]
    struct Machine {
        wrong_by: AtomicI64,
        up: AtomicU64,
    }

    #[async_trait]
    impl Clock for Machine {
        fn now(&self) -> Timestamp {
            at(self.wrong_by.load(Ordering::SeqCst)) + self.monotonic()
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.up.load(Ordering::SeqCst))
        }

        async fn sleep(&self, _time: Duration) {
            std::future::pending::<()>().await;
        }
    }

    /// The database: when it is asked, the clock of the machine runs for `takes` seconds, and it has another time.
    fn database(machine: &Arc<Machine>, ahead: i64, takes: u64) -> MemoryStore {
        let machine = Arc::clone(machine);
        MemoryStore::new(Arc::new(move || {
            let answer = at(ahead) + machine.monotonic();
            machine.up.fetch_add(takes, Ordering::SeqCst);
            answer
        }))
    }

    #[tokio::test]
    async fn the_time_is_that_of_the_database_and_not_of_the_machine() {
        let machine = Arc::new(Machine::default());
        machine.wrong_by.store(-1800, Ordering::SeqCst);
        let clock = StoreClock::new(Arc::clone(&machine) as Arc<dyn Clock>);
        assert_eq!(clock.now(), at(-1800));
        clock.read(&database(&machine, 5, 0)).await.unwrap();
        assert_eq!(clock.now(), at(5));
        machine.wrong_by.store(7200, Ordering::SeqCst);
        machine.up.fetch_add(60, Ordering::SeqCst);
        assert_eq!(clock.now(), at(65));
        clock.read(&database(&machine, -30, 0)).await.unwrap();
        assert_eq!(clock.now(), at(30));
    }

    #[tokio::test]
    async fn an_answer_that_was_slow_does_not_move_a_time_that_may_be_right() {
        let machine = Arc::new(Machine::default());
        let clock = StoreClock::new(Arc::clone(&machine) as Arc<dyn Clock>);
        for takes in [0, 10, 0, 3] {
            clock.read(&database(&machine, 5, takes)).await.unwrap();
            assert_eq!(clock.now(), at(5) + machine.monotonic(), "after {takes} seconds");
        }
        // It can be wrong by no more than the answer took.
        clock.read(&database(&machine, 60, 10)).await.unwrap();
        assert_eq!(clock.now(), at(50) + machine.monotonic());
    }

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
