//! OS::Blazar::*: what definitions cannot express.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, ResourceType};
use kiln_value::{Diagnostic, Map, Value, value};

use crate::alike::minute;
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

    /// Blazar shows the capabilities beside the other fields, and the name as that of the hypervisor.
    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let given = cx.facts.property("extra_capability").as_map().into_iter().flatten();
        let shown = given.filter_map(|(key, _)| Some((key.clone(), object.get(key)?.clone())));
        live.insert("extra_capability".to_owned(), shown.collect::<Map>().into());
        let names = [object.get("hypervisor_hostname"), object.get("service_name")];
        let given = names.into_iter().flatten().find(|name| *name == cx.facts.property("name"));
        live.insert("name".to_owned(), given.or(names[0]).cloned().unwrap_or_default());
        Ok(())
    }
}

/// The keys of a request that are not those of this type of reservation.
fn foreign(reservation: &Map) -> &'static [&'static str] {
    match reservation.get("resource_type").and_then(Value::as_str) {
        Some("physical:host") => &["vcpus", "memory_mb", "disk_gb", "affinity", "amount"],
        Some("virtual:instance") => &["hypervisor_properties", "max", "min", "before_end"],
        _ => &[],
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
            let foreign = foreign(reservation);
            reservation.retain(|key, _| !foreign.contains(&key.as_str()));
        }
        Ok(())
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let time = |of: &Value, key: &str| Value::from(of.str_at(key).map(minute));
        for name in ["start_date", "end_date"] {
            live.insert(name.to_owned(), time(object, name));
        }
        let list = |value: Option<&Value>| value.and_then(Value::as_list).unwrap_or_default().to_vec();
        // Blazar adds its own events, and the date before the end is one.
        let event =
            |event: &Value| value!({"event_type": (event.get("event_type").cloned()), "time": (time(event, "time"))});
        let events: Vec<Value> = list(object.get("events")).iter().map(event).collect();
        let before_end = events.iter().find(|event| event.str_at("event_type") == Some("before_end_lease"));
        live.insert(
            "before_end_date".to_owned(),
            before_end.and_then(|event| event.get("time")).cloned().unwrap_or_default(),
        );
        let given = list(Some(cx.facts.property("events")));
        live.insert("events".to_owned(), given.into_iter().filter(|one| events.contains(&event(one))).collect());
        let mut reservations = list(object.get("reservations"));
        let given = list(Some(cx.facts.property("reservations")));
        for (reservation, given) in reservations.iter_mut().filter_map(Value::as_map_mut).zip(&given) {
            // What was not sent counts as it is given.
            for name in foreign(reservation) {
                reservation.insert((*name).to_owned(), given.get(name).cloned().unwrap_or_default());
            }
        }
        live.insert("reservations".to_owned(), reservations.into());
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
