//! Change sets of CloudFormation: saved plans with a name, which do not expire.
//!
//! A change set belongs to one generation of its stack. Whether it can be executed, is being executed or is obsolete
//! follows from the generation of the stack, so that it is right even if the process dies during the execution.

use std::collections::{BTreeSet, HashMap};

use kiln_identity::Caller;
use kiln_plan_document::{Decision, Entry, PlanDocument};
use kiln_resource::{Action, Converge, StackId, Status};
use kiln_store::{Plan, PlanQuery, PlanState, Stack};
use kiln_value::{Map, Value};
use serde::{Deserialize, Serialize};

use crate::import::{self, ObjectsToImport};
use crate::saved_plan::{Content, PlannedRequest, SavedPlan};
use crate::{CreateStack, Error, Service, UpdateStack};

/// A change set to create.
#[derive(Clone, Debug)]
pub struct NewChangeSet {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The change.
    pub change: StackChange,
    /// The existing objects that it imports. If there are any, it must do nothing else.
    pub import: ObjectsToImport,
}

/// A change of a stack.
#[derive(Clone, Debug)]
pub enum StackChange {
    /// Creates the stack.
    Create(CreateStack),
    /// Updates it.
    Update(Box<Stack>, UpdateStack),
}

/// The change of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ResourceChange {
    /// Logical name.
    pub name: String,
    /// Type name.
    pub resource_type: String,
    /// Physical ID of an existing resource.
    pub physical_id: Option<String>,
    /// The change.
    pub effect: ChangeEffect,
    /// The changed properties.
    pub properties: Vec<ChangedProperty>,
}

/// What happens to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ChangeEffect {
    /// It is created.
    Add,
    /// Its object exists and is adopted.
    Import,
    /// It is deleted.
    Remove,
    /// It is changed in place.
    Update,
    /// It is replaced.
    Replace,
    /// It is changed in place or replaced: this depends on values that are not known yet.
    MayReplace,
}

/// A changed property.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ChangedProperty {
    /// Its name.
    pub name: String,
    /// The source of a value that is not known yet: `resource` or `resource.attribute`.
    pub awaited: Option<String>,
}

/// The execution of a change set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// It has no change, or cannot succeed.
    Unavailable,
    /// It can be executed.
    Available,
    /// It is being executed.
    InProgress,
    /// It was executed.
    Complete,
    /// Its execution failed.
    Failed,
    /// The stack was changed otherwise.
    Obsolete,
}

/// Why a change set cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// It changes nothing.
    NoChange,
    /// The update would fail for this reason.
    Refused(String),
}

/// A change set and its stack.
#[derive(Clone, Debug)]
pub struct PreparedChange {
    /// The plan.
    pub set: Plan,
    /// The stack, if it exists.
    pub stack: Option<Stack>,
    saved: SavedPlan,
    failure: Option<Failure>,
}

impl PreparedChange {
    fn of(saved: SavedPlan) -> Self {
        let content = &saved.content;
        let failure = match (&content.former, &content.refused) {
            (Some(former), _) => former.failure.clone(),
            (None, Some(why)) => Some(Failure::Refused(why.clone())),
            (None, None) => content.changes_nothing().then_some(Failure::NoChange),
        };
        Self { set: saved.plan.clone(), stack: saved.stack.clone(), failure, saved }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.set.name.as_deref().unwrap_or_default()
    }

    /// The description.
    pub fn description(&self) -> &str {
        self.saved.description()
    }

    /// The parameters after the change, without hidden values.
    pub fn parameters(&self) -> &Map {
        &self.saved.content.parameters
    }

    /// The tags after the change.
    pub fn tags(&self) -> &[String] {
        let current = self.stack.as_ref().map(|stack| stack.tags.as_slice());
        self.saved.content.settings.tags.as_deref().or(current).unwrap_or_default()
    }

    /// Whether drifted objects get the values of the template again.
    pub fn reverts_drift(&self) -> bool {
        self.saved.content.settings.converge.as_ref().is_some_and(Converge::is_on)
    }

    /// Why it cannot be executed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether it creates the stack.
    pub fn creates(&self) -> bool {
        self.set.generation == 0
    }

    fn imports(&self) -> bool {
        self.saved.content.adopt.is_some()
    }

    /// The state of its execution.
    pub fn execution(&self) -> Execution {
        if self.failure.is_some() {
            return Execution::Unavailable;
        }
        let Some(stack) = &self.stack else {
            return if self.creates() { Execution::Available } else { Execution::Obsolete };
        };
        if stack.generation == self.set.generation {
            return if stack.is_pending() { Execution::Unavailable } else { Execution::Available };
        }
        if !self.creates() && self.set.state != PlanState::Executed {
            return Execution::Obsolete;
        }
        let own = match (self.creates(), self.imports()) {
            (true, false) => Action::Create,
            (true, true) => Action::Adopt,
            (false, _) => Action::Update,
        };
        let newest = self.set.generation + if stack.rollback().is_some_and(|number| number > 0) { 2 } else { 1 };
        match stack.state.status {
            _ if stack.generation > newest => Execution::Complete,
            Status::InProgress => Execution::InProgress,
            Status::Complete if stack.state.action == own => Execution::Complete,
            _ => Execution::Failed,
        }
    }
}

impl Content {
    /// Whether the request changes nothing.
    fn changes_nothing(&self) -> bool {
        let changes = |document: &PlanDocument| {
            let totals = document.totals;
            totals.data_loss + totals.replacement + totals.interruption + totals.change > 0
        };
        self.same_sources && self.document.as_ref().is_some_and(|document| !changes(document))
    }
}

impl Service {
    /// Creates a change set. The change is validated like a request, and nothing else is changed.
    pub async fn create_change_set(&self, caller: &Caller, new: NewChangeSet) -> Result<PreparedChange, Error> {
        let NewChangeSet { name, description, change, import } = new;
        let stack_name = match &change {
            StackChange::Create(create) => create.name.clone(),
            StackChange::Update(stack, _) => stack.name.clone(),
        };
        let others = self.change_sets(caller, &stack_name).await?;
        let id = match &change {
            StackChange::Create(_) => {
                // Change sets that create the same stack share its ID.
                let shared = others.iter().rev().find(|other| other.creates() && other.stack.is_none());
                shared.map_or_else(|| StackId(self.backends.chance.uuid()), |other| other.set.stack)
            }
            StackChange::Update(stack, _) if stack.is_pending() => {
                return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
            }
            StackChange::Update(stack, _) => stack.id,
        };
        if others.iter().any(|other| other.set.stack == id && other.name() == name) {
            return Err(Error::ChangeSetExists(name));
        }
        if !import.is_empty() {
            self.check_objects(caller, &change, &import).await?;
        }
        let request = match change {
            StackChange::Create(create) => PlannedRequest::Create(create),
            StackChange::Update(stack, update) => PlannedRequest::Update(stack, update, BTreeSet::new()),
        };
        let mut checked = Box::pin(self.check_request(caller, request)).await?;
        checked.stack_id = id;
        let content = &mut checked.content;
        content.description = description;
        content.refused = refusal(&checked.document);
        if !import.is_empty() {
            content.adopt = Some(import::data(&import).into());
            let others = others_than_imports(&changes(&checked.document, &import), &import);
            content.refused = content.refused.take().or(others);
        }
        // It fences the generation of the root only, as on AWS.
        content.seen = None;
        let saved = self.keep_plan(caller, checked, Some(name.clone()), None).await.map_err(|error| match error {
            Error::StackExists(taken) if taken == name => Error::ChangeSetExists(taken),
            error => error,
        })?;
        Ok(PreparedChange::of(saved))
    }

    /// Refuses objects that the resources of a change cannot adopt.
    async fn check_objects(
        &self,
        caller: &Caller,
        change: &StackChange,
        objects: &ObjectsToImport,
    ) -> Result<(), Error> {
        match change {
            StackChange::Create(create) => {
                let previewed = self.preview_create(caller, create.clone()).await?;
                self.check_import(caller, &previewed.expose().blueprint, objects).await
            }
            StackChange::Update(stack, update) => {
                let blueprint = self.updated_blueprint(caller, stack, update.clone()).await?;
                self.check_import(caller, &blueprint, objects).await
            }
        }
    }

    /// The change sets of a stack name, oldest first.
    pub async fn change_sets(&self, caller: &Caller, stack_name: &str) -> Result<Vec<PreparedChange>, Error> {
        let project = caller.project_id.clone();
        let query = PlanQuery { project, stack_name: Some(stack_name.to_owned()), ..PlanQuery::default() };
        let plans = self.plans(&query).await?;
        Ok(plans.into_iter().rev().filter(|saved| saved.plan.name.is_some()).map(PreparedChange::of).collect())
    }

    /// The changes of the resources of the stack itself. A change in a nested stack is a change of its resource.
    pub async fn changes_of(&self, prepared: &PreparedChange) -> Result<Vec<ResourceChange>, Error> {
        if let Some(former) = &prepared.saved.content.former {
            return Ok(former.changes.clone());
        }
        let document = self.plan_document(&prepared.saved).await?;
        let objects = match &prepared.saved.content.adopt {
            Some(Value::Map(data)) => import::objects(data),
            _ => ObjectsToImport::new(),
        };
        Ok(document.map(|document| changes(&document, &objects)).unwrap_or_default())
    }

    /// Executes a change set: creates or updates its stack.
    pub async fn execute_change_set(
        &self,
        caller: &Caller,
        prepared: PreparedChange,
        disable_rollback: Option<bool>,
    ) -> Result<Stack, Error> {
        let execution = prepared.execution();
        if execution != Execution::Available {
            return Err(Error::ChangeSetState { name: prepared.name().to_owned(), execution });
        }
        Box::pin(self.execute_plan(caller, prepared.saved, None, disable_rollback)).await
    }

    /// Deletes a change set that is not being executed.
    pub async fn delete_change_set(&self, prepared: PreparedChange) -> Result<(), Error> {
        let execution = prepared.execution();
        if execution == Execution::InProgress {
            return Err(Error::ChangeSetState { name: prepared.name().to_owned(), execution });
        }
        self.delete_plan(&prepared.saved).await
    }
}

/// The reason why a change would fail, if it is known. As on AWS, a change set that fails in its validation is not executed
/// later.
fn refusal(document: &PlanDocument) -> Option<String> {
    let refused = document.resources.iter().find(|entry| entry.decision.at_most == Decision::Refuse);
    let refused = refused.map(|entry| format!("Resource {}: {}", entry.name(), entry.reasons.join("; ")));
    refused.or_else(|| document.failures().next().map(|check| format!("Pre-flight: {}", check.text())))
}

/// As on AWS, an import does nothing else: its effect is the same whatever the properties say, and it can be undone.
fn others_than_imports(changes: &[ResourceChange], objects: &ObjectsToImport) -> Option<String> {
    let is_import = |name: &str| changes.iter().any(|one| one.name == name && one.effect == ChangeEffect::Import);
    let others = changes.iter().filter(|change| change.effect != ChangeEffect::Import).map(|change| &change.name);
    let others: Vec<&str> = others.chain(objects.keys().filter(|name| !is_import(name))).map(String::as_str).collect();
    let text =
        "An import neither creates, changes nor deletes resources. These are not new, or not in ResourcesToImport";
    (!others.is_empty()).then(|| format!("{text}: {}", others.join(", ")))
}

/// The changes of the resources of a stack. A change in a nested stack is a change of its resource.
fn changes(document: &PlanDocument, objects: &ObjectsToImport) -> Vec<ResourceChange> {
    let mut changed: Vec<ResourceChange> = Vec::new();
    let of_stack = document.resources.iter().filter(|entry| entry.parent.is_none() && !entry.former);
    let owners: HashMap<&str, &Entry> = of_stack.map(|entry| (entry.path.as_str(), entry)).collect();
    for entry in document.resources.iter().filter(|entry| !entry.former && !entry.decision.is_kept()) {
        let root = entry.path.split('/').next().unwrap_or_default();
        if entry.parent.is_some() {
            if changed.last().is_none_or(|last| last.name != root)
                && let Some(owner) = owners.get(root)
            {
                changed.push(change(owner, ChangeEffect::Update));
            }
            continue;
        }
        let effect = match entry.decision.at_most {
            Decision::Create if objects.contains_key(root) => ChangeEffect::Import,
            Decision::Create => ChangeEffect::Add,
            Decision::Delete => ChangeEffect::Remove,
            Decision::Replace if entry.decision.is_certain() => ChangeEffect::Replace,
            Decision::Replace => ChangeEffect::MayReplace,
            Decision::Update | Decision::Refuse | Decision::Keep => ChangeEffect::Update,
        };
        let mut change = change(entry, effect);
        if let Some(object) = objects.get(root).filter(|_| effect == ChangeEffect::Import) {
            change.physical_id = Some(object.physical_id.clone());
        }
        changed.push(change);
    }
    changed
}

fn change(entry: &Entry, effect: ChangeEffect) -> ResourceChange {
    let is_changed = matches!(effect, ChangeEffect::Update | ChangeEffect::Replace | ChangeEffect::MayReplace);
    let properties = entry.properties.iter().filter(|_| is_changed).map(|property| ChangedProperty {
        name: property.name.clone(),
        awaited: property.after.as_ref().and_then(|side| Some(side.value.get("known_after")?.as_str()?.to_owned())),
    });
    ResourceChange {
        name: entry.path.clone(),
        resource_type: entry.resource_type.clone(),
        physical_id: entry.object.clone(),
        effect,
        properties: properties.collect(),
    }
}
