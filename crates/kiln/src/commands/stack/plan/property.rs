//! The lines of a plan about the properties of a resource.

use std::collections::HashMap;

use kiln_value::{Map, Value, text};

/// A longer line is divided, if the values are lists.
const WIDE: usize = 100;

/// The lines about a change: old and new values if the service returns them, else the names.
pub(super) fn lines(change: &Value) -> Vec<String> {
    let none = Map::new();
    let part = |key| change.get(key).and_then(Value::as_map);
    if part("before").or(part("after")).is_none() {
        let names = change.get("properties").and_then(Value::as_list).unwrap_or_default();
        return names.iter().map(|name| format!("{}: changes", text::str(name))).collect();
    }
    let (before, after) = (part("before").unwrap_or(&none), part("after").unwrap_or(&none));
    let has_one_side = matches!(change.str_at("kind"), Some("added" | "deleted"));
    let mut names: Vec<&String> =
        before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))).collect();
    names.sort();
    let mut lines = Vec::new();
    for name in names {
        let side = |key: &str, side: &Map| Side {
            value: side.get(name).cloned().unwrap_or_default(),
            name: change.get("given").and_then(|given| given.get(key)).and_then(|given| given.str_at(name)),
            tried: change.get("tried").filter(|_| key == "before").and_then(|tried| tried.get(name)),
        };
        let (before, after) = (side("before", before), side("after", after));
        if has_one_side {
            let value = if before.value.is_null() { after.value } else { before.value };
            if !value.is_null() {
                one(name, &value, &mut lines);
            }
        } else {
            both(name, &before, &after, &mut lines);
        }
    }
    lines
}

/// One side of a change.
struct Side<'a> {
    value: Value,
    /// The name that the template gives for an ID.
    name: Option<&'a str>,
    /// The value that a failed update tried to set.
    tried: Option<&'a Value>,
}

impl Side<'_> {
    fn text(&self) -> String {
        let mut shown = text(&self.value);
        if let Some(name) = self.name {
            shown = format!("{} ({})", text(&name.into()), text::str(&self.value));
        }
        if let Some(tried) = self.tried {
            shown = format!("{shown} or {}, which an update that failed tried to set", text(tried));
        }
        shown
    }
}

/// The lines about a value.
fn one(name: &str, value: &Value, lines: &mut Vec<String>) {
    let whole = format!("{name}: {}", text(value));
    match value {
        Value::List(items) if whole.chars().count() > WIDE => {
            lines.push(format!("{name}:"));
            lines.extend(items.iter().map(|item| format!("  {}", text(item))));
        }
        _ => lines.push(whole),
    }
}

/// The lines about a changed value: of long lists, the items that differ.
fn both(name: &str, before: &Side<'_>, after: &Side<'_>, lines: &mut Vec<String>) {
    let whole = format!("{name}: {} → {}", before.text(), after.text());
    match (&before.value, &after.value) {
        (Value::List(old), Value::List(new)) if whole.chars().count() > WIDE => {
            let texts = |items: &[Value]| items.iter().map(text).collect::<Vec<_>>();
            let (old, new) = (texts(old), texts(new));
            let (removed, added) = (without(&old, &new), without(&new, &old));
            if removed.is_empty() && added.is_empty() {
                lines.push(format!("{name}: the order changes"));
                return;
            }
            lines.push(format!("{name}:"));
            lines.extend(removed.iter().map(|item| format!("  - {item}")));
            lines.extend(added.iter().map(|item| format!("  + {item}")));
            let same = old.len() - removed.len();
            lines.extend((same > 0).then(|| format!("  ({same} unchanged)")));
        }
        _ => lines.push(whole),
    }
}

/// The items that are not among others, which may contain them once for each time.
fn without<'a>(items: &'a [String], others: &'a [String]) -> Vec<&'a String> {
    let mut left: HashMap<&String, usize> = HashMap::new();
    for item in others {
        *left.entry(item).or_default() += 1;
    }
    let is_new = |item: &&'a String| match left.get_mut(*item) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    items.iter().filter(is_new).collect()
}

/// A value in one line: JSON without nulls, and where values that are not known yet come from.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        Value::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            if let Some(place) = awaited(map) {
                return format!("(known after {place})");
            }
            let entries = map.iter().filter(|(_, value)| !value.is_null());
            let entry = |(key, value): (&String, &Value)| format!("{}: {}", text::json(&key.into()), text(value));
            format!("{{{}}}", entries.map(entry).collect::<Vec<_>>().join(", "))
        }
        value => text::json(value),
    }
}

/// The source of a value that is not known yet.
fn awaited(map: &Map) -> Option<&str> {
    if map.len() == 1 { map.get("known_after")?.as_str() } else { None }
}
