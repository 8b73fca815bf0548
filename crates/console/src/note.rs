//! Notes on names in templates that mean other objects than when a resource was last changed.

use std::fmt::Write as _;

use indexmap::IndexMap;
use kiln_plan_document::{NewMeaning, PlanDocument};
use kiln_value::{Value, text};

use crate::output::visible;

/// Resources of a note that are named.
const NAMED: usize = 5;

/// The notes of a plan.
pub fn of_plan(plan: &PlanDocument) -> String {
    notes(plan.resources.iter().flat_map(|entry| {
        let note = |name: &NewMeaning| {
            let place = format!("{}.{}", entry.name(), name.property);
            ([name.name.clone(), name.current.clone(), name.kept.clone()], place)
        };
        entry.names.iter().map(note)
    }))
}

/// The notes of a comparison.
pub fn of_drift(resources: &[Value]) -> String {
    notes(resources.iter().flat_map(|one| {
        let names = one.get("names").and_then(Value::as_list).unwrap_or_default();
        names.iter().map(move |name| {
            let text = |key| name.str_at(key).unwrap_or_default();
            let place = format!("{}.{}", one.str_at("resource_name").unwrap_or_default(), text("property"));
            (["name", "current", "kept"].map(|key| text(key).to_owned()), place)
        })
    }))
}

/// One note for each name; its object now, the object that is kept, and the places.
fn notes(found_at: impl Iterator<Item = ([String; 3], String)>) -> String {
    let mut found: IndexMap<[String; 3], Vec<String>> = IndexMap::new();
    for (name, place) in found_at {
        found.entry(name).or_default().push(place);
    }
    let mut notes = String::new();
    for ([name, current, kept], places) in &found {
        let more = places.len().saturating_sub(NAMED);
        let mut shown = places.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if more > 0 {
            _ = write!(shown, " and {more} more");
        }
        let name = text::json(&name.as_str().into());
        let note = format!("note: {name} is now {current}; unchanged, with {kept}: {shown}").replace('\n', "\\n");
        _ = writeln!(notes, "{}", visible(&note));
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
