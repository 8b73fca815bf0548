//! A preview as a document.

use std::collections::{BTreeMap, HashMap};

use kiln_plan::hidden::{HiddenValues, Masked};
use kiln_plan_document as document;
use kiln_plan_document::{Action, Bounds, Decision, Entry, PlanDocument, Property, Renamed, Risk, Side, Step};
use kiln_resource::{ResourceId, StoredDefinition};
use kiln_stack::meaning::NewMeaning;
use kiln_value::{Map, Value};

use crate::preview::{Awaited, Ignored, PlannedChange, PlannedOutput, PlannedResource, Preview};

/// A plan that may be masked.
pub struct Plan(pub PlanDocument);

impl Plan {
    /// The document of a preview.
    pub fn of(preview: &Preview, action: Action) -> Self {
        let mut entries = Vec::new();
        stack(preview, &Around::default(), &mut entries);
        let outputs = preview.outputs.iter().map(output).collect();
        let plan = PlanDocument::new(action, preview.stack.name.clone(), entries, outputs);
        let stack_id = (action != Action::Create).then(|| preview.stack.id.to_string());
        let (snapshots, preflight) = (preview.snapshots.clone(), preview.preflight.clone());
        let renamed = preview.renamed.iter().map(|one| Renamed { from: one.from.clone(), to: one.to.clone() });
        Self(PlanDocument { stack_id, snapshots, preflight, renamed: renamed.collect(), ..plan })
    }
}

impl Masked for Plan {
    fn mask(&mut self, hidden: &HiddenValues) {
        for entry in &mut self.0.resources {
            entry.object.iter_mut().for_each(|object| mask_value(object, hidden));
            entry.reasons.mask(hidden);
            entry.guard.mask(hidden);
            for awaited in entry.awaited.iter_mut().chain(&mut entry.content) {
                awaited.known_after.mask(hidden);
            }
            for name in &mut entry.names {
                for text in [&mut name.name, &mut name.kept, &mut name.current] {
                    mask_value(text, hidden);
                }
            }
            for change in &mut entry.outside {
                for value in [&mut change.applied, &mut change.live].into_iter().chain(&mut change.baseline) {
                    value.mask(hidden);
                }
            }
            for property in &mut entry.properties {
                for side in property.before.iter_mut().chain(&mut property.after) {
                    side.value.mask(hidden);
                    side.names.mask(hidden);
                    side.tried.mask(hidden);
                }
                for element in &mut property.elements {
                    for part in element.before.iter_mut().chain(&mut element.after) {
                        part.value.mask(hidden);
                    }
                    for step in &mut element.at {
                        if let Step::Named(fields) = step {
                            fields.mask(hidden);
                        }
                    }
                }
            }
        }
        self.0.snapshots.iter_mut().filter_map(|one| one.name.as_mut()).for_each(|name| mask_value(name, hidden));
        self.0.preflight.iter_mut().for_each(|check| check.message.mask(hidden));
        for output in &mut self.0.outputs {
            output.before.mask(hidden);
            output.after.mask(hidden);
        }
    }
}

/// Masks a text that is a whole value.
fn mask_value(text: &mut String, hidden: &HiddenValues) {
    let mut value = Value::Str(std::mem::take(text));
    value.mask(hidden);
    *text = kiln_value::text::str(&value);
}

/// What is around the resources of a stack.
#[derive(Default)]
struct Around {
    /// The path of the resource that owns the stack.
    path: Option<String>,
    /// Whether that resource is replaced: what is deleted is of its old stack.
    is_replaced: bool,
    /// Whether the stack itself is a former one.
    is_former: bool,
}

impl Around {
    fn path(&self, name: &str) -> String {
        self.path.as_ref().map_or_else(|| name.to_owned(), |path| format!("{path}/{name}"))
    }
}

fn stack(preview: &Preview, around: &Around, entries: &mut Vec<Entry>) {
    let waits = Waits::of(preview);
    let former = preview.former.iter().map(|planned| (planned, true));
    for (planned, is_former) in preview.entries.iter().map(|planned| (planned, false)).chain(former) {
        let is_deleted = planned.change == PlannedChange::Deleted;
        let is_former = is_former || around.is_former || (around.is_replaced && is_deleted);
        let mut waits_for: Vec<String> = waits.of_one(planned).into_iter().map(|name| around.path(name)).collect();
        waits_for.sort();
        waits_for.dedup();
        let path = around.path(&planned.name);
        let inside = Around {
            path: Some(path.clone()),
            is_replaced: matches!(planned.change.at_most(), PlannedChange::Replaced(_)),
            is_former,
        };
        let has_source =
            !is_former && !planned.change.is_unchanged() && *planned.change.at_most() != PlannedChange::Deleted;
        let source = has_source.then(|| preview.sources.of(&planned.name));
        entries.push(Entry { waits_for, former: is_former, source, ..entry(planned, path) });
        for nested in planned.nested.as_deref().into_iter().chain(planned.untouched.as_deref()) {
            stack(nested, &inside, entries);
        }
    }
}

/// The order of the resources of a stack.
struct Waits<'a> {
    /// What a resource requires, by its name.
    requires: HashMap<&'a str, Vec<&'a str>>,
    /// What is deleted or replaced before a row is deleted.
    required_by: BTreeMap<ResourceId, Vec<&'a str>>,
}

impl<'a> Waits<'a> {
    fn of(preview: &'a Preview) -> Self {
        let mut waits = Self { requires: HashMap::new(), required_by: BTreeMap::new() };
        for planned in &preview.entries {
            if !is_deleted(planned) {
                for name in &planned.required_by {
                    waits.requires.entry(name).or_default().push(&planned.name);
                }
            }
            if let Some(row) = planned.row.as_ref().filter(|_| !planned.change.is_unchanged()) {
                for required in &row.requires {
                    waits.required_by.entry(*required).or_default().push(&planned.name);
                }
            }
        }
        waits
    }

    fn of_one(&self, planned: &PlannedResource) -> Vec<&'a str> {
        if planned.change.is_unchanged() {
            return Vec::new();
        }
        let found = match &planned.row {
            Some(row) if is_deleted(planned) => self.required_by.get(&row.id),
            _ => self.requires.get(planned.name.as_str()),
        };
        found.cloned().unwrap_or_default()
    }
}

fn is_deleted(planned: &PlannedResource) -> bool {
    *planned.change.at_most() == PlannedChange::Deleted
}

fn entry(planned: &PlannedResource, path: String) -> Entry {
    let change = &planned.change;
    let at_most = decision(change.at_most());
    let (at_least, awaited) = match change {
        PlannedChange::Undecided { at_least, awaited, .. } => {
            (decision(at_least), awaited.iter().map(known_later).collect())
        }
        _ => (at_most, Vec::new()),
    };
    let bounds = Bounds { at_least, at_most };
    let lost = planned.lost.iter().map(|lost| document::Loss { kind: lost.kind.clone(), what: lost.what.clone() });
    let lost: Vec<document::Loss> = lost.collect();
    let object = planned.row.as_ref().and_then(|row| row.physical_id.clone());
    let retained = planned.is_retained;
    let has_object = object.is_some() && !retained;
    let reasons = match change.at_most() {
        PlannedChange::Replaced(reasons) => reasons.clone(),
        PlannedChange::Refused(reason) => vec![reason.clone()],
        _ => Vec::new(),
    };
    Entry {
        object,
        decision: bounds,
        risk: Risk::of(bounds, !lost.is_empty(), planned.downtime, has_object),
        downtime: planned.downtime,
        retained,
        lost,
        properties: properties(planned),
        reasons,
        awaited,
        content: planned.content.as_deref().map(known_later),
        names: planned.meanings.iter().map(meaning).collect(),
        guard: planned.guard.as_deref().map(str::to_owned),
        ignored: planned.ignored.iter().map(ignored).collect(),
        moved_from: planned.moved_from.as_deref().map(str::to_owned),
        ..Entry::kept(path, planned.resource_type.clone())
    }
}

fn decision(change: &PlannedChange) -> Decision {
    match change {
        PlannedChange::Unchanged => Decision::Keep,
        PlannedChange::Updated(_) => Decision::Update,
        PlannedChange::Replaced(_) => Decision::Replace,
        PlannedChange::Added => Decision::Create,
        PlannedChange::Deleted => Decision::Delete,
        PlannedChange::Refused(_) => Decision::Refuse,
        PlannedChange::Undecided { at_most, .. } => decision(at_most),
    }
}

fn ignored(ignored: &Ignored) -> document::Ignored {
    let Ignored { property, leaves, guard } = ignored.clone();
    document::Ignored { property, leaves, guard }
}

fn known_later(awaited: &Awaited) -> document::Awaited {
    document::Awaited { property: awaited.property.clone(), known_after: awaited.place.clone() }
}

fn meaning(meaning: &NewMeaning) -> document::NewMeaning {
    let NewMeaning { property, name, kept, current } = meaning.clone();
    document::NewMeaning { property, name, kept, current }
}

/// The properties to show, with their names behind IDs and what they refer to.
fn properties(planned: &PlannedResource) -> Vec<Property> {
    let old = planned.row.as_ref().and_then(|row| row.definition.as_deref());
    let new = planned.definition.as_deref();
    let given = |held: Option<&StoredDefinition>| held.map(StoredDefinition::given).cloned().unwrap_or_default();
    let (before, after) = match planned.change.at_most() {
        PlannedChange::Updated(changed) => {
            let before = planned.before();
            (before.into_iter().filter(|(name, _)| changed.contains_key(name)).collect(), changed.clone())
        }
        PlannedChange::Replaced(_) => {
            let (before, after) = (planned.before(), new.map(|held| held.properties.clone()).unwrap_or_default());
            let differing = |this: &Map, other: &Map| -> Map {
                let differs = this.iter().filter(|(name, value)| other.get(*name) != Some(*value));
                differs.map(|(name, value)| (name.clone(), value.clone())).collect()
            };
            (differing(&before, &after), differing(&after, &before))
        }
        PlannedChange::Added => {
            (Map::new(), given(new).into_iter().map(|(name, value)| with_ids(new, name, value)).collect())
        }
        PlannedChange::Deleted => (given(old), Map::new()),
        PlannedChange::Unchanged | PlannedChange::Refused(_) | PlannedChange::Undecided { .. } => return Vec::new(),
    };
    let mut names: Vec<&String> =
        before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))).collect();
    names.sort();
    let from = [by_property(&planned.references.before), by_property(&planned.references.after)];
    let side = |name: &String, value: Option<&Value>, held: Option<&StoredDefinition>, from: &HashMap<&str, Map>| {
        let value = value?;
        let mut names = Map::new();
        if let Some(held) = held
            && let (Some(given), Some(meant)) = (held.given().get(name), held.properties.get(name))
        {
            names_behind(given, meant, value, name, &mut names);
        }
        let from = from.get(name.as_str()).cloned().unwrap_or_default();
        Some(Side { value: known(value), names, from, tried: None })
    };
    let property = |name: &String| {
        let mut old = side(name, before.get(name), old, &from[0]);
        if let Some(tried) = planned.tried.get(name) {
            old.get_or_insert_default().tried = Some(known(tried));
        }
        Property::new(name.clone(), old, side(name, after.get(name), new, &from[1]))
    };
    names.into_iter().map(property).filter(|property| property.before.is_some() || property.after.is_some()).collect()
}

/// A property with the IDs that the names in its value mean.
fn with_ids(held: Option<&StoredDefinition>, name: String, given: Value) -> (String, Value) {
    let meant = held.and_then(|held| held.properties.get(&name)).filter(|meant| {
        let mut names = Map::new();
        names_behind(&given, meant, meant, &name, &mut names);
        !names.is_empty()
    });
    let value = meant.cloned().unwrap_or(given);
    (name, value)
}

/// Places in properties, by the names of these.
fn by_property(places: &Map) -> HashMap<&str, Map> {
    let mut by_property: HashMap<&str, Map> = HashMap::new();
    for (place, source) in places {
        let property = place.split(['.', '[']).next().unwrap_or_default();
        by_property.entry(property).or_default().insert(place.clone(), source.clone());
    }
    by_property
}

/// The names that were given for the IDs in a value, by their places; `meant` is what the names were looked up to.
fn names_behind(given: &Value, meant: &Value, value: &Value, place: &str, names: &mut Map) {
    match (given, meant, value) {
        (Value::Str(name), Value::Str(meant), Value::Str(id)) if name != id && meant == id => {
            names.insert(place.to_owned(), name.as_str().into());
        }
        (Value::List(given), Value::List(meant), Value::List(items)) if given.len() == items.len() => {
            for (index, ((given, meant), item)) in given.iter().zip(meant).zip(items).enumerate() {
                names_behind(given, meant, item, &format!("{place}[{index}]"), names);
            }
        }
        (Value::Map(given), Value::Map(meant), Value::Map(map)) => {
            for (key, item) in map {
                if let (Some(given), Some(meant)) = (given.get(key), meant.get(key)) {
                    names_behind(given, meant, item, &format!("{place}.{key}"), names);
                }
            }
        }
        _ => {}
    }
}

fn output(output: &PlannedOutput) -> document::Output {
    let side = |value: &Option<Value>| value.as_ref().map(known);
    document::Output { name: output.name.clone(), before: side(&output.before), after: side(&output.after) }
}

/// The value with `{"known_after": place}` for parts that are known only later.
pub fn known(value: &Value) -> Value {
    match value {
        Value::Unknown(unknown) => Map::from_iter([("known_after".to_owned(), unknown.place().into())]).into(),
        Value::List(items) => items.iter().map(known).collect(),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), known(value))).collect()),
        known => known.clone(),
    }
}
