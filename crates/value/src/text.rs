//! Python's text representations, which Heat's clients see.

use std::fmt::Write as _;

use crate::{Map, Value};

/// `str(value)`: a string is returned unchanged, everything else as in [`repr`].
pub fn str(value: &Value) -> String {
    match value {
        Value::Str(s) => s.clone(),
        other => repr(other),
    }
}

/// `repr(value)`: `None`, `True`, `'text'`, `[1, 2.0]`, `{'k': 'v'}`.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

/// `repr(text)`: quoted, with non-printable characters escaped.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_quoted(&mut out, text);
    out
}

/// `repr(float)`: the shortest digits that round-trip, with an exponent below 1e-4 and from 1e16.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let shortest = format!("{number:e}");
    // If two texts are equally short, Python uses the nearer one, and if they are equally near, the one with an even
    // digit.
    let precision = shortest.find('e').unwrap_or(1).saturating_sub(if number < 0.0 { 3 } else { 2 });
    let nearest = format!("{number:.precision$e}");
    let scientific = if nearest.parse() == Ok(number) { nearest } else { shortest };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return with_point(mantissa, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// A number in the form `d.ddd` times a power of ten, without the power.
fn with_point(mantissa: &str, exponent: i32) -> String {
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits.replace('.', "")),
        None => ("", mantissa.replace('.', "")),
    };
    let Ok(whole) = usize::try_from(exponent + 1) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("{sign}0.{}{digits}", "0".repeat(zeros));
    };
    match digits.split_at_checked(whole) {
        Some(("", fraction)) => format!("{sign}0.{fraction}"),
        Some((whole, "")) => format!("{sign}{whole}.0"),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{digits}{}.0", "0".repeat(whole - digits.len())),
    }
}

/// `json.dumps(value)`: separators `", "` and `": "`, non-ASCII escaped, order kept, `NaN` and `Infinity` as Python
/// writes them.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value, false);
    out
}

/// `json.dumps(value, sort_keys=True)`.
pub fn json_sorted(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value, true);
    out
}

fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Unknown(_) => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Int(i) => _ = write!(out, "{i}"),
        Value::BigInt(i) => _ = write!(out, "{i}"),
        Value::Float(f) => out.push_str(&float(*f)),
        Value::Str(s) => write_quoted(out, s),
        Value::List(items) => separated(out, ('[', ']'), items, write_repr),
        Value::Map(entries) => separated(out, ('{', '}'), entries, |out, (key, value)| {
            write_quoted(out, key);
            out.push_str(": ");
            write_repr(out, value);
        }),
    }
}

fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => match u32::from(c) {
                code @ ..=0xff => _ = write!(out, "\\x{code:02x}"),
                code @ ..=0xffff => _ = write!(out, "\\u{code:04x}"),
                code => _ = write!(out, "\\U{code:08x}"),
            },
        }
    }
    out.push(quote);
}

/// `str.isprintable` of a character. The debug escape of the standard library follows the same Unicode categories;
/// after another character it does not escape combining marks, like Python.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut pair = [0; 5];
    pair[0] = b'a';
    let end = 1 + c.encode_utf8(&mut pair[1..]).len();
    std::str::from_utf8(&pair[..end]).is_ok_and(|pair| pair.escape_debug().nth(1) == Some(c))
}

fn write_json(out: &mut String, value: &Value, sorted: bool) {
    match value {
        Value::Null | Value::Unknown(_) => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(i) => _ = write!(out, "{i}"),
        Value::BigInt(i) => _ = write!(out, "{i}"),
        Value::Float(f) if f.is_nan() => out.push_str("NaN"),
        Value::Float(f) if f.is_infinite() => out.push_str(if *f > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Float(f) => out.push_str(&float(*f)),
        Value::Str(s) => write_json_text(out, s),
        Value::List(items) => separated(out, ('[', ']'), items, |out, item| write_json(out, item, sorted)),
        Value::Map(entries) => {
            let entry = |out: &mut String, (key, value): (&String, &Value)| {
                write_json_text(out, key);
                out.push_str(": ");
                write_json(out, value, sorted);
            };
            if sorted {
                separated(out, ('{', '}'), in_key_order(entries), entry);
            } else {
                separated(out, ('{', '}'), entries, entry);
            }
        }
    }
}

fn in_key_order(entries: &Map) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

fn write_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

fn separated<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(out, item);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn floats_are_printed_as_in_python() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1e30, "1e+30"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn strings_are_quoted_as_in_python() {
        assert_eq!(quote("it's"), r#""it's""#);
        assert_eq!(quote(r#"it's "q""#), r#"'it\'s "q"'"#);
        assert_eq!(
            quote("é\u{301}\n\0\u{7f}\u{a0}\u{ad}\u{200b}\u{e000}"),
            r"'é\u0301\n\x00\x7f\xa0\xad\u200b\ue000'".replace(r"\u0301", "\u{301}")
        );
        assert_eq!(quote("\u{1f600}\u{10ffff}"), "'\u{1f600}\\U0010ffff'");
    }

    #[test]
    fn containers() {
        let v = value!({"b": [1, null, true, 1.5], "a": "é\u{1f600}\u{1}"});
        assert_eq!(repr(&v), "{'b': [1, None, True, 1.5], 'a': 'é\u{1f600}\\x01'}");
        assert_eq!(json(&v), r#"{"b": [1, null, true, 1.5], "a": "\u00e9\ud83d\ude00\u0001"}"#);
        assert_eq!(json_sorted(&v), r#"{"a": "\u00e9\ud83d\ude00\u0001", "b": [1, null, true, 1.5]}"#);
        assert_eq!(json(&Value::Float(f64::INFINITY)), "Infinity");
        assert_eq!(str(&"plain".into()), "plain");
    }
}
