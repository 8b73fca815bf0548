//! OS::Manila::ShareType

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, Method};
use kiln_value::{Map, Value, value};

use super::call;
use crate::call::absent_is_fine;
use crate::path::segment;
use crate::rest::{Edit, Shape};

/// A share type. Two of the requirements on the backend are properties of their own.
pub(super) struct ShareType;

const OWN: [&str; 2] = ["driver_handles_share_servers", "snapshot_support"];

fn given(facts: &Facts) -> Map {
    facts.property("extra_specs").as_map().cloned().unwrap_or_default()
}

#[async_trait]
impl Shape for ShareType {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        if let Some(specs) = body.get_mut("extra_specs").and_then(Value::as_map_mut) {
            specs.extend(given(cx.facts));
        }
        Ok(())
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let Some(after) = edit.changed.get("extra_specs") else { return Ok(()) };
        let path = format!("/v2/types/{}/extra_specs", segment(id));
        let before = edit.before.get("extra_specs").and_then(Value::as_map);
        for key in before.into_iter().flat_map(Map::keys).filter(|key| after.get(key).is_none()) {
            absent_is_fine(call(cx, Method::Delete, format!("{path}/{}", segment(key)), None).await)?;
        }
        if after.is_truthy() {
            call(cx, Method::Post, path, Some(value!({"extra_specs": (after.clone())}))).await?;
        }
        Ok(())
    }

    async fn live(&self, _cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let mut specs = object.get("extra_specs").and_then(Value::as_map).cloned().unwrap_or_default();
        specs.retain(|key, _| !OWN.contains(&key.as_str()));
        live.insert("extra_specs".to_owned(), if specs.is_empty() { Value::Null } else { specs.into() });
        Ok(())
    }

    /// Ordinary lists have only the public types.
    fn list_query(&self) -> Vec<(&'static str, &'static str)> {
        vec![("is_public", "all")]
    }
}
