//! `/webhooks`: URLs of users to which events of a project are sent. Heat has no such call.

use axum::response::Response;
use http::{Method, StatusCode};
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::{Error, OnlyStack, WebhookChange, Webhooks, newest_key, old_key_until};
use kiln_store::webhook::{DeliveryQuery, EventPattern};
use kiln_store::{StackId, Webhook, WebhookDelivery};
use kiln_value::{Map, Value, text, value};

use super::plan::stack_of;
use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::{Formats as _, LONGEST_LIST};
use crate::http::reply;
use crate::openapi::schema;
use crate::view::instant::instant;

pub(super) static CREATE: Endpoint = Endpoint {
    name: "CreateWebhook",
    method: Method::POST,
    path: "/{tenant_id}/webhooks",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:create", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "Send events of the project's stacks, plans and guards to a URL",
    query: &[],
    body: Some(&NEW),
    answer: Answer::Json(201),
    run: |call| Box::pin(create(call)),
};

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListWebhooks",
    method: Method::GET,
    path: "/{tenant_id}/webhooks",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:index", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "List the webhooks of the project, oldest first",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowWebhook",
    method: Method::GET,
    path: "/{tenant_id}/webhooks/{webhook_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:show", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "Show a webhook",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

pub(super) static CHANGE: Endpoint = Endpoint {
    name: "ChangeWebhook",
    method: Method::PATCH,
    path: "/{tenant_id}/webhooks/{webhook_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:update", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "Change, enable or disable a webhook",
    query: &[],
    body: Some(&CHANGES),
    answer: Answer::Json(200),
    run: |call| Box::pin(change(call)),
};

pub(super) static DELETE: Endpoint = Endpoint {
    name: "DeleteWebhook",
    method: Method::DELETE,
    path: "/{tenant_id}/webhooks/{webhook_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:delete", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "Delete a webhook",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(delete(call)),
};

pub(super) static ROTATE: Endpoint = Endpoint {
    name: "RotateWebhookKey",
    method: Method::POST,
    path: "/{tenant_id}/webhooks/{webhook_id}/rotate",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:rotate", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "Replace the key of a webhook; the present one signs too for a day",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(rotate(call)),
};

pub(super) static TEST: Endpoint = Endpoint {
    name: "TestWebhook",
    method: Method::POST,
    path: "/{tenant_id}/webhooks/{webhook_id}/test",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:test", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "Send a test event to a webhook",
    query: &[],
    body: None,
    answer: Answer::Json(202),
    run: |call| Box::pin(test(call)),
};

pub(super) static DELIVERIES: Endpoint = Endpoint {
    name: "ListWebhookDeliveries",
    method: Method::GET,
    path: "/{tenant_id}/webhooks/{webhook_id}/deliveries",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:deliveries", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "List the deliveries of a webhook, newest first",
    query: &[("outcome", "text"), ("limit", "integer"), ("marker", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(deliveries(call)),
};

pub(super) static REDELIVER: Endpoint = Endpoint {
    name: "RedeliverWebhookDelivery",
    method: Method::POST,
    path: "/{tenant_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    rule: Rule::Kiln(&[DefaultRule { name: "webhooks:redeliver", check: DefaultCheck::MEMBER }]),
    tag: "webhooks",
    summary: "Send a delivery of a webhook again",
    query: &[],
    body: None,
    answer: Answer::Json(202),
    run: |call| Box::pin(redeliver(call)),
};

static NEW: Body = Body { name: "CreateWebhook", required: true, is_template: false, schema: terms };
static CHANGES: Body = Body { name: "ChangeWebhook", required: true, is_template: false, schema: terms };

/// What a body may set.
fn terms() -> Value {
    value!({
        "type": "object",
        "properties": {
            "url": (schema::text()),
            "events": { "type": "array", "items": (schema::text()) },
            "stack": (schema::text()),
            "description": (schema::text()),
            "handshake": { "type": "boolean" },
            "enabled": { "type": "boolean" },
        },
    })
}

async fn create(call: &Call) -> Result<Response, ApiError> {
    let webhook = webhooks(call)?.create(&call.caller, &changes(call).await?).await?;
    Ok(reply::json_with(StatusCode::CREATED, &with_key(call, &webhook)))
}

async fn list(call: &Call) -> Result<Response, ApiError> {
    let found = webhooks(call)?.list(&call.caller).await?;
    Ok(reply::json(&value!({ "webhooks": (found.iter().map(|webhook| view(call, webhook)).collect::<Value>()) })))
}

async fn show(call: &Call) -> Result<Response, ApiError> {
    let webhook = webhooks(call)?.webhook(&call.caller, id(call)).await?;
    Ok(reply::json(&value!({ "webhook": (view(call, &webhook)) })))
}

async fn change(call: &Call) -> Result<Response, ApiError> {
    let webhook = webhooks(call)?.change(&call.caller, id(call), &changes(call).await?).await?;
    Ok(reply::json(&value!({ "webhook": (view(call, &webhook)) })))
}

async fn delete(call: &Call) -> Result<Response, ApiError> {
    webhooks(call)?.remove(&call.caller, id(call)).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

async fn rotate(call: &Call) -> Result<Response, ApiError> {
    let webhook = webhooks(call)?.rotate(&call.caller, id(call)).await?;
    Ok(reply::json(&with_key(call, &webhook)))
}

async fn test(call: &Call) -> Result<Response, ApiError> {
    let delivery = webhooks(call)?.test(&call.caller, id(call)).await?;
    Ok(accepted(&delivery.to_string()))
}

async fn deliveries(call: &Call) -> Result<Response, ApiError> {
    let webhooks = webhooks(call)?;
    let limit = Some(call.query.limit(LONGEST_LIST)?);
    let no_id = |_| ApiError::bad_request("Value of 'marker' is not an ID.");
    let no_outcome = |_| ApiError::bad_request("Value of 'outcome' is not pending, delivered or failed.");
    let query = DeliveryQuery {
        outcome: call.query.get("outcome").map(|word| word.parse().map_err(no_outcome)).transpose()?,
        marker: call.query.get("marker").map(|id| id.parse().map_err(no_id)).transpose()?,
        limit,
    };
    let found = webhooks.deliveries(&call.caller, id(call), &query).await?;
    Ok(reply::json(&value!({ "deliveries": (found.iter().map(delivery).collect::<Value>()) })))
}

async fn redeliver(call: &Call) -> Result<Response, ApiError> {
    let delivery = call.params.get("delivery_id");
    webhooks(call)?.redeliver(&call.caller, id(call), delivery).await?;
    Ok(accepted(delivery))
}

/// The use cases, if the service has webhooks.
fn webhooks(call: &Call) -> Result<&Webhooks, ApiError> {
    let found = call.api.options.webhooks.as_ref();
    found.ok_or_else(|| {
        Error::NotSupported("The operator has not enabled webhooks ([webhooks] enabled): this".to_owned()).into()
    })
}

fn id(call: &Call) -> &str {
    call.params.get("webhook_id")
}

fn accepted(delivery: &str) -> Response {
    reply::json_with(StatusCode::ACCEPTED, &value!({ "delivery": { "id": delivery } }))
}

/// What a body sets.
async fn changes(call: &Call) -> Result<WebhookChange, ApiError> {
    let body = call.body()?;
    let known = ["url", "events", "stack", "description", "handshake", "enabled"];
    if let Some(unknown) = body.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(ApiError::bad_request(format!("A webhook has no '{unknown}'.")));
    }
    let events = match body.get("events") {
        None | Some(Value::Null) => None,
        Some(given) => {
            let patterns = given.as_list().map(|patterns| patterns.iter().map(text::str).collect());
            Some(patterns.ok_or_else(|| ApiError::bad_request("'events' is not a list of types such as stack.*."))?)
        }
    };
    let stack = match body.get("stack") {
        None => None,
        Some(Value::Null) => Some(OnlyStack::All),
        Some(_) => Some(OnlyStack::One(stack_of(call, body).await?.root)),
    };
    let given = |key: &str| body.get(key).filter(|given| !given.is_null());
    Ok(WebhookChange {
        url: given("url").map(text::str),
        events,
        stack,
        description: given("description").map(text::str),
        handshake: flag(body, "handshake")?,
        enabled: flag(body, "enabled")?,
    })
}

fn flag(body: &Map, key: &str) -> Result<Option<bool>, ApiError> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(ApiError::bad_request(format!("'{key}' is not true or false."))),
    }
}

/// With the key, which no later call shows.
fn with_key(call: &Call, webhook: &Webhook) -> Value {
    let mut shown = view(call, webhook);
    if let (Some(shown), Some(key)) = (shown.as_map_mut(), newest_key(webhook)) {
        shown.insert("key".to_owned(), key.expose().as_str().into());
    }
    value!({ "webhook": shown })
}

fn view(call: &Call, webhook: &Webhook) -> Value {
    let (terms, receiver) = (&webhook.terms, &webhook.receiver);
    let now = call.backends().clock.now();
    value!({
        "id": (webhook.id.to_string()),
        "url": (terms.url.expose().as_str()),
        "events": (terms.events.iter().map(EventPattern::as_str).collect::<Value>()),
        "stack_id": (terms.stack.as_ref().map(StackId::to_string)),
        "description": (terms.description.as_str()),
        "handshake": (terms.handshake),
        "enabled": (terms.disabled.is_none()),
        "disabled_reason": (terms.disabled.clone()),
        "allowed_at": (receiver.allowed.map(instant)),
        "failing_since": (receiver.failing_since.map(instant)),
        "old_key_until": (old_key_until(webhook, now).map(instant)),
        "user_id": (webhook.author.user_id.as_str()),
        "user_name": (webhook.author.username.as_str()),
        "created_at": (instant(webhook.created)),
    })
}

fn delivery(delivery: &WebhookDelivery) -> Value {
    let ms = delivery.took.map(|took| i64::try_from(took.as_millis()).unwrap_or(i64::MAX));
    value!({
        "id": (delivery.id.to_string()),
        "type": (delivery.event_type.as_str()),
        "sequence": (delivery.sequence),
        "outcome": (delivery.outcome.as_str()),
        "attempts": (i64::from(delivery.attempts)),
        "status": (delivery.status.map(i64::from)),
        "error": (delivery.error.clone()),
        "milliseconds": ms,
        "created_at": (instant(delivery.created)),
        "tried_at": (delivery.tried.map(instant)),
    })
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use serde_json::{Value, json};

    use crate::support::{App, random_string, stack_of};

    const WEBHOOKS: &str = "/v1/tenant1/webhooks";

    fn store() -> kiln_store::MemoryStore {
        kiln_store::MemoryStore::new(std::sync::Arc::new(|| jiff::Timestamp::UNIX_EPOCH))
    }

    #[tokio::test]
    async fn a_webhook_is_made_shown_changed_and_deleted() {
        let app = App::new().await.with_webhooks(&store());
        let root = stack_of(&app.create("s", random_string()).await).to_string();
        let body =
            json!({"url": "https://example.com/in?token=t", "events": ["stack.*.error", "plan.*"], "stack": "s"});
        let made = app.json(Method::POST, WEBHOOKS, &body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        let mut made = made.json()["webhook"].clone();
        let key = made.as_object_mut().expect("an object").remove("key").expect("a key");
        assert!(key.as_str().is_some_and(|key| key.starts_with("whsec_") && key.len() == 50), "{key}");
        let known = json!({
            "id": made["id"], "url": "https://example.com/in?token=t", "events": ["stack.*.error", "plan.*"],
            "stack_id": root, "description": "", "handshake": true, "enabled": true, "disabled_reason": null,
            "allowed_at": null, "failing_since": null, "old_key_until": null, "user_id": made["user_id"],
            "user_name": "alice", "created_at": made["created_at"],
        });
        assert_eq!(made, known);
        let one = format!("{WEBHOOKS}/{}", made["id"].as_str().expect("an ID"));
        assert_eq!(app.get(&one).await.json()["webhook"], known);
        assert_eq!(app.get(WEBHOOKS).await.json(), json!({"webhooks": [known]}));

        let off = json!({"enabled": false, "stack": null, "description": "all"});
        let changed = app.json(Method::PATCH, &one, &off).await.json()["webhook"].clone();
        assert_eq!(
            (&changed["enabled"], &changed["disabled_reason"], &changed["stack_id"], &changed["url"]),
            (&json!(false), &json!("a user has disabled it"), &Value::Null, &known["url"])
        );
        let test = format!("{one}/test");
        let refused = app.send(Method::POST, &test, None, None).await;
        assert!(
            refused.status == StatusCode::BAD_REQUEST && refused.text.contains("Enable it first"),
            "{}",
            refused.text
        );
        app.json(Method::PATCH, &one, &json!({"enabled": true})).await;
        assert_eq!(app.send(Method::POST, &test, None, None).await.status, StatusCode::ACCEPTED);
        assert_eq!(
            app.get(&format!("{one}/deliveries?outcome=failed&limit=1")).await.json(),
            json!({"deliveries": []})
        );

        let rotated = app.send(Method::POST, &format!("{one}/rotate"), None, None).await.json()["webhook"].clone();
        assert!(rotated["key"] != key && rotated["old_key_until"].is_string(), "{rotated}");
        assert_eq!(app.send(Method::DELETE, &one, None, None).await.status, StatusCode::NO_CONTENT);
        assert_eq!(app.get(&one).await.status, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn what_a_webhook_cannot_be_is_refused() {
        let app = App::new().await.with_webhooks(&store());
        let url = "https://example.com";
        for (body, why) in [
            (json!({}), "needs a 'url'"),
            (json!({"url": url, "handshake": false}), "The operator requires the handshake"),
            (json!({"url": url, "events": "stack.*"}), "not a list of types"),
            (json!({"url": url, "events": ["disk.full"]}), "no event has the type"),
            (json!({"url": url, "handshake": "no"}), "not true or false"),
            (json!({"url": url, "secret": "x"}), "has no 'secret'"),
            (json!({"url": "file:///etc/passwd"}), "does not begin with https://"),
        ] {
            let refused = app.json(Method::POST, WEBHOOKS, &body).await;
            assert!(
                refused.status == StatusCode::BAD_REQUEST && refused.text.contains(why),
                "{body}: {}",
                refused.text
            );
        }
        for _ in 0..3 {
            assert_eq!(app.json(Method::POST, WEBHOOKS, &json!({"url": url})).await.status, StatusCode::CREATED);
        }
        let refused = app.json(Method::POST, WEBHOOKS, &json!({"url": url})).await;
        assert!(refused.text.contains("maximum webhooks per project, 3"), "{}", refused.text);
        for path in ["nothing", "nothing/deliveries", "5bd3b0a6-5a0e-4c3e-9b5f-000000000000"] {
            assert_eq!(app.get(&format!("{WEBHOOKS}/{path}")).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        let none = App::new().await.get(WEBHOOKS).await;
        assert!(none.status == StatusCode::BAD_REQUEST && none.text.contains("[webhooks] enabled"), "{}", none.text);
    }
}
