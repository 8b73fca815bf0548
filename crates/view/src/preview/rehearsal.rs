//! A simulated plan: every decision is made as the engine makes it, and every operation is assumed to succeed. Values
//! that an operation determines are unknown to the following operations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use indexmap::IndexMap;
use kiln_plan::hidden::HiddenValues;
use kiln_plan::{
    Blueprint, CHECK_FAILED, Command, Decision, Draft, Event, Inside, Kind, MISSING, Model, NestedSources, Nesting,
    Outcome, Prospect, Request, StackScope, define, facts, observe,
};
use kiln_plan_document::Downtime;
use kiln_resource::{Action, Loss, OperationState, Resource, ResourceId, State, StoredDefinition};
use kiln_stack::Backends;
use kiln_stack::gather::{Answer, Gatherer};
use kiln_stack::load::stack_facts;
use kiln_stack::loaded_stack::{GroupContent, LoadedStack, resource_and_attribute};
use kiln_stack::sizes::{OutputSizes, Sizes};
use kiln_store::{Error, Parent, Stack, StackId};
use kiln_template::{Definition, Scope, Wanted};
use kiln_value::{Class, Diagnostic, Map, Value};

use super::weigh::{change_of, change_of_stack, undecided, weigh};
use super::{Awaited, PlaceOfStack, PlannedChange, PlannedResource, Preview, References, Terms};

/// Why nothing can be said about a resource.
const UNFINISHED: &str = "the database refused its row, and its last operation has not ended; try again in a minute";

/// The simulated update of one stack.
pub(super) struct Rehearsal<'a> {
    backends: &'a Backends,
    stack: &'a Stack,
    /// The current stack; `None` for a new one.
    view: Option<&'a LoadedStack>,
    root: Arc<Stack>,
    terms: Terms,
    /// Whether the objects are kept when their resources are deleted: the stack was abandoned.
    keeps_objects: bool,
    model: Model,
    scope: StackScope,
    entries: IndexMap<String, PlannedResource>,
    /// The planned state of processed rows.
    prospects: BTreeMap<ResourceId, Prospect>,
    /// The effect of the operation that is being decided about, by resource name.
    next: BTreeMap<String, Next>,
    /// Where the resources are in the templates.
    sources: PlaceOfStack,
    /// The sizes of the definitions.
    sizes: Sizes,
    /// The values that clients must not see.
    pub(super) hidden: HiddenValues,
}

/// The effect of an operation.
struct Next {
    prospect: Prospect,
    data: Map,
}

/// The future content of a nested stack.
enum Contents {
    Known {
        preview: Box<Preview>,
        inside: Inside,
        data: Map,
    },
    /// Its template depends on this value.
    NotKnown(Awaited),
}

impl<'a> Rehearsal<'a> {
    pub(super) fn new(
        backends: &'a Backends,
        stack: &'a Stack,
        view: Option<&'a LoadedStack>,
        root: Arc<Stack>,
        blueprint: Arc<Blueprint>,
        terms: Terms,
    ) -> Self {
        let model = view.map_or_else(|| Model::new(Vec::new()), |view| view.model().clone());
        let scope = StackScope::new(blueprint, stack_facts(stack));
        let (entries, prospects, next) = (IndexMap::new(), BTreeMap::new(), BTreeMap::new());
        let sizes = Sizes::of(&model, scope.blueprint().definitions().len());
        let hidden = HiddenValues::default();
        let sources = PlaceOfStack::Template(None);
        let keeps_objects = false;
        Self {
            backends,
            stack,
            view,
            root,
            terms,
            keeps_objects,
            model,
            scope,
            entries,
            prospects,
            next,
            sources,
            sizes,
            hidden,
        }
    }

    /// The delete of a stack. An abandoned one keeps its objects.
    pub(super) fn of_delete(backends: &'a Backends, view: &'a LoadedStack) -> Self {
        let (root, blueprint) = (Arc::new(view.root().clone()), Arc::clone(&view.blueprint));
        let rehearsal = Self::new(backends, &view.stack, Some(view), root, blueprint, Terms::default());
        Self { keeps_objects: view.stack.is_abandoned(), ..rehearsal }
    }

    pub(super) fn play(&mut self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let targets = self.scope.blueprint().targets(|| ResourceId(self.backends.chance.uuid()));
            let update = Request::new(self.stack.id, Action::Update, self.stack.generation + 1);
            let moves = self.scope.blueprint().moves().to_vec();
            let begin = Event::Begin(Box::new(Request { targets, moves, ..update }));
            let now = self.backends.clock.now();
            let mut events = VecDeque::new();
            let mut commands = self.model.decide(now, begin);
            for row in self.model.rows().filter(|row| self.model.current(&row.name).is_some_and(|now| now.id == row.id))
            {
                self.scope.see(row);
            }
            loop {
                for command in commands {
                    match command {
                        Command::Decide { serial, name, row } => events.extend(self.decide(serial, name, row).await?),
                        Command::Start(row) | Command::Resume(row) => events.push_back(self.pretend(row)),
                        Command::Save(id) => self.see(id),
                        _ => {}
                    }
                }
                let Some(event) = events.pop_front() else { return Ok(()) };
                let done = if let Event::Finished { row, .. } = &event { Some(*row) } else { None };
                commands = self.model.decide(now, event);
                if let Some(row) = done {
                    self.see(row);
                }
            }
        }
        .boxed()
    }

    /// Adds the current row of a name with its planned state.
    fn see(&mut self, id: ResourceId) {
        let Some(row) = self.model.row(id) else { return };
        if self.model.current(&row.name).is_none_or(|current| current.id != id) {
            return;
        }
        match self.prospects.get(&id) {
            Some(prospect) => self.scope.foresee(row, prospect.clone()),
            None => self.scope.see(row),
        }
    }

    /// An operation that is assumed to have succeeded.
    fn pretend(&mut self, id: ResourceId) -> Event {
        let name = self.model.row(id).map(|row| row.name.clone()).unwrap_or_default();
        let current = self.model.current(&name).is_some_and(|current| current.id == id);
        let mut data = Map::new();
        if let Some(next) = self.next.remove(&name).filter(|_| current) {
            self.prospects.insert(id, next.prospect);
            data = next.data;
        }
        Event::Finished { row: id, physical_id: None, data, attributes: None, outcome: Outcome::Done(None) }
    }

    /// Whether the end of the last request has left the operation of a row running, because the database refused it. Its object
    /// may still change.
    fn is_unfinished(&self, id: ResourceId) -> bool {
        let before = self.view.filter(|view| !view.stack.is_pending()).and_then(|view| view.model().row(id));
        before.is_some_and(|row| row.running().is_some())
    }

    async fn decide(&mut self, serial: u64, name: String, row: Option<ResourceId>) -> Result<Option<Event>, Error> {
        let blueprint = Arc::clone(self.scope.blueprint());
        let (Some(definition), Some(kind)) = (blueprint.definitions().get(&name), blueprint.kind(&name)) else {
            return Ok(None);
        };
        let row = row.and_then(|row| self.model.row(row)).filter(|row| row.state != State::INIT).cloned();
        let question = {
            let gatherer = Gatherer {
                backends: self.backends,
                scope: &self.scope,
                model: &self.model,
                stack: self.stack,
                root: Arc::clone(&self.root),
                is_preview: true,
                call_retries: 0,
                request: None,
                nested_depth: u32::MAX,
                converging: self.terms.converge.of(&name),
                guards: self.terms.guards.as_deref(),
            };
            let replacement = row.as_ref().and_then(|row| self.model.row(row.replaced_by?));
            let mut question = gatherer.question(&name, row.clone(), replacement.map(|row| row.properties().clone()));
            if let Some(Ok(question)) = &mut question {
                question.is_missing = self.terms.missing.contains(&name);
            }
            question
        };
        let Some(question) = question else { return Ok(None) };
        let (answer, mut change) = match question.and_then(|question| self.sizes.check(question)) {
            Ok(question) => weigh(question).await,
            Err(decision) => {
                let change = change_of(&decision);
                (Answer::of(decision), change)
            }
        };
        if row.as_ref().is_some_and(|row| self.is_unfinished(row.id)) {
            change = PlannedChange::Refused(UNFINISHED.to_owned());
        }
        if let PlannedChange::Replaced(reasons) = &mut change
            && self.terms.own().any(|own| own == name)
        {
            // It is healthy.
            for reason in reasons.iter_mut().filter(|reason| *reason == CHECK_FAILED) {
                "a replacement is asked for".clone_into(reason);
            }
        }
        let held = match &answer.decision {
            Decision::Create { definition }
            | Decision::Update { definition, .. }
            | Decision::Replace { definition, .. } => Some(Arc::clone(definition)),
            Decision::Keep { definition } => {
                definition.clone().or_else(|| row.as_ref().and_then(|row| row.definition.clone()))
            }
            Decision::Refuse { .. } | Decision::Restrict { .. } => row.as_ref().and_then(|row| row.definition.clone()),
        };
        if let Some(held) = &held {
            self.hidden.derive_definition(definition, &self.scope, held);
        }
        let (mut nested, mut untouched, mut content) = (None, None, None);
        let fresh_object = matches!(answer.decision, Decision::Create { .. } | Decision::Replace { .. });
        let refused = matches!(answer.decision, Decision::Refuse { .. } | Decision::Restrict { .. });
        if kind.is_nested()
            && !refused
            && let Some(held) = &held
        {
            let there = row.as_ref().filter(|_| !fresh_object);
            let changed = match &answer.decision {
                Decision::Update { changed, .. } => Some(changed),
                _ => None,
            };
            // Nested stacks add what their functions make of hidden values.
            let mut hidden = std::mem::take(&mut self.hidden);
            let contents = self.contents(definition, kind, there, held, changed, &mut hidden).await;
            self.hidden = hidden;
            match contents {
                Err(Trouble::Store(error)) => return Err(error),
                Err(Trouble::Refused(text)) => change = PlannedChange::Refused(text),
                Ok(Contents::NotKnown(awaited)) => {
                    if let (Decision::Update { .. }, Some(row)) = (&answer.decision, &row) {
                        nested = self.old_stack(row).await?;
                        if let Some(nested) = &mut nested {
                            leave_open(nested, &awaited);
                        }
                        change = undecided(PlannedChange::Unchanged, change, vec![awaited.clone()]);
                    }
                    content = Some(Box::new(awaited));
                    self.next.insert(name.clone(), Next { prospect: Prospect::Opaque, data: Map::new() });
                }
                Ok(Contents::Known { preview, inside, data }) => {
                    if let Decision::Update { changed, .. } = &answer.decision {
                        change = change_of_stack(changed, row.as_ref(), change, &preview);
                    }
                    let prospect = if fresh_object { Prospect::NewNested(inside) } else { Prospect::Nested(inside) };
                    self.next.insert(name.clone(), Next { prospect, data });
                    nested = Some(*preview);
                }
            }
            if let (Decision::Replace { .. }, Some(row), Some(preview)) = (&answer.decision, &row, &mut nested)
                && !row.is_retained()
                && let Some(old) = self.old_stack(row).await?
            {
                preview.entries.extend(old.entries);
                preview.former.extend(old.former);
            }
        } else if !kind.is_nested() {
            let prospect = match &answer.decision {
                Decision::Create { .. } | Decision::Replace { .. } => Some(Prospect::New),
                Decision::Update { changed, .. } => Some(Prospect::Changed(changed.keys().cloned().collect())),
                _ => None,
            };
            if let Some(prospect) = prospect {
                self.next.insert(name.clone(), Next { prospect, data: Map::new() });
            }
        }
        if let (Decision::Replace { .. }, Some(row), None) = (&answer.decision, &row, &nested)
            && !row.is_retained()
        {
            nested = self.old_stack(row).await?;
        }
        if let (PlannedChange::Refused(_), Some(row)) = (&change, &row) {
            untouched = self.untouched(row).await?;
        }
        let resource_type = definition.resource_type.clone();
        let implementation = kind.implementation().to_owned();
        let (mut differing, mut tried) = (Map::new(), Map::new());
        if let Decision::Update { before: compared, .. } = &answer.decision {
            let stored = row.as_ref().map(Resource::properties);
            let compared =
                compared.iter().map(|(name, value)| (name, stored.and_then(|stored| stored.get(name)), value));
            if let Some(OperationState::HalfMade(_)) = row.as_ref().map(|row| &row.operation) {
                // Compared with what was tried; the object may as well have the values before.
                let other = compared.filter(|(_, held, value)| held.unwrap_or(&Value::Null) != *value);
                tried.extend(other.map(|(name, _, value)| (name.clone(), value.clone())));
            } else {
                let other = compared.filter(|(_, held, value)| *held != Some(*value));
                differing.extend(other.map(|(name, _, value)| (name.clone(), value.clone())));
            }
        }
        differing.extend(answer.drifted);
        let references = References {
            before: self.references_before(&name),
            after: held.as_ref().map(|held| sources_in(definition, held, &self.scope)).unwrap_or_default(),
        };
        let moved_from = self.name_before(&name).filter(|before| *before != name).map(String::into_boxed_str);
        let entry = PlannedResource {
            moved_from,
            ignored: Vec::new(),
            guard: None,
            references,
            is_retained: matches!(change.at_most(), PlannedChange::Replaced(_))
                && row.as_ref().is_some_and(Resource::is_retained),
            name: name.clone(),
            implementation: (implementation != resource_type).then(|| implementation.clone().into_boxed_str()),
            resource_type: resource_type.clone(),
            differing,
            tried,
            lost: self.lost(row.as_ref(), &change, held.as_deref()),
            downtime: self.downtime(row.as_ref(), &change, held.as_deref()),
            untouched,
            content,
            change,
            definition: held,
            row: row.as_ref().and_then(|row| self.model.shared(row.id)),
            nested: nested.map(Box::new),
            required_by: Vec::new(),
            attributes: Map::new(),
            meanings: answer.meanings,
        };
        self.entries.insert(name.clone(), entry);
        // A refusal ends an update; the plan continues, to show the other changes.
        let decision = match answer.decision {
            Decision::Refuse { .. } | Decision::Restrict { .. } if row.is_some() => Decision::Keep { definition: None },
            Decision::Refuse { .. } | Decision::Restrict { .. } => {
                self.next.insert(name.clone(), Next { prospect: Prospect::New, data: Map::new() });
                Decision::Create { definition: Arc::new(StoredDefinition::of_type(&resource_type)) }
            }
            decision => decision,
        };
        let fresh = ResourceId(self.backends.chance.uuid());
        let (kind, attributes) = ((resource_type, implementation), answer.attributes);
        Ok(Some(Event::Decided { serial, name, decision, fresh, kind, attributes }))
    }

    /// What the properties of a resource refer to in its current definition.
    fn references_before(&self, name: &str) -> Map {
        let Some(name) = self.name_before(name) else { return Map::new() };
        let current = self.view.and_then(|view| Some((view, view.resource(&name)?.definition.as_ref()?)));
        let Some((view, held)) = current else { return Map::new() };
        let definition = view.blueprint.definitions().get(&name);
        definition.map(|definition| sources_in(definition, held, &Draft::of(&view.blueprint))).unwrap_or_default()
    }

    /// The name that a resource has before the request.
    fn name_before(&self, name: &str) -> Option<String> {
        let row = self.model.current(name)?;
        Some(self.view?.model().row(row.id)?.name.clone())
    }

    /// How the object of a row is away while it changes.
    fn downtime(&self, row: Option<&Resource>, change: &PlannedChange, held: Option<&StoredDefinition>) -> Downtime {
        let Some(row) = row.filter(|row| row.physical_id.is_some()) else { return Downtime::None };
        let driver = self.backends.resource_types.types.get(&row.implementation).map(|entry| &entry.driver);
        match (change.at_most(), driver) {
            (PlannedChange::Replaced(_), _) => Downtime::Replace,
            (PlannedChange::Updated(changed), Some(driver)) => {
                if held.is_some_and(|held| driver.destroys_data(&held.properties, changed)) {
                    Downtime::Rebuild
                } else if driver.restarts(changed) {
                    Downtime::Restart
                } else {
                    Downtime::None
                }
            }
            _ => Downtime::None,
        }
    }

    /// What a change of an object destroys, if there is an object and its type names it.
    fn lost(
        &self,
        row: Option<&Resource>,
        change: &PlannedChange,
        held: Option<&StoredDefinition>,
    ) -> Option<Box<Loss>> {
        let row = row.filter(|row| row.physical_id.is_some())?;
        let entry = self.backends.resource_types.types.get(&row.implementation)?;
        let is_lost = match change.at_most() {
            PlannedChange::Replaced(why) if why.iter().any(|reason| reason == MISSING) => false,
            PlannedChange::Replaced(_) | PlannedChange::Deleted => {
                row.definition.as_ref().is_none_or(|held| held.deletion_policy == "Delete")
            }
            PlannedChange::Updated(changed) => {
                held.is_some_and(|held| entry.driver.destroys_data(&held.properties, changed))
            }
            _ => false,
        };
        entry.resource_type.loses.clone().filter(|_| is_lost).map(Box::new)
    }

    /// The future content of a resource's nested stack; `row` is the current resource, if it is kept.
    async fn contents(
        &self,
        definition: &Definition,
        kind: &Kind,
        row: Option<&Resource>,
        held: &StoredDefinition,
        changed: Option<&Map>,
        hidden: &mut HiddenValues,
    ) -> Result<Contents, Trouble> {
        let blueprint = self.scope.blueprint();
        // A driver needs the properties to determine the template: an unknown property makes the template unknown.
        if let Kind::Type(_) = kind {
            let open = held.properties.iter().find_map(|(name, value)| match value {
                Value::Unknown(unknown) => Some((name, unknown)),
                Value::List(_) => value.unknown().map(|unknown| (name, unknown)),
                _ => None,
            });
            if let Some((property, unknown)) = open {
                let awaited = Awaited { property: property.clone(), place: unknown.place().to_owned() };
                return Ok(Contents::NotKnown(awaited));
            }
        }
        let mut pretended = row.cloned().unwrap_or_else(|| {
            let (id, now) = (ResourceId(self.backends.chance.uuid()), self.backends.clock.now());
            Resource::new(self.stack.id, id, &definition.name, &definition.resource_type, now)
        });
        pretended.definition = Some(Arc::new(held.clone()));
        let terms = self.terms.inside(&definition.name);
        let mut view = match row.and_then(|row| row.child) {
            Some(child) => {
                let view = LoadedStack::load_marked(self.backends, child).await?;
                match self.terms.rows.get(&child) {
                    Some(rows) => view.map(|view| view.with_rows(rows.iter().cloned())),
                    None => view,
                }
            }
            None => None,
        };
        if let Some(view) = &mut view {
            terms.own().for_each(|name| view.assume_unhealthy(name));
        }
        let mut facts = facts(&pretended, kind, &stack_facts(self.stack));
        define(&mut facts, kind, held);
        facts.nested.changed = changed.into_iter().flat_map(Map::keys).cloned().collect();
        facts.nested.last_step = true;
        let group = match (&view, kind) {
            (Some(view), Kind::Type(_)) => view.group_content(),
            _ => GroupContent::default(),
        };
        facts.nested.members = group.members;
        if let Some(entry) = kind.entry() {
            let kind_of = |row: &Resource| blueprint.kind(&row.name).cloned();
            observe(&self.model, &pretended, &*entry.driver, kind_of, &mut facts);
        }
        let prepares = kind.nested_stack().and_then(|described| described.prepares(&facts));
        if let Some(property) = prepares {
            // What is copied from a server is read when the group is created.
            let place = kiln_value::text::str(facts.property(property));
            return Ok(Contents::NotKnown(Awaited { property: property.to_owned(), place }));
        }
        let Some(nested) = blueprint.nested_sources(definition, &facts) else {
            return Err(Trouble::Refused("the template of the nested stack does not exist".to_owned()));
        };
        let NestedSources { mut sources, data, .. } = nested.map_err(|error| Trouble::Refused(error.to_string()))?;
        sources.keep_files(&group.files);
        let place = Nesting { facade: Some(blueprint.facade_of(definition)), depth: self.stack.depth + 1 };
        let stack = match &view {
            Some(view) => view.stack.clone(),
            None => self.new_child(&pretended),
        };
        let identity = kiln_stack::load::identity(&stack);
        let inner = match Blueprint::build(sources, &self.backends.resource_types, identity, place) {
            Ok(inner) => Arc::new(inner),
            Err(error) if error.class == Class::NotKnownYet => {
                let place = error.to_string();
                return Ok(Contents::NotKnown(Awaited { property: String::new(), place }));
            }
            Err(error) => return Err(Trouble::Refused(text_of(&error))),
        };
        let mut rehearsal =
            Rehearsal::new(self.backends, &stack, view.as_ref(), Arc::clone(&self.root), Arc::clone(&inner), terms);
        rehearsal.hidden = std::mem::take(hidden);
        rehearsal.sources = self.sources.inside(&definition.name, kind);
        rehearsal.play().await?;
        let inside = rehearsal.inside(&blueprint.wanted_paths(&definition.name)).await;
        *hidden = std::mem::take(&mut rehearsal.hidden);
        Ok(Contents::Known { preview: Box::new(rehearsal.finish().await?), inside, data })
    }

    /// The nested stack that would be created for a resource.
    fn new_child(&self, row: &Resource) -> Stack {
        let name = kiln_resource::physical_name::physical_name(&self.stack.name, &row.name, row.id.0, 255);
        let parent = Parent { stack: self.stack.id, resource: row.id, resource_name: row.name.clone() };
        Stack {
            id: StackId(self.backends.chance.uuid()),
            name,
            parent: Some(parent),
            depth: self.stack.depth + 1,
            generation: 0,
            writes: 0,
            ..self.stack.clone()
        }
    }

    /// The future data of this stack in its parent resource.
    pub(super) async fn inside(&mut self, wanted: &[Vec<Value>]) -> Inside {
        let blueprint = Arc::clone(self.scope.blueprint());
        let mut reads: BTreeMap<String, Vec<Wanted>> = BTreeMap::new();
        for read in blueprint.outputs().values().flat_map(|output| output.attributes(&self.scope)) {
            reads.entry(read.resource).or_default().push(read.wanted);
        }
        let more: Vec<(String, String, String)> = wanted
            .iter()
            .filter_map(|path| {
                let Some(Value::Str(name)) = path.first() else { return None };
                let (resource, attribute) =
                    resource_and_attribute(name, |resource| blueprint.kind(resource).is_some())?;
                Some((name.clone(), resource.to_owned(), attribute.to_owned()))
            })
            .collect();
        for (_, resource, attribute) in &more {
            let one = Wanted::One { name: attribute.as_str().into(), path: Vec::new() };
            reads.entry(resource.clone()).or_default().push(one);
        }
        for (name, wanted) in reads {
            self.refresh(&name, &wanted).await;
        }
        let (mut outputs, mut errors) = (Map::new(), Map::new());
        let mut sizes = OutputSizes::default();
        for output in blueprint.outputs().values() {
            let resolved = output.value.resolve(&self.scope).and_then(|value| sizes.check(value));
            let value = resolved.unwrap_or_else(|error| {
                errors.insert(output.name.clone(), error.to_string().into());
                Value::Null
            });
            self.hidden.derive(&output.value, &self.scope, &value);
            outputs.insert(output.name.clone(), value);
        }
        let refs = blueprint
            .definitions()
            .keys()
            .filter_map(|name| Some((name.clone(), self.scope.resource(name)?.reference_id())))
            .collect();
        let read = |(name, resource, attribute): (String, String, String)| {
            let value = self.scope.resource(&resource).and_then(|view| view.attribute(&attribute, &[]));
            (name, value.unwrap_or_default())
        };
        Inside { outputs, refs, more: more.into_iter().map(read).collect(), errors }
    }

    /// Reads attributes of a resource whose object stays.
    async fn refresh(&mut self, name: &str, wanted: &[Wanted]) {
        let Some(view) = self.view else { return };
        let stays = self
            .entries
            .get(name)
            .is_some_and(|entry| matches!(entry.change, PlannedChange::Unchanged | PlannedChange::Updated(_)));
        let plain = self.scope.blueprint().kind(name).is_some_and(|kind| !kind.is_nested());
        if stays
            && plain
            && let Some(before) = self.name_before(name)
            && let Some(read) = view.refreshed(&before, wanted).await
        {
            let planned = self.model.current(name).and_then(|row| Some((row, self.prospects.get(&row.id)?)));
            match planned {
                Some((row, prospect)) => {
                    let row = Resource { attributes: read.attributes, ..row.clone() };
                    self.scope.foresee(&row, prospect.clone());
                }
                None => self.scope.see(&Resource { name: name.to_owned(), ..read }),
            }
        }
    }

    /// The nested stack of a resource that is deleted or replaced, with its entries.
    fn old_stack<'b>(&'b self, row: &'b Resource) -> BoxFuture<'b, Result<Option<Preview>, Error>> {
        async move {
            let Some(child) = row.child else { return Ok(None) };
            let Some(stack) = self.backends.store.stack(child).await? else { return Ok(None) };
            let model = Model::new(match self.terms.rows.get(&child) {
                Some(rows) => rows.clone(),
                None => self.backends.store.resources(child).await?,
            });
            let shown = model.shown(stack.rollback());
            let mut entries = Vec::new();
            for row in shown.values() {
                entries.push(self.gone((*row).clone()).await?);
            }
            let is_shown = |row: &Resource| shown.get(row.name.as_str()).is_some_and(|shown| shown.id == row.id);
            let mut former = Vec::new();
            for row in model.rows().filter(|row| !is_shown(row) && row.may_have_object()) {
                former.push(self.gone(row.clone()).await?);
            }
            Ok(Some(Preview {
                stack,
                sources: self.sources.clone(),
                entries,
                former,
                outputs: Vec::new(),
                snapshots: Vec::new(),
                preflight: Vec::new(),
                renamed: Vec::new(),
            }))
        }
        .boxed()
    }

    /// The nested stack of a resource with which nothing is done.
    async fn untouched(&self, row: &Resource) -> Result<Option<Box<Preview>>, Error> {
        let mut nested = self.old_stack(row).await?;
        nested.iter_mut().for_each(leave_alone);
        Ok(nested.map(Box::new))
    }

    async fn gone(&self, row: Resource) -> Result<PlannedResource, Error> {
        let (nested, untouched) = if row.is_retained() && !self.keeps_objects {
            (None, self.untouched(&row).await?)
        } else {
            (self.old_stack(&row).await?, None)
        };
        let lost = self.lost(Some(&row), &PlannedChange::Deleted, None).filter(|_| !self.keeps_objects);
        Ok(PlannedResource {
            moved_from: None,
            ignored: Vec::new(),
            guard: None,
            name: row.name.clone(),
            implementation: (row.implementation != row.resource_type)
                .then(|| row.implementation.clone().into_boxed_str()),
            resource_type: row.resource_type.clone(),
            change: PlannedChange::Deleted,
            definition: row.definition.clone(),
            differing: Map::new(),
            tried: Map::new(),
            lost,
            is_retained: self.keeps_objects || row.is_retained(),
            required_by: Vec::new(),
            attributes: row.attributes.clone(),
            meanings: Vec::new(),
            references: References::default(),
            downtime: Downtime::None,
            content: None,
            row: Some(Arc::new(row)),
            nested: nested.map(Box::new),
            untouched,
        })
    }

    /// The entries in order, then the deleted resources.
    pub(super) async fn finish(mut self) -> Result<Preview, Error> {
        let stays: BTreeSet<&String> = self.entries.keys().collect();
        let goes: Vec<Resource> = self
            .view
            .iter()
            .flat_map(|view| view.resources())
            .filter(|row| !stays.contains(&row.name))
            .cloned()
            .collect();
        let mut entries: Vec<PlannedResource> = std::mem::take(&mut self.entries).into_values().collect();
        let mut required_by = self.scope.blueprint().required_by();
        for entry in &mut entries {
            entry.required_by = required_by.remove(&entry.name).unwrap_or_default();
            let kind = self.scope.blueprint().kind(&entry.name);
            let names = kind.into_iter().flat_map(|kind| kind.resource_type().attributes.keys());
            let view = self.scope.resource(&entry.name);
            let value = |name: &str| view.and_then(|view| view.attribute(name, &[])).unwrap_or_default();
            entry.attributes = names.map(|name| (name.clone(), value(name))).collect();
        }
        let mut required_by = self.view.map(|view| view.blueprint.required_by()).unwrap_or_default();
        for row in goes {
            let required_by = required_by.remove(&row.name).unwrap_or_default();
            entries.push(PlannedResource { required_by, ..self.gone(row).await? });
        }
        let named: BTreeSet<ResourceId> = entries.iter().filter_map(|entry| Some(entry.row.as_ref()?.id)).collect();
        let mut former = Vec::new();
        let rows = self.view.into_iter().flat_map(|view| view.model().rows());
        for row in rows.filter(|row| !named.contains(&row.id) && row.may_have_object()) {
            former.push(self.gone(row.clone()).await?);
        }
        Ok(Preview {
            stack: self.stack.clone(),
            sources: self.sources,
            entries,
            former,
            outputs: Vec::new(),
            snapshots: Vec::new(),
            preflight: Vec::new(),
            renamed: Vec::new(),
        })
    }
}

/// What the properties of a definition refer to.
fn sources_in(definition: &Definition, held: &StoredDefinition, scope: &dyn Scope) -> Map {
    let sources = definition.properties.sources(&Value::Map(held.given().clone()), scope);
    sources.into_iter().map(|(place, source)| (place.to_string(), source.into())).collect()
}

/// The content of a nested stack whose future is not known: each of its resources may be deleted, or stay.
fn leave_open(nested: &mut Preview, awaited: &Awaited) {
    for entry in nested.entries.iter_mut().chain(&mut nested.former) {
        let most = std::mem::replace(&mut entry.change, PlannedChange::Unchanged);
        entry.change = undecided(PlannedChange::Unchanged, most, vec![awaited.clone()]);
        if let Some(nested) = &mut entry.nested {
            leave_open(nested, awaited);
        }
    }
}

/// The content of a nested stack with which nothing is done.
fn leave_alone(nested: &mut Preview) {
    for entry in nested.entries.iter_mut().chain(&mut nested.former) {
        entry.change = PlannedChange::Unchanged;
        entry.is_retained = false;
        entry.lost = None;
        entry.nested.as_deref_mut().into_iter().for_each(leave_alone);
    }
}

/// Why the content is unknown.
enum Trouble {
    Store(Error),
    Refused(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

fn text_of(error: &Diagnostic) -> String {
    error.to_string()
}
