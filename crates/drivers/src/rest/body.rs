//! Builds request bodies from properties, with the wire names of the definition.

use indexmap::IndexMap;
use kiln_resource::rest::RestPart;
use kiln_resource::{PropertySchema, ResourceType, Wire};
use kiln_template::constraint::DataType;
use kiln_value::{Map, Value};

use crate::alike::owners;

/// The body of a create: every property with a value that is not sent elsewhere; entries of merged maps come last.
pub(crate) fn create(resource_type: &ResourceType, properties: &Map, skip: &dyn Fn(&str) -> bool) -> Map {
    let mut body = Map::new();
    let mut merged = Map::new();
    for (name, schema) in &resource_type.properties {
        let Some(value) = properties.get(name).filter(|v| !v.is_null() && !skip(name)) else { continue };
        place(schema, name, encode(schema, value), &mut body, &mut merged);
    }
    body.extend(merged);
    body
}

/// The body of an update: the changed properties, null for removed ones. Of merged maps, only the differences are sent.
///
/// A removed number or boolean is not changed, and a removed description becomes empty: services do not accept null for
/// them.
pub(crate) fn update(resource_type: &ResourceType, before: &Map, changed: &Map, skip: &dyn Fn(&str) -> bool) -> Map {
    let mut body = Map::new();
    let mut merged = Map::new();
    for (name, value) in changed.iter().filter(|(name, _)| !skip(name)) {
        let Some(schema) = resource_type.properties.get(name) else { continue };
        let mut value = encode(schema, value);
        if value.is_null() && matches!(schema.kind, DataType::Boolean | DataType::Integer | DataType::Number) {
            continue;
        }
        if value.is_null() && name == "description" {
            value = "".into();
        }
        if let (Wire::Merged, Some(old), Value::Map(new)) =
            (&schema.wire, before.get(name).and_then(Value::as_map), &mut value)
        {
            new.retain(|key, value| old.get(key) != Some(value));
        }
        place(schema, name, value, &mut body, &mut merged);
    }
    body.extend(merged);
    body
}

/// The values of a property as requests have them, for types that send it in requests of their own.
pub(crate) struct Written(PropertySchema);

impl Written {
    /// The values of a property of a type; `None` if there is none with this name.
    pub(crate) fn of(resource_type: &ResourceType, property: &str) -> Option<Self> {
        resource_type.properties.get(property).cloned().map(Self)
    }

    pub(crate) fn value(&self, value: &Value) -> Value {
        encode(&self.0, value)
    }
}

/// The values of the properties in an object, the reverse of [`create`]; without those that the object does not have.
/// Of merged maps, only the keys that `properties` has are read, because nothing tells the others from fields of the
/// object.
pub(crate) fn read(
    resource_type: &ResourceType,
    parts: &IndexMap<String, RestPart>,
    properties: &Map,
    object: &Value,
) -> Map {
    let mut live = Map::new();
    for (name, schema) in &resource_type.properties {
        let value = match (parts.get(name), &schema.wire) {
            (Some(part), _) => object.get(&part.wire).map(|value| decode(schema, value)),
            (None, Wire::Same) => object.get(name).map(|value| decode(schema, value)),
            (None, Wire::As(path)) => {
                let value = path.split('.').try_fold(object, |value, key| value.get(key));
                value.map(|value| decode(schema, value)).or_else(|| of_list(object, path, properties.get(name)))
            }
            (None, Wire::Merged) => properties.get(name).and_then(Value::as_map).map(|given| {
                let keys = given.keys().filter_map(|key| Some((key.clone(), object.get(key)?.clone())));
                Value::Map(keys.collect())
            }),
            (None, Wire::Never) => None,
        };
        live.extend(value.map(|value| (name.clone(), value)));
    }
    live
}

/// The ID that a create has sent under a key, in what the object shows as [`owners`]: the `given` one if it is there, else the
/// first.
fn of_list(object: &Value, key: &str, given: Option<&Value>) -> Option<Value> {
    let ids: Vec<&Value> = owners(object, key)?.iter().map(|entry| entry.get("id")).collect::<Option<_>>()?;
    let is_given = |id: &&&Value| given == Some(**id);
    Some(ids.iter().find(is_given).or(ids.first()).map(|id| (*id).clone()).unwrap_or_default())
}

/// A value with the names of the template, the reverse of [`encode`].
fn decode(schema: &PropertySchema, value: &Value) -> Value {
    match (value, schema.members(), schema.items()) {
        (Value::List(items), _, Some(schema)) => items.iter().map(|item| decode(schema, item)).collect(),
        (Value::Map(entries), Some(members), _) => {
            let mut out = entries.clone();
            for (name, schema) in members {
                let key = if let Wire::As(key) = &schema.wire { key } else { name };
                if let Some(value) = entries.get(key) {
                    out.insert(name.clone(), decode(schema, value));
                }
            }
            Value::Map(out)
        }
        _ => value.clone(),
    }
}

fn place(schema: &PropertySchema, name: &str, value: Value, body: &mut Map, merged: &mut Map) {
    match &schema.wire {
        Wire::Same => {
            body.insert(name.to_owned(), value);
        }
        Wire::As(path) => put(body, path, value),
        Wire::Merged => {
            if let Value::Map(entries) = value {
                merged.extend(entries);
            }
        }
        Wire::Never => {}
    }
}

/// Sets the value at a dotted path, creating the maps on the way.
fn put(body: &mut Map, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            body.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = body.entry(first.to_owned()).or_default();
            if !matches!(inner, Value::Map(_)) {
                *inner = Value::Map(Map::new());
            }
            if let Some(inner) = inner.as_map_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// A value in the format of the service: members with their wire names, without null values.
pub(crate) fn encode(schema: &PropertySchema, value: &Value) -> Value {
    match (value, schema.members(), schema.items()) {
        (Value::List(items), _, Some(schema)) => items.iter().map(|item| encode(schema, item)).collect(),
        (Value::Map(entries), Some(members), _) => {
            let mut body = Map::new();
            let mut merged = Map::new();
            for (name, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
                match members.get(name) {
                    Some(schema) => place(schema, name, encode(schema, value), &mut body, &mut merged),
                    None => {
                        body.insert(name.clone(), value.clone());
                    }
                }
            }
            body.extend(merged);
            Value::Map(body)
        }
        _ => value.clone(),
    }
}
