//! OS::Barbican::Secret

use async_trait::async_trait;
use base64::Engine as _;
use kiln_resource::{CloudRequest, Context, Facts, Failure, Method};
use kiln_value::{Diagnostic, Map, Value};

use crate::alike::seconds;
use crate::call::BARBICAN;
use crate::path;
use crate::rest::Shape;
use crate::validation::{dependency, failed, is_given, value_dependency};

/// A secret, whose payload may be read as an attribute.
pub(super) struct Secret;

/// The payload of the secret with this URL; null if it has none.
pub(super) async fn payload(cx: &Context<'_>, url: &str) -> Result<Value, Failure> {
    let path = format!("/v1/secrets/{}", path::segment(path::last_segment(url)));
    let secret = BARBICAN.get(cx, path.clone()).await?;
    let types = secret.get("content_types").and_then(|types| types.str_at("default"));
    let Some(kind) = types.or_else(|| secret.str_at("payload_content_type")) else { return Ok(Value::Null) };
    let mut request = CloudRequest::new(BARBICAN.0, Method::Get, format!("{path}/payload"));
    request.headers.push(("accept".to_owned(), kind.to_owned()));
    Ok(cx.cloud.call(request).await?.body)
}

/// Barbican shows the time of the expiration in another form: it stays as it is given if it is the same.
pub(super) fn show_expiration(cx: &Context<'_>, live: &mut Map) {
    let given = cx.facts.property("expiration");
    let Some(shown) = live.get_mut("expiration") else { return };
    let time = |value: &Value| value.as_str().and_then(seconds);
    if time(given).is_some() && time(given) == time(shown) {
        *shown = given.clone();
    }
}

#[async_trait]
impl Shape for Secret {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        // barbicanclient specifies the type of a plain text.
        if body.contains_key("payload") && !body.contains_key("payload_content_type") {
            body.insert("payload_content_type".to_owned(), "text/plain".into());
        }
        Ok(())
    }

    async fn attribute(&self, cx: &Context<'_>, _object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        match (name, cx.facts.physical_id.as_deref()) {
            ("decrypted_payload", Some(id)) => payload(cx, id).await.map(Some),
            _ => Ok(None),
        }
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let kind = object.get("content_types").and_then(|types| types.get("default")).cloned();
        live.insert("payload_content_type".to_owned(), kind.unwrap_or_default());
        show_expiration(cx, live);
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let (kind, encoding) = (facts.property("payload_content_type"), facts.property("payload_content_encoding"));
        if kind.is_truthy() && !is_given(facts, "payload") {
            return Err(dependency("payload_content_type", "payload"));
        }
        if kind.as_str() == Some("application/octet-stream") {
            if !is_given(facts, "payload_content_encoding") {
                return Err(failed(
                    "Property unspecified. For 'application/octet-stream' value of 'payload_content_type' property, \
                     'payload_content_encoding' property must be specified.",
                ));
            }
            let payload = facts.property("payload").as_str();
            let is_invalid = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).is_err();
            if payload.is_some_and(is_invalid) {
                return Err(failed(
                    "Invalid payload for specified 'base64' value of 'payload_content_encoding' property.",
                ));
            }
        }
        let is_text = kind.as_str() == Some("text/plain");
        if encoding.is_truthy() && (is_text || !is_given(facts, "payload_content_type")) {
            let (name, other) = ("payload_content_encoding", "payload_content_type");
            return Err(value_dependency(name, other, "application/octet-stream"));
        }
        Ok(())
    }
}
