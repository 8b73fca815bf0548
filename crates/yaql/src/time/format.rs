//! Formatting of times: C's `strftime`.

use std::fmt::Write as _;

use super::{DateTime, SECOND};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The name at a position; its first three letters if `short`.
fn name(names: &[&'static str], index: i64, short: bool) -> &'static str {
    let name = usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default();
    if short { name.get(..3).unwrap_or(name) } else { name }
}

/// `time.strftime(format)` in the C locale; unknown directives are kept.
pub(crate) fn format(time: DateTime, format: &str) -> String {
    let mut out = String::with_capacity(format.len());
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(directive) => write(&mut out, time, directive),
            None => out.push('%'),
        }
    }
    out
}

fn write(out: &mut String, time: DateTime, directive: char) {
    let clock = time.clock();
    let weekday = time.weekday();
    let hour = (clock.hour + 11) % 12 + 1;
    let half = if clock.hour < 12 { "AM" } else { "PM" };
    let again = |out: &mut String, text: &str| out.push_str(&format(time, text));
    match directive {
        '%' => out.push('%'),
        'n' => out.push('\n'),
        't' => out.push('\t'),
        'a' => out.push_str(name(&WEEKDAYS, weekday, true)),
        'A' => out.push_str(name(&WEEKDAYS, weekday, false)),
        'b' | 'h' => out.push_str(name(&MONTHS, clock.month - 1, true)),
        'B' => out.push_str(name(&MONTHS, clock.month - 1, false)),
        'p' => out.push_str(half),
        'P' => out.push_str(&half.to_lowercase()),
        'Y' => _ = write!(out, "{}", clock.year),
        'C' => _ = write!(out, "{:02}", clock.year / 100),
        'y' => _ = write!(out, "{:02}", clock.year % 100),
        'm' => _ = write!(out, "{:02}", clock.month),
        'd' => _ = write!(out, "{:02}", clock.day),
        'e' => _ = write!(out, "{:2}", clock.day),
        'H' => _ = write!(out, "{:02}", clock.hour),
        'k' => _ = write!(out, "{:2}", clock.hour),
        'I' => _ = write!(out, "{hour:02}"),
        'l' => _ = write!(out, "{hour:2}"),
        'M' => _ = write!(out, "{:02}", clock.minute),
        'S' => _ = write!(out, "{:02}", clock.second),
        'f' => _ = write!(out, "{:06}", clock.microsecond),
        'j' => _ = write!(out, "{:03}", time.day_of_year()),
        'w' => _ = write!(out, "{}", (weekday + 1) % 7),
        'u' => _ = write!(out, "{}", weekday + 1),
        'U' => _ = write!(out, "{:02}", (time.day_of_year() + 6 - (weekday + 1) % 7) / 7),
        'W' => _ = write!(out, "{:02}", (time.day_of_year() + 6 - weekday) / 7),
        's' => _ = write!(out, "{}", time.instant().div_euclid(SECOND)),
        'z' => out.push_str(&time.zone_text("")),
        'Z' if time.offset().microseconds() == 0 => out.push_str("UTC"),
        'Z' => {}
        'c' => again(out, "%a %b %e %H:%M:%S %Y"),
        'D' | 'x' => again(out, "%m/%d/%y"),
        'F' => again(out, "%Y-%m-%d"),
        'T' | 'X' => again(out, "%H:%M:%S"),
        'R' => again(out, "%H:%M"),
        'r' => again(out, "%I:%M:%S %p"),
        other => {
            out.push('%');
            out.push(other);
        }
    }
}
