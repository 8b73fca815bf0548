//! The YAML document of `OS::Heat::CloudConfig`, in the style of PyYAML: block style, sorted keys.

use kiln_value::{Map, Value, text};

/// The document, with the first line by which cloud-init recognizes it.
pub(super) fn document(config: &Value) -> String {
    let mut out = "#cloud-config\n".to_owned();
    match config {
        Value::Map(map) if !map.is_empty() => write_map(map, 0, &mut out),
        Value::List(items) if !items.is_empty() => write_list(items, 0, &mut out),
        other => {
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
    out
}

fn write_map(map: &Map, depth: usize, out: &mut String) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_str());
    for (at, (key, value)) in entries.into_iter().enumerate() {
        if at > 0 || !out.ends_with("- ") {
            indent(depth, out);
        }
        out.push_str(&scalar(&key.as_str().into()));
        out.push(':');
        match value {
            Value::Map(map) if !map.is_empty() => {
                out.push('\n');
                write_map(map, depth + 1, out);
            }
            // As in PyYAML, a list in a map is not indented.
            Value::List(items) if !items.is_empty() => {
                out.push('\n');
                write_list(items, depth, out);
            }
            other => {
                out.push(' ');
                out.push_str(&scalar(other));
                out.push('\n');
            }
        }
    }
}

fn write_list(items: &[Value], depth: usize, out: &mut String) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 || !out.ends_with("- ") {
            indent(depth, out);
        }
        out.push_str("- ");
        match item {
            Value::Map(map) if !map.is_empty() => write_map(map, depth + 1, out),
            Value::List(items) if !items.is_empty() => write_list(items, depth + 1, out),
            other => {
                out.push_str(&scalar(other));
                out.push('\n');
            }
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// A scalar or an empty collection. JSON is YAML, too.
fn scalar(value: &Value) -> String {
    match value {
        Value::Str(text) if is_plain(text) => text.clone(),
        Value::Str(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', "''")),
        other => text::json(other),
    }
}

/// Whether a text means itself without quotes.
fn is_plain(text: &str) -> bool {
    let starts = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || "/._".contains(c));
    let all = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+ ()=$".contains(c));
    starts
        && all
        && !text.ends_with(' ')
        && kiln_yaml::parse(text).is_ok_and(|parsed| parsed.value.as_str() == Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    #[test]
    fn documents_mean_their_config() {
        let config = value!({
            "users": [{"name": "deb", "sudo": ["ALL=(ALL) NOPASSWD:ALL"], "lock": false}, "default"],
            "runcmd": [["ls", "-l", "/"], "echo 'a: b' # c", "true", "3", "", "multi\nline"],
            "nested": {"empty": {}, "list": [], "number": 3, "none": null, "umlaut": "ä"},
            "write_files": [[[1, 2], {"a": {"b": [1]}}]],
        });
        let document = document(&config);
        let body = document.strip_prefix("#cloud-config\n").unwrap();
        assert_eq!(kiln_yaml::parse(body).unwrap().value, config, "{body}");
        assert!(body.starts_with("nested:\n  empty: {}\n"), "{body}");
        assert!(body.contains("users:\n- lock: false\n  name: deb\n  sudo:\n  - 'ALL=(ALL) NOPASSWD:ALL'\n"), "{body}");
        assert!(body.contains("runcmd:\n- - ls\n  - '-l'\n"), "{body}");
    }
}
