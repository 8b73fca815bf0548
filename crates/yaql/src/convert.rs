//! Conversion of the result to a [`Value`].

use kiln_value::{Map, Value, text};

use crate::Error;
use crate::cursor::Cursor;
use crate::engine::Engine;
use crate::object::{ListKind, Object};
use crate::repr;

/// Converts the result. The limit of iterations applies to every collection in it.
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
                let value = engine.nested_output(value)?;
                // The reference reports an error of an iterator before an error of the key.
                engine.nested_output(key)?;
                hashable_output(key)?;
                map.insert(key_text(key), value);
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

impl Engine<'_> {
    /// A part of the result: its iterators are evaluated here.
    fn nested_output(&self, object: &Object) -> Result<Value, Error> {
        self.walk(|| output(self, object))
    }
}

/// Errors: the value is a key or member, but its converted form is not hashable.
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

/// A key in JSON.
fn key_text(key: &Object) -> String {
    match key {
        Object::Null => "null".to_owned(),
        Object::Bool(b) => b.to_string(),
        Object::Float(f) => text::float(*f),
        Object::DateTime(time) => time.text('T'),
        other => repr::text(other),
    }
}
