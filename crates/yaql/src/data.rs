//! The input data of `$`, which is converted lazily.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kiln_value::Value;

use crate::Error;
use crate::context::Context;
use crate::dict::{Dict, Entries};
use crate::expression::Node;
use crate::lambda::WHOLE;
use crate::object::{Key, MAX_DEPTH, Object};

pub(crate) struct Data<'d> {
    root: &'d Value,
    /// Converted parts by address, so that nothing is converted twice.
    touched: RefCell<HashMap<usize, Object>>,
}

impl<'d> Data<'d> {
    pub(crate) fn new(root: &'d Value) -> Self {
        Self { root, touched: RefCell::default() }
    }

    /// The whole.
    pub(crate) fn whole(&self) -> Result<Object, Error> {
        self.object(self.root)
    }

    /// The part at a path such as `$.key.key`; `None` for other expressions, and for keys with normal lookup.
    pub(crate) fn at(&self, node: &Node, context: &Context) -> Option<&'d Value> {
        let value = match node {
            Node::Variable(name) if &**name == WHOLE && context.get(name).is_none() => self.root,
            Node::Call(call) if &*call.name == "#operator_." => match &*call.args {
                [Some(parent), Some(key)] => match (&**key, self.at(parent, context)?) {
                    (Node::Keyword(key), Value::Map(map)) => map.get(&**key)?,
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        };
        (!self.touched.borrow().contains_key(&address(value))).then_some(value)
    }

    /// Converts a part of the data: lists become tuples, maps frozen dictionaries.
    ///
    /// Errors: it is nested too deeply.
    pub(crate) fn object(&self, value: &Value) -> Result<Object, Error> {
        let object = convert(value, &self.touched.borrow(), 0)?;
        if matches!(value, Value::List(_) | Value::Map(_)) {
            self.touched.borrow_mut().insert(address(value), object.clone());
        }
        Ok(object)
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

fn convert(value: &Value, touched: &HashMap<usize, Object>, depth: u32) -> Result<Object, Error> {
    if depth >= MAX_DEPTH {
        return Err(Error::recursion());
    }
    match value {
        Value::Null | Value::Unknown(_) => Ok(Object::Null),
        Value::Bool(b) => Ok(Object::Bool(*b)),
        Value::Int(i) => Ok(Object::Int(*i)),
        Value::BigInt(i) => Ok(Object::BigInt(Arc::new((**i).clone()))),
        Value::Float(f) => Ok(Object::Float(*f)),
        Value::Str(text) => Ok(Object::text(text.as_str())),
        Value::List(_) | Value::Map(_) if !touched.is_empty() && touched.contains_key(&address(value)) => {
            Ok(touched.get(&address(value)).cloned().unwrap_or(Object::Null))
        }
        Value::List(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(convert(item, touched, depth + 1)?);
            }
            Object::tuple(values)
        }
        Value::Map(map) => {
            let mut entries = Entries::with_capacity(map.len());
            for (key, value) in map {
                entries.insert(Key::new(Object::text(key.as_str()))?, convert(value, touched, depth + 1)?);
            }
            Dict::frozen(entries).map(Object::Dict)
        }
    }
}
