//! Values in the lines of a plan.

use kiln_plan_document::{Part, Side};
use kiln_value::{Map, Value, text};

/// A value in one line: JSON without nulls, and where values that are known only later come from.
pub(super) fn value(value: &Value) -> String {
    Names { names: &Map::new(), from: &Map::new() }.written(value, "")
}

/// A side of a property.
pub(super) fn side(property: &str, side: &Side) -> String {
    let written = Names::of(side).written(&side.value, property);
    match &side.tried {
        Some(tried) => format!("{written} or {}, which an update that failed tried to set", value(tried)),
        None => written,
    }
}

/// A part of a side.
pub(super) fn part(side: &Side, part: &Part) -> String {
    Names::of(side).written(&part.value, &part.place)
}

/// What is written beside the parts of a value.
struct Names<'a> {
    names: &'a Map,
    from: &'a Map,
}

impl<'a> Names<'a> {
    fn of(side: &'a Side) -> Self {
        Self { names: &side.names, from: &side.from }
    }

    fn written(&self, value: &Value, place: &str) -> String {
        match value {
            Value::Null => "(none)".to_owned(),
            Value::List(items) => {
                let item = |(index, item)| self.written(item, &format!("{place}[{index}]"));
                format!("[{}]", items.iter().enumerate().map(item).collect::<Vec<_>>().join(", "))
            }
            Value::Map(map) => {
                if let Some(place) = awaited(map) {
                    return format!("(known after {place})");
                }
                let entries = map.iter().filter(|(_, value)| !value.is_null());
                let entry = |(key, value): (&String, &Value)| {
                    format!("{}: {}", text::json(&key.into()), self.written(value, &format!("{place}.{key}")))
                };
                format!("{{{}}}", entries.map(entry).collect::<Vec<_>>().join(", "))
            }
            value => match (self.names.get(place), self.from.get(place)) {
                (Some(name), _) => format!("{} ({})", text::json(name), text::str(value)),
                (None, Some(source)) => format!("{} (from {})", text::json(value), text::str(source)),
                (None, None) => text::json(value),
            },
        }
    }
}

/// The source of a value that is known only later.
fn awaited(map: &Map) -> Option<&str> {
    if map.len() == 1 { map.get("known_after")?.as_str() } else { None }
}
