//! The formats of values in queries and bodies (`common/param_utils.py`).

use std::collections::BTreeSet;

use kiln_value::{Diagnostic, Value};
use kiln_web::Query;

use crate::argument;
use crate::error::ApiError;

/// The longest list of a call that only Kiln has; clients ask for the next page.
pub(crate) const LONGEST_LIST: u64 = 1_000;

/// Values of a query by format.
pub(crate) trait Formats {
    /// A boolean; `None` if it is missing.
    fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError>;

    /// A non-negative integer; `None` if it is missing.
    fn integer(&self, name: &str) -> Result<Option<i64>, ApiError>;

    /// The length of a list: `limit`, at most this number, which is also the length without it.
    fn limit(&self, most: u64) -> Result<u64, ApiError>;

    /// A list of tags; empty if it is missing.
    fn tags(&self, name: &str) -> Result<Vec<String>, ApiError>;
}

impl Formats for Query {
    fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.get(name).map(|value| boolean(name, &value.into())).transpose()
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.get(name).map(|value| integer(name, &value.into())).transpose()
    }

    fn limit(&self, most: u64) -> Result<u64, ApiError> {
        let limit = self.integer("limit")?.and_then(|limit| u64::try_from(limit).ok());
        Ok(limit.map_or(most, |limit| limit.min(most)))
    }

    fn tags(&self, name: &str) -> Result<Vec<String>, ApiError> {
        self.get(name).map_or_else(|| Ok(Vec::new()), tags)
    }
}

fn refused(error: &Diagnostic) -> ApiError {
    ApiError::bad_request(error.to_string())
}

/// `true` or `false` in any case, as a string or a boolean.
pub(crate) fn boolean(name: &str, value: &Value) -> Result<bool, ApiError> {
    argument::boolean(name, value).map_err(|error| refused(&error))
}

/// A non-negative integer, as a string or a number.
pub(crate) fn integer(name: &str, value: &Value) -> Result<i64, ApiError> {
    let number = argument::integer(name, value, true, false).map_err(|error| refused(&error))?;
    let number = number.and_then(|number| number.as_i64());
    number.ok_or_else(|| ApiError::bad_request(format!("Only integer is acceptable by '{name}'.")))
}

/// A list of texts; `None`: it is something else.
pub(crate) fn texts(value: &Value) -> Option<BTreeSet<String>> {
    value.as_list()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Tags, separated by commas.
pub(crate) fn tags(list: &str) -> Result<Vec<String>, ApiError> {
    argument::tags(list).map_err(|error| refused(&error))
}
