//! Change sets: changes of stacks that are prepared with their effect, and executed later.
//!
//! A change set belongs to one generation of its stack. Whether it can be executed, is being executed or is obsolete
//! follows from the generation of the stack, so that it is right even if the process dies during the execution.

use kiln_identity::Caller;
use kiln_resource::{Action, ChangeSetId, StackId, Status};
use kiln_store::{ChangeSet, Stack};
use kiln_value::{Map, Value};
use kiln_view::preview::{PlannedChange, PlannedResource, Preview};
use serde::{Deserialize, Serialize};

use crate::import::{self, ObjectsToImport};
use crate::{CreateStack, Door, Error, Service, Settings, StackContent, TemplateText, UpdateStack};

/// The format of stored change sets: 2 since imports, which an older version would create.
const FORMAT: u32 = 2;
/// Maximum number of change sets of a project.
const MOST: u64 = 1000;
/// Maximum number of change sets of a stack.
const MOST_OF_STACK: usize = 100;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The stored part of a change set.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Content {
    format: u32,
    description: String,
    /// The template; null keeps the current one.
    template: Value,
    sections: Map,
    timeout_mins: Option<i64>,
    disable_rollback: Option<bool>,
    tags: Option<Vec<String>>,
    existing: bool,
    clear_parameters: Vec<String>,
    /// The data of the objects to import by the name of the resource.
    #[serde(default)]
    import: Map,
    changes: Vec<ResourceChange>,
    /// The parameters as they are shown.
    parameters: Map,
    failure: Option<Failure>,
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
    /// The row.
    pub set: ChangeSet,
    /// The stack, if it exists.
    pub stack: Option<Stack>,
    content: Content,
}

impl PreparedChange {
    fn of(set: ChangeSet, stack: Option<Stack>) -> Result<Self, Error> {
        let damaged = |error: serde_json::Error| Error::Internal(format!("a damaged change set: {error}"));
        let content = serde_json::to_string(&set.body).map_err(damaged)?;
        let content: Content = serde_json::from_str(&content).map_err(damaged)?;
        if content.format > FORMAT {
            return Err(Error::Internal("a change set of a newer version of Kiln".to_owned()));
        }
        Ok(Self { set, stack, content })
    }

    /// The description.
    pub fn description(&self) -> &str {
        &self.content.description
    }

    /// The changes of resources.
    pub fn changes(&self) -> &[ResourceChange] {
        &self.content.changes
    }

    /// The parameters after the change, without hidden values.
    pub fn parameters(&self) -> &Map {
        &self.content.parameters
    }

    /// The tags after the change.
    pub fn tags(&self) -> &[String] {
        let current = self.stack.as_ref().map(|stack| stack.tags.as_slice());
        self.content.tags.as_deref().or(current).unwrap_or_default()
    }

    /// Why it cannot be executed.
    pub fn failure(&self) -> Option<&Failure> {
        self.content.failure.as_ref()
    }

    /// Whether it creates the stack.
    pub fn creates(&self) -> bool {
        self.set.generation == 0
    }

    /// The state of its execution.
    pub fn execution(&self) -> Execution {
        if self.content.failure.is_some() {
            return Execution::Unavailable;
        }
        let Some(stack) = &self.stack else {
            return if self.creates() { Execution::Available } else { Execution::Obsolete };
        };
        if stack.generation == self.set.generation {
            return if stack.is_pending() { Execution::Unavailable } else { Execution::Available };
        }
        if !self.creates() && !self.set.executed {
            return Execution::Obsolete;
        }
        let own = match (self.creates(), self.content.import.is_empty()) {
            (true, true) => Action::Create,
            (true, false) => Action::Adopt,
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

    /// Whether it has no use any more.
    fn is_spent(&self) -> bool {
        !matches!(self.execution(), Execution::Available | Execution::InProgress)
    }
}

impl Service {
    /// Creates a change set. The change is validated like a request, and nothing else is changed.
    pub async fn create_change_set(&self, caller: &Caller, new: NewChangeSet) -> Result<PreparedChange, Error> {
        let name = match &new.change {
            StackChange::Create(create) => create.name.clone(),
            StackChange::Update(stack, _) => stack.name.clone(),
        };
        let others = self.change_sets(caller, &name).await?;
        let (stack, id) = match &new.change {
            StackChange::Create(_) => {
                // Change sets that create the same stack share its ID.
                let shared = others.iter().rev().find(|other| other.creates() && other.stack.is_none());
                (None, shared.map_or_else(|| StackId(self.backends.chance.uuid()), |other| other.set.stack))
            }
            StackChange::Update(stack, _) if stack.is_pending() => {
                return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
            }
            StackChange::Update(stack, _) => (Some(Stack::clone(stack)), stack.id),
        };
        if others.iter().any(|other| other.set.stack == id && other.set.name == new.name) {
            return Err(Error::ChangeSetExists(new.name));
        }
        let content = self.content_of(caller, &new).await?;
        self.make_room(caller, &others).await?;
        let set = ChangeSet {
            id: ChangeSetId(self.backends.chance.uuid()),
            project: stack.as_ref().map_or(&caller.project_id, |stack| &stack.project).clone(),
            stack: id,
            stack_name: name,
            name: new.name,
            generation: stack.as_ref().map_or(0, |stack| stack.generation),
            executed: false,
            body: stored(&content)?,
            created: self.backends.clock.now(),
        };
        self.backends.store.save_change_set(&set).await.map_err(|error| match error {
            kiln_store::Error::NameTaken(name) => Error::ChangeSetExists(name),
            error => error.into(),
        })?;
        PreparedChange::of(set, stack)
    }

    /// The change sets of a stack name, oldest first.
    pub async fn change_sets(&self, caller: &Caller, stack_name: &str) -> Result<Vec<PreparedChange>, Error> {
        let mut found = Vec::new();
        for set in self.backends.store.change_sets(&caller.project_id, stack_name).await? {
            let stack = self.backends.store.stack(set.stack).await?.filter(|stack| stack.deleted.is_none());
            found.push(PreparedChange::of(set, stack)?);
        }
        Ok(found)
    }

    /// Executes a change set: creates or updates its stack. Other change sets of the stack are deleted, because they
    /// belong to its former state.
    pub async fn execute_change_set(
        &self,
        caller: &Caller,
        prepared: PreparedChange,
        disable_rollback: Option<bool>,
    ) -> Result<Stack, Error> {
        let execution = prepared.execution();
        if execution != Execution::Available {
            return Err(Error::ChangeSetState { name: prepared.set.name, execution });
        }
        let PreparedChange { set, stack, content } = prepared;
        let settings = Settings {
            timeout_mins: content.timeout_mins,
            disable_rollback: disable_rollback.or(content.disable_rollback),
            tags: content.tags,
            converge: None,
            if_version: None,
        };
        let template = match content.template {
            Value::Map(template) => Some(TemplateText::of_map(template, &self.options.limits)?),
            _ => None,
        };
        let change = StackContent { sections: content.sections, ..StackContent::default() };
        let objects = import::objects(&content.import);
        let executed = match stack {
            None => {
                let template = template.ok_or(Error::NoTemplate)?;
                let adopt = (!objects.is_empty()).then(|| Map::from([("resources".to_owned(), content.import.into())]));
                let new = CreateStack { name: set.stack_name.clone(), template, content: change, settings, adopt };
                if !objects.is_empty() {
                    let previewed = self.preview_create(caller, new.clone()).await?;
                    self.check_import(caller, &previewed.expose().blueprint, &objects).await?;
                }
                self.create_stack_as(caller, new, set.stack).await?
            }
            Some(stack) => {
                let update = UpdateStack {
                    template,
                    content: change,
                    settings,
                    existing: content.existing,
                    revision: None,
                    clear_parameters: content.clear_parameters.into_iter().collect(),
                    adopt: content.import,
                };
                if !objects.is_empty() {
                    let blueprint = self.updated_blueprint(caller, &stack, update.clone()).await?;
                    self.check_import(caller, &blueprint, &objects).await?;
                }
                // Stored first: the stack then tells whether the update was requested.
                self.backends.store.save_change_set(&ChangeSet { executed: true, ..set.clone() }).await?;
                self.update_stack(caller, &stack, update).await?
            }
        };
        let others = self.backends.store.change_sets(&set.project, &set.stack_name).await?;
        let others: Vec<_> = others.iter().map(|other| other.id).filter(|id| *id != set.id).collect();
        self.backends.store.delete_change_sets(&others).await?;
        Ok(executed)
    }

    /// Deletes a change set that is not being executed.
    pub async fn delete_change_set(&self, prepared: PreparedChange) -> Result<(), Error> {
        let execution = prepared.execution();
        if execution == Execution::InProgress {
            return Err(Error::ChangeSetState { name: prepared.set.name, execution });
        }
        Ok(self.backends.store.delete_change_sets(&[prepared.set.id]).await?)
    }

    /// Validates a change and finds its effect.
    async fn content_of(&self, caller: &Caller, new: &NewChangeSet) -> Result<Content, Error> {
        let (template, content, settings) = match &new.change {
            StackChange::Create(create) => (Some(&create.template), &create.content, &create.settings),
            StackChange::Update(_, update) => (update.template.as_ref(), &update.content, &update.settings),
        };
        let mut stored = Content {
            format: if new.import.is_empty() { 1 } else { FORMAT },
            description: new.description.clone(),
            template: template.map(|template| Value::clone(template.value())).unwrap_or_default(),
            sections: content.sections.clone(),
            timeout_mins: settings.timeout_mins,
            disable_rollback: settings.disable_rollback,
            tags: settings.tags.clone(),
            existing: false,
            clear_parameters: Vec::new(),
            import: import::data(&new.import),
            changes: Vec::new(),
            parameters: Map::new(),
            failure: None,
        };
        match &new.change {
            StackChange::Create(create) => {
                let previewed = self.preview_create(caller, create.clone()).await?.into_shown(Door::ChangeSet);
                let definitions = previewed.blueprint.definitions().values();
                stored.changes = definitions.map(|one| added(&one.name, &one.resource_type)).collect();
                stored.parameters = previewed.blueprint.parameters().texts();
                if !new.import.is_empty() {
                    self.check_import(caller, &previewed.blueprint, &new.import).await?;
                }
            }
            StackChange::Update(stack, update) => {
                let current = Stack::clone(stack);
                let previewed = self.preview_update(caller, current, update.clone()).await?;
                let refused = previewed.shown(Door::ChangeSet, |one| one.preview.entries.iter().find_map(refusal));
                let previewed = previewed.expose();
                stored.changes = changes(&previewed.preview);
                stored.parameters = previewed.parameters.clone();
                stored.existing = update.existing;
                stored.clear_parameters = update.clear_parameters.iter().cloned().collect();
                let same_tags = settings.tags.as_ref().is_none_or(|tags| *tags == stack.tags);
                let nothing = stored.changes.is_empty() && previewed.same_sources && same_tags;
                stored.failure = refused.map(Failure::Refused).or(nothing.then_some(Failure::NoChange));
                if !new.import.is_empty() {
                    let blueprint = self.updated_blueprint(caller, stack, update.clone()).await?;
                    self.check_import(caller, &blueprint, &new.import).await?;
                }
            }
        }
        if !new.import.is_empty() {
            imported(&mut stored, &new.import);
        }
        Ok(stored)
    }

    /// Limits the number of change sets: old ones without use are deleted first.
    async fn make_room(&self, caller: &Caller, others: &[PreparedChange]) -> Result<(), Error> {
        let excess = (others.len() + 1).saturating_sub(MOST_OF_STACK);
        let spent: Vec<_> = others.iter().filter(|other| other.is_spent()).take(excess).collect();
        if spent.len() < excess {
            return Err(Error::Limit(format!("a stack can have {MOST_OF_STACK} change sets")));
        }
        let spent: Vec<_> = spent.into_iter().map(|other| other.set.id).collect();
        self.backends.store.delete_change_sets(&spent).await?;
        if self.backends.store.count_change_sets(&caller.project_id).await? >= MOST {
            return Err(Error::Limit(format!("a project can have {MOST} change sets")));
        }
        Ok(())
    }
}

fn stored(content: &Content) -> Result<Value, Error> {
    let damaged = |error: serde_json::Error| Error::Internal(error.to_string());
    serde_json::from_str(&serde_json::to_string(content).map_err(damaged)?).map_err(damaged)
}

fn added(name: &str, resource_type: &str) -> ResourceChange {
    ResourceChange {
        name: name.to_owned(),
        resource_type: resource_type.to_owned(),
        physical_id: None,
        effect: ChangeEffect::Add,
        properties: Vec::new(),
    }
}

/// The reason why an update would fail, if it is known.
fn refusal(entry: &PlannedResource) -> Option<String> {
    match &entry.change {
        PlannedChange::Refused(reason) => Some(format!("Resource {}: {reason}", entry.name)),
        _ => entry.nested.as_ref().and_then(|nested| nested.entries.iter().find_map(refusal)),
    }
}

/// The changes of the resources of a stack. A change in a nested stack is a change of its resource.
fn changes(preview: &Preview) -> Vec<ResourceChange> {
    let changed = preview.entries.iter().filter_map(|entry| {
        let effect = effect(entry)?;
        Some(ResourceChange {
            name: entry.name.clone(),
            resource_type: entry.resource_type.clone(),
            physical_id: entry.row.as_ref().and_then(|row| row.physical_id.clone()),
            effect,
            properties: if effect == ChangeEffect::Add { Vec::new() } else { properties(entry) },
        })
    });
    changed.collect()
}

/// Marks the resources that are imported. As on AWS, an import does nothing else: its effect is the same whatever the
/// properties say, and it can be undone.
fn imported(content: &mut Content, objects: &ObjectsToImport) {
    let mut left = objects.clone();
    let mut others = Vec::new();
    for change in &mut content.changes {
        match left.remove(&change.name) {
            Some(object) if change.effect == ChangeEffect::Add => {
                change.effect = ChangeEffect::Import;
                change.physical_id = Some(object.physical_id);
            }
            _ => others.push(change.name.clone()),
        }
    }
    others.extend(left.into_keys());
    if !others.is_empty() {
        let text = "An import neither creates, changes nor deletes resources. These are not new, or not in \
                    ResourcesToImport";
        content.failure = Some(Failure::Refused(format!("{text}: {}", others.join(", "))));
    }
}

fn effect(entry: &PlannedResource) -> Option<ChangeEffect> {
    Some(match &entry.change {
        PlannedChange::Unchanged if entry.nested.as_ref().is_some_and(|nested| !nested.is_unchanged()) => {
            ChangeEffect::Update
        }
        PlannedChange::Unchanged => return None,
        PlannedChange::Added => ChangeEffect::Add,
        PlannedChange::Deleted => ChangeEffect::Remove,
        PlannedChange::Replaced(_) => ChangeEffect::Replace,
        PlannedChange::Undecided { at_most, .. } if matches!(**at_most, PlannedChange::Replaced(_)) => {
            ChangeEffect::MayReplace
        }
        PlannedChange::Updated(_) | PlannedChange::Refused(_) | PlannedChange::Undecided { .. } => ChangeEffect::Update,
    })
}

/// The properties that differ between the current and the new definition.
fn properties(entry: &PlannedResource) -> Vec<ChangedProperty> {
    let (Some(row), Some(new)) = (&entry.row, &entry.definition) else { return Vec::new() };
    let none = Map::new();
    let old = row.definition.as_ref().map_or(&none, |definition| &definition.properties);
    let names = old.keys().chain(new.properties.keys().filter(|name| !old.contains_key(name.as_str())));
    let differing = names.filter(|name| old.get(name.as_str()) != new.properties.get(name.as_str()));
    let changed = differing.map(|name| ChangedProperty {
        name: name.clone(),
        awaited: new.properties.get(name.as_str()).and_then(|value| Some(value.unknown()?.place().to_owned())),
    });
    changed.collect()
}
