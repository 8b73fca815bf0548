//! Cron expressions with the rules and error texts of the croniter library.

const LENGTH: &str = "Exactly 5, 6 or 7 columns has to be specified for iterator expression.";

const ALIASES: [&str; 7] = ["@midnight", "@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A column: its range of numbers, and names for them from `first` on.
struct Column {
    min: u32,
    max: u32,
    words: &'static [&'static str],
    first: u32,
}

const fn column(min: u32, max: u32) -> Column {
    Column { min, max, words: &[], first: 0 }
}

const DAY: usize = 2;
const WEEKDAY: usize = 4;

/// Minute, hour, day, month, weekday, optionally second and year.
const COLUMNS: [Column; 7] = [
    column(0, 59),
    column(0, 23),
    column(1, 31),
    Column { min: 1, max: 12, words: &MONTHS, first: 1 },
    Column { min: 0, max: 7, words: &WEEKDAYS, first: 0 },
    column(0, 59),
    column(1970, 2099),
];

/// Five to seven columns, or an alias such as `@daily`; an empty expression is valid.
pub(super) fn expression(text: &str) -> Result<(), String> {
    let lower = text.to_lowercase();
    if text.is_empty() || ALIASES.contains(&lower.as_str()) {
        return Ok(());
    }
    let columns: Vec<&str> = lower.split_whitespace().collect();
    if !(5..=7).contains(&columns.len()) {
        return Err(format!("Invalid CRON expression: {LENGTH}"));
    }
    for (index, (rule, column)) in COLUMNS.iter().zip(&columns).enumerate() {
        for item in column.split(',') {
            let reader = Reader { text, columns: &columns, index, rule };
            reader.item(item).map_err(|reason| format!("Invalid CRON expression: {reason}"))?;
        }
    }
    Ok(())
}

struct Reader<'a> {
    text: &'a str,
    columns: &'a [&'a str],
    index: usize,
    rule: &'a Column,
}

impl Reader<'_> {
    fn refused<T>(&self, why: &str) -> Result<T, String> {
        Err(format!("[{}] is not acceptable{why}", self.text))
    }

    /// `*`, `5`, `jan`, `1-5`, each with an optional `/step`; `l`; for weekdays also `fri#2` and `l5`.
    fn item(&self, item: &str) -> Result<(), String> {
        if let Some(verdict) = self.by_chance(item) {
            return verdict;
        }
        let item = self.weekday_of_month(item)?;
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        if let Some(step) = step {
            match step.parse::<u32>() {
                Ok(0) => {
                    let reason = format!("[{}] step '{step}' in field {} is not acceptable", self.text, self.index);
                    return Err(reason);
                }
                Ok(_) => {}
                Err(_) => return self.unread(),
            }
        }
        match range.split_once('-') {
            _ if range == "*" => Ok(()),
            None if range == "?" && matches!(self.index, DAY | WEEKDAY) => Ok(()),
            None if range == "?" => self.refused(". Question mark can only used in day_of_month or day_of_week"),
            Some(("l", _)) if self.index == DAY => {
                Err(format!("[{}] bands '{item}' in field {} are not acceptable", self.text, self.index))
            }
            Some(("l", _)) => self.refused(""),
            Some((_, "l")) if self.index != DAY => self.refused(""),
            Some(("", _)) => self.refused(", negative numbers not allowed"),
            Some((low, high)) => {
                let high = if self.index == DAY && high == "l" { "31" } else { high };
                self.number(low, true)?;
                self.number(high, true)
            }
            None if range == "l" && self.index == DAY && step.is_none() => Ok(()),
            // `15w`: the working day nearest to the 15th.
            None if self.index == DAY && step.is_none() && range.ends_with('w') => {
                self.number(range.trim_end_matches('w'), false)
            }
            // With a step, it is the start of a range.
            None => self.number(range, step.is_some()),
        }
    }

    /// `h` and `r`, each with optional `(1-5)` and `/step`: croniter chooses the number, for `h` from an ID that Heat
    /// never passes.
    fn by_chance(&self, item: &str) -> Option<Result<(), String>> {
        let rest = item.strip_prefix(['h', 'r'])?;
        let (range, step) = rest.split_once('/').map_or((rest, None), |(range, step)| (range, Some(step)));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let bounds = range.strip_prefix('(').and_then(|range| range.strip_suffix(')')?.split_once('-'));
        let is_range = range.is_empty() || bounds.is_some_and(|(low, high)| is_number(low) && is_number(high));
        if !is_range || !step.is_none_or(is_number) {
            return None;
        }
        if item.starts_with('h') {
            return Some(Err("Hashed definitions must include hash_id".to_owned()));
        }
        let fits = |text: &str| text.parse().is_ok_and(|n| (self.rule.min..=self.rule.max).contains(&n));
        Some(match bounds {
            Some((low, high)) if !fits(low) || !fits(high) => Err(format!("[{item}] is not acceptable, out of range")),
            _ => Ok(()),
        })
    }

    /// The weekday of `fri#2` and `l5`; other items unchanged.
    fn weekday_of_month<'i>(&self, item: &'i str) -> Result<&'i str, String> {
        if self.index != WEEKDAY {
            return Ok(item);
        }
        if let Some((day, week)) = item.split_once('#') {
            return match week.parse::<u32>() {
                _ if day == "*" || day.is_empty() => self.refused(""),
                Ok(1..=5) => Ok(day),
                Ok(_) => self.refused(&format!(". Invalid day_of_week value: '{week}'")),
                Err(_) => self.refused(""),
            };
        }
        match item.strip_prefix('l') {
            Some(day) if !day.is_empty() => Ok(day),
            _ => Ok(item),
        }
    }

    /// The error for an unreadable expression contains its columns.
    fn unread(&self) -> Result<(), String> {
        Err(format!("[{}] is not acceptable", self.columns.join(" ")))
    }

    fn number(&self, word: &str, in_range: bool) -> Result<(), String> {
        let known = self.rule.words.iter().zip(self.rule.first..).find(|(name, _)| **name == word).map(|(_, n)| n);
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        match known.or_else(|| is_number.then(|| word.parse().unwrap_or(u32::MAX))) {
            None => self.unread(),
            Some(n) if (self.rule.min..=self.rule.max).contains(&n) => Ok(()),
            Some(n) if in_range && n > self.rule.max => Err(format!("{} is out of bands", self.text)),
            Some(_) => self.refused(", out of range"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_contain_unknown_words() {
        let reason = |text: &str| expression(text).unwrap_err();
        assert_eq!(reason("0 0  LL * *"), "Invalid CRON expression: [0 0 ll * *] is not acceptable");
        assert_eq!(reason("60  * * * *"), "Invalid CRON expression: [60  * * * *] is not acceptable, out of range");
    }

    /// The messages of croniter 7.0.
    #[test]
    fn messages_are_those_of_a_new_croniter() {
        for (text, reason) in [
            ("* * 1 * -0", "[* * 1 * -0] is not acceptable, negative numbers not allowed"),
            ("* * h * *", "Hashed definitions must include hash_id"),
            ("9999999999999999999999 1 0 * mon", "[9999999999999999999999 1 0 * mon] is not acceptable, out of range"),
            ("0 59/2 * * *", "0 59/2 * * * is out of bands"),
            ("* ? * 0 1", "[* ? * 0 1] is not acceptable. Question mark can only used in day_of_month or day_of_week"),
            ("* * * 0-7 1", "[* * * 0-7 1] is not acceptable, out of range"),
            ("1 * l-3 1 *", "[1 * l-3 1 *] bands 'l-3' in field 2 are not acceptable"),
            ("* 1 * * fri#6", "[* 1 * * fri#6] is not acceptable. Invalid day_of_week value: '6'"),
            ("* 1 * * *#1", "[* 1 * * *#1] is not acceptable"),
        ] {
            assert_eq!(expression(text), Err(format!("Invalid CRON expression: {reason}")), "{text}");
        }
        for text in ["r * ? * *", "* * 15w * *", "r(0-5) * * * ?"] {
            assert_eq!(expression(text), Ok(()), "{text}");
        }
    }
}
