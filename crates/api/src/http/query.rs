//! The formats of values in queries and bodies (`common/param_utils.py`).

use kiln_value::{Value, text};
use kiln_web::Query;

use crate::error::ApiError;

/// Maximum length of a tag.
const MAX_TAG: usize = 80;

/// Values of a query by format.
pub(crate) trait Formats {
    /// A boolean; `None` if it is missing.
    fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError>;

    /// A non-negative integer; `None` if it is missing.
    fn integer(&self, name: &str) -> Result<Option<i64>, ApiError>;

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

    fn tags(&self, name: &str) -> Result<Vec<String>, ApiError> {
        self.get(name).map_or_else(|| Ok(Vec::new()), tags)
    }
}

/// `true` or `false` in any case, as a string or a boolean.
pub(crate) fn boolean(name: &str, value: &Value) -> Result<bool, ApiError> {
    let shown = text::str(value);
    match shown.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(ApiError::bad_request(format!(
            "Unrecognized value \"{shown}\" for \"{name}\", acceptable values are: true, false."
        ))),
    }
}

/// A non-negative integer, as a string or a number.
pub(crate) fn integer(name: &str, value: &Value) -> Result<i64, ApiError> {
    let shown = text::str(value);
    let number = shown.parse::<i64>().ok().filter(|number| number.to_string() == shown);
    let Some(number) = number else {
        return Err(ApiError::bad_request(format!("Only integer is acceptable by '{name}'.")));
    };
    if number < 0 {
        return Err(ApiError::bad_request(format!(
            "Value '{shown}' is invalid for '{name}' which only accepts non-negative integer."
        )));
    }
    Ok(number)
}

/// Tags, separated by commas.
pub(crate) fn tags(list: &str) -> Result<Vec<String>, ApiError> {
    let tags: Vec<String> = list.split(',').map(str::to_owned).collect();
    match tags.iter().find(|tag| tag.chars().count() > MAX_TAG) {
        Some(tag) => Err(ApiError::bad_request(format!("Invalid tag, \"{tag}\" is longer than {MAX_TAG} characters"))),
        None => Ok(tags),
    }
}
