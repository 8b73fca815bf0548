//! The form of a type file: its keys, and what stands under them.

use kiln_template::hint::nearest;
use kiln_value::{Map, Path, Value, value};

use super::{BY_TYPE, NAME, TypeFile};
use crate::Refusal;
use crate::refusal::kind_of;
use crate::tosca::STANDARD_OPERATIONS;

/// The keys of a file, of its parts, and what they must be.
pub(super) const FILE: [(&str, Shape); 12] = [
    (NAME, Shape::Text),
    ("description", Shape::Text),
    ("derived_from", Shape::Text),
    ("replaces", Shape::Boolean),
    ("component", Shape::Map),
    ("properties", Shape::Map),
    ("attributes", Shape::Map),
    ("capabilities", Shape::Map),
    ("requirements", Shape::List),
    ("artifacts", Shape::Map),
    ("hot", Shape::Map),
    ("metadata", Shape::Map),
];

pub(super) const COMPONENT: [(&str, Shape); 6] = [
    ("aliases", Shape::Texts),
    ("tags", Shape::Texts),
    ("derived_from", Shape::Text),
    ("requires", Shape::Texts),
    ("default_requirement", Shape::Text),
    ("abstract", Shape::Boolean),
];

pub(super) const HOT: [(&str, Shape); 4] =
    [("existing", Shape::Text), ("resources", Shape::Map), ("attributes", Shape::Map), ("operations", Shape::Map)];

pub(super) const RESOURCE: [(&str, Shape); 7] = [
    ("type", Shape::Text),
    ("when", Shape::Any),
    ("properties", Shape::Map),
    ("depends_on", Shape::Texts),
    ("metadata", Shape::Map),
    ("deletion_policy", Shape::Text),
    ("update_policy", Shape::Map),
];

pub(super) const OPERATION: [(&str, Shape); 6] = [
    ("hook", Shape::Text),
    ("config", Shape::Any),
    ("options", Shape::Map),
    ("inputs", Shape::Map),
    ("outputs", Shape::Texts),
    ("cloud_init", Shape::Text),
];

/// What a part must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Boolean,
    Map,
    List,
    Texts,
    Any,
}

impl Shape {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::Boolean => value.as_bool().is_some(),
            Self::Map => value.as_map().is_some(),
            Self::List => value.as_list().is_some(),
            Self::Texts => value.as_list().is_some_and(|items| items.iter().all(|item| item.as_str().is_some())),
            Self::Any => true,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Boolean => "true or false",
            Self::Map => "a map",
            Self::List => "a list",
            Self::Texts => "a list of texts",
            Self::Any => "a value",
        }
    }
}

/// Whether a document is a type file.
pub fn is_type_file(document: &Value) -> bool {
    document.get(NAME).is_some()
}

/// The keys that may stand at a path of keys; `None` where they are not fixed.
pub(crate) fn keys_at(path: &[&str]) -> Option<Vec<&'static str>> {
    let names = |known: &[(&'static str, Shape)]| known.iter().map(|(name, _)| *name).collect();
    Some(match path {
        [] => names(&FILE),
        ["component"] => names(&COMPONENT),
        ["properties" | "attributes", _] => super::check::PROPERTY.to_vec(),
        ["requirements", _] => super::check::REQUIREMENT.to_vec(),
        ["hot"] => names(&HOT),
        ["hot", "resources", _] => names(&RESOURCE),
        ["hot", "operations"] => STANDARD_OPERATIONS.to_vec(),
        ["hot", "operations", _] => names(&OPERATION),
        _ => return None,
    })
}

/// Reads the form of a type file; names are checked later, when all types are known.
///
/// Errors: unknown keys, wrong shapes.
pub(super) fn read(file: &str, document: &Value) -> Result<TypeFile, Vec<Refusal>> {
    let mut form = Form { refusals: Vec::new() };
    let root = Path::root();
    let Some(fields) = document.as_map() else {
        let message = format!("A type file must be a map, but this is {}.", kind_of(document));
        return Err(vec![Refusal::new("bad-shape", &root, message)]);
    };
    form.check("A type file", fields, &FILE, &root);
    for (key, required) in [(NAME, "the name of the type"), ("derived_from", "the type that it is derived from")] {
        if !fields.contains_key(key) {
            form.refuse("missing-field", &root, format!("A type file must have the key {key}: {required}."));
        }
    }
    let map = |key: &str| fields.get(key).and_then(Value::as_map);
    if let Some(component) = map("component") {
        form.check("A component", component, &COMPONENT, &root.key("component"));
    }
    if let Some(hot) = map("hot") {
        form.check_hot(hot, &root.key("hot"));
    }
    if !form.refusals.is_empty() {
        return Err(form.refusals);
    }
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let hot = map("hot").cloned().unwrap_or_default();
    Ok(TypeFile {
        name: text(NAME).unwrap_or_default(),
        file: file.to_owned(),
        description: text("description"),
        replaces: fields.get("replaces").is_some_and(Value::is_truthy),
        definition: definition(fields, &hot),
        component: map("component").cloned().unwrap_or_default(),
        hot,
    })
}

/// The node type: what TOSCA knows of the file, with the attributes and operations that it becomes.
fn definition(fields: &Map, hot: &Map) -> Value {
    let known =
        ["derived_from", "description", "properties", "attributes", "capabilities", "requirements", "artifacts"];
    let mut definition: Map =
        known.into_iter().filter_map(|key| Some((key.to_owned(), fields.get(key)?.clone()))).collect();
    let part = |key: &str| hot.get(key).and_then(Value::as_map).into_iter().flatten();
    let mut attributes = fields.get("attributes").and_then(Value::as_map).cloned().unwrap_or_default();
    for (name, _) in part("attributes") {
        attributes.entry(name.clone()).or_insert_with(|| value!({"type": "string"}));
    }
    definition.insert("attributes".to_owned(), attributes.into());
    let operations: Map = part("operations")
        .map(|(name, entry)| (name.clone(), value!({"implementation": {BY_TYPE: (entry.clone())}})))
        .collect();
    if !operations.is_empty() {
        definition.insert("interfaces".to_owned(), value!({"Standard": {"operations": (Value::Map(operations))}}));
    }
    definition.into()
}

struct Form {
    refusals: Vec<Refusal>,
}

impl Form {
    fn refuse(&mut self, kind: &'static str, at: &Path, message: impl Into<String>) {
        self.refusals.push(Refusal::new(kind, at, message));
    }

    fn check(&mut self, what: &str, fields: &Map, known: &[(&str, Shape)], at: &Path) {
        for (key, value) in fields {
            match known.iter().find(|(name, _)| name == key) {
                None => {
                    let refusal = Refusal::new("unknown-field", &at.key(key), format!("{what} has no key {key}."));
                    let near = nearest(key, known.iter().map(|(name, _)| *name));
                    self.refusals.push(match near {
                        Some(near) => refusal.hint(format!("did you mean {near}?")),
                        None => refusal,
                    });
                }
                Some((_, shape)) if !shape.fits(value) => {
                    let message = format!("{key} must be {}, but this is {}.", shape.text(), kind_of(value));
                    self.refuse("bad-shape", &at.key(key), message);
                }
                Some(_) => {}
            }
        }
    }

    fn check_hot(&mut self, hot: &Map, at: &Path) {
        self.check("hot", hot, &HOT, at);
        let part = |key: &str| hot.get(key).and_then(Value::as_map).into_iter().flatten();
        for (suffix, resource) in part("resources") {
            let at = at.key("resources").key(suffix);
            if !suffix.is_empty() && !suffix.starts_with('_') {
                let message = format!("The suffix {suffix} must begin with _, so that names of nodes do not collide.");
                self.refuse("bad-value", &at, message);
            }
            match resource {
                // Takes a resource of the parent away.
                Value::Null => {}
                Value::Map(fields) => self.check("A resource", fields, &RESOURCE, &at),
                other => {
                    self.refuse("bad-shape", &at, format!("A resource must be a map, but this is {}.", kind_of(other)));
                }
            }
        }
        for (name, operation) in part("operations") {
            let at = at.key("operations").key(name);
            if !STANDARD_OPERATIONS.contains(&name.as_str()) {
                let message = format!("The operations are {}, but not {name}.", STANDARD_OPERATIONS.join(", "));
                self.refuse("unknown-field", &at, message);
            }
            let Some(fields) = operation.as_map() else {
                self.refuse(
                    "bad-shape",
                    &at,
                    format!("An operation must be a map, but this is {}.", kind_of(operation)),
                );
                continue;
            };
            self.check("An operation", fields, &OPERATION, &at);
            if !fields.contains_key("config") {
                self.refuse("missing-field", &at, "An operation must have the key config: what its hook runs.");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{PROPERTY, REQUIREMENT};
    use super::*;

    /// The JSON schema for editors has the same keys as the parser.
    #[test]
    fn the_schema_for_editors_has_the_same_keys() {
        let schema = kiln_yaml::json::parse(include_str!("../../../../docs/topology-type.schema.json")).unwrap();
        let keys = |name: &str| -> Vec<String> {
            let of = if name.is_empty() { &schema } else { schema.get("definitions").unwrap().get(name).unwrap() };
            of.get("properties").and_then(Value::as_map).unwrap().keys().cloned().collect()
        };
        let names = |known: &[(&str, Shape)]| known.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(keys(""), names(&FILE));
        assert_eq!(keys("component"), names(&COMPONENT));
        assert_eq!(keys("hot"), names(&HOT));
        assert_eq!(keys("resource"), names(&RESOURCE));
        assert_eq!(keys("operation"), names(&OPERATION));
        assert_eq!(keys("schema"), PROPERTY);
        assert_eq!(keys("requirement"), REQUIREMENT);
    }
}
