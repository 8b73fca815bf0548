//! The interface between the engine and the driver of a resource type.
//!
//! A driver has no state: all data that it needs in later calls is in [`Step`], which the engine stores before it
//! continues. So any engine can continue any operation at any point.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_value::{Diagnostic, Map, Value};

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
}

/// All that is known of the resource that a driver acts on.
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
    /// The name to give to the object where the template gives none: unique, `<stack>-<resource>-<short id>`.
    pub physical_name: String,
    /// Id of the object in the cloud, once known.
    pub physical_id: Option<String>,
    /// Resolved, coerced and translated properties: every property of the schema is there, null where it has no value.
    /// At `Operation::Update` these are the new ones, at `Delete` those of the last success.
    pub properties: Map,
    /// Names of the properties that the template gives (others hold defaults).
    pub given: Vec<String>,
    /// Metadata section, resolved.
    pub metadata: Value,
    /// What former steps stored (`resource_data`); never shown to users.
    pub data: Map,
    /// Marks this attempt at creating: committed before the first call, so that [`Driver::find`] can look for what
    /// a lost call has made. A UUID.
    pub token: String,
    /// Which of several nested templates is asked for ([`Nested::then`]); null at first.
    pub nested_step: Value,
    /// Only the last of several nested templates is wanted, for a plan: [`Nested::then`] is ignored.
    pub last_step: bool,
    /// The resources of the nested stack: failed ones first, then from the oldest to the newest, then by name.
    pub members: Vec<Member>,
    /// The properties that the running update changes.
    pub changed: Vec<String>,
    /// The update policy with the defaults of its schema; null for policies that are not given.
    pub update_policy: Map,
    /// Timeout of an action on the stack; `None` if it is unknown.
    pub action_timeout: Option<Duration>,
    /// Logical action and status now: `("CREATE", "IN_PROGRESS")`.
    pub state: (String, String),
    /// The resources that [`Driver::observes`] asks for, as far as they exist.
    pub observed: Vec<Observed>,
}

/// Another resource of the stack, as it is stored now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Kiln's id of the resource.
    pub id: String,
    /// Its type.
    pub resource_type: String,
    /// Its metadata.
    pub metadata: Value,
    /// Its properties.
    pub properties: Map,
}

impl Facts {
    /// A property's value; null if there is none.
    pub fn property(&self, name: &str) -> &Value {
        const NULL: &Value = &Value::Null;
        self.properties.get(name).unwrap_or(NULL)
    }

    /// The physical id, or the failure to have none.
    pub fn require_id(&self) -> Result<&str, Failure> {
        self.physical_id.as_deref().ok_or_else(|| {
            Failure::new(crate::FailureKind::NotFound, "NotFound", format!("{} has no physical id", self.name))
        })
    }
}

/// What a driver acts with and on.
pub struct Context<'a> {
    /// The cloud, with the stack's credentials.
    pub cloud: &'a dyn Cloud,
    /// The stored software configs and deployments.
    pub software: &'a dyn Software,
    /// The resource.
    pub facts: &'a Facts,
    /// Seconds since 1970 by the injected clock.
    pub now: f64,
    /// Random bytes by the injected chance, new at every call: nothing that is stored tells them.
    pub seed: [u8; 32],
    /// How many polls of this operation in a row have answered with the state that this one starts from: drivers pace
    /// their polls by it. Not stored: 0 again after a take-over.
    pub polls: u32,
}

impl Context<'_> {
    /// A random number from the seed, for what needs no secret.
    pub fn random(&self) -> u64 {
        self.seed.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// An operation on a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Make the object.
    Create,
    /// Change the object in place.
    Update {
        /// The properties before.
        before: Map,
        /// The changed properties with their new values; null for one that is gone.
        changed: Map,
    },
    /// Take the object away; done if it is not there.
    Delete,
    /// Look whether the object is there and well.
    Check,
    /// Put to sleep.
    Suspend,
    /// Wake up.
    Resume,
    /// Take over an existing object. The engine does this itself: drivers are only asked for attributes.
    Adopt,
    /// Save the object, so that it can be restored from the data of the step. A repeated call must find what an earlier
    /// one with the same token has made.
    Snapshot,
}

impl Operation {
    /// What clients are told is being done.
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

/// How far an operation is.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Finished.
    Done,
    /// To be asked again: `state` is given back to [`Driver::poll`]. Also used between the calls of an operation of
    /// several steps, with `after` zero, so that each is remembered.
    Wait {
        /// What to remember; small JSON.
        state: Value,
        /// How long to wait before the next poll.
        after: Duration,
    },
    /// The data of the step is stored, and the operation starts again with it: what comes before the call of a create that
    /// must not be made twice.
    Prepared,
    /// An update that cannot be done in place after all (Heat's `UpdateReplace`).
    Replace,
}

/// The result of a call to a driver, stored before anything else happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The object's id, if it became known or changed; empty if the resource has none any more.
    pub physical_id: Option<String>,
    /// Entries to put into the resource's data; null removes one.
    pub data: Map,
    /// How far the operation is.
    pub progress: Progress,
    /// The project of the stack's users, if it was made or found.
    pub user_project: Option<String>,
    /// New metadata of observed resources, by their id; stored together with the step.
    pub sibling_metadata: Vec<(String, Map)>,
    /// Changes of software configs and deployments: stored together with the step or before it.
    pub software: Vec<SoftwareChange>,
}

impl Step {
    /// Finished.
    pub fn done() -> Self {
        Self {
            physical_id: None,
            data: Map::new(),
            progress: Progress::Done,
            user_project: None,
            sibling_metadata: Vec::new(),
            software: Vec::new(),
        }
    }

    /// To be polled after a time.
    pub fn wait(state: impl Into<Value>, after: Duration) -> Self {
        Self { progress: Progress::Wait { state: state.into(), after }, ..Self::done() }
    }

    /// To be started again with new data.
    pub fn prepared() -> Self {
        Self { progress: Progress::Prepared, ..Self::done() }
    }

    /// To be replaced.
    pub fn replace() -> Self {
        Self { progress: Progress::Replace, ..Self::done() }
    }

    /// The same with the object's id.
    #[must_use]
    pub fn id(mut self, physical_id: impl Into<String>) -> Self {
        self.physical_id = Some(physical_id.into());
        self
    }

    /// The same with an entry of data to store.
    #[must_use]
    pub fn data(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.data.insert(key.into(), value.into());
        self
    }

    /// The same with new metadata of an observed resource.
    #[must_use]
    pub fn sibling_metadata(mut self, sibling: &Observed, metadata: Map) -> Self {
        self.sibling_metadata.push((sibling.id.clone(), metadata));
        self
    }

    /// The same with a change of a software config or deployment. What reads it must be another step.
    #[must_use]
    pub fn software(mut self, change: SoftwareChange) -> Self {
        self.software.push(change);
        self
    }

    /// The same with the project of the stack's users.
    #[must_use]
    pub fn user_project(mut self, id: impl Into<String>) -> Self {
        self.user_project = Some(id.into());
        self
    }
}

/// What [`Driver::find`] learned of a create whose call may have been lost.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The call made something: it is adopted as if [`Driver::start`] had returned this step.
    Made(Step),
    /// The service answered and has nothing of this attempt, or repeating the call does no harm. The engine believes
    /// it only when no call of the attempt can still be under way.
    NotMade,
    /// There is nothing to tell the object by. The create is not repeated: it fails with this text.
    CannotTell(String),
}

/// What an update changes in one resource's properties.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PropertyChange {
    /// Resolved properties before.
    pub before: Map,
    /// Resolved properties after.
    pub after: Map,
    /// Names that differ.
    pub changed: Vec<String>,
}

/// The nested stack that a resource stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nested {
    /// Its template.
    pub template: Value,
    /// Values of the template's parameters.
    pub parameters: Map,
    /// Files that the template names.
    pub files: BTreeMap<String, String>,
    /// Entries for the resource registry of its environment.
    pub registry: Map,
    /// Entries to put into the resource's data.
    pub data: Map,
    /// The template is one of several steps (a batch of a rolling update): when the nested stack has reached it, the
    /// driver is asked again with this in [`Facts::nested_step`].
    pub then: Option<Value>,
    /// How long to wait before that.
    pub pause: Duration,
}

/// Another resource of the same stack, for implicit dependencies.
pub struct Sibling<'a> {
    /// Logical name.
    pub name: &'a str,
    /// Type.
    pub resource_type: &'a str,
    /// Properties as far as they can be told before anything is made: a reference to a resource stands as
    /// `{"get_resource": name}`, other values that are not known yet are null.
    pub properties: &'a Map,
    /// Names of the resources that it refers to.
    pub requires: &'a [String],
}

/// The code of a resource type.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Starts an operation.
    ///
    /// A create of something that a second call would make twice must return right after the one call that makes it
    /// (with `Progress::Wait` if more is to do), so that its id is stored.
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure>;

    /// Goes on with an operation whose last step was [`Progress::Wait`].
    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let _ = (cx, operation, state);
        Ok(Step::done())
    }

    /// After a crash or a lost reply: looks for what a create with this token has made.
    ///
    /// Every driver says for itself. What cannot be told from objects of others is [`Found::CannotTell`] and never
    /// [`Found::NotMade`], unless a repeated call does no harm.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure>;

    /// Processes a message that was sent to the resource (a signal's body); null if it had none. May be called again after
    /// a crash; what it returns is stored once. A failure is logged: there is no event. Only types whose definition says
    /// `signals: true` get any.
    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let _ = message;
        Err(Failure::other("NotSupported", format!("Resource {} does not support signals", cx.facts.name)))
    }

    /// Whether messages are processed while an operation on the resource is running, because it waits for them, and in every
    /// state. Else they wait for its end, and a resource that is suspended or being deleted refuses them.
    fn receives_during_operations(&self) -> bool {
        false
    }

    /// Whether [`Driver::receive`] calls a cloud.
    fn receives_with_cloud(&self) -> bool {
        self.needs_cloud()
    }

    /// Whether there is any code for the type. A type without is shown and refused before anything is created.
    fn is_implemented(&self) -> bool {
        true
    }

    /// Whether the driver calls a cloud. The engine gives a driver that does not a cloud that refuses every call.
    fn needs_cloud(&self) -> bool {
        true
    }

    /// Whether a create whose answer was lost may simply be repeated, because nothing is created outside Kiln: the engine
    /// then stores no intent and does not ask [`Driver::find`]. A call that is repeatable in itself (it sets a state) is
    /// not: it may still be under way when a later operation has set another state.
    fn is_repeatable(&self) -> bool {
        false
    }

    /// What is stored when an operation is cancelled or runs out of time.
    fn cancelled(&self, facts: &Facts) -> Option<SoftwareChange> {
        let _ = facts;
        None
    }

    /// The attributes of these names, read from the cloud; `show` is the whole object. Names that are not in the
    /// schema may be asked of types that compute their attributes. Absent = null.
    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure>;

    /// The current values of properties in the object, to find what others have changed ([`crate::drift`]): the translated
    /// values, without those that the service does not show; null where the object has no value. A failure that is not
    /// found means that the object does not exist.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        if self.needs_cloud() {
            self.start(cx, &Operation::Check).await?;
        }
        Ok(Map::new())
    }

    /// Whether a delete may be preceded by a snapshot (`deletion_policy: Snapshot`).
    fn snapshots(&self) -> bool {
        false
    }

    /// Deletes what an [`Operation::Snapshot`] has made; the facts have the data of the resource at that time. Returns
    /// the time to wait before the next call; `None` when nothing is left. May be repeated.
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

    /// An attribute as it will be, if it follows from these properties alone; for plans.
    fn foreseen(&self, _facts: &Facts, _name: &str) -> Option<Value> {
        None
    }

    /// Whether the metadata are evaluated again when attributes of other resources have changed without an operation.
    fn refreshes_metadata(&self) -> bool {
        false
    }

    /// The resources of the stack that the driver reads, by what `get_resource` gives for them: they are in
    /// [`Facts::observed`]. While an operation waits, it is polled at once when one of them has processed a message.
    fn observes(&self, facts: &Facts) -> Vec<Value> {
        let _ = facts;
        Vec::new()
    }

    /// Whether every update of the stack replaces the resource.
    fn replaced_by_updates(&self) -> bool {
        false
    }

    /// Whether [`Driver::reference`] is asked for a type with a nested stack, too; by default its reference is the ARN of
    /// the nested stack.
    fn has_own_reference(&self) -> bool {
        false
    }

    /// What `get_resource` gives: by default the physical id, before that the logical name.
    fn reference(&self, facts: &Facts) -> Value {
        facts.physical_id.as_deref().unwrap_or(&facts.name).into()
    }

    /// Whether a change of these properties needs a replacement although the schema allows the update.
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        let _ = change;
        false
    }

    /// The properties for which two objects of this type collide: both need the same address, port or name. Before one of
    /// them is created, or gets it back in a rollback, the other one releases it ([`Driver::release`]).
    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let _ = (held, wanted);
        Vec::new()
    }

    /// Makes the object of `cx` release what an object with the `wanted` properties needs. Returns the time to wait before
    /// the next call; `None` when there is nothing left to release. May be repeated.
    async fn release(&self, cx: &Context<'_>, wanted: &Map) -> Result<Option<Duration>, Failure> {
        let _ = (cx, wanted);
        Ok(None)
    }

    /// Whether a FAILED object must be replaced at the next update (Heat's `needs_replace_failed`).
    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        let _ = cx;
        Ok(true)
    }

    /// What the schema cannot say of the properties; null stands for what is not known yet.
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let _ = facts;
        Ok(())
    }

    /// What is wrong with another resource that `this` refers to.
    fn validate_reference(&self, this: &Sibling<'_>, other: &Sibling<'_>) -> Result<(), Diagnostic> {
        let _ = (this, other);
        Ok(())
    }

    /// Whether [`Driver::validate_in_cloud`] has anything to ask about these properties.
    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        let _ = facts;
        false
    }

    /// What only the cloud can say of the properties, asked with the user's own access before the stack is stored; null
    /// stands for what is not known yet.
    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        let _ = cx;
        Ok(())
    }

    /// Whether the facts' data hold, under `files` and `environment`, what the stack's own template has of them.
    fn takes_sources(&self) -> bool {
        false
    }

    /// The nested stack that this resource stands for, which the engine then makes and keeps. `wanted` are the
    /// attributes (name and path) that the parent's template reads. `None` for a resource that is no stack.
    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let _ = (facts, wanted);
        None
    }

    /// The nested stack to validate before anything is created: where all members come from one definition, one of them
    /// stands for all. The properties hold null for what is not known yet, so that nulls are kept. `None`: there is
    /// nothing to validate.
    fn nested_draft(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        self.nested(facts, wanted)
    }

    /// The properties that Heat resolves before it looks at anything else of the resource: an error in one of them is
    /// Python's own.
    fn resolved_first(&self) -> &'static [&'static str] {
        &[]
    }

    /// The keys of `update_policy` that the engine carries out for this type.
    fn update_policies(&self) -> &'static [&'static str] {
        &[]
    }

    /// The properties that [`Driver::nested_draft`] cannot do without, not even to show what the nested stack asks for.
    fn draft_needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// How many members the nested stack has, if they all come from the definition of [`Driver::nested_draft`]: they are
    /// counted before any of them is built.
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

    /// How a group with these members changes its size ([`crate::ScaleRequest`]); `None`: it does not. The engine does not
    /// ask while the nested stack is changing.
    fn rescale(&self, facts: &Facts, adjustment: &Value, now: f64) -> Option<Rescale> {
        let _ = (facts, adjustment, now);
        None
    }

    /// The metadata of a group after [`Driver::rescale`].
    fn rescaled(&self, facts: &Facts, adjustment: &Value, succeeded: bool, now: f64) -> Map {
        let _ = (adjustment, succeeded, now);
        facts.metadata.as_map().cloned().unwrap_or_default()
    }

    /// An attribute of a resource that stands for a nested stack, from the stack's outputs and the reference ids of
    /// its resources. `None` if there is no such attribute.
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

    /// The siblings that must be made before this resource although it does not name them.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &[Sibling<'_>]) -> Vec<String> {
        let _ = (this, siblings);
        Vec::new()
    }
}
