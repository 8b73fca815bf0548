//! Resources that seem to have another name than before: one template has them with one name, a later one with another, and
//! their definitions are equal.

use std::collections::{BTreeMap, HashMap};

use kiln_value::{Map, Value, text};

use crate::{Move, Template};

/// The functions that refer to a resource by its name, or by a list that begins with it.
const FUNCTIONS: [&str; 4] = ["get_resource", "get_attr", "Ref", "Fn::GetAtt"];
/// The keys of a definition with names of resources.
const NEEDS: [&str; 2] = ["depends_on", "DependsOn"];

/// The moves without which the update from one template to another deletes resources and creates equal ones, in the order of the
/// former template. Those that the later template has in its section `moved` are not among them.
///
/// References to renamed resources are equal. Of equal resources, each former one becomes the next later one, if there are as many
/// of both.
pub fn renamed(before: &Template, after: &Template) -> Vec<Move> {
    let moved = after.moves().unwrap_or_default();
    let is_moved = |name: &str| moved.iter().any(|one| one.from == name || one.to == name);
    let only = |own: &'_ Template, other: &Template| -> Vec<String> {
        let names = own.resource_names().filter(|name| !other.has_resource(name) && !is_moved(name));
        names.map(str::to_owned).collect()
    };
    let (mut gone, mut new) = (only(before, after), only(after, before));
    let mut names: HashMap<String, String> = moved.into_iter().map(|one| (one.from, one.to)).collect();
    let order = gone.clone();
    loop {
        let latter = by_definition(after, &new, &HashMap::new());
        let pairs: Vec<(String, String)> = by_definition(before, &gone, &names)
            .into_iter()
            .filter_map(|(definition, former)| {
                let latter = latter.get(&definition).filter(|latter| latter.len() == former.len())?;
                Some(former.into_iter().zip(latter.clone()))
            })
            .flatten()
            .collect();
        if pairs.is_empty() {
            break;
        }
        gone.retain(|name| pairs.iter().all(|(from, _)| from != name));
        new.retain(|name| pairs.iter().all(|(_, to)| to != name));
        names.extend(pairs);
    }
    let found = order.into_iter().filter(|name| !gone.contains(name));
    found.filter_map(|from| Some(Move { to: names.remove(&from)?, from })).collect()
}

/// The resources with these names by their definitions as texts, in which renamed resources have their later `names`.
fn by_definition(
    template: &Template,
    resources: &[String],
    names: &HashMap<String, String>,
) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let all = template.as_value().get(template.words().resources);
    for name in resources {
        let definition = all.and_then(|all| all.get(name)).unwrap_or(&Value::Null);
        found.entry(text::json(&with_names(definition, names))).or_default().push(name.clone());
    }
    found
}

/// A definition or a part of it with the later names in its references, and sorted keys.
fn with_names(value: &Value, names: &HashMap<String, String>) -> Value {
    match value {
        Value::List(items) => items.iter().map(|item| with_names(item, names)).collect(),
        Value::Map(entries) => {
            let is_function = |key: &str| entries.len() == 1 && FUNCTIONS.contains(&key);
            let entry = |(key, value): (&String, &Value)| {
                let value = if is_function(key) || NEEDS.contains(&key.as_str()) {
                    reference(value, names)
                } else {
                    with_names(value, names)
                };
                (key.clone(), value)
            };
            let mut entries: Map = entries.iter().map(entry).collect();
            entries.sort_keys();
            entries.into()
        }
        other => other.clone(),
    }
}

fn reference(value: &Value, names: &HashMap<String, String>) -> Value {
    match value {
        Value::Str(name) => {
            // An attribute in CloudFormation's YAML: `server.PublicIp`.
            let (name, attribute) =
                name.split_once('.').map_or((name.as_str(), None), |(name, rest)| (name, Some(rest)));
            let name = names.get(name).map_or(name, String::as_str);
            attribute.map_or_else(|| name.to_owned(), |attribute| format!("{name}.{attribute}")).into()
        }
        Value::List(items) => items.iter().map(|item| reference(item, names)).collect(),
        other => with_names(other, names),
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    fn renamed_in(before: Value, after: Value, moved: Value) -> Vec<(String, String)> {
        let template = |resources: Value, moved: Value| {
            let sections = value!({"heat_template_version": "2018-08-31", "resources": resources, "moved": moved});
            Template::from_value(sections).expect("a template")
        };
        let found = renamed(&template(before, Value::Null), &template(after, moved));
        found.into_iter().map(|one| (one.from, one.to)).collect()
    }

    fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    #[test]
    fn equal_definitions_are_found_through_their_references() {
        let stack = |net: &str, port: &str, size: i64| {
            let attribute = value!({"get_attr": [port, "fixed_ips", 0]});
            let server = value!({"type": "S", "depends_on": [port], "properties": {"at": attribute, "size": size}});
            Value::from_iter([
                (net.to_owned(), value!({"type": "N"})),
                (port.to_owned(), value!({"type": "P", "properties": {"network": {"get_resource": net}}})),
                (format!("of-{port}"), server),
            ])
        };
        let all = renamed_in(stack("net", "port", 1), stack("backend", "door", 1), Value::Null);
        assert_eq!(all, named(&[("net", "backend"), ("port", "door"), ("of-port", "of-door")]));
        // The server is another one.
        let some = renamed_in(stack("net", "port", 1), stack("backend", "door", 2), Value::Null);
        assert_eq!(some, named(&[("net", "backend"), ("port", "door")]));
        let section = value!([{"from": "net", "to": "backend"}]);
        let rest = renamed_in(stack("net", "port", 1), stack("backend", "door", 1), section);
        assert_eq!(rest, named(&[("port", "door"), ("of-port", "of-door")]));
        assert_eq!(renamed_in(stack("net", "port", 1), stack("net", "port", 1), Value::Null), named(&[]));
    }

    #[test]
    fn equal_resources_are_paired_only_if_there_are_as_many() {
        let some = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), value!({"type": "V"}))).collect();
        let both = renamed_in(some(&["a", "b"]), some(&["c", "d"]), Value::Null);
        assert_eq!(both, named(&[("a", "c"), ("b", "d")]));
        assert_eq!(renamed_in(some(&["a", "b"]), some(&["c"]), Value::Null), named(&[]));
    }
}
