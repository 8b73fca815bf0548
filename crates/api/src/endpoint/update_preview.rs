//! `PUT` and `PATCH …/preview`: what an update would do, by the plan that the update itself would follow.

use axum::response::Response;
use kiln_engine::load;
use kiln_engine::preview::{PlannedChange, PlannedResource, Preview};
use kiln_resource::State;
use kiln_store::Stack;
use kiln_value::{Map, StackIdentity, Value, value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::instant::instant;

/// The lists that resources go into.
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
    let body = call.instantiation()?;
    let nested = call.query.boolean("show_nested")?.unwrap_or(false);
    let update = body.update(patch)?;
    let stack = call.stack().await?;
    let previewed = call.service().preview_update(&call.caller, stack, update, nested).await?;
    let mut changes: Map = LISTS.iter().map(|list| ((*list).to_owned(), Value::List(Vec::new()))).collect();
    sort(&previewed.preview, &previewed.stack, &mut changes);
    let lists = changes.values_mut().filter_map(|list| match list {
        Value::List(entries) => Some(entries),
        _ => None,
    });
    for entry in lists.flatten() {
        if let Some(change) = entry.as_map_mut().and_then(|entry| entry.get_mut("change")) {
            previewed.hidden.mask(change);
        }
    }
    Ok(reply::json(&value!({ "resource_changes": changes })))
}

/// Puts every resource into its list, those of nested stacks too.
fn sort(preview: &Preview, root: &Stack, changes: &mut Map) {
    let stack = preview.stack.as_ref().unwrap_or(root);
    for entry in &preview.entries {
        let list = match entry.change {
            PlannedChange::Unchanged => "unchanged",
            // A refused change is one that was asked for; its reason is shown with it.
            PlannedChange::Updated(_) | PlannedChange::Refused(_) => "updated",
            PlannedChange::Replaced(_) => "replaced",
            PlannedChange::Added => "added",
            PlannedChange::Deleted => "deleted",
        };
        if let Some(Value::List(list)) = changes.get_mut(list) {
            list.push(shown(entry, stack));
        }
        if let Some(nested) = &entry.nested {
            sort(nested, root, changes);
        }
    }
}

/// A resource as Heat's previews have it, and under `change` what Kiln knows besides.
fn shown(entry: &PlannedResource, stack: &Stack) -> Value {
    // What goes or stays shows what is; what comes has no state yet.
    let row = entry.row.as_ref().filter(|_| matches!(entry.change, PlannedChange::Updated(_) | PlannedChange::Deleted));
    let state = row.map_or(State::INIT, |row| row.state);
    value!({
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
        "change": (change(entry)),
    })
}

fn identity(stack: &Stack, path: &str) -> Value {
    let identity = load::identity(stack).unwrap_or_default();
    let StackIdentity { tenant, stack_name, stack_id, .. } = identity;
    value!({ "tenant": tenant, "stack_name": stack_name, "stack_id": stack_id, "path": path })
}

fn change(entry: &PlannedResource) -> Value {
    let old = |entry: &PlannedResource| {
        let row = entry.row.as_ref().and_then(|row| row.definition.clone());
        row.map(|held| held.properties.clone()).unwrap_or_default()
    };
    match &entry.change {
        PlannedChange::Unchanged => value!({ "kind": "unchanged" }),
        PlannedChange::Updated(properties) => {
            let names: Value = properties.keys().map(String::as_str).collect();
            let old = old(entry);
            let before: Map =
                properties.keys().filter_map(|name| Some((name.clone(), old.get(name)?.clone()))).collect();
            value!({ "kind": "updated", "properties": names, "before": before, "after": (properties.clone()) })
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
            value!({ "kind": "replaced", "reasons": (reasons.clone()), "before": before, "after": after })
        }
        PlannedChange::Added => value!({ "kind": "added" }),
        PlannedChange::Deleted => value!({ "kind": "deleted" }),
        PlannedChange::Refused(reason) => value!({ "kind": "refused", "reasons": [reason] }),
    }
}
