//! OS::Blazar::*: what definitions cannot express.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, ResourceType};
use kiln_value::{Diagnostic, Map, Value};

use crate::call::BLAZAR;
use crate::rest::{Shape, shaped};
use crate::validation::failed;

/// The driver of a Blazar type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Blazar::Host" => shaped(resource_type, Host),
        "OS::Blazar::Lease" => shaped(resource_type, Lease),
        _ => None,
    }
}

/// A host that can be reserved, with further capabilities.
struct Host;

#[async_trait]
impl Shape for Host {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        for (key, value) in cx.facts.property("extra_capability").as_map().into_iter().flatten() {
            if key != "name" {
                body.insert(key.clone(), value.clone());
            }
        }
        Ok(())
    }
}

/// A lease of hosts or instances.
struct Lease;

#[async_trait]
impl Shape for Lease {
    /// Each type of reservation has its own keys.
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let Some(Value::List(reservations)) = body.get_mut("reservations") else { return Ok(()) };
        for reservation in reservations.iter_mut().filter_map(Value::as_map_mut) {
            let foreign: &[&str] = match reservation.get("resource_type").and_then(Value::as_str) {
                Some("physical:host") => &["vcpus", "memory_mb", "disk_gb", "affinity", "amount"],
                Some("virtual:instance") => &["hypervisor_properties", "max", "min", "before_end"],
                _ => &[],
            };
            reservation.retain(|key, _| !foreign.contains(&key.as_str()));
        }
        Ok(())
    }

    /// Blazar shows the properties of reservations in another form.
    async fn live(&self, _cx: &Context<'_>, _object: &Value, live: &mut Map) -> Result<(), Failure> {
        live.shift_remove("reservations");
        Ok(())
    }

    fn validates_in_cloud(&self, _facts: &Facts) -> bool {
        true
    }

    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        match BLAZAR.list(cx, "/v1/os-hosts", &[], "hosts").await {
            Ok(hosts) if hosts.is_empty() => {
                let text = "Couldn't find any host in Blazar. You must create a host before creating a lease.";
                Err(failed(text))
            }
            // If the service is not reachable, the create reports it.
            _ => Ok(()),
        }
    }
}
