//! URL queries and forms.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that `urllib.parse.urlencode` does not escape, in addition to letters and digits.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');

/// The parameters in the order of the URL; names may be repeated.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part after the `?`, or a form.
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self(pairs.collect())
    }

    /// The last value of a name, as webob's `params.get` returns it; `None` also for an empty value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// The last value of a name, which may be empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub fn all(&self, name: &str) -> Vec<String> {
        self.0.iter().filter(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.clone()).collect()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The names and values, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Adds the parameters of a form after those of the URL.
    pub fn append(&mut self, form: Query) {
        self.0.extend(form.0);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The encoded query with one parameter replaced.
    #[must_use]
    pub fn encode_with(&self, name: &str, value: &str) -> String {
        let mut pairs = self.0.clone();
        pairs.retain(|(key, _)| key != name);
        pairs.push((name.to_owned(), value.to_owned()));
        Self(pairs).encode()
    }

    /// The encoded query.
    pub fn encode(&self) -> String {
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
