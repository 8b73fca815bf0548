//! `/quotas`: how many stacks, resources and so on a project may have. Heat has no such call.

use std::collections::BTreeMap;

use axum::response::Response;
use http::{Method, StatusCode};
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::{Error, QuotaChanges, QuotaState};
use kiln_store::quota::Quota;
use kiln_value::{Map, Value, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static OWN: Endpoint = Endpoint {
    name: "ShowOwnQuotas",
    method: Method::GET,
    path: "/{tenant_id}/quotas",
    rule: Rule::Kiln(&[DefaultRule { name: "quotas:show_own", check: DefaultCheck::READER }]),
    tag: "quotas",
    summary: "Show the quotas of the project, and how much is in use",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(own(call)),
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowQuotas",
    method: Method::GET,
    path: "/{tenant_id}/quotas/{project_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "quotas:show", check: DefaultCheck::ADMIN }]),
    tag: "quotas",
    summary: "Show the quotas of any project",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

pub(super) static SET: Endpoint = Endpoint {
    name: "SetQuotas",
    method: Method::PUT,
    path: "/{tenant_id}/quotas/{project_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "quotas:set", check: DefaultCheck::ADMIN }]),
    tag: "quotas",
    summary: "Change quotas of any project; null: as the configuration says",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(set(call)),
};

pub(super) static RESET: Endpoint = Endpoint {
    name: "ResetQuotas",
    method: Method::DELETE,
    path: "/{tenant_id}/quotas/{project_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "quotas:reset", check: DefaultCheck::ADMIN }]),
    tag: "quotas",
    summary: "Give a project the quotas of the configuration again",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(reset(call)),
};

static BODY: Body = Body {
    name: "SetQuotas",
    required: true,
    is_template: false,
    schema: || {
        let number = value!({ "type": ["integer", "null"], "minimum": -1 });
        let properties = Quota::ALL.into_iter().map(|quota| (quota.as_str().to_owned(), number.clone()));
        value!({ "type": "object", "properties": (Value::Map(properties.collect())) })
    },
};

async fn own(call: &Call) -> Result<Response, ApiError> {
    shown(call, call.project()).await
}

async fn show(call: &Call) -> Result<Response, ApiError> {
    shown(call, project(call)).await
}

async fn set(call: &Call) -> Result<Response, ApiError> {
    let changes = changes(call.body()?)?;
    quotas(call)?.set(&call.caller, project(call), &changes).await?;
    shown(call, project(call)).await
}

async fn reset(call: &Call) -> Result<Response, ApiError> {
    let all = Quota::ALL.into_iter().map(|quota| (quota, None)).collect();
    quotas(call)?.set(&call.caller, project(call), &all).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

fn project(call: &Call) -> &str {
    call.params.get("project_id")
}

/// The use cases, if the service has them.
fn quotas(call: &Call) -> Result<&QuotaChanges, ApiError> {
    let found = call.api.options.quotas.as_ref();
    found.ok_or_else(|| Error::NotSupported("Changing quotas without a service".to_owned()).into())
}

fn changes(body: &Map) -> Result<BTreeMap<Quota, Option<i64>>, ApiError> {
    let change = |(name, most): (&String, &Value)| {
        let quota: Quota = name.parse().map_err(|_| ApiError::bad_request(format!("There is no quota '{name}'.")))?;
        match most {
            Value::Null => Ok((quota, None)),
            most => match most.as_i64() {
                Some(most) => Ok((quota, Some(most))),
                None => Err(ApiError::bad_request(format!("'{name}' must be a number from 0, or -1 for no limit."))),
            },
        }
    };
    let changes: BTreeMap<_, _> = body.iter().map(change).collect::<Result<_, _>>()?;
    if changes.is_empty() {
        return Err(ApiError::bad_request("The body has no quota."));
    }
    Ok(changes)
}

async fn shown(call: &Call, project: &str) -> Result<Response, ApiError> {
    let number = |number: Option<u64>| number.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX));
    let view = |state: QuotaState| {
        let in_use = state.in_use.map(|in_use| i64::try_from(in_use).unwrap_or(i64::MAX));
        let shown = value!({ "limit": (number(state.limit)), "default": (number(state.usual)), "in_use": in_use });
        (state.quota.as_str().to_owned(), shown)
    };
    let quotas: Map = call.service().quotas(project).await?.into_iter().map(view).collect();
    Ok(reply::json(&value!({ "quotas": (Value::Map(quotas)) })))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Method, StatusCode};
    use kiln_service::Limits;
    use kiln_store::MemoryStore;
    use serde_json::json;

    use crate::support::{App, random_string, user};

    const THEIRS: &str = "/v1/tenant1/quotas/tenant1";

    #[tokio::test]
    async fn an_administrator_changes_what_a_project_may_have() {
        let store = MemoryStore::new(Arc::new(|| "2026-11-20T06:52:45Z".parse().expect("a time")));
        let limits = Limits { stacks_per_project: Some(1), resources_per_stack: None, ..Limits::default() };
        let member = App::on(Arc::new(store.clone()), user(&["member", "reader"]), limits).with_extensions(&store);
        let admin = member.clone().used_by(user(&["admin"])).with_extensions(&store);
        let create = async |name: &str, template: serde_json::Value| {
            member.json(Method::POST, "/v1/tenant1/stacks", &json!({"stack_name": name, "template": template})).await
        };
        assert_eq!(create("a", random_string()).await.status, StatusCode::CREATED);
        let refused = create("b", random_string()).await;
        assert!(
            refused.status == StatusCode::BAD_REQUEST && refused.text.contains("per tenant, 1."),
            "{}",
            refused.text
        );

        let set = admin.json(Method::PUT, THEIRS, &json!({"stacks": 3, "resources_per_stack": 1})).await;
        assert_eq!(set.status, StatusCode::OK, "{}", set.text);
        let shown = member.get("/v1/tenant1/quotas").await.json();
        assert_eq!(shown, set.json());
        assert_eq!(shown["quotas"]["stacks"], json!({"limit": 3, "default": 1, "in_use": 1}));
        assert_eq!(shown["quotas"]["resources_per_stack"], json!({"limit": 1, "default": -1, "in_use": null}));
        assert_eq!(shown["quotas"]["software_configs"], json!({"limit": 4096, "default": 4096, "in_use": 0}));
        assert_eq!(create("b", random_string()).await.status, StatusCode::CREATED);
        let mut two = random_string();
        two["resources"]["two"] = json!({"type": "OS::Heat::RandomString"});
        let refused = create("c", two.clone()).await;
        assert!(
            refused.status == StatusCode::BAD_REQUEST && refused.text.contains("Maximum resources"),
            "{}",
            refused.text
        );
        admin.json(Method::PUT, THEIRS, &json!({"resources_per_stack": -1, "stacks": null})).await;
        assert!(create("c", two.clone()).await.text.contains("per tenant, 1."), "as the configuration says");
        admin.json(Method::PUT, THEIRS, &json!({"stacks": -1})).await;
        assert_eq!(create("c", two).await.status, StatusCode::CREATED);
        assert_eq!(admin.send(Method::DELETE, THEIRS, None, None).await.status, StatusCode::NO_CONTENT);
        assert_eq!(admin.get(THEIRS).await.json()["quotas"]["stacks"], json!({"limit": 1, "default": 1, "in_use": 3}));

        // One operation at a time. A stack that is in progress may get another request, and administrators have no limit.
        admin.json(Method::PUT, THEIRS, &json!({"operations_in_progress": 3, "stacks": -1})).await;
        let shown = member.get("/v1/tenant1/quotas").await.json();
        assert_eq!(shown["quotas"]["operations_in_progress"], json!({"limit": 3, "default": -1, "in_use": 3}));
        let refused = create("d", random_string()).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text);
        assert_eq!(refused.headers["retry-after"], "5");
        assert_eq!(refused.json()["error"]["type"], "HTTPTooManyRequests");
        member.settle("a").await;
        let delete = async |name: &str| {
            let stack = member.store.stack_by_name("tenant1", name).await.expect("read").expect("a stack");
            let path = format!("/v1/tenant1/stacks/{name}/{}", stack.id);
            member.send(Method::DELETE, &path, None, None).await.status
        };
        assert_eq!(create("d", random_string()).await.status, StatusCode::CREATED, "one has ended");
        assert_eq!(delete("a").await, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(delete("b").await, StatusCode::NO_CONTENT, "it is in progress already");
        let body = json!({"stack_name": "e", "template": random_string()});
        let both = member.clone().used_by(user(&["admin", "member", "reader"]));
        assert_eq!(both.json(Method::POST, "/v1/tenant1/stacks", &body).await.status, StatusCode::CREATED);
        admin.json(Method::PUT, THEIRS, &json!({"operations_in_progress": null, "saved_plans": 1})).await;
        let plan = async || {
            let body = json!({"action": "create", "stack_name": "p", "template": random_string()});
            member.json(Method::POST, "/v1/tenant1/plans", &body).await
        };
        assert_eq!(plan().await.status, StatusCode::CREATED);
        let refused = plan().await;
        assert!(
            refused.status == StatusCode::BAD_REQUEST && refused.text.contains("a project can have 1 plans"),
            "{}",
            refused.text
        );
        admin.json(Method::PUT, THEIRS, &json!({"event_streams": 0})).await;
        let listed = member.get("/v1/tenant1/events?wait=1").await;
        assert!(listed.status == StatusCode::OK && !listed.headers.contains_key("preference-applied"));

        for (body, what) in [
            (json!({}), "The body has no quota"),
            (json!({"stacks": -2}), "'stacks' must be a number from 0, or -1"),
            (json!({"stacks": "3"}), "'stacks' must be a number from 0, or -1"),
            (json!({"volumes": 3}), "There is no quota 'volumes'"),
        ] {
            let refused = admin.json(Method::PUT, THEIRS, &body).await;
            assert!(
                refused.status == StatusCode::BAD_REQUEST && refused.text.contains(what),
                "{body}: {}",
                refused.text
            );
        }
        assert_eq!(member.get(THEIRS).await.status, StatusCode::FORBIDDEN);
        assert_eq!(member.json(Method::PUT, THEIRS, &json!({"stacks": 9})).await.status, StatusCode::FORBIDDEN);
        assert_eq!(member.send(Method::DELETE, THEIRS, None, None).await.status, StatusCode::FORBIDDEN);
    }
}
