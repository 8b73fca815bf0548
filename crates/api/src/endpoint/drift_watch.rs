//! `/drift` and `/drift_schedules`: which stacks are compared with their objects regularly, and what was found. Heat has no such
//! call.

use std::time::Duration;

use axum::response::Response;
use http::{Method, StatusCode};
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::{DriftWatch, Error};
use kiln_store::drift::WatchedQuery;
use kiln_store::{DriftRepair, DriftSchedule, DriftedResource, Stack, StackId, WatchedStack};
use kiln_value::{Map, Value, value};

use super::plan::stack_of;
use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::{Formats as _, LONGEST_LIST};
use crate::http::reply;
use crate::openapi::schema;
use crate::view::instant::instant;

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListDrift",
    method: Method::GET,
    path: "/{tenant_id}/drift",
    rule: Rule::Kiln(&[
        DefaultRule { name: "drift:index", check: DefaultCheck::READER },
        DefaultRule { name: ALL_PROJECTS, check: DefaultCheck::NOBODY },
    ]),
    tag: "drift",
    summary: "List the stacks that are compared with their objects regularly, and what was found",
    query: &[("global_tenant", "bool"), ("status", "text"), ("limit", "integer"), ("marker", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static SCHEDULE: Endpoint = Endpoint {
    name: "SetDriftSchedule",
    method: Method::PUT,
    path: "/{tenant_id}/drift_schedules",
    rule: Rule::Kiln(&[DefaultRule { name: "drift_schedules:set", check: DefaultCheck::MEMBER }]),
    tag: "drift",
    summary: "Set how often a stack, or the stacks of the project, are compared with their objects",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(schedule(call)),
};

pub(super) static SCHEDULES: Endpoint = Endpoint {
    name: "ListDriftSchedules",
    method: Method::GET,
    path: "/{tenant_id}/drift_schedules",
    rule: Rule::Kiln(&[DefaultRule { name: "drift_schedules:index", check: DefaultCheck::READER }]),
    tag: "drift",
    summary: "List the schedules of the project and of its stacks",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(schedules(call)),
};

pub(super) static UNSCHEDULE: Endpoint = Endpoint {
    name: "RemoveDriftSchedule",
    method: Method::DELETE,
    path: "/{tenant_id}/drift_schedules",
    rule: Rule::Kiln(&[DefaultRule { name: "drift_schedules:remove", check: DefaultCheck::MEMBER }]),
    tag: "drift",
    summary: "Remove the schedule of a stack, which then has that of the project, or that of the project",
    query: &[("stack", "text")],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(unschedule(call)),
};

static BODY: Body = Body {
    name: "SetDriftSchedule",
    required: true,
    is_template: false,
    schema: || {
        value!({
            "type": "object",
            "required": ["every"],
            "properties": {
                "stack": (schema::text()),
                "every": { "type": "integer", "minimum": 0 },
                "repair": { "type": "boolean" },
            },
        })
    },
};

/// Who may update stacks may let engines repair them.
const UPDATE: &str = "stacks:update";
/// The rule of lists with `global_tenant`.
const ALL_PROJECTS: &str = "drift:global_index";

/// `GET /drift`: in the order of IDs, in pages.
async fn list(call: &Call) -> Result<Response, ApiError> {
    let everywhere = call.query.boolean("global_tenant")?.unwrap_or(false);
    if everywhere {
        call.enforce(ALL_PROJECTS, &call.caller.project_id)?;
    }
    let limit = call.query.limit(LONGEST_LIST)?;
    let no_id = |_| ApiError::bad_request("Value of 'marker' is not an ID.");
    let no_status = |_| ApiError::bad_request("Value of 'status' is not IN_SYNC, DRIFTED or NOT_CHECKED.");
    let query = WatchedQuery {
        project: (!everywhere).then(|| call.project().to_owned()),
        status: call.query.get("status").map(|word| word.parse().map_err(no_status)).transpose()?,
        marker: call.query.get("marker").map(|id| id.parse().map(StackId).map_err(no_id)).transpose()?,
        limit,
    };
    let found = watch(call)?.watched(&query).await?;
    Ok(reply::json(&value!({ "drift": (found.iter().map(watched).collect::<Value>()) })))
}

async fn schedule(call: &Call) -> Result<Response, ApiError> {
    let body = call.body()?;
    if let Some(unknown) = body.keys().find(|key| !["stack", "every", "repair"].contains(&key.as_str())) {
        return Err(ApiError::bad_request(format!("A schedule has no '{unknown}'.")));
    }
    let every = body.get("every").and_then(Value::as_i64).and_then(|every| u64::try_from(every).ok());
    let every = every.ok_or_else(|| ApiError::bad_request("'every' is not a number of seconds, or 0 for never."))?;
    let every = Some(Duration::from_secs(every)).filter(|every| !every.is_zero());
    let repair = match body.get("repair") {
        None | Some(Value::Null) => false,
        Some(given) => given.as_bool().ok_or_else(|| ApiError::bad_request("'repair' is not true or false."))?,
    };
    if repair {
        call.enforce(UPDATE, call.project())?;
    }
    let stack = match body.get("stack").filter(|stack| !stack.is_null()) {
        Some(_) => Some(stack_of(call, body).await?),
        None => None,
    };
    let set = watch(call)?.schedule(&call.caller, root(stack.as_ref())?, every, repair).await?;
    Ok(reply::json(&value!({ "drift_schedule": (view(&set)) })))
}

async fn schedules(call: &Call) -> Result<Response, ApiError> {
    let found = watch(call)?.schedules(&call.caller).await?;
    Ok(reply::json(&value!({ "drift_schedules": (found.iter().map(view).collect::<Value>()) })))
}

async fn unschedule(call: &Call) -> Result<Response, ApiError> {
    let stack = match call.query.get("stack") {
        Some(name) => Some(stack_of(call, &Map::from([("stack".to_owned(), name.into())])).await?),
        None => None,
    };
    watch(call)?.unschedule(&call.caller, root(stack.as_ref())?).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// The use cases, if the service has them.
fn watch(call: &Call) -> Result<&DriftWatch, ApiError> {
    let found = call.api.options.drift.as_ref();
    found.ok_or_else(|| Error::NotSupported("Watching drift without a service".to_owned()).into())
}

/// Refuses nested stacks, which are compared with their root stack.
fn root(stack: Option<&Stack>) -> Result<Option<&Stack>, ApiError> {
    match stack {
        Some(stack) if stack.parent.is_some() => {
            let name = &stack.name;
            Err(ApiError::bad_request(format!("The stack {name} is nested: set the schedule of its root stack.")))
        }
        stack => Ok(stack),
    }
}

fn view(schedule: &DriftSchedule) -> Value {
    let every = schedule.every.map_or(0, |every| i64::try_from(every.as_secs()).unwrap_or(i64::MAX));
    value!({
        "stack_id": (schedule.stack.as_ref().map(StackId::to_string)),
        "every": every,
        "repair": (schedule.repair),
        "user_id": (schedule.author.user_id.as_str()),
        "user_name": (schedule.author.username.as_str()),
        "created_at": (instant(schedule.created)),
    })
}

fn repair(repair: &DriftRepair) -> Value {
    value!({
        "resource_path": (repair.path.as_str()),
        "property": (Some(repair.property.as_str()).filter(|property| !property.is_empty())),
        "repaired_at": (instant(repair.time)),
    })
}

fn watched(watched: &WatchedStack) -> Value {
    let report = watched.report.as_ref();
    let documents = |resources: &[DriftedResource]| resources.iter().map(DriftedResource::document).collect::<Value>();
    let resources = report.map(|report| documents(&report.resources));
    let stopped = report.map(|report| documents(&report.stopped));
    let repairs = report.map(|report| report.repairs.iter().map(repair).collect::<Value>());
    value!({
        "stack_id": (watched.stack.to_string()),
        "stack_name": (watched.name.as_str()),
        "project": (watched.project.as_str()),
        "status": (report.map(|report| report.status.as_str())),
        "reason": (report.and_then(|report| report.reason.clone())),
        "drifted_resources": (report.map(|report| i64::try_from(report.drifted).unwrap_or(i64::MAX))),
        "resources": (resources.unwrap_or_default()),
        "repairs": (repairs.unwrap_or_default()),
        "no_longer_repaired": (stopped.unwrap_or_default()),
        "since": (watched.since.map(instant)),
        "checked_at": (watched.checked.map(instant)),
        "next_check_at": (watched.due.map(instant)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Method, StatusCode};
    use kiln_identity::Caller;
    use kiln_service::Limits;
    use kiln_store::MemoryStore;
    use serde_json::{Value, json};

    use crate::support::{App, random_string, stack_of, user};

    const SCHEDULES: &str = "/v1/tenant1/drift_schedules";

    fn app(store: &MemoryStore, caller: Caller) -> App {
        App::on(Arc::new(store.clone()), caller, Limits::default()).with_extensions(store)
    }

    fn store() -> MemoryStore {
        MemoryStore::new(Arc::new(|| "2026-11-20T06:52:45Z".parse().expect("a time")))
    }

    #[tokio::test]
    async fn a_schedule_is_set_listed_and_removed() {
        let store = store();
        let app = app(&store, user(&["member", "reader"]));
        let stack = stack_of(&app.create("s", random_string()).await).to_string();
        let set = app.json(Method::PUT, SCHEDULES, &json!({"stack": "s", "every": 3600})).await;
        assert_eq!(set.status, StatusCode::OK, "{}", set.text);
        let own = json!({
            "stack_id": stack, "every": 3600, "repair": false, "user_id": "alice-id", "user_name": "alice",
            "created_at": "2026-11-20T06:52:45Z",
        });
        assert_eq!(set.json(), json!({ "drift_schedule": own }));
        app.json(Method::PUT, SCHEDULES, &json!({"every": 0})).await;
        let listed = app.get(SCHEDULES).await.json()["drift_schedules"].clone();
        assert_eq!((&listed[0]["stack_id"], &listed[0]["every"], &listed[1]), (&Value::Null, &json!(0), &own));

        for (body, what) in [
            (json!({}), "'every' is not a number of seconds"),
            (json!({"every": "1h"}), "'every' is not a number of seconds"),
            (json!({"every": -1}), "'every' is not a number of seconds"),
            (json!({"every": 899}), "must be 900 to"),
            (json!({"every": 10_000_000_000_u64}), "must be 900 to"),
            (json!({"every": 3600, "repair": "low"}), "'repair' is not true or false"),
            (json!({"every": 0, "repair": true}), "What is not compared cannot be repaired"),
            (json!({"every": 3600, "accept": true}), "A schedule has no 'accept'"),
        ] {
            let refused = app.json(Method::PUT, SCHEDULES, &body).await;
            assert!(
                refused.status == StatusCode::BAD_REQUEST && refused.text.contains(what),
                "{body}: {}",
                refused.text
            );
        }
        let missing = app.json(Method::PUT, SCHEDULES, &json!({"stack": "none", "every": 3600})).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
            for path in [SCHEDULES.to_owned(), format!("{SCHEDULES}?stack=s")] {
                assert_eq!(app.send(Method::DELETE, &path, None, None).await.status, status, "{path}");
            }
        }
        let none = App::new().await.json(Method::PUT, SCHEDULES, &json!({"every": 3600})).await;
        assert!(none.text.contains("without a service"), "{}", none.text);
    }
}
