//! Availability zones.

use std::collections::BTreeMap;

use kiln_value::Value;

use super::{Finding, Findings, Flight};

/// The types with a zone: the service that has it, and the property.
const ZONED: [(&str, &str, &str); 4] = [
    ("OS::Nova::Server", "compute", "availability_zone"),
    ("OS::Cinder::Volume", "block-storage", "availability_zone"),
    ("OS::Neutron::Net", "network", "availability_zone_hints"),
    ("OS::Neutron::Router", "network", "availability_zone_hints"),
];

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    // The resources by service and zone.
    let mut wanted: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for planned in flight.work.resources.iter().filter(|one| one.is_certain) {
        let Some((_, service, property)) = ZONED.iter().find(|(kind, ..)| *kind == planned.kind) else { continue };
        let zones = planned.made().and_then(|made| made.get(*property));
        let zones = zones.map(|zones| zones.as_list().unwrap_or(std::slice::from_ref(zones))).unwrap_or_default();
        for zone in zones.iter().filter_map(Value::as_str) {
            // `zone:host:node`
            let zone = zone.split(':').next().unwrap_or_default();
            if !zone.is_empty() {
                wanted.entry((service, zone.to_owned())).or_default().push(planned.path.clone());
            }
        }
    }
    let mut found = Vec::new();
    for ((service, zone), paths) in &wanted {
        let list = match *service {
            "network" => flight.cloud.list(service, "/v2.0/availability_zones", &[], "availability_zones").await,
            service => flight.cloud.list(service, "/os-availability-zone", &[], "availabilityZoneInfo").await,
        };
        let list = match list {
            Ok(list) if !list.is_empty() => list,
            Ok(_) => continue,
            Err(unread) => {
                let message = format!("the availability zones of {service}: {}", unread.why());
                found.push(Finding::skipped(message, paths.clone()));
                continue;
            }
        };
        let name = |one: &Value| one.str_at("zoneName").or_else(|| one.str_at("name")).map(str::to_owned);
        let is_there = |one: &&Value| name(one).as_deref() == Some(zone.as_str());
        let is_up = |one: &Value| match one.get("zoneState") {
            Some(state) => state.get("available") != Some(&Value::Bool(false)),
            None => one.str_at("state").is_none_or(|state| state == "available"),
        };
        let same: Vec<&Value> = list.iter().filter(is_there).collect();
        if same.is_empty() {
            let message = format!("{service} has no availability zone {zone}");
            // Cinder may be configured to take its default zone instead.
            let may_work = *service == "block-storage";
            found.push(if may_work {
                Finding::warn(message, paths.clone())
            } else {
                Finding::fail(message, paths.clone())
            });
        } else if !same.into_iter().any(is_up) {
            found.push(Finding::warn(
                format!("the availability zone {zone} of {service} is not available"),
                paths.clone(),
            ));
        }
    }
    (!wanted.is_empty()).then_some(found)
}
