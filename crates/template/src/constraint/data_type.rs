//! The types of parameters and properties.

use kiln_value::{Class, Diagnostic, Value, number, text};

/// The data type of a parameter or property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// A string.
    String,
    /// An integer (properties only).
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// A map; for parameters `json`.
    Map,
    /// A list; for parameters `comma_delimited_list`.
    List,
    /// Any value (properties only).
    Any,
}

impl DataType {
    /// Integers and numbers.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }

    /// The name of the type of a property, as messages show it: `Map`.
    pub fn property_name(self) -> &'static str {
        match self {
            Self::String => "String",
            Self::Integer => "Integer",
            Self::Number => "Number",
            Self::Boolean => "Boolean",
            Self::Map => "Map",
            Self::List => "List",
            Self::Any => "Any",
        }
    }

    /// This type with its name in schemas of properties.
    pub fn property(self) -> Typed {
        Typed { data_type: self, name: self.property_name() }
    }
}

/// A type with its name in the language of the schema, which messages repeat: `Map`, `json`, `Json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The type.
    pub data_type: DataType,
    /// Its name in the schema's language.
    pub name: &'static str,
}

impl Typed {
    /// The value converted to the type: numbers and booleans from strings, strings from any value.
    ///
    /// Errors: `ValueError` for a string that cannot be converted, `TypeError` for a value that cannot be a number at
    /// all.
    pub fn convert(self, value: &Value) -> Result<Value, Diagnostic> {
        let invalid = || {
            let shown = text::str(value);
            Diagnostic::new(Class::ValueError, format!("Value \"{shown}\" is invalid for data type \"{}\".", self.name))
        };
        let of_value_error = |error: Diagnostic| if error.class == Class::ValueError { invalid() } else { error };
        match self.data_type {
            DataType::Integer => match number::str_to_num(value).map_err(of_value_error)? {
                Value::Float(_) => Err(invalid()),
                number => Ok(number),
            },
            DataType::Number => number::str_to_num(value).map_err(of_value_error),
            DataType::String => Ok(Value::Str(text::str(value))),
            DataType::Boolean => number::bool_from_string(value).map(Value::Bool).map_err(of_value_error),
            DataType::Map | DataType::List | DataType::Any => Ok(value.clone()),
        }
    }
}
