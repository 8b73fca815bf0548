//! A limit for lines with the same message, so that a flood does not fill the disk: the options `rate_limit_…` of oslo.log.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use kiln_config::Config;
use kiln_config::options::server;
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

/// The target of audit events: none of them is left out.
const AUDIT: &str = "kiln_audit";

/// The limit; by default there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flood {
    interval: Duration,
    /// Lines in an interval; 0: no limit.
    burst: u64,
    /// Lines of this level and above have no limit.
    except: Option<Level>,
}

impl Flood {
    /// Reads the options.
    pub(super) fn of(config: &Config) -> Result<Self> {
        let except = match config.choice(&server::RATE_LIMIT_EXCEPT_LEVEL)?.as_deref() {
            Some("ERROR") => Some(Level::ERROR),
            Some("WARNING") => Some(Level::WARN),
            Some("INFO") => Some(Level::INFO),
            Some("DEBUG") => Some(Level::DEBUG),
            _ => None,
        };
        let interval = Duration::from_secs(config.number(&server::RATE_LIMIT_INTERVAL)?);
        Ok(Self { interval, burst: config.number(&server::RATE_LIMIT_BURST)?, except })
    }

    fn limits(&self, level: Level) -> bool {
        // The most important level is the smallest.
        self.burst > 0 && !self.interval.is_zero() && self.except.is_none_or(|except| level > except)
    }
}

/// Counts lines by the place in the code that writes them.
pub(super) struct Lines {
    flood: Flood,
    /// The begin of the present interval and the lines in it.
    places: Mutex<HashMap<Identifier, (Timestamp, u64)>>,
}

impl Lines {
    pub(super) fn new(flood: Flood) -> Self {
        Self { flood, places: Mutex::default() }
    }

    /// `None`: the line is left out. Otherwise the number of lines of the same place that were left out before it.
    pub(super) fn admit(&self, about: &'static Metadata<'static>) -> Option<u64> {
        if !self.flood.limits(*about.level()) || about.target() == AUDIT {
            return Some(0);
        }
        self.admit_at(about.callsite(), crate::now())
    }

    fn admit_at(&self, place: Identifier, now: Timestamp) -> Option<u64> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let (begun, lines) = places.entry(place).or_insert((now, 0));
        let mut left_out = 0;
        // A clock that was set back begins a new interval too.
        if now.duration_since(*begun).unsigned_abs() >= self.flood.interval {
            left_out = lines.saturating_sub(self.flood.burst);
            (*begun, *lines) = (now, 0);
        }
        *lines += 1;
        (*lines <= self.flood.burst).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use tracing::callsite::{Callsite as _, DefaultCallsite};
    use tracing::metadata::Kind;

    use super::*;

    static AUDITED: Metadata<'static> = tracing::metadata! {
        name: "line", target: "kiln_audit", level: Level::INFO, fields: &[], callsite: &AUDIT_PLACE, kind: Kind::EVENT
    };
    static AUDIT_PLACE: DefaultCallsite = DefaultCallsite::new(&AUDITED);

    fn place() -> Identifier {
        static PLACE: DefaultCallsite = DefaultCallsite::new(&ABOUT);
        static ABOUT: Metadata<'static> = tracing::metadata! {
            name: "line", target: "test", level: Level::INFO, fields: &[], callsite: &PLACE, kind: Kind::EVENT
        };
        PLACE.metadata().callsite()
    }

    #[test]
    fn a_flood_is_cut_and_its_size_is_told() {
        let flood = Flood { interval: Duration::from_secs(1), burst: 2, except: Some(Level::ERROR) };
        assert!(flood.limits(Level::WARN) && !flood.limits(Level::ERROR) && !Flood::default().limits(Level::INFO));
        let lines = Lines::new(flood);
        let begun = crate::now();
        let admit = |ms| lines.admit_at(place(), begun + Duration::from_millis(ms));
        assert_eq!([admit(0), admit(1), admit(2), admit(3)], [Some(0), Some(0), None, None]);
        assert_eq!([admit(1000), admit(1001), admit(1002)], [Some(2), Some(0), None]);
        assert_eq!(admit(5000), Some(1));
        assert!((0..10).all(|_| lines.admit(&AUDITED) == Some(0)));
    }
}
