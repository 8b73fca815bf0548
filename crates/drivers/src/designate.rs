//! OS::Designate::*: what definitions cannot express.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, ResourceType};
use kiln_value::{Diagnostic, Map, Value};

use crate::call::DESIGNATE;
use crate::path;
use crate::rest::{Edit, Shape, shaped};
use crate::validation::{failed, is_given};

/// The driver of a Designate type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Designate::Zone" => shaped(resource_type, Zone),
        "OS::Designate::RecordSet" => shaped(resource_type, RecordSet),
        _ => None,
    }
}

/// Values that are empty are neither set nor removed, as in Heat.
fn drop_empty(body: &mut Map) {
    body.retain(|_, value| value.is_truthy());
}

/// A zone.
struct Zone;

#[async_trait]
impl Shape for Zone {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        drop_empty(body);
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        drop_empty(body);
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let needed = match facts.property("type").as_str() {
            Some("PRIMARY") => "email",
            Some("SECONDARY") => "masters",
            _ => return Ok(()),
        };
        // `primaries` is another name of `masters`.
        if is_given(facts, needed) || (needed == "masters" && is_given(facts, "primaries")) {
            return Ok(());
        }
        let kind = kiln_value::text::str(facts.property("type"));
        Err(failed(format!("Property {needed} is required for zone type {kind}")))
    }
}

/// The records of a name.
struct RecordSet;

#[async_trait]
impl Shape for RecordSet {
    /// A name without a final dot is relative to the zone.
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        drop_empty(body);
        let name = body.get("name").map(kiln_value::text::str).unwrap_or_default();
        if !name.ends_with('.') {
            let zone = kiln_value::text::str(cx.facts.property("zone"));
            let zone = DESIGNATE.get(cx, format!("/v2/zones/{}", path::segment(&zone))).await?;
            let full = format!("{name}.{}", zone.str_at("name").unwrap_or_default());
            body.insert("name".to_owned(), full.into());
        }
        Ok(())
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let given = cx.facts.property("name").as_str().unwrap_or_default();
        if object.str_at("name").is_some_and(|name| name.starts_with(&format!("{given}."))) {
            live.insert("name".to_owned(), given.into());
        }
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        drop_empty(body);
        Ok(())
    }
}
