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
            place: name,
            references: change.get("references").and_then(|references| references.get(key)?.as_map()),
        };
        let (before, after) = (side("before", before), side("after", after));
        if has_one_side {
            let side = if before.value.is_null() { after } else { before };
            if !side.value.is_null() {
                one(name, &side, &mut lines);
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
    /// The name of the property.
    place: &'a str,
    /// The resources and attributes from which its values are, by their places.
    references: Option<&'a Map>,
}

impl Side<'_> {
    fn text(&self) -> String {
        let mut shown = self.part(&self.value, self.place);
        if let Some(name) = self.name {
            shown = format!("{} ({})", text(&name.into()), text::str(&self.value));
        }
        if let Some(tried) = self.tried {
            shown = format!("{shown} or {}, which an update that failed tried to set", text(tried));
        }
        shown
    }

    /// A part of the value at a place.
    fn part(&self, value: &Value, place: &str) -> String {
        in_line(value, place, &|place| self.references?.get(place)?.as_str())
    }

    /// The items of a list.
    fn items(&self, items: &[Value]) -> Vec<String> {
        let items = items.iter().enumerate();
        items.map(|(index, item)| self.part(item, &format!("{}[{index}]", self.place))).collect()
    }
}

/// The lines about a value.
fn one(name: &str, side: &Side<'_>, lines: &mut Vec<String>) {
    let whole = format!("{name}: {}", side.text());
    match &side.value {
        Value::List(items) if whole.chars().count() > WIDE => {
            lines.push(format!("{name}:"));
            lines.extend(side.items(items).into_iter().map(|item| format!("  {item}")));
        }
        _ => lines.push(whole),
    }
}

/// The lines about a changed value: of long lists, the items that differ.
fn both(name: &str, before: &Side<'_>, after: &Side<'_>, lines: &mut Vec<String>) {
    let whole = format!("{name}: {} → {}", before.text(), after.text());
    match (&before.value, &after.value) {
        (Value::List(old), Value::List(new)) if whole.chars().count() > WIDE => {
            let (old, new) = (before.items(old), after.items(new));
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
    in_line(value, "", &|_| None)
}

/// A value in one line, with the sources of its parts by their places.
fn in_line<'a>(value: &Value, place: &str, source: &dyn Fn(&str) -> Option<&'a str>) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        Value::List(items) => {
            let item = |(index, item)| in_line(item, &format!("{place}[{index}]"), source);
            format!("[{}]", items.iter().enumerate().map(item).collect::<Vec<_>>().join(", "))
        }
        Value::Map(map) => {
            if let Some(place) = awaited(map) {
                return format!("(known after {place})");
            }
            let entries = map.iter().filter(|(_, value)| !value.is_null());
            let entry = |(key, value): (&String, &Value)| {
                format!("{}: {}", text::json(&key.into()), in_line(value, &format!("{place}.{key}"), source))
            };
            format!("{{{}}}", entries.map(entry).collect::<Vec<_>>().join(", "))
        }
        value => match source(place) {
            Some(source) => format!("{} (from {source})", text::json(value)),
            None => text::json(value),
        },
    }
}

/// The source of a value that is not known yet.
fn awaited(map: &Map) -> Option<&str> {
    if map.len() == 1 { map.get("known_after")?.as_str() } else { None }
}
