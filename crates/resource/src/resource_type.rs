//! Resource types.

use indexmap::IndexMap;
use kiln_template::constraint::DataType;

use crate::finder::Finder;
use crate::{PropertySchema, Rest, SupportStatus, Translation};

/// The schema of an attribute.
#[derive(Clone, Debug, Default)]
pub struct AttributeSchema {
    /// The expected type; `None` for any.
    pub kind: Option<DataType>,
    /// The description.
    pub description: Option<String>,
    /// Support status.
    pub support: SupportStatus,
    /// Whether it is never cached (Heat's `cache_none`).
    pub live: bool,
    /// Path in the object of the service; empty: its own name.
    pub wire: Vec<String>,
}

/// The kind of driver of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DriverKind {
    /// The generic REST driver.
    Rest,
    /// A driver in code.
    #[default]
    Code,
    /// No driver is needed: all properties are accepted, and attributes are null.
    Placeholder,
    /// Not implemented: the type is shown and validated, but cannot be created.
    None,
}

/// A resource type, as defined by its file (docs/resource-types.md).
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the definition format")]
pub struct ResourceType {
    /// Name: `OS::Neutron::Net`.
    pub name: String,
    /// A description in one sentence.
    pub summary: String,
    /// Heat's class name, the resource's name in generated templates.
    pub class: String,
    /// The required service: one of these types of the catalog; empty: none.
    pub service: Vec<String>,
    /// The required extension of the service.
    pub extension: Option<String>,
    /// The kind of driver.
    pub driver: DriverKind,
    /// Support status.
    pub support: SupportStatus,
    /// The policy rule for its use.
    pub policy: Option<String>,
    /// Maximum length of the physical name in characters.
    pub physical_name_limit: usize,
    /// Whether it acts after the request has ended, so that a trust is required.
    pub deferred_auth: bool,
    /// Whether it is a nested stack.
    pub nested: bool,
    /// Whether it accepts signals.
    pub signals: bool,
    /// Whether all properties are accepted.
    pub open_properties: bool,
    /// Whether all attributes are accepted.
    pub open_attributes: bool,
    /// The type that a resource of this type can be changed to without a replacement.
    pub becomes: Option<String>,
    /// Whether a resource whose check failed is replaced at the next update.
    pub replace_on_check_failed: bool,
    /// What is lost when its object is deleted.
    pub loses: Option<Loss>,
    /// Properties.
    pub properties: IndexMap<String, PropertySchema>,
    /// Attributes, without `show`, which every type has.
    pub attributes: IndexMap<String, AttributeSchema>,
    /// Schema of the `update_policy` section.
    pub update_policy: IndexMap<String, PropertySchema>,
    /// Translation rules.
    pub translation: Vec<Translation>,
    /// The requests of a simple REST resource.
    pub rest: Option<Rest>,
    /// How its objects are found by name or ID, and objects that it refers to and that no type creates.
    pub finders: Vec<Finder>,
}

/// Something that is lost with an object, and that cannot be created anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// `volume`, `disk`, `address` and so on.
    pub kind: String,
    /// In words: `the volume's data`.
    pub what: String,
}

impl ResourceType {
    /// A type without properties and attributes.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            class: name.rsplit("::").next().unwrap_or_default().to_owned(),
            name,
            summary: String::new(),
            service: Vec::new(),
            extension: None,
            driver: DriverKind::Code,
            support: SupportStatus::default(),
            policy: None,
            physical_name_limit: 255,
            deferred_auth: false,
            nested: false,
            signals: false,
            open_properties: false,
            open_attributes: false,
            becomes: None,
            replace_on_check_failed: true,
            loses: None,
            properties: IndexMap::new(),
            attributes: IndexMap::new(),
            update_policy: IndexMap::new(),
            translation: Vec::new(),
            rest: None,
            finders: Vec::new(),
        }
    }

    /// Whether a property can be updated in place.
    pub fn can_update(&self, property: &str) -> bool {
        self.properties.get(property).is_some_and(|property| property.update_allowed && !property.immutable)
    }

    /// Whether the type has this attribute: one of the schema, `show`, or any if attributes are open.
    pub fn has_attribute(&self, name: &str) -> bool {
        self.open_attributes || name == "show" || self.attributes.contains_key(name)
    }
}
