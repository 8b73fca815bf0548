//! The value type.

use num_bigint::BigInt;

use crate::{Map, Unknown};

/// A piece of data: the content of YAML and JSON texts, and the arguments and results of template functions.
///
/// Integers and floats are separate, as in Python: `1` and `1.0` are equal but print differently.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `null`, Python's `None`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of up to 64 bits; all such integers are stored this way.
    Int(i64),
    /// An integer beyond 64 bits.
    BigInt(Box<BigInt>),
    /// A float; may be NaN or infinite.
    Float(f64),
    /// A string.
    Str(String),
    /// A list.
    List(Vec<Value>),
    /// A map with string keys.
    Map(Map),
    /// An unknown value; only in previews. Its JSON, its Python texts and its kind are those of null.
    Unknown(Unknown),
}

/// The kind of a [`Value`], for messages and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Python's `NoneType`.
    Null,
    /// Python's `bool`.
    Bool,
    /// Python's `int`.
    Int,
    /// Python's `float`.
    Float,
    /// Python's `str`.
    Str,
    /// Python's `list`.
    List,
    /// Python's `dict`.
    Map,
}

impl Kind {
    /// The name of the Python type, for error messages.
    pub fn python_name(self) -> &'static str {
        match self {
            Self::Null => "NoneType",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::List => "list",
            Self::Map => "dict",
        }
    }
}

impl Value {
    /// The kind of this value.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Null | Self::Unknown(_) => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) | Self::BigInt(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Str(_) => Kind::Str,
            Self::List(_) => Kind::List,
            Self::Map(_) => Kind::Map,
        }
    }

    /// Whether this is [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Python's truth value: null, false, zero and empty values are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null | Self::Unknown(_) => false,
            Self::Bool(b) => *b,
            Self::Int(i) => *i != 0,
            Self::BigInt(_) => true,
            Self::Float(f) => *f != 0.0,
            Self::Str(s) => !s.is_empty(),
            Self::List(l) => !l.is_empty(),
            Self::Map(m) => !m.is_empty(),
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The integer, if this is one of up to 64 bits (not a boolean).
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(l) => Some(l),
            _ => None,
        }
    }

    /// The entries, if this is a map.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(m) => Some(m),
            _ => None,
        }
    }

    /// The mutable entries, if this is a map.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Map(m) => Some(m),
            _ => None,
        }
    }

    /// The entry of a map; `None` if this is not a map or has no such key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// The string entry of a map; `None` if it is missing or not a string.
    pub fn str_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// The item of a list.
    pub fn at(&self, index: usize) -> Option<&Value> {
        self.as_list()?.get(index)
    }
}
