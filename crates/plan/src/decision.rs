//! What to do with one resource of the template.

use kiln_resource::Failure;
use kiln_value::{Map, Value};

/// What becomes of a resource, judged when all that it requires is there.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// There is none: make it.
    Create {
        /// The resolved definition.
        definition: Value,
    },
    /// It is as it should be; `definition` is stored if its unseen parts (policies, metadata) changed.
    Keep {
        /// The new resolved definition, if it differs.
        definition: Option<Value>,
    },
    /// Change it in place.
    Update {
        /// The resolved definition.
        definition: Value,
        /// Properties before.
        before: Map,
        /// Changed properties, with their new values.
        changed: Map,
    },
    /// Make another one, delete this one later.
    Replace {
        /// The resolved definition.
        definition: Value,
        /// Why: property and reason, for the preview.
        why: Vec<String>,
        /// Heat's text, where it began the update before it saw that it must replace; an event tells it.
        announce: Option<String>,
    },
    /// It cannot be: a property does not resolve or is refused.
    Refuse {
        /// Why.
        failure: Failure,
    },
    /// The environment forbids it (`restricted_actions`): an event says so, the resource's state stays.
    Restrict {
        /// Why.
        failure: Failure,
    },
}
