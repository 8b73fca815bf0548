//! The types of parameters and properties.

use kiln_value::{Diagnostic, Value, number, text};

/// What kind of data a parameter or property holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// A text.
    String,
    /// A whole number (properties only).
    Integer,
    /// A number.
    Number,
    /// A truth value.
    Boolean,
    /// A map; for parameters `json`.
    Map,
    /// A list; for parameters `comma_delimited_list`.
    List,
    /// Anything (properties only).
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

    /// This type under the name that properties have for it.
    pub fn property(self) -> Typed {
        Typed { data_type: self, name: self.property_name() }
    }
}

/// A type with the name by which a schema calls it, which messages repeat: `Map`, `json`, `Json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The type.
    pub data_type: DataType,
    /// Its name in the schema's language.
    pub name: &'static str,
}

impl Typed {
    /// The value as the type holds it: numbers and truth values from texts, texts from anything.
    ///
    /// Errors: `ValueError` for a text that is none of the type, `TypeError` for what cannot be a number at all.
    pub fn convert(self, value: &Value) -> Result<Value, Diagnostic> {
        let invalid = || {
            let shown = text::str(value);
            Diagnostic::new("ValueError", format!("Value \"{shown}\" is invalid for data type \"{}\".", self.name))
        };
        let of_value_error = |error: Diagnostic| if error.class == "ValueError" { invalid() } else { error };
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
