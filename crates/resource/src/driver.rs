//! The interface between the engine and the driver of a resource type.
//!
//! A driver has no state: all data that it needs in later calls is in [`Step`], which the engine stores before it
//! continues. So any engine can continue any operation at any point.

use std::time::Duration;

use async_trait::async_trait;
use kiln_value::{Class, Diagnostic, Map, Value};

use crate::step::{Found, Step};
use crate::{Action, Cloud, Facts, Failure, NestedStack, Received, Software, TypeRules};

/// The input of a driver.
pub struct Context<'a> {
    /// The cloud, with the stack's credentials.
    pub cloud: &'a dyn Cloud,
    /// The stored software configs and deployments.
    pub software: &'a dyn Software,
    /// The resource.
    pub facts: &'a Facts,
    /// Seconds since 1970.
    pub now: f64,
    /// Random bytes, new in every call. They do not follow from stored data.
    pub seed: [u8; 32],
    /// The number of consecutive polls of this operation without a change; it determines the polling interval. It is
    /// not stored: 0 after a take-over.
    pub polls: u32,
}

impl<'a> Context<'a> {
    /// For calls that only read: their requests depend neither on the time nor on random numbers.
    pub fn reading(cloud: &'a dyn Cloud, software: &'a dyn Software, facts: &'a Facts) -> Self {
        Self { cloud, software, facts, now: 0.0, seed: [0; 32], polls: 0 }
    }

    /// A random number from the seed, not for secrets.
    pub fn random(&self) -> u64 {
        self.seed.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// An operation on a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Create the object.
    Create,
    /// Update the object in place.
    Update {
        /// The current properties.
        before: Map,
        /// The changed properties with their new values; null for removed ones.
        changed: Map,
    },
    /// Delete the object; succeeds if it does not exist.
    Delete,
    /// Check that the object exists and is healthy.
    Check,
    /// Suspend the object.
    Suspend,
    /// Resume the object.
    Resume,
    /// Take over an existing object. The engine does this itself and only reads the attributes from the driver.
    Adopt,
    /// Save the object, so that it can be restored from the data of the step. A repeated call must find the copy of an
    /// earlier one with the same token.
    Snapshot,
}

impl Operation {
    /// The action that clients see.
    pub fn action(&self) -> Action {
        match self {
            Self::Create => Action::Create,
            Self::Update { .. } => Action::Update,
            Self::Delete => Action::Delete,
            Self::Check => Action::Check,
            Self::Suspend => Action::Suspend,
            Self::Resume => Action::Resume,
            Self::Adopt => Action::Adopt,
            Self::Snapshot => Action::Snapshot,
        }
    }
}

/// The code of a resource type: the calls for its objects.
#[async_trait]
pub trait Driver: TypeRules {
    /// Starts an operation.
    ///
    /// A create that is not idempotent must return immediately after the call that creates the object (with
    /// `Progress::Wait` if there are further calls), so that its ID is stored.
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure>;

    /// Continues an operation whose last step was [`crate::Progress::Wait`].
    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let _ = (cx, operation, state);
        Ok(Step::done())
    }

    /// After a crash or a lost response: looks for the object of a create with this token.
    ///
    /// There is no default. If the object cannot be distinguished from others, the result is [`Found::CannotTell`] and
    /// not [`Found::NotMade`], unless a repeated call does no harm.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure>;

    /// Processes a signal to the resource: its body, or null. May be called again after a crash; the result is stored
    /// once. A failure is logged; there is no event. Only types with `signals: true` in their definition get signals.
    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let _ = message;
        Err(Failure::other(Class::NotSupported, format!("Resource {} does not support signals", cx.facts.name)))
    }

    /// Whether messages are processed while an operation on the resource is running, because it waits for them, and in
    /// every state. Else they wait for its end, and a resource that is suspended or being deleted refuses them.
    fn receives_during_operations(&self) -> bool {
        false
    }

    /// Whether [`Driver::receive`] calls a cloud.
    fn receives_with_cloud(&self) -> bool {
        self.needs_cloud()
    }

    /// Whether the type is implemented. Otherwise it is shown, but rejected before anything is created.
    fn is_implemented(&self) -> bool {
        true
    }

    /// Whether the driver calls a cloud. Otherwise its context has a cloud that refuses every call.
    fn needs_cloud(&self) -> bool {
        true
    }

    /// Whether its resources are objects of a cloud. Others have attributes without an ID, and no drift.
    fn has_object(&self) -> bool {
        self.needs_cloud()
    }

    /// Whether a create with a lost response may be repeated, because nothing is created outside Kiln: the engine then
    /// stores no intent and does not call [`Driver::find`]. An idempotent call is not enough: it may still be in
    /// progress when a later operation has set another state.
    fn is_repeatable(&self) -> bool {
        !self.needs_cloud()
    }

    /// The attributes with these names, read from the cloud; `show` is the whole object. Types that compute their
    /// attributes may be asked for names that are not in the schema. A missing attribute is null; by default, all are.
    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let _ = cx;
        Ok(names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect())
    }

    /// The current values of properties in the object, to find what others have changed ([`crate::object_drift`]): the
    /// translated values, without those that the service does not show; null where the object has no value. A failure
    /// that is not found means that the object does not exist.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        if self.needs_cloud() {
            self.start(cx, &Operation::Check).await?;
        }
        Ok(Map::new())
    }

    /// What [`Driver::live`] would return if the service answered with this object. Without requests: the cloud of the
    /// context refuses them. By default nothing.
    async fn live_in(&self, cx: &Context<'_>, object: &Value) -> Result<Map, Failure> {
        let _ = (cx, object);
        Ok(Map::new())
    }

    /// The properties that mean more than their stored value says, such as the rules of a security group, to which the
    /// service adds its own: what [`Driver::live`] returns if nobody has changed the object. They are compared exactly.
    async fn expected(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let _ = cx;
        Ok(Map::new())
    }

    /// Whether the service can protect the object from a delete ([`Driver::lock`]).
    fn has_lock(&self) -> bool {
        false
    }

    /// Makes the service refuse to delete the object, for everybody who uses it, or no longer. May be repeated.
    async fn lock(&self, cx: &Context<'_>, locked: bool) -> Result<(), Failure> {
        let _ = locked;
        Err(Failure::other(Class::NotSupported, format!("Resource {} has no lock", cx.facts.name)))
    }

    /// Whether a delete may be preceded by a snapshot (`deletion_policy: Snapshot`).
    fn snapshots(&self) -> bool {
        false
    }

    /// Deletes the result of an [`Operation::Snapshot`]; the facts have the data of the resource at that time. Returns
    /// the delay before the next call; `None` when everything is deleted. May be repeated.
    async fn delete_snapshot(&self, cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
        let _ = cx;
        Ok(None)
    }

    /// Writes the metadata of a server where its agent reads them, after its deployments have changed.
    async fn push_metadata(&self, cx: &Context<'_>) -> Result<(), Failure> {
        let _ = cx;
        Ok(())
    }

    /// Makes the object of `cx` release what an object with the `wanted` properties needs. Returns the delay before the
    /// next call; `None` when everything is released. May be repeated.
    async fn release(&self, cx: &Context<'_>, wanted: &Map) -> Result<Option<Duration>, Failure> {
        let _ = (cx, wanted);
        Ok(None)
    }

    /// Whether a FAILED object must be replaced at the next update (Heat's `needs_replace_failed`).
    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        let _ = cx;
        Ok(true)
    }

    /// Validates in the cloud, with the user's own token, before the stack is stored; unknown values are null.
    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        let _ = cx;
        Ok(())
    }

    /// The description of the nested stack that stands for the object; `None` for types with objects of a cloud.
    fn nested_stack(&self) -> Option<&dyn NestedStack> {
        None
    }
}
