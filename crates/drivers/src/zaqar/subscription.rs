//! OS::Zaqar::Subscription and OS::Zaqar::MistralTrigger

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map, Value, value};

use crate::call::MISTRAL;
use crate::rest::{Edit, Shape};
use crate::validation::failed;

/// The key of the ID in the response to a create.
fn created_id(object: &Value) -> Option<String> {
    object.str_at("subscription_id").map(str::to_owned)
}

/// The queue of a subscription, which Zaqar finds without it.
fn read_queue(object: &Value, live: &mut Map) {
    live.extend(object.get("source").map(|queue| ("queue_name".to_owned(), queue.clone())));
}

/// A subscription: messages of a queue are sent to a URL.
pub(super) struct Subscription;

#[async_trait]
impl Shape for Subscription {
    fn id(&self, object: &Value) -> Option<String> {
        created_id(object)
    }

    async fn live(&self, _cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        read_queue(object, live);
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        const SCHEMES: [&str; 5] = ["http", "https", "mailto", "trust+http", "trust+https"];
        let Some(subscriber) = facts.property("subscriber").as_str() else { return Ok(()) };
        if SCHEMES.contains(&subscriber.split(':').next().unwrap_or_default()) {
            return Ok(());
        }
        Err(failed(format!("The subscriber type of must be one of: {}.", SCHEMES.join(", "))))
    }
}

/// A subscription that starts a workflow for each message.
pub(super) struct MistralTrigger;

impl MistralTrigger {
    async fn fill(cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let base = cx.cloud.endpoint(MISTRAL.0).await?.unwrap_or_default();
        let base = base.trim_end_matches('/');
        let mut params = cx.facts.property("params").as_map().cloned().unwrap_or_default();
        let mut env = params.get("env").and_then(Value::as_map).cloned().unwrap_or_default();
        env.insert("notification".to_owned(), "$zaqar_message$".into());
        params.insert("env".to_owned(), Value::Map(env));
        let post = value!({
            "workflow_id": (cx.facts.property("workflow_id").clone()), "params": params,
            "input": (cx.facts.property("input").clone()),
        });
        let ttl = cx.facts.property("ttl").clone();
        body.clear();
        body.insert("subscriber".to_owned(), format!("trust+{base}/executions").into());
        body.insert("ttl".to_owned(), ttl);
        body.insert("options".to_owned(), value!({"post_data": (kiln_value::text::json(&post))}));
        Ok(())
    }
}

#[async_trait]
impl Shape for MistralTrigger {
    fn id(&self, object: &Value) -> Option<String> {
        created_id(object)
    }

    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        Self::fill(cx, body).await
    }

    async fn update_body(&self, cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        Self::fill(cx, body).await
    }

    async fn live(&self, _cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        read_queue(object, live);
        let json = object.get("options").and_then(|options| options.str_at("post_data"));
        let post: Value = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let part = |name: &str| (name.to_owned(), post.get(name).cloned().unwrap_or_default());
        live.extend(["workflow_id", "params", "input"].map(part));
        Ok(())
    }
}
