//! Parsing of times: with a format, or in free form.

use kiln_value::text::quote;

use super::format::{MONTHS, WEEKDAYS};
use super::{Clock, DateTime, HOUR, MINUTE, SECOND, TimeSpan, days_in_month};
use crate::Error;

/// `datetime.strptime(text, format)`; without an offset the time is in UTC.
///
/// Errors: `ValueError`.
pub(crate) fn parse_as(text: &str, format: &str) -> Result<DateTime, Error> {
    let mut reading = Reading { rest: text, clock: Clock::midnight(1900, 1, 1), half: None, day: None, offset: 0 };
    if reading.all(format).is_none() {
        let message = format!("time data {} does not match format {}", quote(text), quote(format));
        return Err(Error::value(message));
    }
    if !reading.rest.is_empty() {
        return Err(Error::value(format!("unconverted data remains: {}", reading.rest)));
    }
    let mut clock = reading.clock;
    if let Some(afternoon) = reading.half {
        clock.hour = clock.hour % 12 + if afternoon { 12 } else { 0 };
    }
    if let Some(day) = reading.day {
        clock.month = 1;
        clock.day = day;
        while clock.day > days_in_month(clock.year, clock.month) && clock.month < 12 {
            clock.day -= days_in_month(clock.year, clock.month);
            clock.month += 1;
        }
    }
    DateTime::new(clock, TimeSpan::new(i128::from(reading.offset))?)
}

/// A text that is parsed with a format.
struct Reading<'t> {
    rest: &'t str,
    clock: Clock,
    /// Whether it is PM, if specified.
    half: Option<bool>,
    /// The day of the year.
    day: Option<i64>,
    offset: i64,
}

impl Reading<'_> {
    /// `None` if the text does not match the format.
    fn all(&mut self, format: &str) -> Option<()> {
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            match c {
                '%' => self.directive(chars.next()?)?,
                c if c.is_whitespace() => self.rest = self.rest.trim_start(),
                c => self.rest = self.rest.strip_prefix(c)?,
            }
        }
        Some(())
    }

    fn directive(&mut self, directive: char) -> Option<()> {
        match directive {
            'Y' => self.clock.year = self.number(4)?,
            'y' => {
                let year = self.number(2)?;
                self.clock.year = if year < 69 { 2000 + year } else { 1900 + year };
            }
            'm' => self.clock.month = self.number(2)?,
            'd' => self.clock.day = self.number(2)?,
            'H' => self.clock.hour = self.number(2)?,
            'I' => self.clock.hour = self.number(2).filter(|hour| (1..=12).contains(hour))?,
            'M' => self.clock.minute = self.number(2)?,
            'S' => self.clock.second = self.number(2)?,
            'j' => self.day = Some(self.number(3).filter(|day| (1..=366).contains(day))?),
            'f' => {
                let digits = self.rest.bytes().take(6).take_while(u8::is_ascii_digit).count();
                let fraction = self.number(6)?;
                self.clock.microsecond = fraction * 10i64.pow(6 - u32::try_from(digits).ok()?);
            }
            'B' => self.clock.month = self.name(&MONTHS, false)?,
            'b' | 'h' => self.clock.month = self.name(&MONTHS, true)?,
            'A' => _ = self.name(&WEEKDAYS, false)?,
            'a' => _ = self.name(&WEEKDAYS, true)?,
            'w' | 'u' => _ = self.number(1)?,
            'U' | 'W' => _ = self.number(2)?,
            'p' => self.half = Some(self.name(&["AM", "PM"], false)? == 2),
            'z' => self.offset = zone(&mut self.rest)?,
            'Z' => {
                let name = ["UTC", "GMT", "utc", "gmt"].iter().find(|name| self.rest.starts_with(**name))?;
                self.rest = self.rest.strip_prefix(name)?;
            }
            'D' | 'x' => self.all("%m/%d/%y")?,
            'F' => self.all("%Y-%m-%d")?,
            'T' | 'X' => self.all("%H:%M:%S")?,
            'R' => self.all("%H:%M")?,
            'c' => self.all("%a %b %d %H:%M:%S %Y")?,
            '%' => self.rest = self.rest.strip_prefix('%')?,
            _ => return None,
        }
        Some(())
    }

    /// A number with limited digits.
    fn number(&mut self, most: usize) -> Option<i64> {
        let len = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits.parse().ok()
    }

    /// The position of a name in a list, from 1.
    fn name(&mut self, names: &[&str], short: bool) -> Option<i64> {
        for (name, number) in names.iter().zip(1..) {
            let name = if short { name.get(..3)? } else { name };
            let found = self.rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
            if found {
                self.rest = self.rest.get(name.len()..)?;
                return Some(number);
            }
        }
        None
    }
}

fn is_digit(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses `Z`, `+hh`, `+hhmm` or `+hh:mm` to microseconds.
fn zone(rest: &mut &str) -> Option<i64> {
    if let Some(behind) = rest.strip_prefix(['Z', 'z']) {
        *rest = behind;
        return Some(0);
    }
    let sign = match rest.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let two = |text: &str| text.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?.parse().ok();
    let behind = rest.get(1..)?;
    let hours: i64 = two(behind)?;
    *rest = behind.get(2..)?;
    let minutes: Option<i64> = two(rest.strip_prefix(':').unwrap_or(rest));
    if minutes.is_some() {
        *rest = rest.strip_prefix(':').unwrap_or(rest).get(2..)?;
    }
    Some(sign * (hours * HOUR + minutes.unwrap_or(0) * MINUTE))
}

/// The parts of a free-form text; missing parts are those of today's midnight.
#[derive(Debug, Default)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    /// Numbers of a date whose meaning depends on their order.
    numbers: Vec<(i64, usize)>,
    time: Option<[i64; 4]>,
    offset: Option<i64>,
    /// The name of a zone. Unknown zones are UTC.
    zone: Option<String>,
    weekday: bool,
    /// Whether the last part belongs to a date, so that a dash continues the date and is not an offset.
    in_date: bool,
}

/// A time in free form: ISO 8601, `2 Jan 2016 10:30 PM`, `01/02/2016`, `20160102T030405` and the like.
///
/// Errors: `ParserError`.
pub(crate) fn parse(text: &str) -> Result<DateTime, Error> {
    let unknown = || Error::new("ParserError", format!("Unknown string format: {text}"));
    let mut found = Found::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        rest = found.part(rest).ok_or_else(unknown)?;
    }
    let has_date = found.year.is_some() || found.month.is_some() || !found.numbers.is_empty() || found.weekday;
    if !has_date && found.time.is_none() {
        return Err(Error::new("ParserError", format!("String does not contain a date: {text}")));
    }
    let today = DateTime::now(TimeSpan::ZERO)?.clock();
    found.assign(today.year).ok_or_else(unknown)?;
    let mut clock = Clock::midnight(found.year.unwrap_or(today.year), found.month.unwrap_or(today.month), 1);
    clock.day = match found.day {
        Some(day) => day,
        None => today.day.min(days_in_month(clock.year, clock.month)),
    };
    if let Some([hour, minute, second, microsecond]) = found.time {
        clock = Clock { hour, minute, second, microsecond, ..clock };
    }
    let offset = TimeSpan::new(i128::from(found.offset.unwrap_or(0)))?;
    let time = DateTime::new(clock, offset).map_err(|e| Error::new("ParserError", format!("{}: {text}", e.message)))?;
    // The service's zone is UTC.
    let is_local =
        found.offset.is_none() && found.zone.as_deref().is_some_and(|zone| ["UTC", "Z", "z"].contains(&zone));
    Ok(if is_local { time.in_local_zone() } else { time })
}

impl Found {
    /// Parses the next part; returns the rest.
    fn part<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let first = text.chars().next()?;
        if first.is_ascii_digit() {
            return self.digits(text);
        }
        if first.is_alphabetic() {
            let len = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
            let (word, rest) = text.split_at(len);
            self.in_date = false;
            self.word(word)?;
            if self.zone.as_deref() == Some(word) && rest.starts_with(['+', '-']) {
                // `UTC+3` is three hours behind UTC, as in POSIX.
                let sign = if rest.starts_with('+') { -1 } else { 1 };
                let digits = rest.get(1..)?;
                if let Some(hours) = digits.get(..1).filter(|_| !digits.get(1..2).is_some_and(is_digit)) {
                    self.offset = Some(sign * hours.parse::<i64>().ok()? * HOUR);
                    return digits.get(1..);
                }
                let mut rest = rest;
                self.offset = Some(-zone(&mut rest)?);
                return Some(rest);
            }
            return Some(rest);
        }
        let in_date = std::mem::take(&mut self.in_date) && first == '-';
        if matches!(first, '+' | '-') && !in_date && self.time.is_some() && self.offset.is_none() {
            let mut rest = text;
            self.offset = Some(zone(&mut rest)?);
            return Some(rest);
        }
        " ,;/-.'\t\n".contains(first).then(|| text.get(first.len_utf8()..)).flatten()
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let is = |name: &&str| word.len() >= 3 && name.to_lowercase().starts_with(&word.to_lowercase());
        if let Some(month) =
            MONTHS.iter().position(|name| is(name) || (word.eq_ignore_ascii_case("sept") && *name == "September"))
        {
            if self.month.is_some() {
                return None;
            }
            self.month = Some(i64::try_from(month).ok()? + 1);
            self.in_date = true;
        } else if WEEKDAYS.iter().any(is) {
            self.weekday = true;
        } else {
            match word.to_lowercase().as_str() {
                "am" | "pm" => {
                    let afternoon = word.to_lowercase() == "pm";
                    let time = self.time.get_or_insert([0; 4]);
                    if !(1..=12).contains(&time[0]) {
                        let (hour, _) = self.numbers.pop().filter(|(hour, _)| (1..=12).contains(hour))?;
                        time[0] = hour;
                    }
                    time[0] = time[0] % 12 + if afternoon { 12 } else { 0 };
                }
                _ if self.names_zone(word) => self.zone = Some(word.to_owned()),
                "t" | "at" | "on" | "and" | "of" | "st" | "nd" | "rd" | "th" => {}
                _ => return None,
            }
        }
        Some(())
    }

    /// Whether a word is a zone: up to five capitals after a time.
    fn names_zone(&self, word: &str) -> bool {
        let is_name = word == "z" || (word.len() <= 5 && word.bytes().all(|byte| byte.is_ascii_uppercase()));
        is_name && self.time.is_some() && self.zone.is_none() && self.offset.is_none()
    }

    fn digits<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let len = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, rest) = text.split_at(len);
        let number = |range: std::ops::Range<usize>| digits.get(range).and_then(|part| part.parse::<i64>().ok());
        if self.time.is_none() && rest.starts_with(':') {
            return self.clock(number(0..len)?, rest);
        }
        match len {
            // HH, HHMM or HHMMSS after a complete date.
            2 | 4 | 6 if self.time.is_none() && self.has_whole_date() => {
                self.time = Some([number(0..2)?, number(2..4).unwrap_or(0), number(4..6).unwrap_or(0), 0]);
            }
            8 | 12 | 14 => {
                self.year = number(0..4);
                self.month = number(4..6);
                self.day = number(6..8);
                if len > 8 {
                    self.time = Some([number(8..10)?, number(10..12)?, number(12..14).unwrap_or(0), 0]);
                }
            }
            1 | 2 | 4 | 6 => {
                self.numbers.push((number(0..len)?, len));
                self.in_date = true;
            }
            _ => return None,
        }
        Some(rest)
    }

    fn has_whole_date(&self) -> bool {
        self.day.is_some() || self.numbers.len() + usize::from(self.month.is_some()) >= 3
    }

    /// `:MM[:SS[.ffffff]]` after the hour.
    fn clock<'t>(&mut self, hour: i64, text: &'t str) -> Option<&'t str> {
        let mut rest = text;
        let mut parts = [hour, 0, 0, 0];
        for slot in parts.get_mut(1..3)? {
            let Some(behind) = rest.strip_prefix(':') else { break };
            let len = behind.bytes().take_while(u8::is_ascii_digit).count();
            *slot = behind.get(..len)?.parse().ok()?;
            rest = behind.get(len..)?;
        }
        if let Some(behind) = rest.strip_prefix(['.', ',']) {
            let len = behind.bytes().take_while(u8::is_ascii_digit).count();
            if len > 0 {
                let digits: String = behind.get(..len)?.chars().chain("000000".chars()).take(6).collect();
                parts[3] = digits.parse::<i64>().ok()?.min(SECOND - 1);
                rest = behind.get(len..)?;
            }
        }
        self.time = Some(parts);
        Some(rest)
    }

    /// Determines the meaning of the numbers.
    fn assign(&mut self, this_year: i64) -> Option<()> {
        let numbers = std::mem::take(&mut self.numbers);
        if numbers.is_empty() {
            return Some(());
        }
        if self.year.is_some() {
            return None;
        }
        let is_year = |(n, len): (i64, usize)| n > 31 || len > 2;
        let year = |(n, len): (i64, usize)| match len {
            1 | 2 => {
                // The century with the year nearest to the current one.
                let near = this_year - this_year.rem_euclid(100) + n;
                if near >= this_year + 50 {
                    near - 100
                } else if near < this_year - 50 {
                    near + 100
                } else {
                    near
                }
            }
            _ => n,
        };
        match (numbers.as_slice(), self.month) {
            ([a], _) if is_year(*a) => self.year = Some(year(*a)),
            ([a], _) => self.day = Some(a.0),
            ([a, b], Some(_)) => {
                let (day, last) = if is_year(*a) { (b, a) } else { (a, b) };
                self.day = Some(day.0);
                self.year = Some(year(*last));
            }
            ([a, b], None) if is_year(*a) => (self.year, self.month) = (Some(year(*a)), Some(b.0)),
            ([a, b], None) if is_year(*b) => (self.month, self.year) = (Some(a.0), Some(year(*b))),
            ([a, b], None) if a.0 > 12 => (self.day, self.month) = (Some(a.0), Some(b.0)),
            ([a, b], None) => (self.month, self.day) = (Some(a.0), Some(b.0)),
            ([a, b, c], None) if is_year(*a) => {
                self.year = Some(year(*a));
                let (month, day) = if b.0 > 12 { (c.0, b.0) } else { (b.0, c.0) };
                (self.month, self.day) = (Some(month), Some(day));
            }
            ([a, b, c], None) => {
                self.year = Some(year(*c));
                let (month, day) = if a.0 > 12 { (b.0, a.0) } else { (a.0, b.0) };
                (self.month, self.day) = (Some(month), Some(day));
            }
            _ => return None,
        }
        Some(())
    }
}
