//! The schema of a property.

use indexmap::IndexMap;
use kiln_template::constraint::{AcceptAll, Constraint, DataType, check_all, check_fit};
use kiln_value::{Diagnostic, Value};

use crate::SupportStatus;

/// The types that properties and attributes have.
const TYPES: [DataType; 7] = [
    DataType::String,
    DataType::Integer,
    DataType::Number,
    DataType::Boolean,
    DataType::Map,
    DataType::List,
    DataType::Any,
];

/// The type of a word as definition files and the API have it: `string`.
pub fn type_named(word: &str) -> Option<DataType> {
    TYPES.into_iter().find(|kind| type_name(*kind) == word)
}

/// The word for a type in definition files and in the API: `string`.
pub fn type_name(kind: DataType) -> String {
    kind.property_name().to_lowercase()
}

/// What a map or list property holds.
#[derive(Clone, Debug)]
pub enum Inner {
    /// Every item of a list is like this.
    Items(Box<PropertySchema>),
    /// The members of a map.
    Members(IndexMap<String, PropertySchema>),
}

/// How a property is written into a request's body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Under its own name.
    #[default]
    Same,
    /// Under another name; dots make maps.
    As(String),
    /// Its entries stand beside the other keys of the body.
    Merged,
    /// Not at all.
    Never,
}

/// What a property takes, and what a change of it means.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the definition format")]
pub struct PropertySchema {
    /// Type.
    pub kind: DataType,
    /// For people.
    pub description: Option<String>,
    /// Whether a value must be given.
    pub required: bool,
    /// Whether a change is made in place; else it replaces the resource.
    pub update_allowed: bool,
    /// Whether a change is an error.
    pub immutable: bool,
    /// The value if none is given.
    pub default: Option<Value>,
    /// Items or members.
    pub inner: Option<Inner>,
    /// Constraints, in the order of their check.
    pub constraints: Vec<Constraint>,
    /// Support status.
    pub support: SupportStatus,
    /// Whether it may be given at all.
    pub implemented: bool,
    /// Whether texts pass for maps and lists (properties that stand for parameters of a provider template).
    pub allow_conversion: bool,
    /// Its place in a request's body.
    pub wire: Wire,
}

impl PropertySchema {
    /// An optional property of a type, replaced at a change.
    pub fn new(kind: DataType) -> Self {
        Self {
            kind,
            description: None,
            required: false,
            update_allowed: false,
            immutable: false,
            default: None,
            inner: None,
            constraints: Vec::new(),
            support: SupportStatus::default(),
            implemented: true,
            allow_conversion: false,
            wire: Wire::Same,
        }
    }

    /// Whether the schema makes sense: constraints fit their types, items and members belong to lists and maps, and the
    /// default keeps the constraints (custom ones are not asked), here and below.
    ///
    /// # Errors
    /// `InvalidSchemaError` for the first that does not; `StackValidationFailed` for a default.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let typed = self.kind.property();
        let invalid = |message: String| Err(Diagnostic::new("InvalidSchemaError", message));
        match (&self.inner, self.kind) {
            (Some(Inner::Items(_)), kind) if kind != DataType::List => {
                return invalid(format!("Single schema valid only for List, not {}", typed.name));
            }
            (Some(_), kind) if !matches!(kind, DataType::List | DataType::Map) => {
                return invalid(format!("Schema valid only for List or Map, not {}", typed.name));
            }
            _ => {}
        }
        check_fit(&self.constraints, typed)?;
        if let Some(default) = &self.default {
            check_all(&self.constraints, default, typed, &AcceptAll)?;
        }
        match &self.inner {
            Some(Inner::Items(items)) => items.check(),
            Some(Inner::Members(members)) => members.values().try_for_each(Self::check),
            None => Ok(()),
        }
    }

    /// The members of a map; none for anything else.
    pub fn members(&self) -> Option<&IndexMap<String, Self>> {
        match &self.inner {
            Some(Inner::Members(members)) => Some(members),
            _ => None,
        }
    }

    /// The schema of a list's items.
    pub fn items(&self) -> Option<&Self> {
        match &self.inner {
            Some(Inner::Items(items)) => Some(items),
            _ => None,
        }
    }
}
