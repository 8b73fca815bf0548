//! The values in Heat's tables: texts of numbers, truth values, times and JSON, in the forms of all its databases.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use kiln_store::ForeignRow;
use kiln_value::{Map, Value};

use crate::Finding;

/// A value that Heat does not write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{table} {row}: {column} {why}")]
pub struct Damaged {
    /// The table.
    pub table: &'static str,
    /// Its row: the first column.
    pub row: String,
    /// The column.
    pub column: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl Damaged {
    /// What it means for its stack.
    pub(crate) fn finding(&self) -> Finding {
        Finding::blocks("", format!("a row of Heat cannot be read: {self}"), "look at the row, and correct it")
    }
}

/// Reads the columns of a row in their order.
pub(super) struct Values<'r> {
    table: &'static str,
    columns: &'static [&'static str],
    row: &'r ForeignRow,
    next: usize,
}

impl<'r> Values<'r> {
    pub(super) fn new(table: &'static str, columns: &'static [&'static str], row: &'r ForeignRow) -> Self {
        Self { table, columns, row, next: 0 }
    }

    fn next(&mut self) -> Option<&'r str> {
        let value = self.row.get(self.next).and_then(Option::as_deref);
        self.next += 1;
        value
    }

    fn damaged(&self, why: impl Into<String>) -> Damaged {
        let row = self.row.first().and_then(Clone::clone).unwrap_or_default();
        let column = self.columns.get(self.next - 1).copied().unwrap_or_default();
        Damaged { table: self.table, row, column, why: why.into() }
    }

    /// A text; NULL is the empty one.
    pub(super) fn text(&mut self) -> String {
        self.next().unwrap_or_default().to_owned()
    }

    /// A text; NULL and the empty one are none.
    pub(super) fn optional_text(&mut self) -> Option<String> {
        self.next().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub(super) fn number(&mut self) -> Result<i64, Damaged> {
        self.optional_number()?.ok_or_else(|| self.damaged("is NULL"))
    }

    pub(super) fn optional_number(&mut self) -> Result<Option<i64>, Damaged> {
        let number = self.next().map(str::parse).transpose();
        number.map_err(|_| self.damaged("is not a number"))
    }

    /// A truth value; NULL is false.
    pub(super) fn flag(&mut self) -> bool {
        self.next().is_some_and(|text| matches!(text, "1" | "true" | "t"))
    }

    /// A time in UTC, without a zone.
    pub(super) fn time(&mut self) -> Result<Timestamp, Damaged> {
        self.optional_time()?.ok_or_else(|| self.damaged("is NULL"))
    }

    pub(super) fn optional_time(&mut self) -> Result<Option<Timestamp>, Damaged> {
        let Some(text) = self.next() else { return Ok(None) };
        let time = text.parse::<DateTime>().and_then(|time| time.to_zoned(TimeZone::UTC));
        time.map(|time| Some(time.timestamp())).map_err(|_| self.damaged("is not a time"))
    }

    /// JSON; NULL and `null` are null.
    pub(super) fn json(&mut self) -> Result<Value, Damaged> {
        let Some(text) = self.next().filter(|text| !text.is_empty()) else { return Ok(Value::Null) };
        serde_json::from_str(text).map_err(|error| self.damaged(format!("is not JSON: {error}")))
    }

    /// A JSON object; null is an empty one.
    pub(super) fn map(&mut self) -> Result<Map, Damaged> {
        match self.json()? {
            Value::Null => Ok(Map::new()),
            Value::Map(map) => Ok(map),
            _ => Err(self.damaged("is not a JSON object")),
        }
    }

    /// A JSON list; null is an empty one.
    pub(super) fn list(&mut self) -> Result<Vec<Value>, Damaged> {
        match self.json()? {
            Value::Null => Ok(Vec::new()),
            Value::List(items) => Ok(items),
            _ => Err(self.damaged("is not a JSON list")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[&str] = &["id", "value"];

    fn values(row: &ForeignRow) -> Values<'_> {
        let mut values = Values::new("stack", COLUMNS, row);
        values.next();
        values
    }

    fn row(value: Option<&str>) -> ForeignRow {
        vec![Some("s1".to_owned()), value.map(str::to_owned)]
    }

    #[test]
    fn values_of_all_databases_are_read() {
        for (text, expected) in [
            ("2026-11-28 10:20:30", "2026-11-28T10:20:30Z"),
            ("2026-11-28 10:20:30.123456", "2026-11-28T10:20:30.123456Z"),
            ("2026-11-28T10:20:30", "2026-11-28T10:20:30Z"),
        ] {
            assert_eq!(values(&row(Some(text))).time().unwrap().to_string(), expected);
        }
        for (text, expected) in [(Some("1"), true), (Some("true"), true), (Some("0"), false), (None, false)] {
            assert_eq!(values(&row(text)).flag(), expected);
        }
        for empty in [None, Some("null"), Some("")] {
            assert_eq!(values(&row(empty)).map(), Ok(Map::new()));
            assert_eq!(values(&row(empty)).list(), Ok(Vec::new()));
        }
        assert_eq!(values(&row(Some("12"))).number(), Ok(12));
    }

    #[test]
    fn what_heat_does_not_write_is_named() {
        let said = |damaged: Damaged| damaged.to_string();
        assert_eq!(said(values(&row(None)).number().unwrap_err()), "stack s1: value is NULL");
        assert_eq!(said(values(&row(Some("x"))).number().unwrap_err()), "stack s1: value is not a number");
        assert_eq!(said(values(&row(Some("x"))).time().unwrap_err()), "stack s1: value is not a time");
        assert_eq!(said(values(&row(Some("[]"))).map().unwrap_err()), "stack s1: value is not a JSON object");
        assert!(said(values(&row(Some("{"))).json().unwrap_err()).starts_with("stack s1: value is not JSON: "));
    }
}
