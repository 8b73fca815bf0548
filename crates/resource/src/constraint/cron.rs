//! Cron expressions with the rules and error texts of the croniter library.

const LENGTH: &str = "Exactly 5, 6 or 7 columns has to be specified for iterator expression.";

const ALIASES: [&str; 7] = ["@midnight", "@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A column: the numbers it takes, and words for them from `first` on.
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

/// Minute, hour, day, month, weekday, then maybe second and year.
const COLUMNS: [Column; 7] = [
    column(0, 59),
    column(0, 23),
    column(1, 31),
    Column { min: 1, max: 12, words: &MONTHS, first: 1 },
    Column { min: 0, max: 7, words: &WEEKDAYS, first: 0 },
    column(0, 59),
    column(1970, 2099),
];

/// Five to seven columns, or an alias such as `@daily`; empty is accepted.
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

    /// `*`, `5`, `jan`, `1-5`, each with `/step`; `l`; of weekdays also `fri#2` and `l5`.
    fn item(&self, item: &str) -> Result<(), String> {
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
                Err(_) => return self.refused(""),
            }
        }
        match range.split_once('-') {
            _ if range == "*" => Ok(()),
            Some(("", _)) => self.refused(",negative numbers not allowed"),
            Some((low, high)) => {
                let high = if self.index == DAY && high == "l" { "31" } else { high };
                self.number(low, true)?;
                self.number(high, true)
            }
            None if range == "l" && self.index == DAY && step.is_none() => Ok(()),
            None => self.number(range, false),
        }
    }

    /// The weekday of `fri#2` and `l5`; other items as they are.
    fn weekday_of_month<'i>(&self, item: &'i str) -> Result<&'i str, String> {
        if self.index != WEEKDAY {
            return Ok(item);
        }
        if let Some((day, week)) = item.split_once('#') {
            return match week.parse::<u32>() {
                Ok(1..=5) => Ok(day),
                _ => self.refused(&format!(".  Invalid day_of_week value: '{item}'")),
            };
        }
        match item.strip_prefix('l') {
            Some(day) if !day.is_empty() => Ok(day),
            _ => Ok(item),
        }
    }

    fn number(&self, word: &str, in_range: bool) -> Result<(), String> {
        let known = self.rule.words.iter().zip(self.rule.first..).find(|(name, _)| **name == word).map(|(_, n)| n);
        match known.or_else(|| word.parse::<u32>().ok()) {
            None => Err(format!("[{}] is not acceptable", self.columns.join(" "))),
            Some(n) if (self.rule.min..=self.rule.max).contains(&n) => Ok(()),
            Some(_) if in_range => Err(format!("{} is out of bands", self.text)),
            Some(_) => self.refused(", out of range"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_is_shown_as_it_was_read() {
        let reason = |text: &str| expression(text).unwrap_err();
        assert_eq!(reason("0 0  LL * *"), "Invalid CRON expression: [0 0 ll * *] is not acceptable");
        assert_eq!(reason("60  * * * *"), "Invalid CRON expression: [60  * * * *] is not acceptable, out of range");
    }
}
