//! YAML in block style.
//!
//! Layout and order are those of PyYAML's `safe_dump(value, default_flow_style=False)`, with two exceptions for
//! readability: multi-line strings are literal blocks, and long lines are not wrapped.

use kiln_value::{Map, Value, text};

/// The YAML of a value; keys of maps are sorted as in `safe_dump`.
pub fn dump(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::List(items) if !items.is_empty() => list(&mut out, items, 0),
        Value::Map(entries) if !entries.is_empty() => map(&mut out, entries, 0),
        other => {
            scalar(&mut out, other, 0);
            out.push('\n');
        }
    }
    out
}

/// Writes the items, starting at the cursor.
fn list(out: &mut String, items: &[Value], indent: usize) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            spaces(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::List(inner) if !inner.is_empty() => list(out, inner, indent + 2),
            Value::Map(entries) if !entries.is_empty() => map(out, entries, indent + 2),
            other => {
                scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

/// Writes the entries, starting at the cursor.
fn map(out: &mut String, entries: &Map, indent: usize) {
    let mut sorted: Vec<(&String, &Value)> = entries.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    for (i, (key, value)) in sorted.into_iter().enumerate() {
        if i > 0 {
            spaces(out, indent);
        }
        quoted_if_needed(out, key);
        out.push(':');
        match value {
            Value::List(items) if !items.is_empty() => {
                out.push('\n');
                // A list below a key is not indented.
                spaces(out, indent);
                list(out, items, indent);
            }
            Value::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                spaces(out, indent + 2);
                map(out, inner, indent + 2);
            }
            other => {
                out.push(' ');
                scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

/// Writes a scalar or an empty collection; lines of a block are indented by `indent`.
fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Float(f) => out.push_str(&float(*f)),
        Value::List(_) => out.push_str("[]"),
        Value::Map(_) => out.push_str("{}"),
        Value::Str(s) if fits_block(s) => block(out, s, indent),
        Value::Str(s) => quoted_if_needed(out, s),
        number => out.push_str(&text::repr(number)),
    }
}

fn float(number: f64) -> String {
    match text::float(number).as_str() {
        "nan" => ".nan".to_owned(),
        "inf" => ".inf".to_owned(),
        "-inf" => "-.inf".to_owned(),
        // Without a dot, YAML 1.1 reads `1e+16` as a string.
        plain if !plain.contains('.') => plain.replace('e', ".0e"),
        plain => plain.to_owned(),
    }
}

/// Whether a literal block can represent a multi-line string exactly.
fn fits_block(s: &str) -> bool {
    let prints = |c: char| {
        c == '\n' || c == '\t' || (!c.is_control() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}'))
    };
    let body = s.trim_end_matches('\n');
    body.contains('\n') && !s.starts_with([' ', '\n', '\t']) && s.chars().all(prints)
}

fn block(out: &mut String, s: &str, indent: usize) {
    let body = s.trim_end_matches('\n');
    out.push_str(match s.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    let lines = s.strip_suffix('\n').unwrap_or(s);
    for line in lines.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            spaces(out, indent);
            out.push_str(line);
        }
    }
}

fn quoted_if_needed(out: &mut String, s: &str) {
    if is_plain(s) {
        out.push_str(s);
    } else if s.chars().any(char::is_control) || s.contains(['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}']) {
        // JSON escapes are valid in YAML.
        out.push_str(&text::json(&s.into()));
    } else {
        out.push('\'');
        out.push_str(&s.replace('\'', "''"));
        out.push('\'');
    }
}

/// Whether a string needs no quotes.
fn is_plain(s: &str) -> bool {
    let indicator = |c: char| "#,[]{}&*!|>'\"%@`".contains(c);
    let mut chars = s.chars();
    let (Some(first), second) = (chars.next(), chars.next()) else { return false };
    let stands_alone = matches!(first, '-' | '?' | ':') && second.is_none_or(|c| c == ' ');
    let syntax = indicator(first)
        || stands_alone
        || s.starts_with("---")
        || s.starts_with("...")
        || s != s.trim()
        || s.contains(": ")
        || s.contains(" #")
        || s.ends_with(':')
        || s.chars().any(char::is_control);
    !syntax && !is_special(s)
}

/// Whether YAML 1.1 reads an unquoted string as something else: a number, a date, a boolean, a merge key.
fn is_special(s: &str) -> bool {
    let date = s.len() >= 8 && s.as_bytes().get(4) == Some(&b'-') && s.chars().take(4).all(|c| c.is_ascii_digit());
    let known = matches!(s, "=" | "<<" | "~");
    date || known || !matches!(kiln_yaml::parse(s).map(|document| document.value), Ok(Value::Str(read)) if read == s)
}

fn spaces(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n(' ', count));
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    // Expectations computed by PyYAML 6 except for the block.
    #[test]
    fn reads_like_safe_dump() {
        let value = value!({
            "z": [], "y": {}, "list": [1, [2, "three"], {"b": null, "a": true}],
            "map": {"f": 1.0, "big": 1e16, "n": (-0.5)},
            "texts": ["", "~", "true", "1.0", "1e3", "2018-08-31", "a: b", "a #b", "a:b", "@x", " lead", "it's", "- x", "10.0.0.0/24", "<<", "1:30", "a\tb"],
        });
        let expected = "\
list:
- 1
- - 2
  - three
- a: true
  b: null
map:
  big: 1.0e+16
  f: 1.0
  n: -0.5
texts:
- ''
- '~'
- 'true'
- '1.0'
- 1e3
- '2018-08-31'
- 'a: b'
- 'a #b'
- a:b
- '@x'
- ' lead'
- it's
- '- x'
- 10.0.0.0/24
- '<<'
- '1:30'
- \"a\\tb\"
y: {}
z: []
";
        assert_eq!(dump(&value), expected);
    }

    #[test]
    fn everything_is_read_back() {
        let script = "#!/bin/sh\necho hi\n\n  indented\n";
        for text in [
            script,
            "a\nb",
            "a\nb\n\n",
            "\nx",
            " x\ny",
            "tab\tnl\n",
            "q\"'\n",
            "\u{1}",
            "ü\u{2028}",
            "null",
            "0x1f",
            "%x",
        ] {
            let value = value!({"k": [text, {"in": text}], "after": 1});
            let read = kiln_yaml::parse(&dump(&value)).unwrap().value;
            assert_eq!(read, value, "{}", dump(&value));
        }
    }
}
