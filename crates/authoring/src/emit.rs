//! Prints values as YAML.

use std::fmt::Write as _;

use kiln_value::{Value, text};

/// A complete template with empty lines between its sections; `None` if parsing the text would not return the value.
pub(crate) fn document(value: &Value) -> Option<String> {
    let sections = value.as_map()?;
    let parts = sections.iter().map(|(key, value)| entry(key, value, 0));
    let text = parts.collect::<Vec<_>>().join("\n\n") + "\n";
    has_value(&text, value).then_some(text)
}

/// Whether a text has exactly this value.
pub(crate) fn has_value(written: &str, value: &Value) -> bool {
    kiln_yaml::parse(written).is_ok_and(|document| text::repr(&document.value) == text::repr(value))
}

/// A value on its own lines, all but the first indented by `indent` spaces.
pub(crate) fn block(value: &Value, indent: usize) -> String {
    let new_line = format!("\n{}", " ".repeat(indent));
    match value {
        Value::Map(map) if !map.is_empty() => {
            map.iter().map(|(key, value)| entry(key, value, indent)).collect::<Vec<_>>().join(&new_line)
        }
        Value::List(list) if !list.is_empty() => {
            let item = |item| if is_call(item) { flow(item) } else { block(item, indent + 2) };
            let items = list.iter().map(|one| format!("- {}", item(one)));
            items.collect::<Vec<_>>().join(&new_line)
        }
        Value::Str(text) => literal(text, indent).unwrap_or_else(|| scalar(value)),
        _ => scalar(value),
    }
}

/// A key with its value.
pub(crate) fn entry(key: &str, value: &Value, indent: usize) -> String {
    let name = scalar(&Value::from(key));
    let inner = indent + 2;
    match value {
        _ if indent > 2 && is_call(value) => format!("{name}: {}", flow(value)),
        Value::Map(map) if !map.is_empty() => format!("{name}:\n{}{}", " ".repeat(inner), block(value, inner)),
        Value::List(list) if !list.is_empty() && is_short(value) => format!("{name}: {}", flow(value)),
        Value::List(list) if !list.is_empty() => format!("{name}:\n{}{}", " ".repeat(inner), block(value, inner)),
        Value::Str(text) => format!("{name}: {}", literal(text, inner).unwrap_or_else(|| scalar(value))),
        _ => format!("{name}: {}", scalar(value)),
    }
}

/// Whether this is a call, or looks like one, that is best written on one line.
fn is_call(value: &Value) -> bool {
    let argument = value.as_map().filter(|map| map.len() == 1).and_then(|map| map.first());
    argument.is_some_and(|(_, argument)| argument.as_map().is_none()) && is_short(value)
}

/// Whether a value is best written on one line.
fn is_short(value: &Value) -> bool {
    let written = flow(value);
    written.chars().count() <= 60 && !written.contains('\n')
}

/// A string of several lines as a literal block, if possible.
fn literal(text: &str, indent: usize) -> Option<String> {
    if !text.trim_end_matches('\n').contains('\n') || text.contains(['\r', '\t', '\u{85}', '\u{2028}', '\u{2029}']) {
        return None;
    }
    let chomp = match text.len() - text.trim_end_matches('\n').len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let mut out = format!("|{chomp}");
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            // Writing to a string cannot fail.
            _ = write!(out, "{}{line}", " ".repeat(indent));
        }
    }
    let alone = format!("x:\n{}{out}\n", " ".repeat(indent));
    let holder: Value = [("x".to_owned(), Value::from(text))].into_iter().collect();
    has_value(&alone, &holder).then_some(out)
}

/// A value on one line.
pub(crate) fn flow(value: &Value) -> String {
    match value {
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", scalar(&Value::from(key)), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::List(list) => format!("[{}]", list.iter().map(flow).collect::<Vec<_>>().join(", ")),
        _ => scalar(value),
    }
}

/// A scalar, plain if it is valid so, also in flow collections.
fn scalar(value: &Value) -> String {
    let Value::Str(text) = value else { return text::json(value) };
    let is_plain = !text.is_empty() && !text.contains('\n') && {
        let alone = kiln_yaml::parse(&format!("[{text}, {{{text}: {text}}}]")).map(|document| document.value);
        let is_item = |list: &Value| list.at(0).and_then(Value::as_str) == Some(text);
        let is_entry = |list: &Value| list.at(1).and_then(|map| map.str_at(text)) == Some(text);
        alone
            .is_ok_and(|list| list.as_list().is_some_and(|items| items.len() == 2) && is_item(&list) && is_entry(&list))
    };
    if is_plain {
        text.clone()
    } else if text.chars().any(char::is_control) {
        text::json(value)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_values_are_parsed_unchanged() {
        let value = kiln_yaml::parse(
            "a: {b: [1, 2.5, null, true, 'yes', '1', \"it's\", 'a: b', '#x', '{', '', ' x', 2021-04-16]}
l: [{x: 1, y: [[1], []]}, {}]
text: |
  one
    two

  three
folded: \"a\\n\\n\"
tabs: \"a\\n\\tb\"
long: ['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa']
'on': 1
",
        )
        .unwrap()
        .value;
        let text = document(&value).unwrap();
        assert!(text.contains("text: |\n  one\n    two\n\n  three\n"), "{text}");
        let flowing = flow(&value);
        assert!(has_value(&flowing, &value), "{flowing}");
    }
}
