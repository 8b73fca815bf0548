//! `PUT` and `PATCH …/preview`: the effect of an update, according to the plan that the update itself would follow.

use axum::response::Response;
use kiln_engine::load;
use kiln_engine::preview::{PlannedChange, PlannedResource, Preview};
use kiln_resource::State;
use kiln_service::{Door, HiddenValues, Masked};
use kiln_store::Stack;
use kiln_value::{Map, StackIdentity, Value, value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::view::instant::instant;
use crate::view::meaning;

/// The lists of resources.
const LISTS: [&str; 5] = ["unchanged", "updated", "replaced", "added", "deleted"];

pub(crate) async fn put(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:preview_update")?;
    run(call, false).await
}

pub(crate) async fn patch(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:preview_update_patch")?;
    run(call, true).await
}

async fn run(call: &Call, patch: bool) -> Result<Response, ApiError> {
    let body = call.instantiation().await?;
    let nested = call.query.boolean("show_nested")?.unwrap_or(false);
    let update = body.update(patch)?;
    let stack = call.stack().await?;
    let previewed = call.service().preview_update(&call.caller, stack, update).await?;
    let changes = previewed.shown(Door::UpdatePreview, |update| Changes::of(&update.preview, nested));
    let changes = value!({ "resource_changes": (changes.0) });
    let response = reply::json(&changes);
    // The client need not wait until a large plan is freed.
    tokio::task::spawn_blocking(move || drop((previewed, changes)));
    Ok(response)
}

/// The resources by list.
struct Changes(Map);

impl Changes {
    fn of(preview: &Preview, nested: bool) -> Self {
        let mut changes = LISTS.iter().map(|list| ((*list).to_owned(), Value::List(Vec::new()))).collect();
        sort(preview, nested, &mut changes);
        Self(changes)
    }
}

impl Masked for Changes {
    /// Masks what consists of values; names and types stay.
    fn mask(&mut self, hidden: &HiddenValues) {
        let lists = self.0.values_mut().filter_map(|list| if let Value::List(list) = list { Some(list) } else { None });
        for entry in lists.flatten().filter_map(Value::as_map_mut) {
            for key in ["attributes", "metadata", "resource_status_reason"] {
                entry.get_mut(key).into_iter().for_each(|value| value.mask(hidden));
            }
            entry.get_mut("change").into_iter().for_each(|change| mask_change(change, hidden));
        }
    }
}

fn mask_change(change: &mut Value, hidden: &HiddenValues) {
    let Some(change) = change.as_map_mut() else { return };
    for key in ["before", "after", "reasons", "names"] {
        change.get_mut(key).into_iter().for_each(|value| value.mask(hidden));
    }
    for key in ["at_least", "at_most"] {
        change.get_mut(key).into_iter().for_each(|inner| mask_change(inner, hidden));
    }
}

/// Adds every resource to its list; with `nested` also those of nested stacks.
fn sort(preview: &Preview, nested: bool, changes: &mut Map) {
    for entry in &preview.entries {
        if let Some(Value::List(list)) = changes.get_mut(entry.list()) {
            list.push(shown(entry, &preview.stack));
        }
        if let Some(inside) = entry.nested.as_ref().filter(|_| nested) {
            sort(inside, nested, changes);
        }
    }
}

/// A resource in Heat's format, with Kiln's additional data under `change`.
fn shown(entry: &PlannedResource, stack: &Stack) -> Value {
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
        "change": (change(entry)),
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

/// Kiln's additional data about a resource.
fn change(entry: &PlannedResource) -> Value {
    let mut change = summary(entry, &entry.change);
    if let (Some(map), false) = (change.as_map_mut(), entry.meanings.is_empty()) {
        map.insert("names".to_owned(), meaning::names(&entry.meanings));
    }
    change
}

/// Kiln's additional data about a change.
fn summary(entry: &PlannedResource, change: &PlannedChange) -> Value {
    let old = |entry: &PlannedResource| {
        let row = entry.row.as_ref().and_then(|row| row.definition.clone());
        row.map(|held| held.properties.clone()).unwrap_or_default()
    };
    match change {
        PlannedChange::Unchanged => value!({ "kind": "unchanged" }),
        PlannedChange::Updated(properties) => {
            let names: Value = properties.keys().map(String::as_str).collect();
            let old = old(entry);
            let before: Map =
                properties.keys().filter_map(|name| Some((name.clone(), old.get(name)?.clone()))).collect();
            let awaited = awaited_in(properties);
            value!({
                "kind": "updated", "properties": names, "before": before, "after": (properties.clone()), "awaited": awaited
            })
        }
        PlannedChange::Replaced(reasons) => {
            let (old, new) = (old(entry), entry.definition.as_ref().map(|held| held.properties.clone()));
            let new = new.unwrap_or_default();
            let differing = |this: &Map, other: &Map| -> Map {
                let other = |name: &str| other.get(name);
                let pairs = this.iter().filter(|(name, value)| other(name.as_str()) != Some(*value));
                pairs.map(|(name, value)| (name.clone(), value.clone())).collect()
            };
            let (before, after) = (differing(&old, &new), differing(&new, &old));
            let awaited = awaited_in(&after);
            value!({
                "kind": "replaced", "reasons": (reasons.clone()), "before": before, "after": after, "awaited": awaited
            })
        }
        PlannedChange::Added => value!({ "kind": "added" }),
        PlannedChange::Deleted => value!({ "kind": "deleted" }),
        PlannedChange::Refused(reason) => value!({ "kind": "refused", "reasons": [reason] }),
        PlannedChange::Undecided { at_least, at_most, awaited } => {
            let awaited: Value = awaited.iter().map(|awaited| known_after(&awaited.property, &awaited.place)).collect();
            let (at_least, at_most) = (summary(entry, at_least), summary(entry, at_most));
            value!({ "kind": "undecided", "at_least": at_least, "at_most": at_most, "awaited": awaited })
        }
    }
}

/// The properties whose values are unknown or partly unknown.
fn awaited_in(properties: &Map) -> Value {
    properties.iter().filter_map(|(name, value)| Some(known_after(name, value.unknown()?.place()))).collect()
}

fn known_after(property: &str, place: &str) -> Value {
    value!({ "property": property, "known_after": place })
}
