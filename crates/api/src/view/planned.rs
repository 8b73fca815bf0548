//! The planned changes of a stack as clients see them.

use kiln_resource::{State, StoredDefinition};
use kiln_service::{HiddenValues, Masked};
use kiln_stack::load;
use kiln_store::Stack;
use kiln_template::StackIdentity;
use kiln_value::{Map, Value, value};
use kiln_view::preview::{PlannedChange, PlannedOutput, PlannedResource, Preview};

use super::instant::instant;
use super::meaning;

/// The lists of resources.
const LISTS: [&str; 5] = ["unchanged", "updated", "replaced", "added", "deleted"];

/// The plan of a create or an update.
pub(crate) struct Plan {
    /// The resources by list.
    resources: Map,
    /// The outputs that change, by name.
    outputs: Map,
}

impl Plan {
    /// A plan; with `nested` the resources of nested stacks are listed too.
    pub(crate) fn of(preview: &Preview, nested: bool) -> Self {
        let mut resources = LISTS.iter().map(|list| ((*list).to_owned(), Value::List(Vec::new()))).collect();
        sort(preview, "", nested, &mut resources);
        Self { resources, outputs: preview.outputs.iter().map(output).collect() }
    }

    /// The keys of a response.
    pub(crate) fn into_map(self) -> Map {
        let parts = [("resource_changes", self.resources), ("output_changes", self.outputs)];
        parts.into_iter().map(|(key, part)| (key.to_owned(), part.into())).collect()
    }
}

impl Masked for Plan {
    /// Masks what consists of values; names and types stay.
    fn mask(&mut self, hidden: &HiddenValues) {
        let resources = self.resources.values_mut();
        let lists = resources.filter_map(|list| if let Value::List(list) = list { Some(list) } else { None });
        for entry in lists.flatten().filter_map(Value::as_map_mut) {
            for key in ["attributes", "metadata", "resource_status_reason"] {
                entry.get_mut(key).into_iter().for_each(|value| value.mask(hidden));
            }
            entry.get_mut("change").into_iter().for_each(|change| mask_change(change, hidden));
        }
        self.outputs.mask(hidden);
    }
}

fn mask_change(change: &mut Value, hidden: &HiddenValues) {
    let Some(change) = change.as_map_mut() else { return };
    for key in ["before", "after", "tried", "given", "names"] {
        change.get_mut(key).into_iter().for_each(|value| value.mask(hidden));
    }
    // Texts that may quote values.
    if let Some(Value::List(reasons)) = change.get_mut("reasons") {
        for reason in reasons {
            if let Value::Str(text) = reason {
                text.mask(hidden);
            }
        }
    }
    for key in ["at_least", "at_most"] {
        change.get_mut(key).into_iter().for_each(|change| mask_change(change, hidden));
    }
}

fn sort(preview: &Preview, parent: &str, nested: bool, changes: &mut Map) {
    for entry in &preview.entries {
        let path = if parent.is_empty() { entry.name.clone() } else { format!("{parent}/{}", entry.name) };
        if let Some(Value::List(list)) = changes.get_mut(entry.list()) {
            list.push(shown(entry, &preview.stack, &path));
        }
        if let Some(inside) = entry.nested.as_ref().filter(|_| nested) {
            sort(inside, &path, nested, changes);
        }
    }
}

fn output(output: &PlannedOutput) -> (String, Value) {
    let side = |key: &str, value: &Option<Value>| Some((key.to_owned(), known(value.as_ref()?)));
    let sides = side("before", &output.before).into_iter().chain(side("after", &output.after));
    (output.name.clone(), Value::Map(sides.collect()))
}

/// A resource in Heat's format, with Kiln's additional data under `change`.
fn shown(entry: &PlannedResource, stack: &Stack, path: &str) -> Value {
    // Deleted and unchanged resources show their current state; new ones have no state yet.
    let row = entry.row.as_ref().filter(|_| matches!(entry.change, PlannedChange::Updated(_) | PlannedChange::Deleted));
    let state = row.map_or(State::INIT, |row| row.state);
    let mut shown = value!({
        "updated_time": (row.map(|row| instant(row.updated))),
        "creation_time": (row.map(|row| instant(row.created))),
        "resource_name": (&entry.name),
        "physical_resource_id": (row.and_then(|row| row.physical_id.clone()).unwrap_or_default()),
        "resource_action": (state.action.as_str()),
        "resource_status": (state.status.as_str()),
        "resource_status_reason": (row.map(|row| row.reason.clone()).unwrap_or_default()),
        "resource_type": (&entry.resource_type),
        "resource_identity": (identity(stack, &format!("/resources/{}", entry.name))),
        "stack_identity": (identity(stack, "")),
        "stack_name": (&stack.name),
        "description": (entry.definition.as_ref().map(|held| held.description.clone()).unwrap_or_default()),
        "metadata": (entry.definition.as_ref().map(|held| held.metadata.clone()).unwrap_or_default()),
        "required_by": (entry.required_by.iter().collect::<Value>()),
        "attributes": (entry.attributes.clone()),
        "change": (change(entry, path)),
    });
    let parent = stack.parent.as_ref().map(|parent| ("parent_resource", Value::from(&parent.resource_name)));
    let inside = entry.nested.as_ref().filter(|_| row.is_some_and(|row| row.child.is_some()));
    let inside = inside.map(|nested| ("nested_stack_id", identity(&nested.stack, "")));
    if let Some(map) = shown.as_map_mut() {
        map.extend(parent.into_iter().chain(inside).map(|(key, value)| (key.to_owned(), value)));
    }
    shown
}

fn identity(stack: &Stack, path: &str) -> Value {
    let identity = load::identity(stack).unwrap_or_default();
    let StackIdentity { tenant, stack_name, stack_id, .. } = identity;
    value!({ "tenant": tenant, "stack_name": stack_name, "stack_id": stack_id, "path": path })
}

/// Kiln's additional data about a resource: its path through the nested stacks, its change, and what is lost.
fn change(entry: &PlannedResource, path: &str) -> Value {
    let mut change = summary(entry, &entry.change);
    if let Some(map) = change.as_map_mut() {
        map.insert("path".to_owned(), path.into());
        if !entry.meanings.is_empty() {
            map.insert("names".to_owned(), meaning::names(&entry.meanings));
        }
        map.extend(entry.lost.as_ref().map(|lost| ("lost".to_owned(), lost.what.as_str().into())));
        map.extend(entry.is_retained.then(|| ("retained".to_owned(), true.into())));
    }
    change
}

fn summary(entry: &PlannedResource, change: &PlannedChange) -> Value {
    let old = entry.row.as_ref().and_then(|row| row.definition.as_deref());
    let new = entry.definition.as_deref();
    let given = |held: Option<&StoredDefinition>| held.map(StoredDefinition::given).cloned().unwrap_or_default();
    match change {
        PlannedChange::Unchanged => value!({ "kind": "unchanged" }),
        PlannedChange::Updated(properties) => {
            let names: Value = properties.keys().map(String::as_str).collect();
            let of_change =
                |map: &Map| map.iter().filter(|(name, _)| properties.contains_key(*name)).map(clone_pair).collect();
            let mut shown = sides("updated", entry, (old, of_change(&entry.before())), (new, properties.clone()));
            shown.insert("properties".to_owned(), names);
            let tried: Map = of_change(&entry.tried);
            if !tried.is_empty() {
                shown.insert("tried".to_owned(), tried.into());
            }
            shown.into()
        }
        PlannedChange::Replaced(reasons) => {
            let after = new.map(|held| held.properties.clone()).unwrap_or_default();
            let differing = |this: &Map, other: &Map| -> Map {
                this.iter().filter(|(name, value)| other.get(*name) != Some(*value)).map(clone_pair).collect()
            };
            let before = entry.before();
            let (before, after) = (differing(&before, &after), differing(&after, &before));
            let mut shown = sides("replaced", entry, (old, before), (new, after));
            shown.insert("reasons".to_owned(), reasons.iter().collect());
            shown.into()
        }
        PlannedChange::Added => sides("added", entry, (None, Map::new()), (None, given(new))).into(),
        PlannedChange::Deleted => sides("deleted", entry, (None, given(old)), (None, Map::new())).into(),
        PlannedChange::Refused(reason) => value!({ "kind": "refused", "reasons": [reason] }),
        PlannedChange::Undecided { at_least, at_most, awaited } => {
            let awaited: Value = awaited.iter().map(|awaited| known_after(&awaited.property, &awaited.place)).collect();
            let (at_least, at_most) = (summary(entry, at_least), summary(entry, at_most));
            value!({ "kind": "undecided", "at_least": at_least, "at_most": at_most, "awaited": awaited })
        }
    }
}

fn clone_pair((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// A definition, and the properties to show.
type Side<'a> = (Option<&'a StoredDefinition>, Map);

/// The properties before and after a change, with the names that the template gives for IDs, and what it refers to.
fn sides(kind: &str, entry: &PlannedResource, (old, before): Side<'_>, (new, after): Side<'_>) -> Map {
    let references = [("before", &entry.references.before, &before), ("after", &entry.references.after, &after)];
    let references: Map = references
        .into_iter()
        .map(|(key, all, side)| (key.to_owned(), within(all, side)))
        .filter(|(_, found)| !found.is_empty())
        .map(|(key, found)| (key, found.into()))
        .collect();
    let names: Map = [("before", old, &before), ("after", new, &after)]
        .into_iter()
        .filter_map(|(key, held, side)| Some((key.to_owned(), names(held?, side)?)))
        .collect();
    let awaited: Value =
        after.iter().filter_map(|(name, value)| Some(known_after(name, value.unknown()?.place()))).collect();
    let shown = value!({ "kind": kind, "before": (known(&before.into())), "after": (known(&after.into())), "awaited": awaited });
    let mut shown = match shown {
        Value::Map(shown) => shown,
        _ => Map::new(),
    };
    for (key, part) in [("given", names), ("references", references)] {
        if !part.is_empty() {
            shown.insert(key.to_owned(), part.into());
        }
    }
    shown
}

/// The references in these properties.
fn within(references: &Map, side: &Map) -> Map {
    let property = |place: &str| place.split(['.', '[']).next().is_some_and(|name| side.contains_key(name));
    references.iter().filter(|(place, _)| property(place)).map(clone_pair).collect()
}

/// The names that a template gives for the IDs in these properties; `None` if there are none.
fn names(held: &StoredDefinition, side: &Map) -> Option<Value> {
    let name = |(property, id): (&String, &Value)| {
        let given = held.given().get(property).filter(|given| given.as_str().is_some() && *given != id)?;
        (id.as_str().is_some() && held.properties.get(property) == Some(id)).then(|| (property.clone(), given.clone()))
    };
    let names: Map = side.iter().filter_map(name).collect();
    (!names.is_empty()).then(|| names.into())
}

fn known_after(property: &str, place: &str) -> Value {
    value!({ "property": property, "known_after": place })
}

/// The value with `{"known_after": place}` for parts that are not known yet.
fn known(value: &Value) -> Value {
    match value {
        Value::Unknown(unknown) => value!({ "known_after": (unknown.place()) }),
        Value::List(items) => items.iter().map(known).collect(),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), known(value))).collect()),
        known => known.clone(),
    }
}
