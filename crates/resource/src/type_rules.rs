//! What planner and validation ask about a resource type.

use kiln_value::{Diagnostic, Map, Value};

use crate::siblings::{Sibling, Siblings};
use crate::{Facts, Failure, SoftwareChange};

/// The changes of properties in an update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PropertyChange {
    /// Resolved properties before the update.
    pub before: Map,
    /// Resolved properties after the update.
    pub after: Map,
    /// Names of the changed properties.
    pub changed: Vec<String>,
}

/// How a create without a mark can be told from others.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmarked {
    /// The service whose clock says when objects were created.
    pub service: String,
    /// Two creates of a type with the same value make objects that look alike.
    pub likeness: Value,
    /// The service does not show when objects were created: those that look alike are listed before the call.
    pub listed: bool,
}

/// The rules of a resource type that its definition file cannot express. They are pure: each answer follows from the
/// arguments alone, without a call to a cloud. The defaults fit most types.
pub trait TypeRules: Send + Sync {
    /// Whether the object of this create, which would need a mark that another request removes, can also be found by
    /// what it is and when it was created ([`crate::Found::Alike`]). The engine then sets [`crate::Attempt::unmarked_since`], unless
    /// another create in progress makes an object that looks alike, and the driver sends no mark.
    fn unmarked(&self, facts: &Facts) -> Option<Unmarked> {
        let _ = facts;
        None
    }

    /// What is stored when an operation is cancelled or runs out of time.
    fn cancelled(&self, facts: &Facts) -> Option<SoftwareChange> {
        let _ = facts;
        None
    }

    /// The properties that restore the object from a snapshot with this data; null removes a property. `None`: the
    /// object is not restored, only its definition.
    fn restored(&self, data: &Map) -> Option<Map> {
        let _ = data;
        None
    }

    /// The future value of an attribute, if it follows from these properties alone; for plans.
    fn foreseen(&self, _facts: &Facts, _name: &str) -> Option<Value> {
        None
    }

    /// Whether the metadata are evaluated again when attributes of other resources have changed without an operation.
    fn refreshes_metadata(&self) -> bool {
        false
    }

    /// The resources of the stack that the driver reads, by their references (`get_resource`): they are in
    /// [`Facts::observed`]. A waiting operation is polled immediately when one of them has processed a message.
    fn observes(&self, facts: &Facts) -> Vec<Value> {
        let _ = facts;
        Vec::new()
    }

    /// All resources of these types are in [`Facts::observed`] too, with or without an object.
    fn observed_types(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether every update of the stack replaces the resource.
    fn replaced_by_updates(&self) -> bool {
        false
    }

    /// Whether every update of the stack updates the resource, even if nothing has changed.
    fn always_updates(&self, properties: &Map) -> bool {
        let _ = properties;
        false
    }

    /// Whether the value of `get_resource` is the ARN of the nested stack, not [`TypeRules::reference`].
    fn refers_by_arn(&self) -> bool {
        false
    }

    /// The value of `get_resource`: by default the physical ID, or the logical name if there is none.
    fn reference(&self, facts: &Facts) -> Value {
        facts.physical_id.as_deref().unwrap_or(&facts.name).into()
    }

    /// Whether a change of these properties needs a replacement although the schema allows the update.
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        let _ = change;
        false
    }

    /// Why an update in place of these properties is refused, as far as that is certain without the object; the update
    /// changes nothing then.
    fn refuses(&self, change: &PropertyChange) -> Option<Failure> {
        let _ = change;
        None
    }

    /// Whether an update in place destroys the data of the object ([`crate::ResourceType::loses`]). `properties` are the
    /// new ones.
    fn destroys_data(&self, properties: &Map, changed: &Map) -> bool {
        let _ = (properties, changed);
        false
    }

    /// Whether an update in place of these properties stops the object or its connections for a time.
    fn restarts(&self, changed: &Map) -> bool {
        let _ = changed;
        false
    }

    /// The properties for which two objects of this type collide: both need the same address, port or name. Before one
    /// of them is created, or gets it back in a rollback, the other one releases it ([`crate::Driver::release`]).
    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let _ = (held, wanted);
        Vec::new()
    }

    /// Validates what the schema cannot express; unknown values are null.
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let _ = facts;
        Ok(())
    }

    /// Validates against the other resources of the stack.
    fn validate_among(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Result<(), Diagnostic> {
        let _ = (this, siblings);
        Ok(())
    }

    /// Whether [`crate::Driver::validate_in_cloud`] is needed for these properties.
    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        let _ = facts;
        false
    }

    /// The hints that a create sends to the scheduler of its service; `None` for types without any.
    fn scheduler_hints(&self, facts: &Facts) -> Option<Map> {
        let _ = facts;
        None
    }

    /// Whether the data of the facts contain the files and the environment of the stack (`files`, `environment`).
    fn takes_sources(&self) -> bool {
        false
    }

    /// The properties that Heat resolves before anything else of the resource: an error in one of them has Python's
    /// text.
    fn resolved_first(&self) -> &'static [&'static str] {
        &[]
    }

    /// The supported keys of `update_policy`.
    fn update_policies(&self) -> &'static [&'static str] {
        &[]
    }

    /// Resources that must be created before this one although it does not reference them.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let _ = (this, siblings);
        Vec::new()
    }
}
