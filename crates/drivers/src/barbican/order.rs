//! OS::Barbican::Order

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map, Value};

use super::secret::{payload, show_expiration};
use crate::call::BARBICAN;
use crate::path;
use crate::rest::Shape;
use crate::validation::{dependency, failed, is_given};

/// An order: Barbican makes a secret or container.
pub(super) struct Order;

/// The properties for a type of order, sorted.
fn allowed(kind: &str) -> &'static [&'static str] {
    match kind {
        "key" => &["algorithm", "bit_length", "expiration", "mode", "name", "payload_content_type"],
        "asymmetric" => {
            &["algorithm", "bit_length", "expiration", "mode", "name", "pass_phrase", "payload_content_type"]
        }
        _ => &["ca_id", "name", "profile", "request_data", "request_type", "source_container_ref", "subject_dn"],
    }
}

#[async_trait]
impl Shape for Order {
    /// The type is beside the other properties, not among them.
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let kind = body.shift_remove("type").unwrap_or_default();
        let meta = std::mem::take(body);
        body.insert("type".to_owned(), kind);
        body.insert("meta".to_owned(), Value::Map(meta));
        Ok(())
    }

    /// The parts of the key pair or certificate that was made are secrets in a container.
    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if !matches!(name, "public_key" | "private_key" | "certificate" | "intermediates") {
            return Ok(None);
        }
        let Some(container) = object.str_at("container_ref") else { return Ok(Some(Value::Null)) };
        let path = format!("/v1/containers/{}", path::segment(path::last_segment(container)));
        let container = BARBICAN.get(cx, path).await?;
        let secrets = container.get("secret_refs").and_then(Value::as_list).unwrap_or_default();
        let secret = secrets.iter().find(|secret| secret.str_at("name") == Some(name));
        match secret.and_then(|secret| secret.str_at("secret_ref")) {
            Some(url) => payload(cx, url).await.map(Some),
            None => Ok(Some(Value::Null)),
        }
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let meta = object.get("meta").and_then(Value::as_map).cloned().unwrap_or_default();
        live.retain(|name, _| name == "type");
        // A comparison shows no secret.
        live.extend(meta.into_iter().filter(|(name, _)| name != "pass_phrase"));
        show_expiration(cx, live);
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let Some(kind) = facts.property("type").as_str() else { return Ok(()) };
        if kind != "certificate" && !(is_given(facts, "algorithm") && is_given(facts, "bit_length")) {
            return Err(failed(format!("Properties algorithm and bit_length are required for {kind} type of order.")));
        }
        if kind == "certificate" && facts.property("profile").is_truthy() && !is_given(facts, "ca_id") {
            return Err(dependency("profile", "ca_id"));
        }
        let given = facts.properties.iter().filter(|(name, value)| *name != "type" && !value.is_null());
        let mut extra: Vec<&str> =
            given.map(|(name, _)| name.as_str()).filter(|name| !allowed(kind).contains(name)).collect();
        extra.sort_unstable();
        if extra.is_empty() {
            return Ok(());
        }
        Err(failed(format!(
            "Unexpected properties: {}. Only these properties are allowed for {kind} type of order: {}.",
            extra.join(", "),
            allowed(kind).join(", ")
        )))
    }
}
