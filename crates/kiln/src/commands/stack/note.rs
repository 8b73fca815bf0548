//! Notes on names in templates that mean other objects than when a resource was last changed.

use std::fmt::Write as _;

use indexmap::IndexMap;
use kiln_value::{Map, Value, text};

/// Resources of a note that are named.
const NAMED: usize = 5;

/// The notes of a plan.
pub(super) fn of_plan(changes: &Map) -> String {
    let entries = changes.values().filter_map(Value::as_list).flatten();
    notes(entries.filter_map(|entry| Some((entry, entry.get("change")?))))
}

/// The notes of a comparison.
pub(super) fn of_drift(resources: &[Value]) -> String {
    notes(resources.iter().map(|one| (one, one)))
}

/// One note for each name; `entries` are resources, and the maps with their list `names`.
fn notes<'a>(entries: impl Iterator<Item = (&'a Value, &'a Value)>) -> String {
    let mut found: IndexMap<[&str; 3], Vec<String>> = IndexMap::new();
    for (resource, about) in entries {
        for one in about.get("names").and_then(Value::as_list).unwrap_or_default() {
            let text = |key| one.str_at(key).unwrap_or_default();
            let place = format!("{}.{}", resource.str_at("resource_name").unwrap_or_default(), text("property"));
            found.entry([text("name"), text("current"), text("kept")]).or_default().push(place);
        }
    }
    let mut notes = String::new();
    for ([name, current, kept], places) in &found {
        let more = places.len().saturating_sub(NAMED);
        let mut shown = places.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if more > 0 {
            _ = write!(shown, " and {more} more");
        }
        let name = text::json(&(*name).into());
        _ = writeln!(notes, "note: {name} is now {current}; unchanged, with {kept}: {shown}");
    }
    if !found.is_empty() {
        notes.push_str("      'kiln stack update --converge' changes them to what the names mean now\n");
    }
    notes
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn a_name_of_many_resources_is_one_note() {
        let resource = |name: &str, property: &str| {
            let names = value!([{"property": property, "name": "golden", "kept": "1", "current": "2"}]);
            value!({"resource_name": name, "names": names})
        };
        let few =
            [resource("a", "image"), value!({"resource_name": "c", "names": []}), resource("b", "disks[0].image")];
        let expected = "note: \"golden\" is now 2; unchanged, with 1: a.image, b.disks[0].image
      'kiln stack update --converge' changes them to what the names mean now
";
        assert_eq!(of_drift(&few), expected);
        let many: Vec<Value> = (0..7).map(|n| resource(&n.to_string(), "image")).collect();
        assert!(of_drift(&many).contains(": 0.image, 1.image, 2.image, 3.image, 4.image and 2 more\n"));
        assert_eq!(of_drift(&few[1..2]), "");
    }
}
