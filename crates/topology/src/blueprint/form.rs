//! The forms of attributes of requirements.

use kiln_value::Value;

/// What an attribute of a requirement may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An amount of bytes with a unit: `4gb`, `512 MiB`.
    Size,
    /// A positive integer.
    Count,
    /// A text or a number.
    Text,
    /// A list of texts.
    List,
    /// A port number, 1 to 65535.
    Port,
    /// A two-letter country code of ISO 3166-1, or a list of them.
    Country,
    /// Anything.
    Any,
}

impl Form {
    /// The names in a type library.
    pub(crate) const NAMES: [(&'static str, Self); 7] = [
        ("size", Self::Size),
        ("count", Self::Count),
        ("text", Self::Text),
        ("list", Self::List),
        ("port", Self::Port),
        ("country", Self::Country),
        ("any", Self::Any),
    ];

    /// The form with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, form)| *form)
    }

    /// The value as it is stored: one text for a list is a list of one. `Err` contains what the form requires.
    pub(crate) fn read(self, value: &Value) -> Result<Value, &'static str> {
        let fits = match self {
            Self::Any => true,
            Self::Size => value.as_str().is_some_and(is_size),
            Self::Count => value.as_i64().is_some_and(|count| count > 0),
            Self::Text => matches!(value, Value::Str(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_)),
            Self::List => match value {
                Value::Str(_) => return Ok(Value::List(vec![value.clone()])),
                Value::List(items) => items.iter().all(|item| item.as_str().is_some()),
                _ => false,
            },
            Self::Port => value.as_i64().is_some_and(|port| (1..=65535).contains(&port)),
            Self::Country => match value {
                Value::List(codes) => !codes.is_empty() && codes.iter().all(is_country),
                code => is_country(code),
            },
        };
        if fits { Ok(value.clone()) } else { Err(self.wanted()) }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Size => "a size with a unit, such as 512mb or 4 GiB",
            Self::Count => "an integer of at least 1",
            Self::Text => "a text",
            Self::List => "a list of texts",
            Self::Port => "a port number from 1 to 65535",
            Self::Country => "a two-letter country code, such as us, or a list of them",
            Self::Any => "a value",
        }
    }
}

fn is_country(value: &Value) -> bool {
    value.as_str().is_some_and(|code| code.len() == 2 && code.bytes().all(|b| b.is_ascii_alphabetic()))
}

fn is_size(text: &str) -> bool {
    bytes(text).is_some()
}

/// The number of bytes of a size: `4gb` and `4 GB` are 4·10⁹, `4 GiB` is 4·2³⁰. `None` if the text is not a size.
pub(crate) fn bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "b" => 1.0,
        "kb" => 1e3,
        "kib" => 1024.0,
        "mb" => 1e6,
        "mib" => 1024.0 * 1024.0,
        "gb" => 1e9,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tb" => 1e12,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * factor)
}
