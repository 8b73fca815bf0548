//! The stack of a vector: its template with its environment, and its existing resources.

use std::sync::Arc;

use indexmap::IndexMap;
use kiln_template::StackIdentity;
use kiln_template::{Bound, Facade, Files, ResourceView, Scope, Template, select};
use kiln_value::{Diagnostic, Map, Value};

use crate::case::Case;

/// The stack of a vector.
pub(crate) struct Stack {
    /// The template.
    pub(crate) bound: Bound,
    resources: IndexMap<String, Resource>,
    facade: Option<Facade>,
    zones: Vec<String>,
}

/// A resource of a vector.
struct Resource {
    name: String,
    /// Its data; null if it does not exist.
    data: Value,
}

impl Stack {
    /// Builds the stack.
    pub(crate) fn of(case: &Case) -> Result<Self, Diagnostic> {
        let template = Template::from_value(case.input("template").clone())?;
        let identity = StackIdentity::new("tenant-1", "teststack", "11111111-2222-4333-8444-555555555555")?;
        let map = |value: Option<&Value>| value.and_then(Value::as_map).cloned().unwrap_or_default();
        let env = case.input("env");
        let (user, defaults) = (map(env.get("parameters")), map(env.get("parameter_defaults")));
        let parameters = template.parameters(Some(&identity), &user, &defaults)?;
        let files = map(Some(case.input("files"))).into_iter();
        let files = Files(files.map(|(name, text)| (name, text.as_str().unwrap_or_default().to_owned())).collect());
        let bound = Bound::new(Arc::new(template), Arc::new(parameters), Arc::new(files));

        let data = case.input("resources");
        let names: Vec<_> = bound.definitions().unwrap_or_default().into_keys().collect();
        let resource = |name: String| {
            let data = data.get(&name).cloned().unwrap_or_default();
            (name.clone(), Resource { name, data })
        };
        let facade = case.input("parent").as_map().map(|parent| {
            let map = |key: &str| parent.get(key).cloned().unwrap_or_else(|| Value::Map(Map::new()));
            let policy = parent.get("deletion_policy").and_then(Value::as_str).unwrap_or("Delete");
            Facade {
                metadata: map("metadata"),
                deletion_policy: policy.to_owned(),
                update_policy: map("update_policy"),
            }
        });
        let zones = case.input("availability_zones").as_list().map_or_else(
            || vec!["nova".to_owned()],
            |zones| zones.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        );
        Ok(Self { bound, resources: names.into_iter().map(resource).collect(), facade, zones })
    }
}

impl Scope for Stack {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        self.resources.get(name).map(|resource| resource as &dyn ResourceView)
    }

    fn facade(&self) -> Option<Facade> {
        self.facade.clone()
    }

    fn availability_zones(&self) -> Result<Vec<String>, Diagnostic> {
        Ok(self.zones.clone())
    }
}

impl ResourceView for Resource {
    fn reference_id(&self) -> Value {
        self.data.get("reference_id").cloned().unwrap_or_else(|| Value::from(&self.name))
    }

    fn action(&self) -> &str {
        self.data.str_at("action").unwrap_or(if self.data.is_null() { "INIT" } else { "CREATE" })
    }

    fn status(&self) -> &str {
        self.data.str_at("status").unwrap_or("COMPLETE")
    }

    fn has_attribute(&self, name: &str) -> bool {
        self.attribute(name, &[]).is_some()
    }

    fn attribute(&self, name: &str, path: &[Value]) -> Option<Value> {
        Some(select(self.data.get("attributes")?.get(name)?.clone(), path))
    }

    fn attributes(&self) -> Map {
        let mut attributes = self.data.get("attributes").and_then(Value::as_map).cloned().unwrap_or_default();
        attributes.shift_remove("show");
        attributes
    }
}
