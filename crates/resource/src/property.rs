//! The schema of a property.

use indexmap::IndexMap;
use kiln_template::constraint::{AcceptAll, Constraint, DataType, check_all, check_fit};
use kiln_value::{Class, Diagnostic, Value};

use crate::SupportStatus;

/// The types of properties and attributes.
const TYPES: [DataType; 7] = [
    DataType::String,
    DataType::Integer,
    DataType::Number,
    DataType::Boolean,
    DataType::Map,
    DataType::List,
    DataType::Any,
];

/// The type with a name in definition files and the API: `string`.
pub fn type_named(word: &str) -> Option<DataType> {
    TYPES.into_iter().find(|kind| type_name(*kind) == word)
}

/// The name of a type in definition files and the API.
pub fn type_name(kind: DataType) -> String {
    kind.property_name().to_lowercase()
}

/// The content of a map or list property.
#[derive(Clone, Debug)]
pub enum Inner {
    /// The schema of every item of a list.
    Items(Box<PropertySchema>),
    /// The schemas of the members of a map.
    Members(IndexMap<String, PropertySchema>),
}

/// How a property is sent in a request body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Under its own name.
    #[default]
    Same,
    /// Under another name; dots create nested maps.
    As(String),
    /// Its entries are merged into the body.
    Merged,
    /// It is not sent.
    Never,
}

/// Why a comparison with the object does not see a property. In definition files the variant in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is secret: the service does not return it, or Kiln does not read it.
    Secret,
    /// The service uses it in a request and does not show it afterwards.
    Request,
    /// It says how Kiln acts and is no part of the object.
    Kiln,
}

/// The values of a property, and the effect of a change.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the definition format")]
pub struct PropertySchema {
    /// Type.
    pub kind: DataType,
    /// Description for users.
    pub description: Option<String>,
    /// Whether a value is required.
    pub required: bool,
    /// Whether it can be updated in place; otherwise a change replaces the resource.
    pub update_allowed: bool,
    /// Whether a change is an error.
    pub immutable: bool,
    /// The default value.
    pub default: Option<Value>,
    /// Schema of items or members.
    pub inner: Option<Inner>,
    /// Constraints, in the order in which they are checked.
    pub constraints: Vec<Constraint>,
    /// Support status.
    pub support: SupportStatus,
    /// Whether it is implemented; otherwise specifying it is an error.
    pub implemented: bool,
    /// Whether strings are accepted for maps and lists (properties that are parameters of a provider template).
    pub allow_conversion: bool,
    /// Its place in a request body.
    pub wire: Wire,
    /// Why it cannot be read in the object, if so; also that of its items and members.
    pub unread: Option<Unread>,
}

impl PropertySchema {
    /// An optional property of a type; a change replaces the resource.
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
            unread: None,
        }
    }

    /// Checks the schema: constraints fit their types, only lists and maps have items and members, and the default
    /// satisfies the constraints (custom ones are not checked); also for items and members.
    ///
    /// # Errors
    /// `InvalidSchemaError` for the first that does not; `StackValidationFailed` for a default.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let typed = self.kind.property();
        let invalid = |message: String| Err(Diagnostic::new(Class::InvalidSchemaError, message));
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

    /// The members of a map; `None` for other types.
    pub fn members(&self) -> Option<&IndexMap<String, Self>> {
        match &self.inner {
            Some(Inner::Members(members)) => Some(members),
            _ => None,
        }
    }

    /// The schema of the items of a list.
    pub fn items(&self) -> Option<&Self> {
        match &self.inner {
            Some(Inner::Items(items)) => Some(items),
            _ => None,
        }
    }
}
