//! Compares the resources of a stack with their objects, without changing anything.

use std::borrow::Cow;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use kiln_plan::hidden::{HiddenValues, Masked};
use kiln_plan::{Kind, facts};
use kiln_resource::names::{self, Kept, KeptNames};
use kiln_resource::object_drift::{Shown, said};
use kiln_resource::translation::Answers;
use kiln_resource::{Cloud, Context, Failure, OperationState, RegisteredType, Resource, ResourceType};
use kiln_stack::load::stack_facts;
use kiln_stack::loaded_stack::LoadedStack;
use kiln_stack::meaning::{NewMeaning, new_meanings};
use kiln_store::Error;
use kiln_value::{Map, Path, Segment, Value};

use crate::reading_cloud::ReadingCloud;

/// Resources of a stack that are compared at the same time.
const AT_ONCE: usize = 8;

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Drift {
    /// The object has the properties of the resource.
    #[default]
    InSync,
    /// Others have changed the object, or a resource of the nested stack.
    Modified(Vec<PropertyDrift>),
    /// The object does not exist any more.
    Deleted,
    /// It was not compared, or not with all that the template says, for this reason.
    NotChecked(String),
    /// Its type has no objects in the cloud, so nothing can differ.
    NoObject,
}

impl Drift {
    /// The name of the result in the APIs, and the reason why there was no comparison.
    pub fn status(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::InSync => ("IN_SYNC", None),
            Self::Modified(_) => ("MODIFIED", None),
            Self::Deleted => ("DELETED", None),
            Self::NotChecked(reason) => ("NOT_CHECKED", Some(reason)),
            Self::NoObject => ("NOT_CHECKED", Some("its type has no objects in the cloud")),
        }
    }
}

/// A property with another value in the object.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyDrift {
    /// Its name.
    pub name: String,
    /// The value of the resource.
    pub expected: Value,
    /// What the object showed when it had settled with the value of the resource, if that was another one.
    pub baseline: Option<Value>,
    /// The value in the object; null if it has none.
    pub actual: Value,
    /// Whether it cannot be updated in place: `converge` leaves it as it is.
    pub needs_replacement: bool,
}

/// A resource, compared with its object.
#[derive(Clone, Debug)]
pub struct ResourceDrift {
    /// The row of the resource.
    pub row: Resource,
    /// The result.
    pub drift: Drift,
    /// The properties that were not compared, because the type cannot read them in the object.
    pub not_checked: Vec<String>,
    /// The number of the properties that were to be compared; `None`: its object could not be read, or there is none.
    pub properties: Option<usize>,
    /// The properties that have had another value in the object since it settled. This is no drift: the service did not take
    /// the value of the template, or shows it in another form.
    pub not_applied: Vec<String>,
    /// The properties that others have changed, where a guard says that this is no drift.
    pub ignored: Vec<String>,
    /// The names in its properties that mean other objects than at its last change. This is no drift: the object has what
    /// the names meant.
    pub meanings: Vec<NewMeaning>,
    /// Whether its object could not be read because a call to the cloud failed.
    pub unreadable: bool,
    /// The resources of its nested stack.
    pub nested: Option<StackDrift>,
}

impl ResourceDrift {
    fn new(row: Resource, drift: Drift) -> Self {
        let (not_checked, not_applied, meanings) = (Vec::new(), Vec::new(), Vec::new());
        let (ignored, unreadable) = (Vec::new(), false);
        Self { row, drift, not_checked, properties: None, not_applied, ignored, meanings, unreadable, nested: None }
    }
}

/// How much was compared, of resources with an object in the cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Resources.
    pub resources: usize,
    /// Resources whose object was read.
    pub resources_checked: usize,
    /// Properties of these that the template gives, or that others may add to.
    pub properties: usize,
    /// Properties that were compared.
    pub properties_checked: usize,
}

impl Extent {
    fn add(&mut self, other: &Self) {
        self.resources += other.resources;
        self.resources_checked += other.resources_checked;
        self.properties += other.properties;
        self.properties_checked += other.properties_checked;
    }
}

/// The resources of a stack, compared with their objects.
#[derive(Clone, Debug)]
pub struct StackDrift {
    /// The stack.
    pub stack: kiln_store::Stack,
    /// Its resources.
    pub resources: Vec<ResourceDrift>,
}

impl StackDrift {
    /// Whether others have changed or deleted an object of the stack or its nested stacks.
    pub fn has_drifted(&self) -> bool {
        self.resources.iter().any(|one| matches!(one.drift, Drift::Modified(_) | Drift::Deleted))
    }

    /// The resource with this name; `group/0/server` is one of a nested stack.
    pub fn resource(&self, name: &str) -> Option<&ResourceDrift> {
        let (name, below) = name.split_once('/').map_or((name, None), |(name, below)| (name, Some(below)));
        let found = self.resources.iter().find(|one| one.row.name == name)?;
        below.map_or(Some(found), |below| found.nested.as_ref()?.resource(below))
    }

    /// The resources whose objects others have changed or deleted, with their paths: `group/0/server`.
    pub fn drifted(&self) -> Vec<(String, &ResourceDrift)> {
        let mut drifted = Vec::new();
        for one in &self.resources {
            let name = &one.row.name;
            match &one.nested {
                Some(nested) => {
                    drifted.extend(nested.drifted().into_iter().map(|(path, one)| (format!("{name}/{path}"), one)));
                }
                None if matches!(one.drift, Drift::Modified(_) | Drift::Deleted) => drifted.push((name.clone(), one)),
                None => {}
            }
        }
        drifted
    }

    /// Why the first object could not be read, if a call to the cloud failed for one.
    pub fn unreadable(&self) -> Option<&str> {
        self.resources.iter().find_map(|one| match (&one.nested, &one.drift) {
            (Some(nested), _) => nested.unreadable(),
            (None, Drift::NotChecked(reason)) if one.unreadable => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Takes out what is no drift by the path of a resource and its property.
    pub fn ignore(&mut self, is_ignored: &dyn Fn(&str, &str) -> bool) {
        self.ignore_below("", is_ignored);
    }

    fn ignore_below(&mut self, place: &str, is_ignored: &dyn Fn(&str, &str) -> bool) {
        for one in &mut self.resources {
            let path = format!("{place}{}", one.row.name);
            if let Some(nested) = &mut one.nested {
                nested.ignore_below(&format!("{path}/"), is_ignored);
                if one.drift == Drift::Modified(Vec::new()) && !nested.has_drifted() {
                    one.drift = of_nested(nested);
                }
            } else if let Drift::Modified(properties) = &mut one.drift {
                let ignored = properties.extract_if(.., |property| is_ignored(&path, &property.name));
                one.ignored.extend(ignored.map(|property| property.name));
                if properties.is_empty() {
                    one.drift = unchanged(&one.not_checked);
                }
            }
        }
    }

    /// The number of resources, with those of nested stacks, of which a part was not compared.
    pub fn not_checked(&self) -> usize {
        let count = |one: &ResourceDrift| match &one.nested {
            Some(nested) => nested.not_checked(),
            None => usize::from(matches!(one.drift, Drift::NotChecked(_)) || !one.not_checked.is_empty()),
        };
        self.resources.iter().map(count).sum()
    }

    /// How much of the stack and its nested stacks was compared.
    pub fn extent(&self) -> Extent {
        let mut extent = Extent::default();
        for one in self.resources.iter().filter(|one| one.drift != Drift::NoObject) {
            match &one.nested {
                Some(nested) => extent.add(&nested.extent()),
                None => extent.add(&Extent {
                    resources: 1,
                    resources_checked: usize::from(one.properties.is_some() || one.drift == Drift::Deleted),
                    properties: one.properties.unwrap_or_default(),
                    properties_checked: one.properties.unwrap_or_default().saturating_sub(one.not_checked.len()),
                }),
            }
        }
        extent
    }

    /// The result for the whole stack, as the APIs name it: in sync only if everything was compared.
    pub fn status(&self) -> &'static str {
        match (self.has_drifted(), self.not_checked()) {
            (true, _) => "DRIFTED",
            (false, 0) => "IN_SYNC",
            (false, _) => "NOT_CHECKED",
        }
    }
}

impl Masked for PropertyDrift {
    fn mask(&mut self, hidden: &HiddenValues) {
        self.expected.mask(hidden);
        self.actual.mask(hidden);
        self.baseline.mask(hidden);
    }
}

impl Masked for StackDrift {
    fn mask(&mut self, hidden: &HiddenValues) {
        for one in &mut self.resources {
            match &mut one.drift {
                Drift::Modified(properties) => properties.mask(hidden),
                Drift::NotChecked(reason) => reason.mask(hidden),
                Drift::InSync | Drift::Deleted | Drift::NoObject => {}
            }
            for meaning in &mut one.meanings {
                for text in [&mut meaning.name, &mut meaning.kept, &mut meaning.current] {
                    text.mask(hidden);
                }
            }
            if let Some(definition) = &mut one.row.definition {
                Arc::make_mut(definition).properties.mask(hidden);
            }
            one.nested.mask(hidden);
        }
    }
}

/// Compares resources with their objects. An empty list of names means all; `group/0/server` is a resource of a
/// nested stack.
///
/// # Errors
/// Errors of the store, for nested stacks.
pub async fn drift(view: &LoadedStack, names: &[String]) -> Result<StackDrift, Error> {
    let resources = view.backends().store.count_resources(view.stack.root).await?;
    let resources = usize::try_from(resources).unwrap_or(usize::MAX);
    let cloud = view.backends().cloud(view.root(), true).await;
    let cloud: Reading = cloud.map(|cloud| Arc::new(ReadingCloud::new(cloud, resources)));
    below(view, names, &cloud).await
}

/// The cloud that is read, or why there is none.
type Reading = Result<Arc<ReadingCloud>, Failure>;

/// Compares resources of a stack of the tree.
fn below<'a>(
    view: &'a LoadedStack,
    names: &'a [String],
    cloud: &'a Reading,
) -> BoxFuture<'a, Result<StackDrift, Error>> {
    async move {
        let rows = view.resources().filter_map(|row| Some((row.clone(), chosen(names, &row.name)?)));
        let compared: Vec<BoxFuture<'_, _>> =
            rows.map(|(row, below)| compared(view, row, below, cloud).boxed()).collect();
        let compared = futures::stream::iter(compared).buffered(AT_ONCE);
        let compared: Vec<Result<ResourceDrift, Error>> = compared.collect().await;
        let resources = compared.into_iter().collect::<Result<_, _>>()?;
        Ok(StackDrift { stack: view.stack.clone(), resources })
    }
    .boxed()
}

/// Compares a resource, and those of its nested stack with these names.
async fn compared(
    view: &LoadedStack,
    row: Resource,
    names: Vec<String>,
    cloud: &Reading,
) -> Result<ResourceDrift, Error> {
    if let Some(child) = row.child
        && let Some(nested) = LoadedStack::load(view.backends(), child).await?
    {
        let nested = below(&nested, &names, cloud).await?;
        let drift = match nested.has_drifted() {
            true => Drift::Modified(Vec::new()),
            false if !names.is_empty() => Drift::NotChecked("only a part of its nested stack was compared".to_owned()),
            false => of_nested(&nested),
        };
        let compared = ResourceDrift { nested: Some(nested), ..ResourceDrift::new(row, drift) };
        return Ok(compared);
    }
    let mut compared = object(view, &row, cloud).await;
    let mut meanings = meanings(view, &row, cloud).await;
    if let (Ok(differing), Ok(cloud)) = (&compared, cloud)
        && let Some((known, names)) = looked_up(view, &row, &differing.drift, cloud).await
    {
        let reading = Ok(Arc::clone(cloud));
        compared = object(view, &known, &reading).await;
        if let Ok(compared) = &mut compared {
            meanings.extend(leave_names(compared, names));
        }
    }
    Ok(match compared {
        Ok(Compared { drift, not_checked, properties, not_applied }) => {
            ResourceDrift { not_checked, properties, not_applied, meanings, ..ResourceDrift::new(row, drift) }
        }
        Err(Unchecked { reason, unreadable }) => {
            let drift = Drift::NotChecked(reason.into_owned());
            ResourceDrift { meanings, unreadable, ..ResourceDrift::new(row, drift) }
        }
    })
}

/// The names of a resource that mean other objects today, as far as they can be looked up.
async fn meanings(view: &LoadedStack, row: &Resource, cloud: &Reading) -> Vec<NewMeaning> {
    let (Some(kind), Some(definition)) = (view.kind(row), &row.definition) else { return Vec::new() };
    let rules = &kind.resource_type().translation;
    let names = names::kept(rules, definition, definition.given(), &Answers::new());
    let Ok(cloud) = cloud else { return Vec::new() };
    let mut today = Answers::new();
    for Kept { lookup, .. } in names.values() {
        if let Ok(id) = cloud.find(&lookup.finder, &lookup.value).await {
            today.insert(lookup.clone(), id);
        }
    }
    new_meanings(names, &today)
}

/// The row with the IDs that names in differing properties have today, if it does not know which they had: Heat does not store
/// them. Also the names, those without an object as they are.
async fn looked_up(
    view: &LoadedStack,
    row: &Resource,
    drift: &Drift,
    cloud: &ReadingCloud,
) -> Option<(Resource, KeptNames)> {
    let Drift::Modified(differing) = drift else { return None };
    let (kind, definition) = (view.kind(row)?, row.definition.as_ref()?);
    let rules = &kind.resource_type().translation;
    let mut names = names::kept(rules, definition, definition.given(), &Answers::new());
    let is_differing = |place: &Path| match place.0.first() {
        Some(Segment::Key(name)) => differing.iter().any(|one| one.name == *name),
        _ => false,
    };
    names.retain(|place, kept| kept.is_as_given() && is_differing(place));
    let mut known = KeptNames::new();
    for (place, kept) in names {
        match cloud.find(&kept.lookup.finder, &kept.lookup.value).await {
            Ok(id) if id != kept.lookup.value => _ = known.insert(place, Kept { id, ..kept }),
            // A name that means nothing any more, or not one object.
            Err(_) if !names::is_id(&kept.lookup.value) => _ = known.insert(place, kept),
            Ok(_) | Err(_) => {}
        }
    }
    if known.is_empty() {
        return None;
    }
    let mut row = row.clone();
    let definition = Arc::make_mut(row.definition.as_mut()?);
    names::keep(&mut definition.properties, &known);
    Some((row, known))
}

/// Takes out what still differs where a name was looked up: it may have meant another object when the object was made.
fn leave_names(compared: &mut Compared, names: KeptNames) -> Vec<NewMeaning> {
    let Drift::Modified(differing) = &mut compared.drift else { return Vec::new() };
    let mut meanings = Vec::new();
    for (place, Kept { lookup, id }) in names {
        let Some(Segment::Key(property)) = place.0.first() else { continue };
        for left in differing.extract_if(.., |one| one.name == *property) {
            let kept = left.actual.as_str().unwrap_or_default().to_owned();
            let (property, name) = (place.to_string(), lookup.value.clone());
            if id != name {
                meanings.push(NewMeaning { property, name, kept, current: id.clone() });
            }
        }
    }
    if differing.is_empty() {
        compared.drift = unchanged(&compared.not_checked);
    }
    meanings
}

/// A resource that was compared with its object.
#[derive(Default)]
struct Compared {
    drift: Drift,
    not_checked: Vec<String>,
    properties: Option<usize>,
    not_applied: Vec<String>,
}

impl From<Drift> for Compared {
    fn from(drift: Drift) -> Self {
        Self { drift, ..Self::default() }
    }
}

/// Why a resource was not compared with its object.
struct Unchecked {
    reason: Cow<'static, str>,
    /// See [`ResourceDrift::unreadable`].
    unreadable: bool,
}

impl From<&'static str> for Unchecked {
    fn from(reason: &'static str) -> Self {
        Self { reason: reason.into(), unreadable: false }
    }
}

/// Compares a resource with its object.
async fn object(view: &LoadedStack, row: &Resource, cloud: &Reading) -> Result<Compared, Unchecked> {
    if row.operation != OperationState::Idle {
        return Err("an operation of the resource is not complete".into());
    }
    let kind = view.kind(row).ok_or("its type does not exist any more")?;
    let entry = kind.entry().ok_or("it has no nested stack")?;
    if !entry.driver.has_object() {
        return Ok(Drift::NoObject.into());
    }
    if row.physical_id.is_none() {
        return Err("it has no object".into());
    }
    let read = match cloud {
        Ok(cloud) => read(view, row, &kind, entry, &**cloud).await,
        Err(failure) => Err(failure.clone()),
    };
    let shown = match read {
        Ok(shown) => shown,
        Err(failure) if failure.is_not_found() => return Ok(Drift::Deleted.into()),
        Err(failure) => {
            return Err(Unchecked { reason: format!("its object cannot be read: {failure}").into(), unreadable: true });
        }
    };
    if shown.live.is_empty() {
        return Err("its object exists, but the type does not say which properties it has".into());
    }
    let stored = row.properties();
    let differing = differing(&shown, &entry.resource_type, stored);
    let not_applied = shown.not_applied(stored);
    let given = row.definition.as_ref().map(|definition| definition.given());
    let said = said(&entry.resource_type, given.unwrap_or(stored), stored);
    let properties = Some(said.len());
    let not_checked: Vec<String> = said.into_iter().filter(|name| !shown.live.contains_key(name)).collect();
    let drift = if differing.is_empty() { unchanged(&not_checked) } else { Drift::Modified(differing) };
    Ok(Compared { drift, not_checked, properties, not_applied })
}

/// The result for an object that nobody has changed, as far as it was compared.
fn unchanged(not_checked: &[String]) -> Drift {
    if not_checked.is_empty() {
        return Drift::InSync;
    }
    Drift::NotChecked(format!("these properties cannot be compared: {}", not_checked.join(", ")))
}

/// The result for the owner of a nested stack that nobody has changed.
fn of_nested(nested: &StackDrift) -> Drift {
    match nested.not_checked() {
        0 => Drift::InSync,
        _ => Drift::NotChecked("resources of its nested stack were not compared".to_owned()),
    }
}

/// The properties whose value in an object is neither that of the resource nor the one that it has had since.
pub(crate) fn differing(shown: &Shown, resource_type: &ResourceType, stored: &Map) -> Vec<PropertyDrift> {
    let differing = shown.whole_drift(stored).into_iter().map(|(name, actual)| {
        let applied = stored.get(&name);
        let baseline = applied.and_then(|applied| shown.baseline.shown(&name, applied)).cloned();
        let expected = shown.expected.get(&name).or(applied).cloned().unwrap_or_default();
        let needs_replacement = !resource_type.can_update(&name);
        PropertyDrift { name, expected, baseline, actual, needs_replacement }
    });
    let mut differing: Vec<PropertyDrift> = differing.collect();
    differing.sort_by_key(|one| one.needs_replacement);
    differing
}

/// Reads the object of a resource.
pub(crate) async fn read(
    view: &LoadedStack,
    row: &Resource,
    kind: &Kind,
    entry: &RegisteredType,
    cloud: &dyn Cloud,
) -> Result<Shown, Failure> {
    let facts = facts(row, kind, &stack_facts(&view.stack));
    let software = view.backends().software(&view.stack.project);
    let cx = Context::reading(cloud, &software, &facts);
    Shown::read(&*entry.driver, &cx).await
}

/// The names that are chosen in the nested stack of a resource, where none means all; `None` if the resource is not chosen.
fn chosen(names: &[String], resource: &str) -> Option<Vec<String>> {
    if names.is_empty() || names.iter().any(|name| name == resource) {
        return Some(Vec::new());
    }
    let below = names.iter().filter_map(|name| name.strip_prefix(resource)?.strip_prefix('/').map(str::to_owned));
    let below: Vec<String> = below.collect();
    (!below.is_empty()).then_some(below)
}
