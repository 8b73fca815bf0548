//! Constraints of parameters and properties.
//!
//! Behavior and texts of Heat's `engine/constraints.py`; `reference/functions.json` lists the constraints of each type.

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

/// A rule that a value must keep, with the words to say if it does not.
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
    /// A number within bounds, each included.
    Range {
        /// The smallest number.
        min: Option<Value>,
        /// The largest number.
        max: Option<Value>,
    },
    /// A length within bounds: characters of a text, items of a list, entries of a map.
    Length {
        /// The smallest length.
        min: Option<Value>,
        /// The largest length.
        max: Option<Value>,
    },
    /// A number that leaves `offset` when divided by `step`.
    Modulo {
        /// The divisor.
        step: Value,
        /// The rest.
        offset: Value,
    },
    /// One of a list; of a list value, each item.
    AllowedValues(Vec<Value>),
    /// A text that a regular expression matches from start to end.
    AllowedPattern(Pattern),
    /// What a service must know, or a check with a name: `neutron.network`, `ip_addr`.
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

    /// Whether values of this type can be judged by the rule.
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

    /// What the rule was given, as templates write it.
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

    /// The entry in a schema's `constraints`: `{<name>: <arguments>, description: …}`, as `GET /resource_types/…` shows it.
    pub fn to_value(&self) -> Value {
        let mut entry = Map::new();
        if let Some(description) = &self.description {
            entry.insert("description".to_owned(), description.into());
        }
        entry.insert(self.rule.name().to_owned(), self.rule.arguments());
        Value::Map(entry)
    }
}

/// `None` or the bound, as messages show it.
fn bound_text(bound: Option<&Value>) -> String {
    bound.map_or_else(|| "None".to_owned(), text::str)
}
