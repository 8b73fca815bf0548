//! Preview of an update: the real plan without its execution.

mod rehearsal;
mod weigh;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Blueprint, Guards, Inside, Kind};
use kiln_plan_document::{Check, DeletedSnapshot, Downtime, Place};
use kiln_resource::{Converge, Loss, Resource, StackId, StoredDefinition, Verb};
use kiln_stack::loaded_stack::{LoadedStack, OutputValue};
use kiln_stack::meaning::NewMeaning;
use kiln_stack::{Backends, Chance};
use kiln_store::{Error, Snapshot, Stack};
use kiln_template::Move;
use kiln_value::{Map, Path, Value};

use rehearsal::Rehearsal;

/// The planned change of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedChange {
    /// No change.
    Unchanged,
    /// Updated in place: the properties with their new values, null for removed ones. Values that are known only after
    /// other resources are done are [`kiln_value::Value::Unknown`].
    Updated(Map),
    /// Replaced, for these reasons.
    Replaced(Vec<String>),
    /// Created.
    Added,
    /// Deleted.
    Deleted,
    /// Refused: the update would fail here with this reason.
    Refused(String),
    /// Depends on values that are known only after other resources are done.
    Undecided {
        /// The minimum change: if unknown values turn out to be the current ones.
        at_least: Box<PlannedChange>,
        /// The maximum change.
        at_most: Box<PlannedChange>,
        /// The unknown values.
        awaited: Vec<Awaited>,
    },
}

/// A property with an unknown value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The property.
    pub property: String,
    /// The source of the value: `resource` or `resource.attribute`.
    pub place: String,
}

impl PlannedChange {
    /// Whether there is certainly no change.
    pub fn is_unchanged(&self) -> bool {
        *self == Self::Unchanged
    }

    /// The maximum change.
    #[must_use]
    pub fn at_most(&self) -> &Self {
        match self {
            Self::Undecided { at_most, .. } => at_most,
            certain => certain,
        }
    }
}

/// A resource of a preview.
#[derive(Clone, Debug)]
pub struct PlannedResource {
    /// Logical name.
    pub name: String,
    /// Its type name in the new template, or in the old one if it is deleted.
    pub resource_type: String,
    /// The type that implements it, if that is another one.
    pub implementation: Option<Box<str>>,
    /// Its name before the request, if that is another one.
    pub moved_from: Option<Box<str>>,
    /// The planned change.
    pub change: PlannedChange,
    /// The new resolved definition; `None` if it is refused and does not exist yet.
    pub definition: Option<Arc<StoredDefinition>>,
    /// Its current row; `None` if it is new.
    pub row: Option<Arc<Resource>>,
    /// The values before the change that differ from the stored properties, for [`PlannedResource::before`].
    pub(crate) differing: Map,
    /// Properties that an update set which failed: the object has these values or those in `before`.
    pub tried: Map,
    /// Whether it is deleted or replaced and its object is kept: `deletion_policy: Retain`, or an abandoned stack.
    pub is_retained: bool,
    /// What the change destroys.
    pub lost: Option<Box<Loss>>,
    /// How its object is away meanwhile.
    pub downtime: Downtime,
    /// The preview of its nested stack.
    pub nested: Option<Box<Preview>>,
    /// Its nested stack, if nothing is done with it: the change is refused, or the stack is kept.
    pub untouched: Option<Box<Preview>>,
    /// What the content of its nested stack depends on, if that is known only later.
    pub content: Option<Box<Awaited>>,
    /// The resources that directly depend on it.
    pub required_by: Vec<String>,
    /// The attributes of its type, as far as they are known.
    pub attributes: Map,
    /// The names in its properties that mean other objects than at its last change, which it keeps.
    pub meanings: Vec<NewMeaning>,
    /// What its properties refer to.
    pub references: References,
    /// The guard that forbids the maximum change.
    pub guard: Option<Box<str>>,
    /// The properties in its template of which guards ignore what others do.
    pub ignored: Vec<Ignored>,
}

/// Which guard ignores what others do with a property of a resource with this path, and whether it is not written either.
pub type Ignoring<'a> = dyn Fn(&str, &str) -> Option<(String, bool)> + 'a;

/// A property of which a guard ignores what others do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its name.
    pub property: String,
    /// Whether it is not written either.
    pub leaves: bool,
    /// The guard, in words.
    pub guard: String,
}

/// The resources and attributes from which properties have their values, by the places of these: `networks[0].port`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct References {
    /// In its current definition.
    pub before: Map,
    /// In its new one.
    pub after: Map,
}

impl PlannedResource {
    /// The type that implements it.
    pub(crate) fn implementation(&self) -> &str {
        self.implementation.as_deref().unwrap_or(&self.resource_type)
    }

    /// Its current properties: with `converge` those of its object, as far as they could be read.
    pub fn before(&self) -> Map {
        let mut before = self.row.as_ref().map(|row| row.properties().clone()).unwrap_or_default();
        before.extend(self.differing.clone());
        before
    }

    /// The list of Heat's preview that contains it, by the maximum change: `unchanged`, `updated`, `replaced`, `added`
    /// or `deleted`.
    pub fn list(&self) -> &'static str {
        match self.change.at_most() {
            // Heat updates every nested stack; its content determines whether anything changes.
            PlannedChange::Unchanged if self.nested.is_some() => "updated",
            PlannedChange::Unchanged => "unchanged",
            // A refused change is a requested change.
            PlannedChange::Updated(_) | PlannedChange::Refused(_) | PlannedChange::Undecided { .. } => "updated",
            PlannedChange::Replaced(_) => "replaced",
            PlannedChange::Added => "added",
            PlannedChange::Deleted => "deleted",
        }
    }
}

/// The planned changes of all resources of a stack, in the order of their processing.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The stack; a new one has a temporary ID.
    pub stack: Stack,
    /// Where its resources are in the templates.
    pub sources: PlaceOfStack,
    /// The resources.
    pub entries: Vec<PlannedResource>,
    /// Former rows of these names, which earlier requests have left, and which are deleted.
    pub former: Vec<PlannedResource>,
    /// The outputs that change; of a nested stack none, because they are seen where they are used.
    pub outputs: Vec<PlannedOutput>,
    /// The snapshots that are deleted with the stack, the oldest first.
    pub snapshots: Vec<DeletedSnapshot>,
    /// What its pre-flight has found; of a nested stack nothing.
    pub preflight: Vec<Check>,
    /// Resources that seem to be renamed ([`kiln_template::renamed`]); of a nested stack none.
    pub renamed: Vec<Move>,
}

/// Where the resources of a stack are in the templates.
#[derive(Clone, Debug)]
pub enum PlaceOfStack {
    /// In a template with this name; none is that of the root.
    Template(Option<String>),
    /// Where the group is of which they are the members.
    Group(Place),
}

impl PlaceOfStack {
    /// Where a resource is.
    pub fn of(&self, name: &str) -> Place {
        match self {
            Self::Template(template) => {
                Place { template: template.clone(), path: Path::root().key("resources").key(name).to_string() }
            }
            Self::Group(place) => place.clone(),
        }
    }

    /// Where those of a nested stack are.
    fn inside(&self, name: &str, kind: &Kind) -> Self {
        match kind {
            Kind::Template(provider) => Self::Template(Some(provider.url.clone())),
            Kind::Type(_) => Self::Group(self.of(name)),
        }
    }
}

/// The guard that forbids to do this with a resource (its path and its type) and its row.
pub type GuardOf<'a> = dyn Fn(Verb, (&str, &str), Option<&Resource>) -> Option<String> + 'a;

/// The change of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedOutput {
    /// Its name.
    pub name: String,
    /// Its current value; `None` if it is new.
    pub before: Option<Value>,
    /// Its future value, as far as it is known; `None` if it is removed.
    pub after: Option<Value>,
}

impl Preview {
    /// Notes the guards that forbid what is done at most.
    pub fn heed(&mut self, guard: &GuardOf<'_>) {
        self.heed_below("", guard);
    }

    fn heed_below(&mut self, place: &str, guard: &GuardOf<'_>) {
        for planned in self.entries.iter_mut().chain(&mut self.former) {
            let path = if place.is_empty() { planned.name.clone() } else { format!("{place}/{}", planned.name) };
            let verb = match planned.change.at_most() {
                PlannedChange::Updated(_) => Some(Verb::Update),
                PlannedChange::Replaced(_) => Some(Verb::Replace),
                PlannedChange::Added => Some(Verb::Create),
                PlannedChange::Deleted => Some(Verb::Delete),
                PlannedChange::Unchanged | PlannedChange::Refused(_) | PlannedChange::Undecided { .. } => None,
            };
            let row = planned.row.as_deref();
            planned.guard =
                verb.and_then(|verb| guard(verb, (&path, &planned.resource_type), row)).map(String::into_boxed_str);
            for nested in planned.nested.as_deref_mut().into_iter().chain(planned.untouched.as_deref_mut()) {
                nested.heed_below(&path, guard);
            }
        }
    }

    /// Notes the properties of which guards ignore what others do. `ignoring`: the guard in words, and whether nobody writes the
    /// property either, by the path of the resource and the property.
    pub fn note_ignored(&mut self, ignoring: &Ignoring<'_>) {
        self.note_ignored_below("", ignoring);
    }

    fn note_ignored_below(&mut self, place: &str, ignoring: &Ignoring<'_>) {
        for planned in self.entries.iter_mut().chain(&mut self.former) {
            let path = format!("{place}{}", planned.name);
            let given = planned.definition.iter().flat_map(|definition| definition.given().keys());
            let ignored = given.filter_map(|property| {
                let (guard, leaves) = ignoring(&path, property)?;
                Some(Ignored { property: property.clone(), leaves, guard })
            });
            planned.ignored = ignored.collect();
            for nested in planned.nested.as_deref_mut().into_iter().chain(planned.untouched.as_deref_mut()) {
                nested.note_ignored_below(&format!("{path}/"), ignoring);
            }
        }
    }

    /// Whether there is certainly no change of any resource.
    pub fn is_unchanged(&self) -> bool {
        self.entries.iter().all(|entry| entry.change.is_unchanged())
    }
}

/// How an update is previewed.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The resources that are compared with their objects first.
    pub converge: Converge,
    /// The guards of the stack: what they leave is not written.
    pub guards: Option<Arc<Guards>>,
    /// The paths of the resources that are replaced as if they were marked as unhealthy: `group/0`.
    pub replaced: BTreeSet<String>,
    /// The paths of the resources whose objects do not exist any more.
    pub missing: BTreeSet<String>,
    /// Nested stacks that have these rows instead of the stored ones.
    pub rows: Arc<BTreeMap<StackId, Vec<Resource>>>,
}

impl Terms {
    /// The names of the resources of the stack itself that are replaced.
    fn own(&self) -> impl Iterator<Item = &str> {
        self.replaced.iter().map(String::as_str).filter(|path| !path.contains('/'))
    }

    /// The terms of the nested stack of a resource.
    fn inside(&self, name: &str) -> Self {
        let rest = |path: &String| Some(path.strip_prefix(name)?.strip_prefix('/')?.to_owned());
        let inside = |paths: &BTreeSet<String>| paths.iter().filter_map(rest).collect();
        Self {
            converge: self.converge.inside(name),
            guards: self.guards.as_deref().map(|guards| Arc::new(guards.inside(name))),
            replaced: inside(&self.replaced),
            missing: inside(&self.missing),
            rows: Arc::clone(&self.rows),
        }
    }
}

/// The effect of an update of a stack to a new blueprint, including nested stacks; nothing is changed. What functions make
/// of hidden values is added to these.
///
/// # Errors
/// Errors of the store.
pub async fn preview(
    backends: &Backends,
    view: &mut LoadedStack,
    new: Arc<Blueprint>,
    terms: Terms,
    hidden: &mut HiddenValues,
) -> Result<Preview, Error> {
    terms.own().for_each(|name| view.assume_unhealthy(name));
    let view = &*view;
    // Names are looked up anew, not remembered from the last request: that of the update will have another number too.
    let generation = -i64::from(backends.chance.uuid().as_fields().0) - 1;
    let backends = &with_same_ids(backends, view.root().id);
    let root = Arc::new(Stack { generation, ..view.root().clone() });
    let mut rehearsal = Rehearsal::new(backends, &view.stack, Some(view), root, new, terms);
    rehearsal.hidden = std::mem::take(hidden);
    rehearsal.play().await?;
    let after = rehearsal.inside(&[]).await;
    let before = view.outputs(None).await;
    *hidden = std::mem::take(&mut rehearsal.hidden);
    view.derive_outputs(&before, hidden);
    Ok(Preview { outputs: changed_outputs(before, after), ..rehearsal.finish().await? })
}

/// The effect of a create of a stack that does not exist yet; nothing is changed. What functions make of hidden values is
/// added to these.
///
/// # Errors
/// Errors of the store.
pub async fn preview_create(
    backends: &Backends,
    stack: &Stack,
    new: Arc<Blueprint>,
    hidden: &mut HiddenValues,
) -> Result<Preview, Error> {
    let backends = &with_same_ids(backends, stack.id);
    let mut rehearsal = Rehearsal::new(backends, stack, None, Arc::new(stack.clone()), new, Terms::default());
    rehearsal.hidden = std::mem::take(hidden);
    rehearsal.play().await?;
    let after = rehearsal.inside(&[]).await;
    *hidden = std::mem::take(&mut rehearsal.hidden);
    Ok(Preview { outputs: changed_outputs(Vec::new(), after), ..rehearsal.finish().await? })
}

/// The same IDs for what is new in each preview of a stack. They are in the names of nested stacks, so that two previews of the
/// same change would differ.
fn with_same_ids(backends: &Backends, root: StackId) -> Backends {
    let (seed, _) = root.0.as_u64_pair();
    Backends { chance: Arc::new(Chance::seeded(seed)), ..backends.clone() }
}

/// The effect of a delete of a stack; nothing is changed.
///
/// # Errors
/// Errors of the store.
pub async fn preview_delete(backends: &Backends, view: &LoadedStack) -> Result<Preview, Error> {
    // No resource of the blueprint is decided about, so all rows go.
    let preview = Rehearsal::of_delete(backends, view).finish().await?;
    if view.stack.parent.is_some() || view.stack.details.keep_objects {
        return Ok(preview);
    }
    let mut snapshots = backends.store.snapshots(view.stack.id).await?;
    snapshots.sort_by_key(|snapshot| (snapshot.created, snapshot.id));
    let deleted = |one: Snapshot| DeletedSnapshot { id: one.id.to_string(), name: one.name };
    let snapshots = snapshots.into_iter().filter(Snapshot::is_listed).map(deleted).collect();
    Ok(Preview { snapshots, ..preview })
}

/// The outputs that change. An output that has an error before or after is not compared.
fn changed_outputs(before: Vec<OutputValue>, after: Inside) -> Vec<PlannedOutput> {
    let mut outputs = after.outputs;
    outputs.retain(|name, _| !after.errors.contains_key(name));
    let mut changed = Vec::new();
    for old in before.into_iter().filter(|old| !after.errors.contains_key(&old.key)) {
        let new = outputs.shift_remove(&old.key);
        if old.error.is_none() && new.as_ref() != Some(&old.value) {
            changed.push(PlannedOutput { name: old.key, before: Some(old.value), after: new });
        }
    }
    changed.extend(outputs.into_iter().map(|(name, value)| PlannedOutput { name, before: None, after: Some(value) }));
    changed
}
