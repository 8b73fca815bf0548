//! Attributes of groups, read from the outputs of the nested stack (docs/heat-behaviour.md §15.1).

use indexmap::IndexMap;
use kiln_template::select;
use kiln_value::{Map, Value, text, value};

/// Attributes that are about a group of numbered members; a chain has only the first two.
const OWN_ATTRIBUTES: [&str; 4] = ["refs", "attributes", "refs_map", "removed_rsrc_list"];

/// A nested template; sections without anything in them are left out.
pub(super) fn template(resources: Map, outputs: Map) -> Value {
    let mut template = Map::from([("heat_template_version".to_owned(), "2015-04-30".into())]);
    let sections = [("resources", resources), ("outputs", outputs)];
    let sections = sections.into_iter().filter(|(_, section)| !section.is_empty());
    template.extend(sections.map(|(name, section)| (name.to_owned(), section.into())));
    template.into()
}

/// The outputs that give the wanted attributes. A group of numbered members (`mapped`) always shows their references
/// in `refs_map`, and only there; a chain shows the reference of one member by its name.
pub(super) fn outputs(names: &[String], wanted: &[Vec<Value>], mapped: bool) -> Map {
    let reference = |name: &String| value!({"get_resource": name});
    let read = |path: Vec<Value>| value!({"get_attr": path});
    let references: Map = names.iter().map(|name| (name.clone(), reference(name))).collect();
    let mut outputs = Map::new();
    for path in wanted {
        let Some((Value::Str(key), rest)) = path.split_first() else { continue };
        let each = |front: &[Value]| -> Vec<Value> {
            let path = |name: &String| [&[name.into()], front, rest].concat();
            names.iter().map(|name| read(path(name))).collect()
        };
        let value = if let Some(target) = key.strip_prefix("resource.") {
            let (name, attribute) = match target.split_once('.') {
                Some((name, attribute)) => (name, vec![attribute.into()]),
                None => (target, Vec::new()),
            };
            let path = [attribute.as_slice(), rest].concat();
            match path.is_empty() {
                _ if !names.iter().any(|n| n == name) => continue,
                true if mapped => continue,
                true => value!({"get_resource": name}),
                false => read([&[name.into()], path.as_slice()].concat()),
            }
        } else {
            match key.as_str() {
                "refs" => names.iter().map(reference).collect(),
                "attributes" if !rest.is_empty() => names.iter().cloned().zip(each(&[])).collect(),
                "attributes" => continue,
                own if mapped && OWN_ATTRIBUTES.contains(&own) => continue,
                // All others are lists of the members' attributes.
                attribute => each(&[attribute.into()]).into(),
            }
        };
        let whole = mapped && key == "refs";
        outputs.insert(output_name(key, if whole { &[] } else { rest }), value!({"value": value}));
    }
    if mapped {
        outputs.insert("refs_map".to_owned(), value!({"value": references}));
    }
    outputs
}

/// The output that holds an attribute.
fn output_name(key: &str, path: &[Value]) -> String {
    let parts: Vec<String> = std::iter::once(key.to_owned()).chain(path.iter().map(text::str)).collect();
    parts.join(", ")
}

/// An attribute (name and path) from the outputs and the members' reference ids. A path that leads nowhere gives null.
pub(super) fn attribute(
    outputs: &Map,
    refs: &IndexMap<String, Value>,
    name: &str,
    path: &[Value],
    mapped: bool,
) -> Option<Value> {
    match name {
        "refs" => Some(select(refs.values().cloned().collect(), path)),
        "refs_map" if mapped => Some(select(refs.iter().map(|(k, v)| (k.clone(), v.clone())).collect(), path)),
        // All attributes of all members: Heat refuses that, too.
        "attributes" if path.is_empty() => None,
        _ => match name.strip_prefix("resource.") {
            Some(member) if !member.contains('.') && path.is_empty() => refs.get(member).cloned(),
            // The output for the whole path, otherwise one for its first part.
            _ => (0..=path.len()).rev().find_map(|end| {
                let (front, rest) = path.split_at(end);
                Some(select(outputs.get(&output_name(name, front))?.clone(), rest))
            }),
        },
    }
}
