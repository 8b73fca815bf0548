//! Checks of the state after a request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use kiln_resource::{Action, Resource, ResourceId, Status};
use kiln_store::{MessageBody, Stack, StackId};

use crate::cloud::{Object, Phase};
use crate::rule::Rule;
use crate::simulation::Simulation;
use crate::template_model::{KindModel, Plain, ResourceModel, TemplateModel, word};

/// A request of a stack has ended.
pub(crate) async fn check_settled(sim: &Arc<Simulation>, stack: &Stack) {
    // Nothing can be stored about a row while the database refuses it.
    check_idle(sim, stack, sim.scenario.crashes.refused_row.as_slice()).await;
    if stack.parent.is_some() || stack.state.status != Status::Complete {
        return;
    }
    match stack.state.action {
        Action::Delete => check_gone(sim, stack).await,
        Action::Create | Action::Update | Action::Rollback | Action::Adopt | Action::Restore => {
            check_wanted(sim, stack).await;
        }
        Action::Suspend => check_asleep(sim, stack, true).await,
        Action::Resume => check_asleep(sim, stack, false).await,
        _ => {}
    }
}

/// Without a request, no row is in progress, except those with these names.
pub(crate) async fn check_idle(sim: &Simulation, stack: &Stack, except: &[String]) {
    let rows = sim.store.resources(stack.id).await.unwrap_or_default();
    if let Some(row) = rows.iter().find(|row| row.state.status == Status::InProgress && !except.contains(&row.name)) {
        let text = format!("{} is {} and {} is {}", stack.name, stack.state, row.name, row.state);
        sim.accuse(Rule::StillBusy, text);
    }
}

/// A deleted tree leaves only retained and recorded objects.
pub(crate) async fn check_gone(sim: &Simulation, stack: &Stack) {
    if let Some(kept) = sim.ledger.abandoned(stack.id) {
        let now = sim.time.ms();
        if let Some(id) = kept.iter().find(|id| stack.details.keep_objects && sim.cloud().get(id, now).is_none())
            && !sim.ledger.was_adopted(stack.id)
            // A signal may remove members of a group at the same time.
            && !sim.ledger.messages().iter().any(|message| matches!(message.body, MessageBody::Signal(_)))
        {
            sim.accuse(Rule::NotAsWanted, format!("{} is abandoned, but {id} is gone", stack.name));
        }
        return;
    }
    for object in objects_of(sim, stack.id) {
        if !object.keep && !sim.ledger.is_recorded_orphan(sim, &object).await {
            let text = format!("{} of {} after {} is {}", object.id, object.resource, stack.name, stack.state);
            sim.accuse(Rule::LeftBehind, text);
        }
    }
}

/// Each resource of the template has one live object with the desired properties, and there are no others.
pub(crate) async fn check_wanted(sim: &Simulation, stack: &Stack) {
    let rolled_back_to_nothing = stack.state.action == Action::Rollback && stack.previous.is_none();
    let template = if rolled_back_to_nothing {
        Some(Arc::new(TemplateModel::default()))
    } else {
        sim.ledger.meaning(&stack.desired)
    };
    let Some(template) = template else { return };
    if sim.ledger.deviates(stack.id) {
        return;
    }
    let mut found = Found::default();
    let result = compare(sim, &template, stack.id, Vec::new(), stack.details.skip.clone(), &mut found).await;
    if let Err(text) = result {
        sim.accuse(Rule::NotAsWanted, format!("{} is {}, but {text}", stack.name, stack.state));
        return;
    }
    // An abandon that failed has released some objects.
    let released = sim.ledger.abandoned(stack.id).unwrap_or_default();
    for object in objects_of(sim, stack.id) {
        let is_known = found.objects.contains(&object.id) || released.contains(&object.id);
        if !is_known && !object.keep && !sim.ledger.is_recorded_orphan(sim, &object).await {
            let text = format!("{} is {}, but {} of {} is left", stack.name, stack.state, object.id, object.resource);
            sim.accuse(Rule::LeftBehind, text);
        }
    }
}

/// The objects of suspended resources are suspended, and those of resumed ones are not. Remains of earlier requests are
/// not suspended.
async fn check_asleep(sim: &Simulation, stack: &Stack, asleep: bool) {
    let rows = sim.store.resources(stack.id).await.unwrap_or_default();
    let acted = if asleep { Action::Suspend } else { Action::Resume };
    for row in rows.into_iter().filter(|row| row.state.action == acted) {
        let Some(id) = &row.physical_id else { continue };
        let wrong = sim.cloud().get(id, sim.time.ms()).is_some_and(|object| object.asleep != asleep);
        if wrong {
            let text = format!("{} is {}, but {id} is not", stack.name, stack.state);
            sim.accuse(Rule::NotAsWanted, text);
        }
    }
}

/// The live objects of the stacks of a tree.
fn objects_of(sim: &Simulation, root: StackId) -> Vec<Object> {
    let now = sim.time.ms();
    let mut cloud = sim.cloud();
    let of_tree = |object: &&Object| object.stack.parse().is_ok_and(|stack| sim.ledger.root_of(stack) == root);
    cloud.live(now).filter(of_tree).cloned().collect()
}

/// The expected objects.
#[derive(Default)]
struct Found {
    objects: BTreeSet<String>,
}

/// The rows that skipped resources need, directly or through others.
fn needed_by(rows: &[Resource], skip: &[String]) -> BTreeSet<ResourceId> {
    let (mut queue, mut needed) = (Vec::new(), BTreeSet::new());
    queue.extend(rows.iter().filter(|row| skip.contains(&row.name)));
    while let Some(row) = queue.pop() {
        queue.extend(rows.iter().filter(|other| row.requires.contains(&other.id) && needed.insert(other.id)));
    }
    needed
}

impl Found {
    /// Adds the objects of a row that a skipped resource needs.
    async fn keep(&mut self, sim: &Simulation, row: &Resource) -> Result<(), String> {
        self.objects.extend(row.physical_id.clone());
        self.below(sim, row.child.into_iter().collect()).await
    }

    /// Adds the objects of nested stacks.
    async fn below(&mut self, sim: &Simulation, mut stacks: Vec<StackId>) -> Result<(), String> {
        let mut below = BTreeSet::new();
        while let Some(stack) = stacks.pop() {
            below.insert(stack.to_string());
            let rows = sim.store.resources(stack).await.map_err(|error| error.to_string())?;
            stacks.extend(rows.iter().filter_map(|row| row.child));
        }
        let is_below = |object: &&Object| below.contains(&object.stack);
        self.objects.extend(sim.cloud().live(sim.time.ms()).filter(is_below).map(|object| object.id.clone()));
        Ok(())
    }

    /// Adds the objects of a skipped resource, which may be there or not.
    async fn skip(&mut self, sim: &Simulation, stack: StackId, name: &str, rows: &[&Resource]) -> Result<(), String> {
        let request = sim.store.stack(stack).await.map_err(|error| error.to_string())?;
        let request = request.map_or(0, |stack| stack.generation);
        let is_done = |row: &&&Resource| {
            row.state.status == Status::Complete && row.state.action != Action::Init && row.generation >= request
        };
        if let Some(row) = rows.iter().find(is_done) {
            return Err(format!("{name} was skipped and is {}", row.state));
        }
        let now = sim.time.ms();
        let former: BTreeSet<&str> = rows.iter().flat_map(|row| row.former_names()).collect();
        let is_named = |object: &Object| object.resource == name || former.contains(object.resource.as_str());
        let of_name = |object: &&Object| object.stack == stack.to_string() && is_named(object);
        self.objects.extend(rows.iter().filter_map(|row| row.physical_id.clone()));
        self.objects.extend(sim.cloud().live(now).filter(of_name).map(|object| object.id.clone()));
        self.below(sim, rows.iter().filter_map(|row| row.child).collect()).await
    }
}

/// Compares a stack with its desired state; returns the IDs of its objects.
fn compare<'a>(
    sim: &'a Simulation,
    template: &'a TemplateModel,
    stack: StackId,
    outer: Vec<String>,
    skip: Vec<String>,
    found: &'a mut Found,
) -> BoxFuture<'a, Result<Vec<String>, String>> {
    async move {
        let mut rows = sim.store.resources(stack).await.map_err(|error| error.to_string())?;
        let needed = needed_by(&rows, &skip);
        // The newest row of a name is the current one. What was replaced, or was taken back by a rollback, may stay, because a
        // skipped resource needs it; clocks do not say which one that is.
        let with_id = |id| rows.iter().find(|row| row.id == id);
        let is_former = |row: &Resource| {
            let is_taken_back = |old: &Resource| old.replaced_by != Some(row.id);
            row.replaced_by.and_then(with_id).is_some() || row.replaces.and_then(with_id).is_some_and(is_taken_back)
        };
        let mut newest: BTreeMap<String, (Timestamp, ResourceId)> = BTreeMap::new();
        for row in rows.iter().filter(|row| template.get(&row.name).is_some() && !is_former(row)) {
            let one = newest.entry(row.name.clone()).or_insert((row.created, row.id));
            *one = (row.created, row.id).max(*one);
        }
        let is_current = |row: &Resource| newest.get(&row.name).is_some_and(|(_, id)| *id == row.id);
        for row in rows.extract_if(.., |row| needed.contains(&row.id) && !is_current(row)) {
            found.keep(sim, &row).await?;
        }
        if let Some(row) = rows.iter().find(|row| template.get(&row.name).is_none()) {
            return Err(format!("{} is still there ({})", row.name, row.state));
        }
        let mut ids: Vec<(String, Vec<String>)> = Vec::new();
        for resource in &template.resources {
            let name = &resource.name;
            let of_name: Vec<&Resource> = rows.iter().filter(|row| row.name == *name).collect();
            if skip.contains(name) {
                found.skip(sim, stack, name, &of_name).await?;
                ids.push((name.clone(), Vec::new()));
                continue;
            }
            let inside = skip.iter().filter_map(|path| Some(path.strip_prefix(name)?.strip_prefix('/')?.to_owned()));
            let [row] = of_name.as_slice() else {
                return Err(format!("{name} has {} rows", of_name.len()));
            };
            let marked = row.state.action == Action::Check && sim.ledger.is_marked(row.id, stack);
            if (row.state.status != Status::Complete && !marked)
                || matches!(row.state.action, Action::Delete | Action::Init)
            {
                return Err(format!("{name} is {}", row.state));
            }
            let mut needs = outer.clone();
            needs.extend(
                ids.iter().filter(|(other, _)| resource.needs.contains(other)).flat_map(|(_, ids)| ids.clone()),
            );
            let made = match &resource.kind {
                KindModel::Value | KindModel::Wait { .. } | KindModel::Policy { .. } => Vec::new(),
                KindModel::Plain(_) => vec![check_object(sim, template, resource, row, &needs, found)?],
                KindModel::Nested(inner) => compare(sim, inner, child_of(row)?, needs, inside.collect(), found).await?,
                KindModel::Scaled { min, max, member, .. } => {
                    compare_scaled(sim, template, resource, (*min, *max, *member), child_of(row)?, &needs, found)
                        .await?;
                    // Nothing may depend on members that come and go.
                    Vec::new()
                }
                KindModel::Group { count, member, .. } => {
                    let members = members_of(resource, *count, *member);
                    // A member gets its dependencies from its group.
                    let mut made = Vec::new();
                    let child = child_of(row)?;
                    let rows = sim.store.resources(child).await.map_err(|error| error.to_string())?;
                    if rows.len() != members.len() {
                        return Err(format!("{name} has {} members of {}", rows.len(), members.len()));
                    }
                    for row in &rows {
                        let Some(member) = members.iter().find(|member| member.name == row.name) else {
                            return Err(format!("{name} has a member {}", row.name));
                        };
                        let told = ResourceModel { reads: resource.reads.clone(), ..member.clone() };
                        made.push(check_object(sim, template, &told, row, &needs, found)?);
                    }
                    made
                }
            };
            ids.push((name.clone(), made));
        }
        Ok(ids.into_iter().flat_map(|(_, ids)| ids).collect())
    }
    .boxed()
}

/// Compares the members of a scaling group, unless a signal is changing them or has failed to.
async fn compare_scaled(
    sim: &Simulation,
    template: &TemplateModel,
    group: &ResourceModel,
    (min, max, member): (u32, u32, Plain),
    child: StackId,
    needs: &[String],
    found: &mut Found,
) -> Result<(), String> {
    let stack = sim.store.stack(child).await.map_err(|error| error.to_string())?;
    let rows = sim.store.resources(child).await.map_err(|error| error.to_string())?;
    let signalled = sim.ledger.messages().iter().any(|message| matches!(message.body, MessageBody::Signal(_)));
    if signalled && stack.is_none_or(|stack| stack.is_pending() || stack.state.status != Status::Complete) {
        found.objects.extend(objects_of(sim, sim.ledger.root_of(child)).into_iter().filter_map(|object| {
            let of_group = object.stack.parse().is_ok_and(|stack: StackId| stack == child);
            of_group.then_some(object.id)
        }));
        return Ok(());
    }
    let name = &group.name;
    let (min, max) = (usize::try_from(min).unwrap_or(0), usize::try_from(max).unwrap_or(0));
    // A member that is marked unhealthy does not count.
    let healthy = rows.iter().filter(|row| row.state.status == Status::Complete).count();
    if !(min..=max).contains(&healthy) {
        return Err(format!("{name} has {healthy} members, not {min} to {max}"));
    }
    for row in &rows {
        let told = ResourceModel { name: row.name.clone(), kind: KindModel::Plain(member), ..group.clone() };
        check_object(sim, template, &told, row, needs, found)?;
    }
    Ok(())
}

fn members_of(group: &ResourceModel, count: u32, member: Plain) -> Vec<ResourceModel> {
    let member =
        |number: u32| ResourceModel { name: number.to_string(), kind: KindModel::Plain(member), ..group.clone() };
    (0..count).map(member).collect()
}

fn child_of(row: &Resource) -> Result<StackId, String> {
    let id = row.physical_id.as_deref().and_then(|id| id.parse().ok());
    id.ok_or_else(|| format!("{} has no nested stack", row.name))
}

/// The expected word of a resource.
fn word_of(template: &TemplateModel, resource: &ResourceModel) -> String {
    match resource.reads.as_ref().and_then(|name| template.get(name)) {
        Some(other) => word_of(template, other),
        None => word(resource.word),
    }
}

fn check_object(
    sim: &Simulation,
    template: &TemplateModel,
    resource: &ResourceModel,
    row: &Resource,
    needs: &[String],
    found: &mut Found,
) -> Result<String, String> {
    let name = &resource.name;
    let id = row.physical_id.as_deref().ok_or_else(|| format!("{name} has no object"))?;
    let mut cloud = sim.cloud();
    let object = cloud.get(id, sim.time.ms()).ok_or_else(|| format!("{id} of {name} is gone"))?;
    if object.phase != Phase::Active && !matches!(object.phase, Phase::Building { .. }) {
        return Err(format!("{id} of {name} is {:?}", object.phase));
    }
    let wanted = word_of(template, resource);
    if object.word != wanted {
        return Err(format!("{id} of {name} has the word {} and not {wanted}", object.word));
    }
    if object.size != i64::from(resource.size) {
        return Err(format!("{id} of {name} has the size {} and not {}", object.size, resource.size));
    }
    let base = &resource.base;
    if base.is_empty() != object.base.is_empty() || !object.base.starts_with(base.as_str()) {
        return Err(format!("{id} of {name} is made from {:?} and not from {base:?}", object.base));
    }
    let (has, wants): (BTreeSet<&String>, BTreeSet<&String>) = (object.needs.iter().collect(), needs.iter().collect());
    if has != wants {
        return Err(format!("{id} of {name} needs {has:?} and not {wants:?}"));
    }
    if object.kind == Plain::Pair && !object.whole {
        return Err(format!("{id} of {name} is half made"));
    }
    found.objects.insert(id.to_owned());
    Ok(id.to_owned())
}
