//! The interface between the engine and the driver of a resource type.
//!
//! A driver has no state: all data that it needs in later calls is in [`Step`], which the engine stores before it
//! continues. So any engine can continue any operation at any point.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_value::{Diagnostic, Map, Value};

use crate::siblings::{Sibling, Siblings};
use crate::step::{Found, Step};
use crate::{Action, Cloud, Failure, Member, Received, Rescale, Software, SoftwareChange};

/// The stack that a resource belongs to.
#[derive(Clone, Debug, Default)]
pub struct StackFacts {
    /// Stack id.
    pub id: String,
    /// Stack name.
    pub name: String,
    /// Project (tenant) id of the stack.
    pub project_id: String,
    /// Project of the stack's users, once made.
    pub user_project_id: Option<String>,
    /// Id of the root stack of the tree.
    pub root_id: String,
    /// The way from the root stack to this one for hints of the scheduler: `["web", "tier,web-tier-x2y4"]`, the name of
    /// a nested stack after that of its resource. Empty unless `stack_scheduler_hints` is set, and in plans.
    pub path: Vec<String>,
}

/// The resource that a driver works on.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Kiln's id of the resource (a UUID); a replacement has another one.
    pub id: String,
    /// Logical name in the template.
    pub name: String,
    /// Type as it was resolved: `OS::Neutron::Net`.
    pub resource_type: String,
    /// The stack.
    pub stack: StackFacts,
    /// The name of the object if the template specifies none; unique: `<stack>-<resource>-<short id>`.
    pub physical_name: String,
    /// ID of the object in the cloud, if known.
    pub physical_id: Option<String>,
    /// Resolved, coerced and translated properties: all properties of the schema, null without a value. For an update
    /// these are the new ones, for a delete those of the last success.
    pub properties: Map,
    /// Names of the properties that the template specifies (others have defaults).
    pub given: Vec<String>,
    /// Metadata section, resolved.
    pub metadata: Value,
    /// The data of earlier steps (`resource_data`); never shown to users.
    pub data: Map,
    /// The token of this attempt to create the object, a UUID. It is stored before the first call, so that
    /// [`Driver::find`] can look for the object of a lost call.
    pub token: String,
    /// The object is created without a mark: the time before the call in seconds since 1970, by the clock of
    /// [`Unmarked::service`], or by that of the database for one that is [`Unmarked::listed`].
    pub unmarked_since: Option<i64>,
    /// Which of several nested templates is requested ([`Nested::then`]); null at first.
    pub nested_step: Value,
    /// Only the last of several nested templates is requested, for a plan: [`Nested::then`] is ignored.
    pub last_step: bool,
    /// The resources of the nested stack: failed ones first, then from the oldest to the newest, then by name.
    pub members: Vec<Member>,
    /// The properties that the running update changes.
    pub changed: Vec<String>,
    /// The update policy with the defaults of its schema; null for policies that are not given.
    pub update_policy: Map,
    /// Timeout of an action on the stack; `None` if it is unknown.
    pub action_timeout: Option<Duration>,
    /// The current action and status: `("CREATE", "IN_PROGRESS")`.
    pub state: (String, String),
    /// The existing resources of [`Driver::observes`].
    pub observed: Vec<Observed>,
    /// The hints for the scheduler if the operator has changed those of [`Driver::scheduler_hints`].
    pub scheduler_hints: Option<Map>,
}

/// Another resource of the stack, as currently stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Kiln's id of the resource.
    pub id: String,
    /// Logical name.
    pub name: String,
    /// ID of the object, if it is known.
    pub physical_id: Option<String>,
    /// Its type.
    pub resource_type: String,
    /// Its metadata.
    pub metadata: Value,
    /// Its properties.
    pub properties: Map,
    /// The data of its driver.
    pub data: Map,
}

impl Facts {
    /// The value of a property; null if it has none.
    pub fn property(&self, name: &str) -> &Value {
        const NULL: &Value = &Value::Null;
        self.properties.get(name).unwrap_or(NULL)
    }

    /// The physical ID.
    ///
    /// # Errors
    /// Not found, if it is unknown.
    pub fn require_id(&self) -> Result<&str, Failure> {
        self.physical_id.as_deref().ok_or_else(|| {
            Failure::new(crate::FailureKind::NotFound, "NotFound", format!("{} has no physical id", self.name))
        })
    }
}

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

impl Context<'_> {
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

/// The nested stack of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nested {
    /// Its template.
    pub template: Value,
    /// The URL of the template, if it is one of the stack's files: instead of `template`.
    pub template_url: Option<String>,
    /// Maximum duration of its create in minutes; `None`: that of the stack.
    pub timeout_mins: Option<i64>,
    /// Values of the template's parameters.
    pub parameters: Map,
    /// Parameters that get the values of the stack's own parameters with the same names. One that has neither a value
    /// nor a default is removed from the template, with the entries that have its value.
    pub inherited: &'static [&'static str],
    /// Files of the template.
    pub files: BTreeMap<String, String>,
    /// Entries for the resource registry of its environment.
    pub registry: Map,
    /// Entries for the data of the resource.
    pub data: Map,
    /// The template is one of several steps (a batch of a rolling update): when the nested stack has reached it, the
    /// driver is asked again with this in [`Facts::nested_step`].
    pub then: Option<Value>,
    /// The delay before that.
    pub pause: Duration,
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

/// The code of a resource type.
#[async_trait]
pub trait Driver: Send + Sync {
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

    /// Whether the object of this create, which would need a mark that another request removes, can also be found by
    /// what it is and when it was created ([`Found::Alike`]). The engine then sets [`Facts::unmarked_since`], unless
    /// another create in progress makes an object that looks alike, and the driver sends no mark.
    fn unmarked(&self, facts: &Facts) -> Option<Unmarked> {
        let _ = facts;
        None
    }

    /// Processes a signal to the resource: its body, or null. May be called again after a crash; the result is stored
    /// once. A failure is logged; there is no event. Only types with `signals: true` in their definition get signals.
    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let _ = message;
        Err(Failure::other("NotSupported", format!("Resource {} does not support signals", cx.facts.name)))
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
        false
    }

    /// What is stored when an operation is cancelled or runs out of time.
    fn cancelled(&self, facts: &Facts) -> Option<SoftwareChange> {
        let _ = facts;
        None
    }

    /// The attributes with these names, read from the cloud; `show` is the whole object. Types that compute their
    /// attributes may be asked for names that are not in the schema. A missing attribute is null.
    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure>;

    /// The current values of properties in the object, to find what others have changed ([`crate::drift`]): the
    /// translated values, without those that the service does not show; null where the object has no value. A failure
    /// that is not found means that the object does not exist.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        if self.needs_cloud() {
            self.start(cx, &Operation::Check).await?;
        }
        Ok(Map::new())
    }

    /// The properties that mean more than their stored value says, such as the rules of a security group, to which the
    /// service adds its own: what [`Driver::live`] returns if nobody has changed the object. They are compared exactly.
    async fn expected(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let _ = cx;
        Ok(Map::new())
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

    /// Writes the metadata of a server where its agent reads them, after its deployments have changed.
    async fn push_metadata(&self, cx: &Context<'_>) -> Result<(), Failure> {
        let _ = cx;
        Ok(())
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

    /// Whether the value of `get_resource` is the ARN of the nested stack, not [`Driver::reference`].
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

    /// The properties for which two objects of this type collide: both need the same address, port or name. Before one
    /// of them is created, or gets it back in a rollback, the other one releases it ([`Driver::release`]).
    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let _ = (held, wanted);
        Vec::new()
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

    /// Whether [`Driver::validate_in_cloud`] is needed for these properties.
    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        let _ = facts;
        false
    }

    /// Validates in the cloud, with the user's own token, before the stack is stored; unknown values are null.
    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        let _ = cx;
        Ok(())
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

    /// The nested stack of this resource, which the engine creates and updates. `wanted` are the attributes (name and
    /// path) that the template of the parent reads. `None` for a resource without a nested stack.
    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let _ = (facts, wanted);
        None
    }

    /// The property for which [`Driver::prepare`] must be called before the nested stack is requested, if there is one.
    fn prepares(&self, facts: &Facts) -> Option<&'static str> {
        let _ = facts;
        None
    }

    /// What [`Driver::nested`] needs from the cloud: entries for the data of the resource, which are in [`Facts::data`]
    /// from then on. May be repeated.
    async fn prepare(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let _ = cx;
        Ok(Map::new())
    }

    /// The names of the resources that get the members of this group when they change ([`Driver::with_members`]).
    fn load_balancers(&self, facts: &Facts) -> Vec<String> {
        let _ = facts;
        Vec::new()
    }

    /// The data of a load balancer when a group has these members (reference IDs); `None`: they do not change it.
    fn with_members(&self, facts: &Facts, group: &str, members: &[Value]) -> Option<Map> {
        let _ = (facts, group, members);
        None
    }

    /// The nested stack to validate before anything is created. If all members have the same definition, it has one of
    /// them. Unknown values of properties are null. `None`: there is nothing to validate.
    fn nested_draft(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        self.nested(facts, wanted)
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

    /// The properties that [`Driver::nested_draft`] requires.
    fn draft_needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// The number of members, if they all have the definition of [`Driver::nested_draft`]: they are counted before any
    /// of them is built.
    fn members(&self, facts: &Facts) -> Option<usize> {
        let _ = facts;
        None
    }

    /// Whether the members of a group are in the order of their age, without the failed ones, for
    /// [`Driver::nested_attribute`].
    fn members_by_age(&self) -> bool {
        false
    }

    /// The metadata of a group after its create or update, with the number of its healthy members; `None`: they do not
    /// change.
    fn nested_done(&self, facts: &Facts, size: usize, now: f64) -> Option<Map> {
        let _ = (facts, size, now);
        None
    }

    /// How a group with these members changes its size ([`crate::ScaleRequest`]); `None`: it does not. Not called while
    /// the nested stack is changing.
    fn rescale(&self, facts: &Facts, adjustment: &Value, now: f64) -> Option<Rescale> {
        let _ = (facts, adjustment, now);
        None
    }

    /// The metadata of a group after [`Driver::rescale`].
    fn rescaled(&self, facts: &Facts, adjustment: &Value, succeeded: bool, now: f64) -> Map {
        let _ = (adjustment, succeeded, now);
        facts.metadata.as_map().cloned().unwrap_or_default()
    }

    /// An attribute of a resource with a nested stack, from its outputs and the references of its resources. `None` if
    /// there is no such attribute.
    fn nested_attribute(
        &self,
        facts: &Facts,
        outputs: &Map,
        refs: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        let _ = (facts, outputs, refs, name, path);
        None
    }

    /// The attribute of members whose list is an attribute of this name, if the nested stack has no such output: groups
    /// have outputs only for what templates read.
    fn member_attribute(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// Resources that must be created before this one although it does not reference them.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let _ = (this, siblings);
        Vec::new()
    }
}
