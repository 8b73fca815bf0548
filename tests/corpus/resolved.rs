//! Conditions, resources and outputs, resolved in a stack with the resources of the record.

use std::collections::HashMap;

use kiln_plan::Blueprint;
use kiln_template::{Bound, Definition, ResourceView, Scope, select};
use kiln_value::{Diagnostic, Map, Value};

use crate::Verdict;
use crate::difference::{difference, error};
use crate::record::Record;

/// A stack with simulated resources.
struct Stub<'a> {
    bound: &'a Bound,
    resources: HashMap<&'a str, Resource<'a>>,
}

/// A resource: its reference ID and attributes.
struct Resource<'a>(&'a Value);

/// Checks `resolved`.
pub(crate) fn judge(record: &Record, blueprint: &Blueprint) -> Vec<(&'static str, Verdict)> {
    if !record.has("resolved") {
        return Vec::new();
    }
    let resources = record.field("stub").as_map();
    let resources = resources.into_iter().flatten().map(|(name, data)| (name.as_str(), Resource(data)));
    let stub = Stub { bound: blueprint.bound(), resources: resources.collect() };
    let mut shown = Map::new();
    if let Ok(conditions) = stub.bound.conditions() {
        let outcome =
            |name| Value::Map(either(conditions.holds(stub.bound, name).map(Value::from), "enabled", "error"));
        let outcomes: Map = conditions.names().map(|name| (name.to_owned(), outcome(name))).collect();
        if !outcomes.is_empty() {
            shown.insert("conditions".to_owned(), outcomes.into());
        }
    }
    let resources = blueprint.definitions().values().map(|one| (one.name.clone(), definition(one, &stub)));
    shown.insert("resources".to_owned(), resources.collect::<Map>().into());
    let outputs = blueprint.outputs().values().map(|output| {
        let mut shown = either(output.value.value(&stub), "value", "value_error");
        shown.insert("description".to_owned(), (&output.description).into());
        (output.name.clone(), shown.into())
    });
    shown.insert("outputs".to_owned(), outputs.collect::<Map>().into());
    vec![("resolved", difference(record.field("resolved"), &shown.into()))]
}

fn definition(definition: &Definition, stub: &Stub<'_>) -> Value {
    let mut shown = Map::from_iter([
        ("type".to_owned(), Value::from(&definition.resource_type)),
        ("deletion_policy".to_owned(), definition.deletion_policy().as_str().into()),
    ]);
    let external_id = definition.external_id.clone().unwrap_or_default();
    let parts = [
        ("properties", &definition.properties),
        ("metadata", &definition.metadata),
        ("update_policy", &definition.update_policy),
        ("external_id", &external_id),
    ];
    for (key, expr) in parts {
        // The records omit empty values.
        match expr.value(stub) {
            Ok(value) if !value.is_truthy() => {}
            result => shown.extend(either(result, key, &format!("{key}_error"))),
        }
    }
    shown.into()
}

/// `{key: value}` or `{error_key: {class, message}}`.
fn either(result: Result<Value, Diagnostic>, key: &str, error_key: &str) -> Map {
    let (key, value) = match result {
        Ok(value) => (key, value),
        Err(problem) => (error_key, error(&problem)),
    };
    Map::from_iter([(key.to_owned(), value)])
}

impl Scope for Stub<'_> {
    fn bound(&self) -> &Bound {
        self.bound
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        self.resources.get(name).map(|resource| resource as &dyn ResourceView)
    }
}

impl ResourceView for Resource<'_> {
    fn reference_id(&self) -> Value {
        self.0.get("reference_id").cloned().unwrap_or_default()
    }

    fn action(&self) -> &'static str {
        "CREATE"
    }

    fn status(&self) -> &'static str {
        "COMPLETE"
    }

    fn has_attribute(&self, name: &str) -> bool {
        self.attribute(name, &[]).is_some()
    }

    fn attribute(&self, name: &str, path: &[Value]) -> Option<Value> {
        Some(select(self.0.get("attributes")?.get(name)?.clone(), path))
    }

    fn attributes(&self) -> Map {
        let mut attributes = self.0.get("attributes").and_then(Value::as_map).cloned().unwrap_or_default();
        attributes.shift_remove("show");
        attributes
    }
}
