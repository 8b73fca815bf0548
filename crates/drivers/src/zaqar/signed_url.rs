//! OS::Zaqar::SignedQueueURL

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value};

use crate::call::ZAQAR;
use crate::path;

/// A signature with which a queue is used without a token. Zaqar computes it and stores nothing.
pub(super) struct SignedQueueUrl;

const KEYS: [&str; 5] = ["signature", "expires", "paths", "methods", "project"];

/// A value for a query string.
fn encoded(text: &str) -> String {
    path::segment(text).replace("%20", "+")
}

impl TypeRules for SignedQueueUrl {}

#[async_trait]
impl Driver for SignedQueueUrl {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        if !matches!(operation, Operation::Create) {
            return Ok(Step::done());
        }
        let mut body = Map::new();
        for name in ["paths", "methods"] {
            let value = cx.facts.property(name);
            if !value.is_null() {
                body.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(life) = cx.facts.property("ttl").as_i64() {
            let end = jiff::Timestamp::from_second(clock_seconds(cx.now).saturating_add(life));
            let end = end.map_err(|_| Failure::other(Class::ValueError, "ttl is too large"))?;
            body.insert("expires".to_owned(), end.strftime("%Y-%m-%dT%H:%M:%S").to_string().into());
        }
        let queue = kiln_value::text::str(cx.facts.property("queue"));
        let signed = ZAQAR.post(cx, format!("/v2/queues/{}/share", path::segment(&queue)), Value::Map(body)).await?;
        let mut step = Step::done().id(cx.facts.physical_name.as_str());
        for key in KEYS {
            step.data.insert(key.to_owned(), signed.get(key).cloned().unwrap_or_default());
        }
        Ok(step)
    }

    /// Zaqar stores nothing: the call is repeated.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let data = |key: &str| cx.facts.data.get(key).cloned().unwrap_or_default();
        let text = |key: &str| match data(key) {
            Value::List(items) => items.iter().map(kiln_value::text::str).collect::<Vec<_>>().join(","),
            other => kiln_value::text::str(&other),
        };
        let query = || {
            let queue = kiln_value::text::str(cx.facts.property("queue"));
            let pairs = [
                ("signature", text("signature")),
                ("expires", text("expires")),
                ("paths", text("paths")),
                ("methods", text("methods")),
                ("project_id", text("project")),
                ("queue_name", queue),
            ];
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect();
            pairs.join("&")
        };
        let value = |name: &str| match name {
            "query_str" => query().into(),
            // The object is no attribute: lists have those of the type.
            "show" => Value::Null,
            _ => data(name),
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), value(name))).collect())
    }
}

/// Whole seconds of a time.
fn clock_seconds(now: f64) -> i64 {
    jiff::Timestamp::from_duration(jiff::SignedDuration::try_from_secs_f64(now).unwrap_or_default())
        .map_or(0, jiff::Timestamp::as_second)
}
