//! Indented JSON, as Python's `json.dumps(value, indent=2)` writes it.

use kiln_value::{Value, text};

/// How characters beyond ASCII are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    /// Escaped.
    Ascii,
    /// Unescaped, for readability.
    Unicode,
}

/// Indented by two spaces per level.
pub(super) fn indented(value: &Value, charset: Charset) -> String {
    let mut out = String::new();
    write(&mut out, value, charset, 0);
    out
}

fn write(out: &mut String, value: &Value, charset: Charset, depth: usize) {
    match value {
        Value::List(items) if !items.is_empty() => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                next(out, i, charset, depth + 1);
                write(out, item, charset, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Value::Map(entries) if !entries.is_empty() => {
            out.push('{');
            for (i, (key, value)) in entries.iter().enumerate() {
                next(out, i, charset, depth + 1);
                scalar(out, &key.into(), charset);
                out.push_str(": ");
                write(out, value, charset, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        other => scalar(out, other, charset),
    }
}

fn next(out: &mut String, i: usize, charset: Charset, depth: usize) {
    if i > 0 {
        // python-heatclient uses ", " as the separator here, cliff does not.
        out.push_str(if charset == Charset::Unicode { ", " } else { "," });
    }
    line(out, depth);
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn scalar(out: &mut String, value: &Value, charset: Charset) {
    match value {
        Value::Str(s) if charset == Charset::Unicode => out.push_str(&serde_json::to_string(s).unwrap_or_default()),
        other => out.push_str(&text::json(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    #[test]
    fn indents_as_python_does() {
        let value = value!({"a": [], "b": {}, "c": [1, {"d": "é"}]});
        let ascii = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \"\\u00e9\"\n    }\n  ]\n}";
        assert_eq!(indented(&value, Charset::Ascii), ascii);
        assert!(indented(&value, Charset::Unicode).contains("1, \n    {\n      \"d\": \"é\""));
    }
}
