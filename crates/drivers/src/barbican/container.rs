//! OS::Barbican::GenericContainer, CertificateContainer and RSAContainer

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map, Value, value};

use crate::rest::Shape;
use crate::validation::failed;

/// A container of this type, with references to secrets.
pub(super) struct Container(pub(super) &'static str);

/// The references: name and URL of each secret.
fn references(properties: &Map) -> Vec<(String, Value)> {
    let listed = properties.get("secrets").and_then(Value::as_list).unwrap_or_default().iter();
    let listed = listed.map(|entry| {
        let text = |key: &str| entry.get(key).map(kiln_value::text::str).unwrap_or_default();
        (text("name"), Value::from(text("ref")))
    });
    let named = properties.iter().filter(|(_, value)| !value.is_null());
    let named = named.filter_map(|(name, value)| Some((name.strip_suffix("_ref")?.to_owned(), value.clone())));
    listed.chain(named).collect()
}

#[async_trait]
impl Shape for Container {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let entry = |(name, url): (String, Value)| value!({"name": name, "secret_ref": url});
        let references: Vec<Value> = references(&cx.facts.properties).into_iter().map(entry).collect();
        body.retain(|name, _| name == "name");
        body.insert("type".to_owned(), self.0.into());
        body.insert("secret_refs".to_owned(), Value::List(references));
        Ok(())
    }

    /// barbicanclient shows the references as a map.
    async fn attribute(&self, _cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if name != "secret_refs" {
            return Ok(None);
        }
        let entries = object.get("secret_refs").and_then(Value::as_list).unwrap_or_default().iter();
        let pairs =
            entries.filter_map(|entry| Some((entry.str_at("name")?.to_owned(), entry.get("secret_ref")?.clone())));
        Ok(Some(Value::Map(pairs.collect())))
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let references = object.get("secret_refs").and_then(Value::as_list).unwrap_or_default();
        let part = |reference: &Value, key: &str| reference.get(key).cloned().unwrap_or_default();
        if self.0 == "generic" {
            let secret = |one: &Value| value!({"name": (part(one, "name")), "ref": (part(one, "secret_ref"))});
            live.insert("secrets".to_owned(), references.iter().map(secret).collect());
            return Ok(());
        }
        for property in cx.facts.properties.keys() {
            let Some(name) = property.strip_suffix("_ref") else { continue };
            let own = references.iter().find(|reference| reference.str_at("name") == Some(name));
            live.insert(property.clone(), own.map(|one| part(one, "secret_ref")).unwrap_or_default());
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let mut urls: Vec<Value> = Vec::new();
        for (_, url) in references(&facts.properties).into_iter().filter(|(_, url)| url.is_truthy()) {
            if urls.contains(&url) {
                return Err(failed("Duplicate refs are not allowed."));
            }
            urls.push(url);
        }
        Ok(())
    }
}
