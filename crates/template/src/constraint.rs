//! Constraints of parameters and properties.
//!
//! Behavior and messages of Heat's `engine/constraints.py`; `reference/functions.json` lists the constraints of each
//! type.

mod build;
mod check;
mod custom;
mod data_type;
#[cfg(test)]
mod tests;

pub(crate) use build::{check_map, schema_error};
pub use check::{check_all, check_fit};
pub use custom::{AcceptAll, CustomConstraints, not_found};
pub use data_type::{DataType, Typed};

use kiln_value::{Map, Pattern, Value, text, value};

/// A rule for a value, with the message for values that violate it.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The rule.
    pub rule: Rule,
    /// Replaces the generated message.
    pub description: Option<String>,
}

/// The kinds of rules.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// A number within inclusive bounds.
    Range {
        /// The minimum.
        min: Option<Value>,
        /// The maximum.
        max: Option<Value>,
    },
    /// A length within bounds: characters of a string, items of a list, entries of a map.
    Length {
        /// The minimum length.
        min: Option<Value>,
        /// The maximum length.
        max: Option<Value>,
    },
    /// A number with the remainder `offset` when divided by `step`.
    Modulo {
        /// The divisor.
        step: Value,
        /// The remainder.
        offset: Value,
    },
    /// One of a list; of a list value, each item.
    AllowedValues(Vec<Value>),
    /// A string that a regular expression matches completely.
    AllowedPattern(Pattern),
    /// A named check, of an object in a cloud service or of a format: `neutron.network`, `ip_addr`.
    Custom(String),
}

impl Rule {
    /// The name in templates: `allowed_values`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Range { .. } => "range",
            Self::Length { .. } => "length",
            Self::Modulo { .. } => "modulo",
            Self::AllowedValues(_) => "allowed_values",
            Self::AllowedPattern(_) => "allowed_pattern",
            Self::Custom(_) => "custom_constraint",
        }
    }

    /// The name in messages: `AllowedValues`.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Range { .. } => "Range",
            Self::Length { .. } => "Length",
            Self::Modulo { .. } => "Modulo",
            Self::AllowedValues(_) => "AllowedValues",
            Self::AllowedPattern(_) => "AllowedPattern",
            Self::Custom(_) => "CustomConstraint",
        }
    }

    /// Whether the rule can check values of this type.
    pub fn fits(&self, data_type: DataType) -> bool {
        use DataType::{Boolean, List, Map, String};
        match self {
            Self::Range { .. } | Self::Modulo { .. } => data_type.is_number(),
            Self::Length { .. } => matches!(data_type, String | List | Map),
            Self::AllowedPattern(_) => data_type == String,
            Self::AllowedValues(_) | Self::Custom(_) => {
                data_type.is_number() || matches!(data_type, String | Boolean | List)
            }
        }
    }

    /// The arguments of the rule, as in templates.
    pub fn arguments(&self) -> Value {
        match self {
            Self::Range { min, max } | Self::Length { min, max } => {
                let given = [("min", min), ("max", max)];
                given.into_iter().filter_map(|(key, bound)| Some((key, bound.clone()?))).collect()
            }
            Self::Modulo { step, offset } => value!({"step": step, "offset": offset}),
            Self::AllowedValues(allowed) => Value::List(allowed.clone()),
            Self::AllowedPattern(pattern) => pattern.as_str().into(),
            Self::Custom(name) => name.into(),
        }
    }
}

impl Constraint {
    /// A rule with its generated message.
    pub fn new(rule: Rule) -> Self {
        Self { rule, description: None }
    }

    /// The entry in a schema's `constraints`: `{<name>: <arguments>, description: …}`, as `GET /resource_types/…` shows
    /// it.
    pub fn to_value(&self) -> Value {
        let mut entry = Map::new();
        if let Some(description) = &self.description {
            entry.insert("description".to_owned(), description.into());
        }
        entry.insert(self.rule.name().to_owned(), self.rule.arguments());
        Value::Map(entry)
    }
}

/// The bound as messages show it, or `None`.
fn bound_text(bound: Option<&Value>) -> String {
    bound.map_or_else(|| "None".to_owned(), text::str)
}
