//! Virtual time, and clocks that differ from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kiln_stack::Clock;
use tokio::time::Instant;

use crate::gate::Gate;
use crate::sabotage::Sabotage;

/// The time at which every run starts, in seconds since 1970.
const BEGINNING: i64 = 1_800_000_000;

/// The true time, independent of all clocks.
#[derive(Clone, Copy, Debug)]
pub struct TrueTime {
    start: Instant,
}

impl TrueTime {
    /// Starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Time since the start of the run.
    pub fn elapsed(self) -> Duration {
        self.start.elapsed()
    }

    /// Time since the start of the run in milliseconds.
    pub fn ms(self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The time of a wall clock without errors.
    pub fn now(self) -> Timestamp {
        Self::at(Duration::ZERO) + self.elapsed()
    }

    /// The time of such a clock after this time.
    pub fn at(elapsed: Duration) -> Timestamp {
        Timestamp::from_second(BEGINNING).unwrap_or_default() + elapsed
    }
}

/// The wall clock of a machine, which may be wrong.
#[derive(Debug)]
pub struct WallClock {
    time: TrueTime,
    /// Parts per million by which it is faster than true time.
    drift_ppm: i64,
    ahead_ms: i64,
    /// Milliseconds by which it is currently set back.
    back_ms: AtomicI64,
    /// The least of these.
    furthest_ms: AtomicI64,
    /// How long the machine was suspended, in milliseconds.
    suspended_ms: AtomicU64,
}

impl WallClock {
    /// A clock.
    pub fn new(time: TrueTime, ahead_ms: i64, drift_ppm: i64) -> Self {
        Self {
            time,
            drift_ppm,
            ahead_ms,
            back_ms: AtomicI64::new(0),
            furthest_ms: AtomicI64::new(0),
            suspended_ms: AtomicU64::new(0),
        }
    }

    /// Sets it back by this amount from its correct time; 0 corrects it.
    pub fn set_back(&self, ms: i64) {
        self.back_ms.store(ms, Ordering::SeqCst);
    }

    /// Sets it back by another amount.
    pub fn set_further_back(&self, ms: i64) {
        let now = self.back_ms.fetch_add(ms, Ordering::SeqCst) + ms;
        self.furthest_ms.fetch_min(now, Ordering::SeqCst);
    }

    /// How long it takes to show again what it has shown already.
    pub fn back(&self) -> Duration {
        let back = self.back_ms.load(Ordering::SeqCst) - self.furthest_ms.load(Ordering::SeqCst);
        Duration::from_millis(u64::try_from(back).unwrap_or(0))
    }

    /// The machine was suspended: its monotonic clock stood still.
    pub fn was_suspended(&self, time: Duration) {
        self.suspended_ms.fetch_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// The monotonic time of the machine.
    pub fn monotonic(&self) -> Duration {
        self.elapsed().saturating_sub(Duration::from_millis(self.suspended_ms.load(Ordering::SeqCst)))
    }

    /// Time since the start of the run by this clock.
    pub fn elapsed(&self) -> Duration {
        self.scaled(self.time.elapsed(), 1_000_000 + self.drift_ppm, 1_000_000)
    }

    /// The wall clock time.
    pub fn now(&self) -> Timestamp {
        let away = SignedDuration::from_millis(self.ahead_ms - self.back_ms.load(Ordering::SeqCst));
        Timestamp::from_second(BEGINNING).unwrap_or_default() + self.elapsed() + away
    }

    /// The true length of a duration of this clock.
    fn true_length(&self, time: Duration) -> Duration {
        self.scaled(time, 1_000_000, 1_000_000 + self.drift_ppm)
    }

    fn scaled(&self, time: Duration, by: i64, of: i64) -> Duration {
        if self.drift_ppm == 0 {
            return time;
        }
        let (by, of) = (u128::from(by.unsigned_abs()), u128::from(of.unsigned_abs().max(1)));
        let nanos = time.as_nanos().saturating_mul(by) / of;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The clock of an engine. It continues while the engine is paused.
#[derive(Debug)]
pub struct EngineClock {
    wall: Arc<WallClock>,
    gate: Arc<Gate>,
    sabotage: Option<Sabotage>,
}

impl EngineClock {
    /// The clock of a process on a machine.
    pub fn new(wall: Arc<WallClock>, gate: Arc<Gate>, sabotage: Option<Sabotage>) -> Self {
        Self { wall, gate, sabotage }
    }
}

#[async_trait]
impl Clock for EngineClock {
    fn now(&self) -> Timestamp {
        self.wall.now()
    }

    fn monotonic(&self) -> Duration {
        match self.sabotage {
            Some(Sabotage::StoppedClock) => Duration::ZERO,
            Some(Sabotage::WallForMonotonic) => {
                let since = self.wall.now().duration_since(Timestamp::from_second(BEGINNING).unwrap_or_default());
                Duration::try_from(since + SignedDuration::from_hours(2)).unwrap_or_default()
            }
            _ => self.wall.monotonic(),
        }
    }

    async fn sleep(&self, time: Duration) {
        let paced = self.sabotage != Some(Sabotage::NoPace);
        let time = if paced { time } else { time.min(Duration::from_millis(20)) };
        tokio::time::sleep(self.wall.true_length(time)).await;
        self.gate.pass().await;
    }
}
