//! What clients see of a stack before its switch and after it: answers of both APIs, compared field by field.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::Resource;
use kiln_stack::Backends;
use kiln_stack::load::places;
use kiln_store::TakenTree;
use kiln_value::{Secret, Value, value};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::Finding;
use crate::finding::below;

/// At most so many fields are named for each answer.
const NAMED: usize = 5;
/// A mark of Heat while a group scales.
const UNUSED: &str = "metadata.scaling_in_progress";
/// What tells the entries of a list apart, whatever their order.
const KEYS: [&str; 4] = ["id", "resource_name", "output_key", "rel"];

/// An API with the paths of Heat.
#[async_trait]
pub trait ClientView: Send + Sync {
    /// The status and the JSON of the answer to a GET.
    ///
    /// # Errors
    /// There is no answer, or it is no JSON: why.
    async fn get(&self, path: &str, token: &Secret<String>) -> Result<(u16, Value), String>;
}

/// Builds the API of a Kiln with these stacks.
pub type KilnView = Arc<dyn Fn(&Backends) -> Arc<dyn ClientView> + Send + Sync>;

/// The APIs of a Heat and of a Kiln.
#[derive(Clone)]
pub struct BothViews {
    /// The running Heat.
    pub heat: Arc<dyn ClientView>,
    /// The Kiln.
    pub kiln: KilnView,
}

/// Asks both for what clients read of a tree. `known`: the types whose resources were compared before; one resource of each type
/// is read. Returns the number of answers, and the findings.
pub(crate) async fn compare_views(
    views: &BothViews,
    backends: &Backends,
    tree: &TakenTree,
    token: &Secret<String>,
    known: &mut BTreeSet<String>,
) -> (usize, Vec<Finding>) {
    let kiln = (views.kiln)(backends);
    let mut findings = Vec::new();
    let paths = paths(tree, known);
    for (place, path) in &paths {
        let first = (views.heat.get(path, token).await, kiln.get(path, token).await);
        let what = match first {
            (Err(error), _) => format!("Heat does not answer: {error}"),
            (_, Err(error)) => format!("Kiln does not answer: {error}"),
            (Ok((heat, _)), Ok((kiln, _))) if heat != kiln => format!("Heat answers {heat}, and Kiln {kiln}"),
            (Ok((_, mut heat)), Ok((_, answer))) => {
                keep_events(&mut heat, &answer);
                let mut fields = differences(&heat, &answer);
                if !fields.is_empty() {
                    // A console has another URL each time. Heat may have stored one; Kiln asks for it.
                    for (api, seen) in [(&views.heat, &heat), (&kiln, &answer)] {
                        if let Ok((_, mut again)) = api.get(path, token).await {
                            keep_events(&mut again, &answer);
                            let changing = differences(seen, &again);
                            fields.retain(|field| !changing.contains(field));
                        }
                    }
                }
                if fields.is_empty() {
                    continue;
                }
                let more = fields.len().saturating_sub(NAMED);
                fields.truncate(NAMED);
                let more = if more == 0 { String::new() } else { format!(", and {more} more") };
                format!("clients see other values: {}{more}", fields.join(", "))
            }
        };
        let kind = path.rsplit('/').next().unwrap_or_default();
        let hint = format!("compare 'GET {path}' of both APIs; see \"Differences from Heat\" in the manual");
        findings.push(Finding::notice(place.clone(), format!("{what} (in {kind})"), hint));
    }
    (paths.len(), findings)
}

/// What is read, each with the place of its stack or resource.
fn paths(tree: &TakenTree, known: &mut BTreeSet<String>) -> Vec<(String, String)> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let places = places(tree.stacks.iter().map(|taken| &taken.stack));
    let mut paths = Vec::new();
    for taken in &tree.stacks {
        let stack = &taken.stack;
        let place = places.get(&stack.id).cloned().unwrap_or_default();
        let base = format!("/v1/{}/stacks/{}/{}", stack.project, encoded(&stack.name), stack.id);
        for part in ["", "/resources", "/outputs", "/template", "/environment", "/events"] {
            paths.push((place.clone(), format!("{base}{part}")));
        }
        let of_stack = |row: &&Resource| row.stack == stack.id;
        for row in tree.resources.iter().filter(of_stack) {
            if known.insert(row.resource_type.clone()) {
                let own = format!("{base}/resources/{}", encoded(&row.name));
                paths.push((below(&place, &row.name), own.clone()));
                paths.push((below(&place, &row.name), format!("{own}/metadata")));
            }
        }
    }
    paths
}

/// Leaves only those events in Heat's answer that Kiln's has too: not all of them are imported.
fn keep_events(heat: &mut Value, kiln: &Value) {
    let events = |answer: &Value| answer.get("events").and_then(Value::as_list).map(<[Value]>::to_vec);
    let (Some(all), Some(known)) = (events(heat), events(kiln)) else { return };
    let ids: BTreeSet<&str> = known.iter().filter_map(|event| event.str_at("id")).collect();
    let kept = all.into_iter().filter(|event| event.str_at("id").is_some_and(|id| ids.contains(id)));
    *heat = value!({ "events": (kept.collect::<Value>()) });
}

/// The fields of Heat's answer that are missing in Kiln's, or have another value there. Kiln's answers have more fields, and values
/// where Heat's have none.
fn differences(heat: &Value, kiln: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    differ(heat, kiln, "", &mut fields);
    fields
}

fn differ(heat: &Value, kiln: &Value, at: &str, fields: &mut Vec<String>) {
    match (heat, kiln) {
        (Value::Map(heat), Value::Map(kiln)) => {
            for (name, value) in heat {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                if at == UNUSED {
                    continue;
                }
                match kiln.get(name) {
                    Some(other) => differ(value, other, &at, fields),
                    None => fields.push(at),
                }
            }
        }
        (Value::List(heat), Value::List(kiln)) if heat.len() == kiln.len() => {
            let key = KEYS.into_iter().find(|key| heat.iter().chain(kiln.iter()).all(|one| one.get(key).is_some()));
            let sorted = |list: &[Value]| {
                let mut list = list.to_vec();
                if let Some(key) = key {
                    list.sort_by_key(|one| one.str_at(key).unwrap_or_default().to_owned());
                } else if list.iter().all(|one| one.as_str().is_some()) {
                    list.sort_by_key(|one| one.as_str().unwrap_or_default().to_owned());
                }
                list
            };
            for (index, (heat, kiln)) in sorted(heat).iter().zip(&sorted(kiln)).enumerate() {
                differ(heat, kiln, &format!("{at}.{index}"), fields);
            }
        }
        _ if heat == kiln || *heat == Value::Null || heat.as_str() == Some("") => {}
        _ => fields.push(at.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_kiln_has_are_compared() {
        let event = |id: &str, reason: &str| value!({ "id": id, "reason": reason });
        let kiln = value!({ "events": [(event("b", "x")), (event("c", "y"))] });
        let mut heat = value!({ "events": [(event("a", "x")), (event("c", "z")), (event("b", "x"))] });
        keep_events(&mut heat, &kiln);
        assert_eq!(differences(&heat, &kiln), ["events.1.reason"]);
        let mut heat = value!({ "events": [(event("a", "x"))] });
        keep_events(&mut heat, &kiln);
        assert_eq!(differences(&heat, &kiln), ["events"]);
    }

    #[test]
    fn fields_are_compared_and_named() {
        let heat = value!({
            "stack": {"name": "s", "outputs": [{"output_key": "b", "v": 1}, {"output_key": "a", "v": 2}], "tags": ["x", "y"]},
        });
        let kiln = value!({
            "stack": {
                "name": "s", "outputs": [{"output_key": "a", "v": 2}, {"output_key": "b", "v": 1, "more": true}],
                "tags": ["y", "x"], "diagnostics": [],
            },
        });
        assert_eq!(differences(&heat, &kiln), [""; 0]);
        assert_eq!(differences(&kiln, &heat), ["stack.outputs.1.more", "stack.diagnostics"]);
        let (heat, kiln) = (value!({"a": {"b": 1, "c": null}, "d": [1]}), value!({"a": {"b": "1", "c": 2}, "d": []}));
        assert_eq!(differences(&heat, &kiln), ["a.b", "d"]);
        let (heat, kiln) = (value!({"metadata": {"scaling_in_progress": false}}), value!({"metadata": {}}));
        assert_eq!(differences(&heat, &kiln), [""; 0]);
    }
}
