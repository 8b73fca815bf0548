//! Resource types.

use indexmap::IndexMap;
use kiln_template::constraint::DataType;

use crate::{PropertySchema, Rest, SupportStatus, Translation};

/// The schema of an attribute.
#[derive(Clone, Debug, Default)]
pub struct AttributeSchema {
    /// The type that it should have; none for any.
    pub kind: Option<DataType>,
    /// For people.
    pub description: Option<String>,
    /// Support status.
    pub support: SupportStatus,
    /// Whether it is read anew each time (Heat's `cache_none`).
    pub live: bool,
    /// Path in the service's object; empty for its own name.
    pub wire: Vec<String>,
}

/// Who acts for a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DriverKind {
    /// The generic REST driver.
    Rest,
    /// A driver of its own.
    #[default]
    Code,
    /// Nobody, and nothing is to be done: any properties are taken, and attributes are null.
    Placeholder,
    /// Nobody yet: shown and validated, but not created.
    None,
}

/// A resource type, as its definition file says (docs/resource-types.md).
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the definition format")]
pub struct ResourceType {
    /// Name: `OS::Neutron::Net`.
    pub name: String,
    /// One sentence for people.
    pub summary: String,
    /// Heat's class name, the resource's name in generated templates.
    pub class: String,
    /// Service types of the catalog of which one is needed; none needed if empty.
    pub service: Vec<String>,
    /// Service extension that is needed.
    pub extension: Option<String>,
    /// Who acts.
    pub driver: DriverKind,
    /// Support status.
    pub support: SupportStatus,
    /// Rule that a user must pass to see and use it.
    pub policy: Option<String>,
    /// Longest physical name, in characters.
    pub physical_name_limit: usize,
    /// Whether it acts after the request is over, so that a trust is needed.
    pub deferred_auth: bool,
    /// Whether it stands for a nested stack.
    pub nested: bool,
    /// Whether it takes signals.
    pub signals: bool,
    /// Whether any property is taken.
    pub open_properties: bool,
    /// Whether any attribute may be asked for.
    pub open_attributes: bool,
    /// The type that takes this one's place without a replacement.
    pub becomes: Option<String>,
    /// Whether a resource whose check failed is replaced at the next update.
    pub replace_on_check_failed: bool,
    /// Properties.
    pub properties: IndexMap<String, PropertySchema>,
    /// Attributes without the `show` that every type has.
    pub attributes: IndexMap<String, AttributeSchema>,
    /// Schema of the `update_policy` section.
    pub update_policy: IndexMap<String, PropertySchema>,
    /// Translation rules.
    pub translation: Vec<Translation>,
    /// Requests of a plain REST noun.
    pub rest: Option<Rest>,
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
            properties: IndexMap::new(),
            attributes: IndexMap::new(),
            update_policy: IndexMap::new(),
            translation: Vec::new(),
            rest: None,
        }
    }

    /// Whether `get_attr` may name this attribute: one of the schema, `show`, or any if they are open.
    pub fn has_attribute(&self, name: &str) -> bool {
        self.open_attributes || name == "show" || self.attributes.contains_key(name)
    }
}
