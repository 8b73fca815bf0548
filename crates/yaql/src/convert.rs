//! From and to the data of the house.

use std::sync::Arc;

use kiln_value::{Map, Value, text};

use crate::Error;
use crate::cursor::Cursor;
use crate::dict::{Dict, Entries};
use crate::engine::Engine;
use crate::object::{Key, ListKind, MAX_DEPTH, Object};
use crate::repr;

/// Input data: lists become tuples, maps frozen dictionaries.
///
/// Errors: the data is nested too deeply.
pub(crate) fn input(value: &Value, depth: u32) -> Result<Object, Error> {
    if depth >= MAX_DEPTH {
        return Err(Error::recursion());
    }
    match value {
        Value::Null => Ok(Object::Null),
        Value::Bool(b) => Ok(Object::Bool(*b)),
        Value::Int(i) => Ok(Object::Int(*i)),
        Value::BigInt(i) => Ok(Object::BigInt(Arc::new((**i).clone()))),
        Value::Float(f) => Ok(Object::Float(*f)),
        Value::Str(text) => Ok(Object::text(text.as_str())),
        Value::List(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(input(item, depth + 1)?);
            }
            Object::tuple(values)
        }
        Value::Map(map) => {
            let mut entries = Entries::with_capacity(map.len());
            for (key, value) in map {
                entries.insert(Key::new(Object::text(key.as_str()))?, input(value, depth + 1)?);
            }
            Dict::frozen(entries).map(Object::Dict)
        }
    }
}

/// The result for the outside. Every collection in it is subject to the limit on iterations.
pub(crate) fn output(engine: &Engine, object: &Object) -> Result<Value, Error> {
    Ok(match object {
        Object::Null => Value::Null,
        Object::Bool(b) => Value::Bool(*b),
        Object::Int(i) => Value::Int(*i),
        Object::BigInt(i) => Value::BigInt(Box::new((**i).clone())),
        Object::Float(f) => Value::Float(*f),
        Object::Str(text) => Value::Str(text.to_string()),
        Object::Dict(dict) => {
            engine.limit(dict.len())?;
            let mut map = Map::with_capacity(dict.len());
            for (key, value) in dict.iter() {
                engine.step(1)?;
                hashable_output(key)?;
                map.insert(key_text(key), engine.nested_output(value)?);
            }
            Value::Map(map)
        }
        Object::List(_) | Object::Set(_) | Object::Values(_) | Object::Iter(_) | Object::Ordering(_) => {
            let limited = engine.limited(object.clone())?;
            let Some(mut cursor) = Cursor::over(&limited) else { return Ok(Value::Null) };
            let mut items = Vec::new();
            while let Some(item) = cursor.next(engine)? {
                if matches!(object, Object::Set(_)) {
                    hashable_output(&item)?;
                }
                items.push(engine.nested_output(&item)?);
            }
            Value::List(items)
        }
        Object::DateTime(time) => Value::Str(time.text('T')),
        Object::TimeSpan(span) => Value::Float(span.seconds()),
        Object::Regex(_) | Object::Context(_) | Object::Rule(_) => Value::Str(repr::repr(object)),
    })
}

impl Engine {
    /// A part of the result: iterators in it are read only now.
    fn nested_output(&self, object: &Object) -> Result<Value, Error> {
        self.walk(|| output(self, object))
    }
}

/// Errors: the value is a key or member, but what is given out for it is not hashable.
fn hashable_output(key: &Object) -> Result<(), Error> {
    let unhashable = |name: &str| Err(Error::type_error(format!("unhashable type: '{name}'")));
    match key {
        Object::List(list) if matches!(list.kind, ListKind::Tuple | ListKind::List) => unhashable("list"),
        Object::Iter(_) | Object::Ordering(_) | Object::Values(_) => unhashable("list"),
        Object::Dict(_) => unhashable("dict"),
        Object::Set(_) => unhashable("set"),
        _ => Ok(()),
    }
}

/// A key as JSON writes it.
fn key_text(key: &Object) -> String {
    match key {
        Object::Null => "null".to_owned(),
        Object::Bool(b) => b.to_string(),
        Object::Float(f) => text::float(*f),
        Object::DateTime(time) => time.text('T'),
        other => repr::text(other),
    }
}
