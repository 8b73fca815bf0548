//! Resources that seem to have another name than before: one template has them with one name, a later one with another, and
//! their definitions are equal.

use std::collections::{BTreeMap, HashMap, HashSet};

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
/// of both. Each definition is compared once, after those of the resources that it refers to.
pub fn renamed(before: &Template, after: &Template) -> Vec<Move> {
    let moved = after.moves().unwrap_or_default();
    let known: HashSet<&str> = moved.iter().flat_map(|one| [one.from.as_str(), one.to.as_str()]).collect();
    let mut latter: HashMap<String, Vec<&str>> = HashMap::new();
    for name in only(after, before, &known) {
        latter.entry(definition(after, name, &mut |_| None)).or_default().push(name);
    }
    let gone = if latter.is_empty() { Vec::new() } else { only(before, after, &known) };
    let mut names: HashMap<&str, &str> = moved.iter().map(|one| (one.from.as_str(), one.to.as_str())).collect();
    let mut waiting = Waiting::of(before, &gone);
    let mut ready = waiting.without_references();
    while !ready.is_empty() {
        ready.sort_unstable();
        let mut former: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in std::mem::take(&mut ready) {
            let definition = definition(before, gone[at], &mut |name| names.get(name).map(|to| (*to).to_owned()));
            former.entry(definition).or_default().push(at);
        }
        for (definition, former) in former {
            let Some(latter) = latter.get(&definition).filter(|latter| latter.len() == former.len()) else { continue };
            for (at, to) in former.into_iter().zip(latter) {
                names.insert(gone[at], to);
                ready.extend(waiting.found(at));
            }
        }
    }
    let found = gone.into_iter().filter_map(|from| Some((from, *names.get(from)?)));
    found.map(|(from, to)| Move { from: from.to_owned(), to: to.to_owned() }).collect()
}

/// The resources that the other template does not have.
fn only<'a>(own: &'a Template, other: &Template, known: &HashSet<&str>) -> Vec<&'a str> {
    own.resource_names().filter(|name| !other.has_resource(name) && !known.contains(name)).collect()
}

/// Resources whose later names are still to be found, by their place.
struct Waiting {
    /// To how many others each one refers.
    open: Vec<usize>,
    /// By which others each one is referred to.
    needed_by: Vec<Vec<usize>>,
}

impl Waiting {
    fn of(template: &Template, gone: &[&str]) -> Self {
        let places: HashMap<&str, usize> = gone.iter().enumerate().map(|(at, name)| (*name, at)).collect();
        let mut waiting = Self { open: vec![0; gone.len()], needed_by: vec![Vec::new(); gone.len()] };
        for (at, name) in gone.iter().enumerate() {
            let mut needs: HashSet<usize> = HashSet::new();
            definition(template, name, &mut |name| {
                needs.extend(places.get(name));
                None
            });
            waiting.open[at] = needs.len();
            for need in needs {
                waiting.needed_by[need].push(at);
            }
        }
        waiting
    }

    fn without_references(&self) -> Vec<usize> {
        self.open.iter().enumerate().filter(|(_, open)| **open == 0).map(|(at, _)| at).collect()
    }

    /// The later name of one is found: those that waited for nothing else.
    fn found(&mut self, at: usize) -> Vec<usize> {
        let mut ready = std::mem::take(&mut self.needed_by[at]);
        ready.retain(|next| {
            self.open[*next] -= 1;
            self.open[*next] == 0
        });
        ready
    }
}

/// The later name of a resource; `None`: the same.
type Rename<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// The definition of a resource as a text, with the later names in its references.
fn definition(template: &Template, name: &str, rename: Rename<'_>) -> String {
    let resources = template.as_value().get(template.words().resources);
    let definition = resources.and_then(|resources| resources.get(name)).unwrap_or(&Value::Null);
    text::json(&with_names(definition, rename))
}

/// A definition or a part of it with the later names in its references, and sorted keys.
fn with_names(value: &Value, rename: Rename<'_>) -> Value {
    match value {
        Value::List(items) => items.iter().map(|item| with_names(item, rename)).collect(),
        Value::Map(entries) => {
            let is_function = |key: &str| entries.len() == 1 && FUNCTIONS.contains(&key);
            let mut renamed = Map::new();
            for (key, value) in entries {
                let value = match value {
                    Value::List(items) if NEEDS.contains(&key.as_str()) => {
                        items.iter().map(|item| reference(item, rename)).collect()
                    }
                    // The rest is the path to an attribute.
                    Value::List(items) if is_function(key) => {
                        let first = items.iter().take(1).map(|item| reference(item, rename)).collect::<Vec<_>>();
                        first.into_iter().chain(items.iter().skip(1).map(|item| with_names(item, rename))).collect()
                    }
                    value if is_function(key) || NEEDS.contains(&key.as_str()) => reference(value, rename),
                    value => with_names(value, rename),
                };
                renamed.insert(key.clone(), value);
            }
            renamed.sort_keys();
            renamed.into()
        }
        other => other.clone(),
    }
}

fn reference(value: &Value, rename: Rename<'_>) -> Value {
    let Value::Str(name) = value else { return with_names(value, rename) };
    if let Some(to) = rename(name) {
        return to.into();
    }
    // An attribute in CloudFormation's YAML: `server.PublicIp`.
    match name.split_once('.').and_then(|(name, attribute)| Some(format!("{}.{attribute}", rename(name)?))) {
        Some(to) => to.into(),
        None => value.clone(),
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

    #[test]
    fn a_long_chain_of_renamed_resources_takes_linear_time() {
        let chain = |front: &str| -> Value {
            let name = |n: usize| format!("{front}{n}");
            let first = [(name(0), value!({"type": "V"}))];
            let rest = (1..10_000).map(|n| (name(n), value!({"type": "V", "depends_on": (name(n - 1))})));
            first.into_iter().chain(rest).collect()
        };
        let found = renamed_in(chain("a"), chain("b"), Value::Null);
        assert_eq!(found.len(), 10_000);
        assert!(found.iter().all(|(from, to)| from.strip_prefix('a') == to.strip_prefix('b')));
    }
}
