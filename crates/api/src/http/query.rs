//! URL queries and the formats of their values (`common/param_utils.py`).

use std::borrow::Cow;

use kiln_value::Value;
use kiln_value::text;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::ApiError;

/// Characters that `urllib.parse.urlencode` does not escape, in addition to letters and digits.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');

/// Maximum length of a tag.
const MAX_TAG: usize = 80;

/// The parameters in the order of the URL; names may be repeated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part after the `?`.
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self(pairs.collect())
    }

    /// The last value of a name, as webob's `params.get` returns it; `None` also for an empty value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// The last value of a name, which may be empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.0.iter().filter(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.clone()).collect()
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A boolean; `None` if it is missing.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.get(name).map(|value| boolean(name, &value.into())).transpose()
    }

    /// A non-negative integer; `None` if it is missing.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.get(name).map(|value| integer(name, &value.into())).transpose()
    }

    /// A list of tags; empty if it is missing.
    pub(crate) fn tags(&self, name: &str) -> Result<Vec<String>, ApiError> {
        self.get(name).map_or_else(|| Ok(Vec::new()), tags)
    }

    /// The encoded query with one parameter replaced.
    pub(crate) fn encode_with(&self, name: &str, value: &str) -> String {
        let mut pairs = self.0.clone();
        pairs.retain(|(key, _)| key != name);
        pairs.push((name.to_owned(), value.to_owned()));
        Self(pairs).encode()
    }

    /// The encoded query.
    pub(crate) fn encode(&self) -> String {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        pairs.join("&")
    }
}

fn decode(text: &str) -> String {
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string().replace("%20", "+")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_and_encoded() {
        let query = Query::parse(Some("a=1&b=x+y%2Fz&a=2&empty=&flag"));
        assert_eq!(query.get("a"), Some("2"));
        assert_eq!(query.all("a"), ["1", "2"]);
        assert_eq!(query.get("b"), Some("x y/z"));
        assert_eq!((query.get("empty"), query.given("empty")), (None, Some("")));
        assert_eq!(query.encode_with("a", "3"), "b=x+y%2Fz&empty=&flag=&a=3");
    }
}
