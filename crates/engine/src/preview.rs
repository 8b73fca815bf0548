//! What an update would do: the real plan, carried out by nobody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kiln_plan::{Blueprint, Command, Decision, Event, Goal, Kind, Model, Nesting, Outcome, StackScope};
use kiln_resource::{Action, Operation, Resource, ResourceId, State, StoredDefinition};
use kiln_store::Error;
use kiln_value::Map;

use crate::actor::stack_facts;
use crate::backends::Backends;
use crate::gather::{Answer, Gatherer};
use crate::view::View;

/// What would become of one resource.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedChange {
    /// Nothing.
    Unchanged,
    /// Changed in place: the properties with their new values; null for one that is gone. What other resources will
    /// only tell once they are made stands as null or as their logical name.
    Updated(Map),
    /// Another one in its place, for these reasons.
    Replaced(Vec<String>),
    /// Made.
    Added,
    /// Deleted.
    Deleted,
    /// Refused: the update would fail here, with this reason.
    Refused(String),
}

/// One resource of a preview.
#[derive(Clone, Debug)]
pub struct PlannedResource {
    /// Logical name.
    pub name: String,
    /// Its type as the new template names it, or as the old did if it goes.
    pub resource_type: String,
    /// What would become of it.
    pub change: PlannedChange,
    /// The resolved definition that it would have; `None` if it is refused and there is none yet.
    pub definition: Option<Arc<StoredDefinition>>,
    /// Its row as it is; `None` if it is new.
    pub row: Option<Resource>,
    /// The preview of its nested stack, if that exists and was asked for.
    pub nested: Option<Preview>,
}

/// What would become of every resource of a stack, in the order in which it would be looked at.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// The stack.
    pub stack: Option<kiln_store::Stack>,
    /// The resources.
    pub entries: Vec<PlannedResource>,
}

/// What an update of a stack to a new blueprint would do; nothing is changed by asking.
///
/// # Errors
/// The store's, or the cloud's where names have to be looked up.
pub fn preview<'a>(
    backends: &'a Backends,
    view: &'a View,
    new: Arc<Blueprint>,
    nested: bool,
) -> BoxFuture<'a, Result<Preview, Error>> {
    async move {
        let mut rehearsal = Rehearsal {
            backends,
            view,
            model: view.model().clone(),
            scope: StackScope::new(Arc::clone(&new), stack_facts(&view.stack)),
            entries: BTreeMap::new(),
            order: Vec::new(),
        };
        rehearsal.play().await;
        let mut preview = Preview { stack: Some(view.stack.clone()), entries: rehearsal.finish() };
        if nested {
            for entry in &mut preview.entries {
                entry.nested = nested_preview(backends, &new, entry).await?;
            }
        }
        Ok(preview)
    }
    .boxed()
}

/// The preview inside a resource that stands for a nested stack.
async fn nested_preview(
    backends: &Backends,
    new: &Blueprint,
    entry: &PlannedResource,
) -> Result<Option<Preview>, Error> {
    let Some(child) = entry.row.as_ref().and_then(|row| row.child) else { return Ok(None) };
    let (Some(definition), Some(kind)) = (new.definitions().get(&entry.name), new.kind(&entry.name)) else {
        return Ok(None);
    };
    let Some(view) = View::load(backends, child).await? else { return Ok(None) };
    let properties = entry.definition.as_ref().map(|held| held.properties.clone()).unwrap_or_default();
    let sources = match kind {
        Kind::Template(provider) => new.provider_sources(definition, provider, &properties),
        Kind::Type(of_type) => {
            let Some(row) = &entry.row else { return Ok(None) };
            let mut facts = kiln_plan::facts(row, kind, &stack_facts(&view.stack));
            facts.properties = properties;
            match of_type.driver.nested(&facts, &new.wanted_paths(&entry.name)) {
                Some(Ok(nested)) => new.group_sources(definition, nested),
                _ => return Ok(None),
            }
        }
    };
    let place = Nesting { facade: Some(new.facade_of(definition)), depth: view.stack.depth };
    let identity = crate::load::identity(&view.stack);
    let Ok(inner) = sources.and_then(|sources| Blueprint::build(sources, &backends.resource_types, identity, place))
    else {
        return Ok(None);
    };
    preview(backends, &view, Arc::new(inner), true).await.map(Some)
}

/// The update played through without doing anything.
struct Rehearsal<'a> {
    backends: &'a Backends,
    view: &'a View,
    model: Model,
    scope: StackScope,
    entries: BTreeMap<String, PlannedResource>,
    order: Vec<String>,
}

impl Rehearsal<'_> {
    async fn play(&mut self) {
        let targets = self.scope.blueprint().targets(|| ResourceId(self.backends.chance.uuid()));
        let (action, goal) = (Action::Update, Goal::Converge);
        let generation = self.view.stack.generation + 1;
        let begin = Event::Begin { action, goal, generation, targets, rollback: false };
        let mut events = VecDeque::new();
        let mut commands = self.model.decide(begin);
        for row in self.model.rows().filter(|row| self.model.current(&row.name).is_some_and(|now| now.id == row.id)) {
            self.scope.see(row);
        }
        loop {
            for command in commands {
                match command {
                    Command::Decide { serial, name, row } => events.extend(self.decide(serial, name, row).await),
                    Command::Start(row) | Command::Resume(row) => events.push_back(self.pretend(row)),
                    Command::Save(id) => {
                        if let Some(row) = self.model.row(id)
                            && self.model.current(&row.name).is_some_and(|current| current.id == id)
                        {
                            self.scope.see(row);
                        }
                    }
                    _ => {}
                }
            }
            let Some(event) = events.pop_front() else { return };
            commands = self.model.decide(event);
        }
    }

    async fn decide(&mut self, serial: u64, name: String, row: Option<ResourceId>) -> Option<Event> {
        let gatherer = Gatherer {
            backends: self.backends,
            scope: &self.scope,
            stack: &self.view.stack,
            root: Arc::new(self.view.root().clone()),
            fence: None,
            call_retries: 0,
        };
        let row = row.and_then(|row| self.model.row(row)).filter(|row| row.state != State::INIT).cloned();
        let replacement = row.as_ref().and_then(|row| self.model.row(row.replaced_by?));
        let replacement = replacement.map(|row| row.properties().clone());
        let Answer { decision, attributes } = match gatherer.question(&name, row.clone(), replacement)? {
            Ok(question) => question.answer().await,
            Err(decision) => Answer { decision, attributes: Map::new() },
        };
        let resource_type = self.scope.blueprint().definitions().get(&name)?.resource_type.clone();
        let implementation = self.scope.blueprint().kind(&name)?.implementation().to_owned();
        let fresh = ResourceId(self.backends.chance.uuid());
        let decision = self.remember(&name, &resource_type, row, decision);
        Some(Event::Decided { serial, name, decision, fresh, kind: (resource_type, implementation), attributes })
    }

    /// Notes the decision; one that ends an update lets the preview go on, to show what else there is.
    fn remember(&mut self, name: &str, resource_type: &str, row: Option<Resource>, decision: Decision) -> Decision {
        let stored = || row.as_ref().and_then(|row| row.definition.clone());
        let (change, definition) = match &decision {
            Decision::Create { definition } => (PlannedChange::Added, Some(Arc::clone(definition))),
            Decision::Keep { definition } => (PlannedChange::Unchanged, definition.clone().or_else(stored)),
            Decision::Update { definition, changed, .. } => {
                (PlannedChange::Updated(changed.clone()), Some(Arc::clone(definition)))
            }
            Decision::Replace { definition, why, .. } => {
                (PlannedChange::Replaced(why.clone()), Some(Arc::clone(definition)))
            }
            Decision::Refuse { failure } | Decision::Restrict { failure } => {
                (PlannedChange::Refused(failure.message.clone()), stored())
            }
        };
        let refused = matches!(decision, Decision::Refuse { .. } | Decision::Restrict { .. });
        let decision = match &row {
            Some(_) if refused => Decision::Keep { definition: None },
            None if refused => Decision::Create { definition: Arc::new(StoredDefinition::of_type(resource_type)) },
            _ => decision,
        };
        let (name, resource_type) = (name.to_owned(), resource_type.to_owned());
        self.order.push(name.clone());
        let entry = PlannedResource { name: name.clone(), resource_type, change, definition, row, nested: None };
        self.entries.insert(name, entry);
        decision
    }

    /// An operation that is said to have gone well.
    fn pretend(&self, id: ResourceId) -> Event {
        let running = self.model.row(id).and_then(Resource::running);
        // A new object has no id and no attributes yet: what reads them will change.
        let fresh = running.is_some_and(|running| running.operation == Operation::Create);
        Event::Finished {
            row: id,
            physical_id: None,
            data: Map::new(),
            attributes: fresh.then(Map::new),
            outcome: Outcome::Done(None),
        }
    }

    /// The entries in their order, then what goes.
    fn finish(mut self) -> Vec<PlannedResource> {
        let mut entries: Vec<PlannedResource> =
            std::mem::take(&mut self.order).iter().filter_map(|name| self.entries.remove(name)).collect();
        let stays: BTreeSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        for row in self.view.resources().filter(|row| !stays.contains(&row.name)) {
            entries.push(PlannedResource {
                name: row.name.clone(),
                resource_type: row.resource_type.clone(),
                change: PlannedChange::Deleted,
                definition: row.definition.clone(),
                row: Some(row.clone()),
                nested: None,
            });
        }
        entries
    }
}
