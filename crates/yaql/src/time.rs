//! Times and timespans, to the microsecond, in the years 1 to 9999.

mod format;
mod parse;

use std::fmt::Write as _;

use num_traits::ToPrimitive;

use crate::Error;

pub(crate) use format::format;
pub(crate) use parse::{parse, parse_as};

/// Microseconds of a second, minute, hour and day.
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// 0001-01-01 and the day after 9999-12-31, in days since 1970.
const FIRST_DAY: i64 = -719_162;
const END_DAY: i64 = 2_932_897;

/// Maximum number of days of a timespan.
const MOST_DAYS: i128 = 999_999_999;

/// A point in time with a UTC offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DateTime {
    /// Local time: microseconds since 1970.
    local: i64,
    /// The UTC offset in microseconds, less than a day.
    offset: i64,
    /// Whether the zone was specified as the service's own, which Python prints differently. The service's zone is UTC.
    is_local: bool,
}

/// Local date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub microsecond: i64,
}

impl Clock {
    /// Midnight of a day.
    pub(crate) fn midnight(year: i64, month: i64, day: i64) -> Self {
        Self { year, month, day, hour: 0, minute: 0, second: 0, microsecond: 0 }
    }
}

/// Number of days of a month.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a Gregorian date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date for days since 1970: the inverse of [`days`].
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

impl DateTime {
    /// A local time with an offset.
    ///
    /// Errors: `ValueError` for an invalid date or time.
    pub(crate) fn new(clock: Clock, offset: TimeSpan) -> Result<Self, Error> {
        let in_range = |value: i64, low, high, name: &str| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(Error::value(format!("{name} must be in {low}..{high}")))
            }
        };
        if !(1..=9999).contains(&clock.year) {
            return Err(Error::value(format!("year {} is out of range", clock.year)));
        }
        in_range(clock.month, 1, 12, "month")?;
        if !(1..=days_in_month(clock.year, clock.month)).contains(&clock.day) {
            return Err(Error::value("day is out of range for month"));
        }
        in_range(clock.hour, 0, 23, "hour")?;
        in_range(clock.minute, 0, 59, "minute")?;
        in_range(clock.second, 0, 59, "second")?;
        in_range(clock.microsecond, 0, 999_999, "microsecond")?;
        let local = days(clock.year, clock.month, clock.day) * DAY
            + clock.hour * HOUR
            + clock.minute * MINUTE
            + clock.second * SECOND
            + clock.microsecond;
        Ok(Self { local, offset: zone(offset)?, is_local: false })
    }

    /// Microseconds since 1970 in UTC, converted to an offset.
    pub(crate) fn from_instant(instant: i128, offset: TimeSpan) -> Result<Self, Error> {
        let offset = zone(offset)?;
        Self::checked(instant + i128::from(offset), offset)
    }

    /// Now.
    #[expect(clippy::disallowed_methods, reason = "the language has now(); Kiln itself does not depend on it")]
    pub(crate) fn now(offset: TimeSpan) -> Result<Self, Error> {
        Self::from_instant(i128::from(jiff::Timestamp::now().as_microsecond()), offset)
    }

    fn checked(local: i128, offset: i64) -> Result<Self, Error> {
        let local = local.to_i64().filter(|local| (FIRST_DAY..END_DAY).contains(&local.div_euclid(DAY)));
        match local {
            Some(local) => Ok(Self { local, offset, is_local: false }),
            None => Err(Error::new("OverflowError", "date value out of range")),
        }
    }

    /// Microseconds since 1970 in UTC.
    pub(crate) fn instant(self) -> i64 {
        self.local - self.offset
    }

    /// The UTC offset.
    pub(crate) fn offset(self) -> TimeSpan {
        TimeSpan(i128::from(self.offset))
    }

    pub(crate) fn clock(self) -> Clock {
        let (year, month, day) = date(self.local.div_euclid(DAY));
        let rest = self.local.rem_euclid(DAY);
        Clock {
            year,
            month,
            day,
            hour: rest / HOUR,
            minute: rest % HOUR / MINUTE,
            second: rest % MINUTE / SECOND,
            microsecond: rest % SECOND,
        }
    }

    /// Monday is 0.
    pub(crate) fn weekday(self) -> i64 {
        (self.local.div_euclid(DAY) + 3).rem_euclid(7)
    }

    /// 1 for the first of January.
    pub(crate) fn day_of_year(self) -> i64 {
        self.local.div_euclid(DAY) - days(self.clock().year, 1, 1) + 1
    }

    /// Midnight of the same day.
    pub(crate) fn midnight(self) -> Self {
        Self { local: self.local - self.local.rem_euclid(DAY), ..self }
    }

    /// Adds a timespan.
    pub(crate) fn plus(self, span: TimeSpan) -> Result<Self, Error> {
        let later = Self::checked(i128::from(self.local) + span.0, self.offset)?;
        Ok(Self { is_local: self.is_local, ..later })
    }

    /// Another time in the same zone.
    pub(crate) fn at(self, clock: Clock) -> Result<Self, Error> {
        Ok(Self { is_local: self.is_local, ..Self::new(clock, self.offset())? })
    }

    /// The same time in the zone of the service, as printed.
    pub(crate) fn in_local_zone(self) -> Self {
        Self { is_local: true, ..self }
    }

    pub(crate) fn since(self, other: Self) -> TimeSpan {
        TimeSpan(i128::from(self.instant()) - i128::from(other.instant()))
    }

    /// ISO 8601 with a separator between date and time.
    pub(crate) fn text(self, between: char) -> String {
        let clock = self.clock();
        let mut out = format!("{:04}-{:02}-{:02}{between}", clock.year, clock.month, clock.day);
        _ = write!(out, "{:02}:{:02}:{:02}", clock.hour, clock.minute, clock.second);
        if clock.microsecond != 0 {
            _ = write!(out, ".{:06}", clock.microsecond);
        }
        out + &self.zone_text(":")
    }

    /// `+01:00`, with seconds and their fraction if they are not zero.
    pub(crate) fn zone_text(self, colon: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let lead = self.offset.abs();
        let mut out = format!("{sign}{:02}{colon}{:02}", lead / HOUR, lead % HOUR / MINUTE);
        if lead % MINUTE != 0 {
            _ = write!(out, "{colon}{:02}", lead % MINUTE / SECOND);
        }
        if lead % SECOND != 0 {
            _ = write!(out, ".{:06}", lead % SECOND);
        }
        out
    }

    pub(crate) fn repr(self) -> String {
        let clock = self.clock();
        let mut out = format!("datetime.datetime({}, {}, {}", clock.year, clock.month, clock.day);
        _ = write!(out, ", {}, {}", clock.hour, clock.minute);
        if clock.second != 0 || clock.microsecond != 0 {
            _ = write!(out, ", {}", clock.second);
        }
        if clock.microsecond != 0 {
            _ = write!(out, ", {}", clock.microsecond);
        }
        match self.offset {
            0 if self.is_local => out.push_str(", tzinfo=tzlocal())"),
            0 => out.push_str(", tzinfo=tzutc())"),
            lead => _ = write!(out, ", tzinfo=tzoffset(None, {}))", lead / SECOND),
        }
        out
    }
}

fn zone(offset: TimeSpan) -> Result<i64, Error> {
    let lead = offset.0.to_i64().filter(|lead| lead.abs() < DAY);
    lead.ok_or_else(|| {
        Error::value("offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24).")
    })
}

/// A timespan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimeSpan(i128);

impl TimeSpan {
    pub(crate) const ZERO: Self = Self(0);

    /// Errors: more days than Python supports.
    pub(crate) fn new(microseconds: i128) -> Result<Self, Error> {
        let days = microseconds.div_euclid(i128::from(DAY));
        if days.abs() > MOST_DAYS {
            return Err(Error::new("OverflowError", format!("days={days}; must have magnitude <= {MOST_DAYS}")));
        }
        Ok(Self(microseconds))
    }

    /// A timespan from a float; rounds half to even microseconds.
    #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates, and truncated values are refused")]
    pub(crate) fn from_float(microseconds: f64) -> Result<Self, Error> {
        if microseconds.is_nan() {
            return Err(Error::value("cannot convert float NaN to integer"));
        }
        Self::new(microseconds.round_ties_even() as i128)
    }

    pub(crate) fn microseconds(self) -> i128 {
        self.0
    }

    /// The timespan in a unit.
    pub(crate) fn in_units(self, unit: i64) -> f64 {
        self.0.to_f64().unwrap_or(0.0) / unit.to_f64().unwrap_or(1.0)
    }

    pub(crate) fn seconds(self) -> f64 {
        self.in_units(SECOND)
    }

    pub(crate) fn text(self) -> String {
        let (days, rest) = self.parts();
        let mut out = match days {
            0 => String::new(),
            1 | -1 => format!("{days} day, "),
            _ => format!("{days} days, "),
        };
        _ = write!(out, "{}:{:02}:{:02}", rest / HOUR, rest % HOUR / MINUTE, rest % MINUTE / SECOND);
        if rest % SECOND != 0 {
            _ = write!(out, ".{:06}", rest % SECOND);
        }
        out
    }

    pub(crate) fn repr(self) -> String {
        let (days, rest) = self.parts();
        let parts = [("days", days), ("seconds", rest / SECOND), ("microseconds", rest % SECOND)];
        let parts: Vec<_> = parts.iter().filter(|part| part.1 != 0).map(|(name, n)| format!("{name}={n}")).collect();
        let parts = if parts.is_empty() { "0".to_owned() } else { parts.join(", ") };
        format!("datetime.timedelta({parts})")
    }

    /// Days, which may be negative, and the remaining microseconds.
    fn parts(self) -> (i64, i64) {
        let day = i128::from(DAY);
        (self.0.div_euclid(day).to_i64().unwrap_or(0), self.0.rem_euclid(day).to_i64().unwrap_or(0))
    }
}
