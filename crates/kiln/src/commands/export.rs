//! The objects in the data of a stack, as 'kiln stack export' or a Heat writes it.

use kiln_value::{Map, Value};

/// An object of a stack or of its nested stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// The resources down to it: `group/0`.
    pub(crate) path: String,
    pub(crate) resource_type: String,
    pub(crate) id: String,
}

/// The objects in the data. A resource with a nested stack stands for what is in it.
pub(crate) fn objects(data: &Value) -> Vec<Object> {
    fn collect(resources: &Map, prefix: &str, objects: &mut Vec<Object>) {
        for (name, resource) in resources {
            let path = format!("{prefix}{name}");
            if let Some(nested) = resource.get("resources").and_then(Value::as_map) {
                collect(nested, &format!("{path}/"), objects);
                continue;
            }
            let (id, resource_type) = (resource.str_at("resource_id"), resource.str_at("type").unwrap_or_default());
            if let Some(id) = id.filter(|id| !id.is_empty() && !resource_type.starts_with("OS::Heat::")) {
                objects.push(Object { path, resource_type: resource_type.to_owned(), id: id.to_owned() });
            }
        }
    }
    let mut objects = Vec::new();
    if let Some(resources) = data.get("resources").and_then(Value::as_map) {
        collect(resources, "", &mut objects);
    }
    objects
}
