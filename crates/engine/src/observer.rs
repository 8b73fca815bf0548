//! Finds engines that have failed, by this engine's own clock.
//!
//! No clock is compared with that of another machine: an engine is silent when the time of its last report has not changed
//! for as long as a lease lives, from when this engine has first seen it. It makes no call any more then: its fence closes
//! before, counted from before that report (`fence.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kiln_store::{EngineId, EngineInfo, Silent};

/// Reports in the time of a lease.
pub(crate) const BEATS: u32 = 3;

/// The reports of the other engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Observer {
    sights: BTreeMap<EngineId, Sight>,
    /// Those that are certainly dead.
    gone: BTreeSet<EngineId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sight {
    report: Timestamp,
    /// When it was first seen.
    since: Duration,
}

impl Observer {
    /// These engines are certainly dead.
    pub(crate) fn are_gone(&mut self, engines: Vec<EngineId>) {
        self.gone.extend(engines);
    }

    /// The silent ones of the engines that were read between `asked` and `answered`, by the monotonic clock.
    pub(crate) fn silent(
        &mut self,
        engines: &[EngineInfo],
        (asked, answered): (Duration, Duration),
        ttl: Duration,
    ) -> Vec<Silent> {
        self.sights.retain(|id, _| engines.iter().any(|engine| engine.id == *id));
        let silent = engines.iter().filter_map(|engine| {
            let new = || Sight { report: engine.seen, since: answered };
            let sight = self.sights.entry(engine.id).or_insert_with(new);
            if sight.report != engine.seen {
                *sight = new();
            }
            let lease = ttl.max(longest_lease(engine.interval, ttl));
            let silence = asked.saturating_sub(sight.since);
            // Of one that is gone, only its last calls may be in progress.
            let idle = silence.checked_sub(lease).or(self.gone.contains(&engine.id).then_some(Duration::ZERO));
            Some(Silent { engine: engine.id, seen: engine.seen, silence, idle: idle? })
        });
        silent.collect()
    }
}

/// The longest lease of an engine with this interval, if it is not that of this engine: the option may have been changed.
fn longest_lease(interval: u32, own: Duration) -> Duration {
    if interval == interval_of(own) { own } else { BEATS * Duration::from_secs(u64::from(interval) + 1) }
}

/// The seconds between two reports.
pub(crate) fn interval_of(ttl: Duration) -> u32 {
    u32::try_from((ttl / BEATS).as_secs()).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(15);

    fn engine(number: u128, seen: i64) -> EngineInfo {
        EngineInfo {
            id: EngineId(uuid::Uuid::from_u128(number)),
            hostname: String::new(),
            pid: 1,
            started: Timestamp::UNIX_EPOCH,
            seen: Timestamp::from_second(seen).unwrap(),
            interval: 5,
            schema: kiln_store::SCHEMA,
        }
    }

    /// The silent engines, with the seconds of their silence and those in which they can have made no call.
    fn look(observer: &mut Observer, at: u64, engines: &[EngineInfo]) -> Vec<(u128, u64, u64)> {
        let read = (Duration::from_secs(at), Duration::from_secs(at + 1));
        let silent = observer.silent(engines, read, TTL);
        let told = |silent: &Silent| (silent.engine.0.as_u128(), silent.silence.as_secs(), silent.idle.as_secs());
        silent.iter().map(told).collect()
    }

    #[test]
    fn an_engine_is_silent_when_its_report_has_not_changed_since_the_first_sight() {
        let mut observer = Observer::default();
        assert_eq!(look(&mut observer, 0, &[engine(1, 100), engine(2, 100)]), []);
        // The database's clock jumps: that says nothing about an engine.
        assert_eq!(look(&mut observer, 5, &[engine(1, 7_000), engine(2, 100)]), []);
        assert_eq!(look(&mut observer, 15, &[engine(1, 7_000), engine(2, 100)]), []);
        assert_eq!(look(&mut observer, 16, &[engine(1, 7_000), engine(2, 100)]), [(2, 15, 0)]);
        assert_eq!(look(&mut observer, 20, &[engine(1, 5), engine(2, 100)]), [(2, 19, 4)]);
        assert_eq!(look(&mut observer, 40, &[engine(1, 5), engine(2, 101)]), [(1, 19, 4)]);
    }

    #[test]
    fn an_engine_that_is_gone_is_silent_at_once() {
        let mut observer = Observer::default();
        observer.are_gone(vec![engine(2, 0).id]);
        assert_eq!(look(&mut observer, 0, &[engine(1, 100), engine(2, 100)]), [(2, 0, 0)]);
    }

    #[test]
    fn an_engine_with_a_longer_lease_is_given_its_time() {
        let mut observer = Observer::default();
        let slow = EngineInfo { interval: 20, ..engine(1, 100) };
        assert_eq!(look(&mut observer, 0, std::slice::from_ref(&slow)), []);
        assert_eq!(look(&mut observer, 60, std::slice::from_ref(&slow)), []);
        assert_eq!(look(&mut observer, 65, &[slow]), [(1, 64, 1)]);
    }

    #[test]
    fn an_observer_that_was_suspended_believes_what_it_reads_then() {
        let mut observer = Observer::default();
        assert_eq!(look(&mut observer, 0, &[engine(1, 100)]), []);
        assert_eq!(look(&mut observer, 900, &[engine(1, 1_000)]), []);
    }
}
