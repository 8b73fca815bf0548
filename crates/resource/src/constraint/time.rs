//! Times and time zones.

use std::sync::LazyLock;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use kiln_value::{Pattern, Value, regex, text};

/// A date with an optional time and offset: month and day may be missing, dashes and colons may be omitted.
const ISO_8601: &str = concat!(
    r"([0-9]{4})(?:(?:-([0-9]{1,2})|([0-9]{2})(?!$))(?:(?:-([0-9]{1,2})|([0-9]{2}))",
    r"(?:[ T]([0-9]{2})(?::?([0-9]{2}))?(?::?([0-9]{1,2})(?:[.,]([0-9]+))?)?",
    r"(?:Z|([-+])([0-9]{2}):?([0-9]{2})?)?)?)?)?$",
);

/// A time zone by its name in the IANA database; an empty name is valid.
pub(super) fn zone(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Ok(());
    }
    if name.starts_with('/') || name.split('/').any(|part| part == "..") {
        return Err(format!("Invalid timezone: ZoneInfo keys must refer to subdirectories of TZPATH, got: {name}"));
    }
    // Names are case-sensitive, although the lookup is not.
    match TimeZone::get(name) {
        Ok(zone) if zone.iana_name() == Some(name) => Ok(()),
        _ => {
            let reason = Value::from(format!("No time zone found with key {name}"));
            Err(format!("Invalid timezone: {}", text::repr(&reason)))
        }
    }
}

/// An ISO 8601 time, or a prefix of it from the year on.
pub(super) fn iso_8601(value: &Value) -> Result<(), String> {
    value.as_str().and_then(read).map(|_| ()).ok_or_else(String::new)
}

/// A time in the future; an empty string is valid.
pub(super) fn expiration(text: &str, now: f64) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let reason = match read(text.trim()) {
        Some(time) if time.as_secs_f64() > now => return Ok(()),
        Some(_) => "Expiration time is out of date.".to_owned(),
        None => format!("Unable to parse date string {}", text::repr(&text.trim().into())),
    };
    Err(format!("Expiration {text} is invalid: {reason}"))
}

/// The time since 1970 in UTC; without an offset, the time is in UTC.
fn read(text: &str) -> Option<SignedDuration> {
    static PATTERN: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(&format!("^{ISO_8601}")).ok());
    let groups = PATTERN.as_ref()?.search(text, 0, false, &mut regex::MOST_STEPS.clone()).ok()??;
    let group = |index: usize| text.get(groups.get(index)?.clone()?);
    let number = |index: usize, default: i16| group(index).map_or(Some(default), |digits| digits.parse().ok());
    let either = |a: usize, b: usize| number(if group(a).is_some() { a } else { b }, 1);
    let small = |n: i16| i8::try_from(n).ok();
    let year = number(1, 0).filter(|year| *year > 0)?;
    let (month, day) = (small(either(2, 3)?)?, small(either(4, 5)?)?);
    let (hour, minute, second) = (small(number(6, 0)?)?, small(number(7, 0)?)?, small(number(8, 0)?)?);
    let time = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let offset = i64::from(number(11, 0)?) * 3600 + i64::from(number(12, 0)?) * 60;
    if offset >= 24 * 3600 {
        return None;
    }
    let behind = group(10) == Some("-");
    let offset = SignedDuration::from_secs(if behind { -offset } else { offset });
    Some(time.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)) - offset)
}
