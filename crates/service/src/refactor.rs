//! Moves resources between stacks, out of nested stacks and groups and into them, and gives them other names. No object in the
//! cloud changes. A nested stack or a group moves with all that is in it.
//!
//! The caller gives the new templates of the stacks. The rows are moved in memory first, and each stack is previewed with its
//! new rows and its new template: only if nothing would be done with an object in any of them, the store moves the rows, in one
//! transaction. If rows of nested stacks move, an engine then gives these their new templates.

mod nested;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kiln_identity::Caller;
use kiln_plan::Blueprint;
use kiln_resource::{Action, Resource, ResourceId, StackId, Status, StoredDefinition};
use kiln_stack::{LoadedStack, load};
use kiln_store::{
    Author, Details, Error as StoreError, Event, EventId, MovedStack, Operation, Parent, Refactor, RefactoredStack,
    Stack, StackQuery, StackRequest,
};
use kiln_value::{Map, Value};
use kiln_view::preview::{PlannedChange, PlannedResource, Preview, Terms, preview};

use self::nested::{Below, Spot};
use crate::error::listed;
use crate::guard::inside;
use crate::{Door, Error, Service, UpdateStack};

/// Rows that one transaction moves at most.
const MOST_ROWS: usize = 10_000;
/// Attempts to write a refactoring while engines have leases of its stacks, and the time between two of them.
const ATTEMPTS: usize = 20;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);
/// What stack users and the agents of servers have in the data of their resources.
const OF_USERS: [&str; 3] = ["user_id", "access_key", "password"];
/// The types of the orchestration service itself that have nothing of their stack. Others have URLs with its name, or users.
const MOVABLE: [&str; 7] = [
    "AWS::CloudFormation::Stack",
    "OS::Heat::None",
    "OS::Heat::RandomString",
    "OS::Heat::ResourceChain",
    "OS::Heat::ResourceGroup",
    "OS::Heat::TestResource",
    "OS::Heat::Value",
];

/// The place of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceOfResource {
    /// Its root stack.
    pub stack: StackId,
    /// Its path in the tree: `net`, or `servers/0` for a member of a group.
    pub resource: String,
}

/// A resource that gets another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceMove {
    /// The present place.
    pub from: PlaceOfResource,
    /// The place that it gets.
    pub to: PlaceOfResource,
}

/// Stacks among which resources move.
pub struct RefactorStacks {
    /// The stacks with their new templates. Other settings than these and the parameters are ignored.
    pub stacks: Vec<(Stack, UpdateStack)>,
    /// The moves. A resource that leaves one template and appears in exactly one other with the same name need not be named.
    pub moves: Vec<ResourceMove>,
}

/// What a refactoring does.
#[derive(Clone, Debug, Default)]
pub struct RefactorPlan {
    /// The moves.
    pub moves: Vec<MovedResource>,
    /// Why nothing can be moved, one sentence each.
    pub obstacles: Vec<String>,
    /// The names of the stacks whose nested stacks an engine updates.
    pub updating: Vec<String>,
}

/// A move, in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedResource {
    /// Its stack and its name: `web/net`.
    pub from: String,
    /// Those that it gets.
    pub to: String,
    /// Its type.
    pub resource_type: String,
    /// Its object.
    pub physical_id: Option<String>,
}

/// A stack of a refactoring.
struct Part {
    view: LoadedStack,
    blueprint: Arc<Blueprint>,
    rows: BTreeMap<ResourceId, Resource>,
    /// The rows that are written.
    changed: BTreeSet<ResourceId>,
    /// The nested stacks that come from other stacks.
    nested: Vec<MovedStack>,
    /// The nested stacks whose rows move.
    below: BTreeMap<StackId, Below>,
    events: Vec<Event>,
}

impl Part {
    fn stack(&self) -> &Stack {
        &self.view.stack
    }

    fn name(&self) -> &str {
        &self.view.stack.name
    }

    fn has_row(&self, name: &str) -> bool {
        self.rows.values().any(|row| row.name == name)
    }

    fn wants(&self, name: &str) -> bool {
        self.blueprint.definitions().contains_key(name)
    }

    /// Gives each row the rows that it requires by the new template. In nested stacks an engine does so; a row does not wait for
    /// one that has left.
    fn require(&mut self) {
        for below in self.below.values_mut() {
            let ids: BTreeSet<ResourceId> = below.rows.keys().copied().collect();
            for row in below.rows.values_mut().filter(|row| row.requires.iter().any(|id| !ids.contains(id))) {
                row.requires.retain(|id| ids.contains(id));
                self.changed.insert(row.id);
            }
        }
        let ids: BTreeMap<String, ResourceId> = self.rows.values().map(|row| (row.name.clone(), row.id)).collect();
        for row in self.rows.values_mut() {
            let names = self.blueprint.requires(&row.name).iter();
            let requires: BTreeSet<ResourceId> = names.filter_map(|name| ids.get(name)).copied().collect();
            if row.requires.iter().copied().collect::<BTreeSet<_>>() != requires {
                row.requires = requires.into_iter().collect();
                self.changed.insert(row.id);
            }
        }
    }
}

type Parts = BTreeMap<StackId, Part>;

impl Service {
    /// What a refactoring would do; nothing is changed.
    ///
    /// # Errors
    /// [`Error::Refactor`], [`Error::UnderGuard`] and those of an update of the stacks.
    pub async fn plan_refactor(&self, caller: &Caller, refactor: RefactorStacks) -> Result<RefactorPlan, Error> {
        self.planned_refactor(caller, refactor).await.map(|(plan, _)| plan)
    }

    /// Moves resources between stacks; returns what was moved.
    ///
    /// # Errors
    /// As [`Service::plan_refactor`]. Nothing is changed then.
    pub async fn refactor_stacks(&self, caller: &Caller, refactor: RefactorStacks) -> Result<RefactorPlan, Error> {
        let (plan, parts) = self.planned_refactor(caller, refactor).await?;
        if !plan.obstacles.is_empty() {
            return Err(Error::Refactor(format!("Nothing was moved. {}.", listed(plan.obstacles))));
        }
        self.refuse_older_engines_to("Moving resources between stacks").await?;
        let stacks = self.write(&self.written(caller, parts)).await?;
        stacks.iter().for_each(crate::request::begun);
        Ok(plan)
    }

    /// Writes a refactoring. The engine that has ended the last request of a stack may still have its lease for a moment.
    async fn write(&self, refactor: &Refactor) -> Result<Vec<Stack>, Error> {
        let mut attempt = 1;
        loop {
            let id = match self.backends.store.refactor(refactor).await {
                Err(StoreError::Changed(id)) => id,
                done => return Ok(done?),
            };
            let stack = load::stack(&*self.backends.store, id).await?;
            let root = refactor.stacks.iter().find(|part| part.id == id);
            let read = root.map(|part| (part.writes, part.request.if_generation));
            let nested = refactor.nested.iter().find(|moved| moved.id == id);
            let read = read.or_else(|| nested.map(|moved| (moved.writes, Some(moved.generation))));
            if read != Some((stack.writes, Some(stack.generation))) || attempt == ATTEMPTS {
                let name = stack.name;
                return Err(Error::Refactor(format!(
                    "Nothing was moved: the stack {name} is being changed. Try again."
                )));
            }
            self.backends.clock.sleep(BETWEEN_ATTEMPTS).await;
            attempt += 1;
        }
    }

    async fn planned_refactor(
        &self,
        caller: &Caller,
        refactor: RefactorStacks,
    ) -> Result<(RefactorPlan, Parts), Error> {
        let mut parts = Parts::new();
        for (stack, update) in refactor.stacks {
            let (id, name) = (stack.id, stack.name.clone());
            let part = self.part(caller, stack, update).await?;
            if parts.insert(id, part).is_some() {
                return Err(Error::Value(format!("the stack {name} is given twice")));
            }
        }
        refuse_foreign(&parts)?;
        let moves = all_moves(&parts, refactor.moves)?;
        if moves.is_empty() {
            return Err(Error::Refactor("Nothing moves: no resource leaves a template for another place.".to_owned()));
        }
        self.heed_guards_of_moves(&parts, &moves).await?;
        let mut plan = RefactorPlan::default();
        let paths = self.paths(&mut parts, &moves).await?;
        plan.obstacles.extend(parts.values().flat_map(|part| part.below.values().filter_map(Below::obstacle)));
        plan.updating =
            parts.values().filter(|part| !part.below.is_empty()).map(|part| part.name().to_owned()).collect();
        for part in parts.values() {
            plan.obstacles.extend(self.named_in_snapshots(part, &moves).await?);
        }
        let trees = self.moved_trees(&parts, &moves).await?;
        plan.obstacles.extend(trees.iter().flat_map(|tree| tree.obstacles.clone()));
        self.carry_out(&mut parts, &paths, &trees, &mut plan);
        if !plan.obstacles.is_empty() {
            return Ok((plan, parts));
        }
        for part in parts.values_mut() {
            part.require();
            plan.obstacles.extend(self.differences(part).await?);
        }
        let written: usize = parts.values().map(|part| part.changed.len() + part.nested.len() + part.below.len()).sum();
        if written > MOST_ROWS {
            let what = "resources and nested stacks would be written";
            plan.obstacles.push(format!("{written} {what}, and at most {MOST_ROWS} are at once"));
        }
        Ok((plan, parts))
    }

    /// A stack at rest, with its new template.
    async fn part(&self, caller: &Caller, stack: Stack, update: UpdateStack) -> Result<Part, Error> {
        let refused = |why: &str| Err(Error::Refactor(format!("Nothing was moved: the stack {} {why}.", stack.name)));
        if stack.parent.is_some() {
            return refused("is nested, and only resources of root stacks are moved");
        }
        if stack.is_pending() {
            return Err(Error::Busy { stack: stack.name, action: stack.state.action });
        }
        if stack.state.status != Status::Complete || stack.is_abandoned() {
            return refused(&format!("is {}, and only resources of complete stacks are moved", stack.state));
        }
        self.allow_update(caller, &stack).await?;
        let is_guarded = self.heed_guards(&stack, Action::Update).await?;
        self.demand_plan(caller, &Details::default(), is_guarded)?;
        let blueprint = Arc::new(self.updated_blueprint(caller, &stack, update).await?);
        let view = self.view(stack).await?;
        let rows = view.model().rows().map(|row| (row.id, row.clone())).collect();
        let (changed, nested, below, events) = (BTreeSet::new(), Vec::new(), BTreeMap::new(), Vec::new());
        Ok(Part { view, blueprint, rows, changed, nested, below, events })
    }

    /// Refuses to take a resource out of its stack, or to give it another name, where a guard would not protect it any more.
    async fn heed_guards_of_moves<'m>(&self, parts: &Parts, moves: &'m [ResourceMove]) -> Result<(), Error> {
        for (id, part) in parts {
            let own = moves.iter().filter(|one| one.from.stack == *id);
            let new_name = |one: &'m ResourceMove| (one.to.stack == *id).then_some(one.to.resource.as_str());
            let own: Vec<_> = own.map(|one| (one.from.resource.as_str(), new_name(one))).collect();
            self.refuse_moves(part.stack(), &own).await?;
        }
        Ok(())
    }

    /// The resources that leave a stack and are in one of its snapshots: restored, the stack would have them again.
    async fn named_in_snapshots(&self, part: &Part, moves: &[ResourceMove]) -> Result<Vec<String>, Error> {
        let leaving: Vec<&str> = moves
            .iter()
            .filter(|one| one.from.stack == part.stack().id)
            .map(|one| one.from.resource.split('/').next().unwrap_or_default())
            .collect();
        if leaving.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for snapshot in self.backends.store.snapshots(part.stack().id).await? {
            let resources = snapshot.data.get("resources").and_then(Value::as_map);
            let named = leaving.iter().filter(|name| resources.is_some_and(|all| all.contains_key(**name)));
            let (stack, id) = (part.name(), snapshot.id);
            found.extend(
                named.map(|name| format!("{stack}/{name} is in the snapshot {id} of its stack: delete that first")),
            );
        }
        Ok(found)
    }

    /// The nested stacks of the resources that leave their stack.
    async fn moved_trees(&self, parts: &Parts, moves: &[ResourceMove]) -> Result<Vec<Tree>, Error> {
        let mut trees = Vec::new();
        for one in moves.iter().filter(|one| one.from.stack != one.to.stack) {
            let Some(part) = parts.get(&one.from.stack) else { continue };
            for row in part.rows.values().filter(|row| row.name == one.from.resource) {
                if let Some(child) = row.child {
                    let place = inside(part.name(), &row.name);
                    trees.push(self.moved_tree(part.stack().root, row.id, child, &place).await?);
                }
            }
        }
        Ok(trees)
    }

    /// A nested stack with all that is in it.
    async fn moved_tree(&self, root: StackId, owner: ResourceId, child: StackId, place: &str) -> Result<Tree, Error> {
        let store = &self.backends.store;
        let query = StackQuery { roots: vec![root], nested: true, ..StackQuery::default() };
        let mut left = store.stacks(&query).await?;
        let mut tree = Tree { owner, stacks: Vec::new(), obstacles: Vec::new() };
        let mut places = BTreeMap::from([(child, place.to_owned())]);
        // From the top down: a stack is in the tree if its parent is.
        loop {
            let found: Vec<Stack> = left.extract_if(.., |stack| places.contains_key(&stack.id)).collect();
            if found.is_empty() {
                return Ok(tree);
            }
            for stack in found {
                let place = places[&stack.id].clone();
                let mut refuse = |why: String| tree.obstacles.push(format!("{place} {why}"));
                if stack.is_pending() || stack.state.status != Status::Complete || stack.is_abandoned() {
                    refuse(format!("is {}, and only complete stacks are moved", stack.state));
                }
                if stack.user_project.is_some() {
                    refuse("has users of its own".to_owned());
                }
                if !store.snapshots(stack.id).await?.is_empty() {
                    refuse("has snapshots of its own: delete them first".to_owned());
                }
                for row in store.resources(stack.id).await? {
                    let place = inside(&place, &row.name);
                    tree.obstacles.extend(obstacle(&row, true).map(|why| format!("{place} {why}")));
                    places.extend(row.child.map(|child| (child, place)));
                }
                tree.stacks.push(stack);
            }
        }
    }

    /// Moves the rows in memory.
    fn carry_out(&self, parts: &mut Parts, paths: &[(Spot, Spot)], trees: &[Tree], plan: &mut RefactorPlan) {
        let now = self.backends.clock.now();
        let mut moving = Vec::with_capacity(paths.len());
        for (from, to) in paths {
            let Some(part) = parts.get_mut(&from.root) else { continue };
            let place = &from.place;
            let found = part.rows_in(from.stack).values().filter(|row| row.name == from.name);
            let [id] = found.map(|row| row.id).collect::<Vec<_>>()[..] else {
                plan.obstacles.push(format!("{place} does not exist, or is being replaced"));
                continue;
            };
            if from.is_in_root() && part.wants(&from.name) {
                plan.obstacles.push(format!("{place} is still in the template of its stack"));
                continue;
            }
            let Some(row) = part.rows_in(from.stack).remove(&id) else { continue };
            let why = obstacle(&row, from.stack != to.stack);
            plan.obstacles.extend(why.map(|why| format!("{place} {why}")));
            if row.child.is_some_and(|child| part.below.contains_key(&child)) {
                plan.obstacles.push(format!("{place} moves, and so does what is in it: use two steps"));
            } else if row.child.is_some() && !(from.is_in_root() && to.is_in_root()) {
                plan.obstacles.push(format!("{place} is a nested stack: these move between root stacks only"));
            }
            let stack = part.stack_in(from.stack).clone();
            moving.push((from, to, stack, row));
        }
        for (from, to, former, mut row) in moving {
            let Some(part) = parts.get_mut(&to.root) else { continue };
            if to.is_in_root() && !part.wants(&to.name) {
                plan.obstacles.push(format!("the template of {} has no resource {}", part.name(), to.name));
                continue;
            }
            if part.rows_in(to.stack).values().any(|row| row.name == to.name) {
                plan.obstacles.push(format!("{} already exists", to.place));
                continue;
            }
            let (root, ends) = (part.stack().clone(), part.below.is_empty());
            let target = part.stack_in(to.stack).clone();
            if from.stack == to.stack {
                row.rename(&to.name);
            } else {
                row.move_to(&former.name, target.id, &to.name);
            }
            row.generation = target.generation + i64::from(ends);
            part.events.push(self.moved_event(&root, &row, &to.name, format!("moved from {}", from.place), now));
            plan.moves.push(MovedResource {
                from: from.place.clone(),
                to: to.place.clone(),
                resource_type: row.resource_type.clone(),
                physical_id: row.physical_id.clone(),
            });
            let tree = trees.iter().find(|tree| tree.owner == row.id);
            part.nested.extend(tree.into_iter().flat_map(|tree| tree.moved_to(target.root, &row)));
            part.changed.insert(row.id);
            if from.root != to.root
                && let Some(part) = parts.get_mut(&from.root)
            {
                let left = self.moved_event(part.stack(), &row, &from.name, format!("moved to {}", to.place), now);
                part.events.push(left);
            }
            if let Some(part) = parts.get_mut(&to.root) {
                part.rows_in(to.stack).insert(row.id, row);
            }
        }
    }

    fn moved_event(&self, stack: &Stack, row: &Resource, name: &str, reason: String, now: jiff::Timestamp) -> Event {
        Event {
            id: EventId(self.backends.chance.uuid_of(now)),
            stack: stack.id,
            root: stack.root,
            resource_name: name.to_owned(),
            resource_type: row.resource_type.clone(),
            physical_id: row.physical_id.clone(),
            action: Event::action_of(row.state.action),
            status: row.state.status,
            reason,
            properties: Value::Map(Map::new()),
            operation: Some(Operation::id_of(stack.id, stack.generation + 1)),
            time: now,
        }
    }

    /// What an update of a stack to its new template would do with objects, with its new rows: nothing, if they belong together.
    /// The rows get their new definitions.
    async fn differences(&self, part: &mut Part) -> Result<Vec<String>, Error> {
        let mut hidden = self.hidden_values_of_change(part.stack(), Some(part.blueprint.sources())).await?;
        let guards = self.placed_guards(part.stack(), Action::Update).await?;
        let rows = part.below.iter().map(|(id, below)| (*id, below.rows.values().cloned().collect())).collect();
        let terms = Terms { guards: guards.map(Arc::new), rows: Arc::new(rows), ..Terms::default() };
        let mut view = part.view.with_rows(part.rows.values().cloned());
        let previewed = preview(&self.backends, &mut view, Arc::clone(&part.blueprint), terms, &mut hidden).await?;
        for entry in previewed.entries.iter().filter(|entry| is_kept(entry) && entry.nested.is_none()) {
            let row = entry.row.as_ref().and_then(|row| part.rows.get_mut(&row.id));
            if let Some(row) = row.filter(|row| row.definition != entry.definition) {
                row.definition.clone_from(&entry.definition);
                part.changed.insert(row.id);
            }
        }
        let mut found = Vec::new();
        list_changes(&previewed, part.name(), !part.below.is_empty(), &mut found);
        for text in &mut found {
            hidden.mask(Door::Refactor, text);
        }
        Ok(found)
    }

    /// What the store writes.
    fn written(&self, caller: &Caller, parts: Parts) -> Refactor {
        let now = self.backends.clock.now();
        let author = Author { user_id: caller.user_id.clone(), username: caller.username.clone() };
        let (mut stacks, mut rows, mut moved) = (Vec::with_capacity(parts.len()), Vec::new(), Vec::new());
        for (id, part) in parts {
            let Part { view: LoadedStack { stack, .. }, blueprint, rows: all, changed, nested, below, events } = part;
            let request = StackRequest {
                desired: Some(load::accepted(&self.backends, &blueprint)),
                author: Some(author.clone()),
                if_generation: Some(stack.generation),
                ..StackRequest::new(Action::Update, now)
            };
            stacks.push(RefactoredStack { id, writes: stack.writes, request, events, ends: below.is_empty() });
            rows.extend(all.into_values().filter(|row| changed.contains(&row.id)));
            moved.extend(nested);
            for below in below.into_values() {
                moved.extend(below.as_it_is());
                rows.extend(below.rows.into_values().filter(|row| changed.contains(&row.id)));
            }
        }
        Refactor { stacks, rows, nested: moved }
    }
}

/// A nested stack that moves, with all that is in it.
struct Tree {
    /// The row of the resource that it belongs to.
    owner: ResourceId,
    stacks: Vec<Stack>,
    /// Why it stays.
    obstacles: Vec<String>,
}

impl Tree {
    /// The stacks in the tree of another root stack, where this is the row of their resource.
    fn moved_to(&self, root: StackId, row: &Resource) -> Vec<MovedStack> {
        let moved = |stack: &Stack| {
            let above = stack.parent.clone()?;
            let top = || Parent { stack: row.stack, resource: row.id, resource_name: row.name.clone() };
            let parent = if above.resource == row.id { top() } else { above };
            Some(MovedStack { id: stack.id, writes: stack.writes, generation: stack.generation, root, parent })
        };
        self.stacks.iter().filter_map(moved).collect()
    }
}

/// Refuses stacks of different owners: one of them could not change the objects of the other, such as key pairs.
fn refuse_foreign(parts: &Parts) -> Result<(), Error> {
    let mut stacks = parts.values().map(Part::stack);
    let Some(first) = stacks.next() else { return Err(Error::Value("no stacks are given".to_owned())) };
    let is_foreign = |one: &&Stack| one.project != first.project || one.user_id != first.user_id;
    match stacks.find(is_foreign) {
        Some(other) => Err(Error::Refactor(format!(
            "Nothing was moved: the stacks {} and {} belong to different users.",
            first.name, other.name
        ))),
        None => Ok(()),
    }
}

/// The moves that are given, those in the templates, and those of resources that leave one template and appear in exactly one
/// other with the same name.
fn all_moves(parts: &Parts, given: Vec<ResourceMove>) -> Result<Vec<ResourceMove>, Error> {
    let mut moves = given;
    for one in &moves {
        if !(parts.contains_key(&one.from.stack) && parts.contains_key(&one.to.stack)) {
            return Err(Error::Value("a resource moves between stacks whose templates are given".to_owned()));
        }
    }
    let named = |moves: &[ResourceMove], place: &PlaceOfResource| {
        moves.iter().any(|one| one.from == *place || one.to == *place)
    };
    for (id, part) in parts {
        let place = |resource: &String| PlaceOfResource { stack: *id, resource: resource.clone() };
        for (from, to) in part.blueprint.moves() {
            let (from, to) = (place(from), place(to));
            let is_open = part.has_row(&from.resource) && !part.wants(&from.resource) && !part.has_row(&to.resource);
            if is_open && !named(&moves, &from) && !named(&moves, &to) {
                moves.push(ResourceMove { from, to });
            }
        }
    }
    let leaving: Vec<PlaceOfResource> = parts
        .iter()
        .flat_map(|(id, part)| {
            let present: BTreeSet<&String> = part.rows.values().map(|row| &row.name).collect();
            let gone = present.into_iter().filter(|name| !part.wants(name));
            gone.map(|name| PlaceOfResource { stack: *id, resource: name.clone() }).collect::<Vec<_>>()
        })
        .collect();
    for from in leaving.into_iter().filter(|from| !named(&moves, from)).collect::<Vec<_>>() {
        let arrivals = parts.iter().filter(|(_, part)| part.wants(&from.resource) && !part.has_row(&from.resource));
        let places = arrivals.map(|(id, _)| PlaceOfResource { stack: *id, resource: from.resource.clone() });
        if let [to] = places.filter(|to| !named(&moves, to)).collect::<Vec<_>>().as_slice() {
            moves.push(ResourceMove { from, to: to.clone() });
        }
    }
    let (mut left, mut reached) = (BTreeSet::new(), BTreeSet::new());
    for one in &moves {
        if !left.insert(&one.from) || !reached.insert(&one.to) {
            return Err(Error::Value(format!("the resource {} is moved twice", one.from.resource)));
        }
    }
    Ok(moves)
}

/// Why a resource stays where it is.
fn obstacle(row: &Resource, leaves: bool) -> Option<String> {
    if row.state.status != Status::Complete || row.state.action == Action::Delete {
        return Some(format!("is {}, and only complete resources are moved", row.state));
    }
    if row.replaces.is_some() || row.replaced_by.is_some() {
        return Some("is being replaced".to_owned());
    }
    if !leaves {
        return None;
    }
    if OF_USERS.iter().any(|key| row.data.contains_key(*key)) {
        return Some("has a user in the project of the users of its stack".to_owned());
    }
    let of_the_service =
        ["OS::Heat::", "AWS::CloudFormation::", "AWS::AutoScaling::", "AWS::IAM::", "AWS::CloudWatch::"];
    let is_kept = of_the_service.iter().any(|prefix| row.implementation.starts_with(prefix));
    if is_kept && !MOVABLE.contains(&row.implementation.as_str()) {
        return Some(format!("is a part of its stack ({})", row.resource_type));
    }
    None
}

/// What a preview would do with objects, one sentence for each resource. `nested_change`: nested stacks and groups may get other
/// properties, or go when they are empty.
fn list_changes(preview: &Preview, place: &str, nested_change: bool, found: &mut Vec<String>) {
    for entry in preview.entries.iter().chain(&preview.former) {
        let path = inside(place, &entry.name);
        let may_change = || {
            let Some(_) = &entry.nested else { return false };
            matches!(entry.change, PlannedChange::Updated(_) | PlannedChange::Deleted)
        };
        if is_kept(entry) || nested_change && may_change() {
            entry.nested.iter().for_each(|nested| list_changes(nested, &path, nested_change, found));
        } else if let Some(why) = change(entry) {
            found.push(format!("{path} {why}"));
        }
    }
}

/// Whether nothing is done with the object, even if the template says in other words what it is, or what it depends on.
fn is_kept(entry: &PlannedResource) -> bool {
    let held = entry.row.as_ref().and_then(|row| row.definition.as_deref());
    match (&entry.change, held, entry.definition.as_deref()) {
        (PlannedChange::Unchanged, ..) => true,
        (PlannedChange::Updated(properties), Some(held), Some(new)) if properties.is_empty() => {
            let mut said: StoredDefinition = held.clone();
            said.depends_on.clone_from(&new.depends_on);
            said.description.clone_from(&new.description);
            said.says_the_same_beside_properties(new)
        }
        _ => false,
    }
}

fn change(entry: &PlannedResource) -> Option<String> {
    let names = |properties: &Map| properties.keys().cloned().collect::<Vec<_>>().join(", ");
    Some(match &entry.change {
        PlannedChange::Unchanged => return None,
        PlannedChange::Updated(properties) => format!("would be updated: {}", names(properties)),
        PlannedChange::Replaced(reasons) => format!("would be replaced: {}", reasons.join("; ")),
        PlannedChange::Added => "would be created".to_owned(),
        PlannedChange::Deleted => "would be deleted".to_owned(),
        PlannedChange::Refused(why) => format!("would fail: {why}"),
        PlannedChange::Undecided { awaited, .. } => {
            let places = awaited.iter().map(|one| format!("{} ({})", one.property, one.place));
            format!("depends on values that are not known yet: {}", places.collect::<Vec<_>>().join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kiln_resource::State;

    use super::*;

    const ID: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

    fn row(resource_type: &str) -> Resource {
        let (stack, id) = (ID.parse().expect("an ID"), ID.parse().expect("an ID"));
        let state = State::new(Action::Create, Status::Complete);
        Resource { state, ..Resource::new(stack, id, "r", resource_type, Timestamp::UNIX_EPOCH) }
    }

    #[test]
    fn what_belongs_to_its_stack_stays() {
        let server = row("OS::Nova::Server");
        assert_eq!(obstacle(&server, true), None);
        let with = |key: &str| {
            let data = Map::from_iter([(key.to_owned(), Value::from("x"))]);
            obstacle(&Resource { data, ..server.clone() }, true)
        };
        assert!(with("user_id").is_some_and(|why| why.contains("has a user")));
        assert!(with("access_key").is_some_and(|why| why.contains("has a user")));
        assert_eq!(with("internal_ports"), None);
        for (kind, moves) in [
            ("OS::Heat::WaitConditionHandle", false),
            ("OS::Heat::ScalingPolicy", false),
            ("OS::Heat::SoftwareDeployment", false),
            ("AWS::CloudFormation::WaitCondition", false),
            ("OS::Heat::Value", true),
            ("OS::Neutron::Net", true),
        ] {
            assert_eq!(obstacle(&row(kind), true).is_none(), moves, "{kind}");
            assert_eq!(obstacle(&row(kind), false), None, "in its stack it may get another name");
        }
        for (kind, moves) in
            [("app.yaml", true), ("OS::Heat::ResourceGroup", true), ("OS::Heat::AutoScalingGroup", false)]
        {
            let nested = Resource { child: ID.parse().ok(), ..row(kind) };
            assert_eq!(obstacle(&nested, true).is_none(), moves, "{kind}");
        }
    }

    #[test]
    fn what_is_not_complete_stays() {
        let failed = Resource { state: State::new(Action::Update, Status::Failed), ..row("OS::Nova::Server") };
        assert!(obstacle(&failed, false).is_some_and(|why| why.contains("UPDATE_FAILED")));
        let replaced = Resource { replaced_by: ID.parse().ok(), ..row("OS::Nova::Server") };
        assert!(obstacle(&replaced, false).is_some_and(|why| why.contains("being replaced")));
    }
}
