//! Ports that other servers use.

use kiln_value::Value;

use super::{Finding, Findings, Flight};

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    let mut found = Vec::new();
    let mut any = false;
    for planned in flight.work.of_type("OS::Nova::Server").filter(|one| one.is_certain) {
        let networks = planned.made().and_then(|made| made.get("networks")).and_then(Value::as_list);
        for id in networks.unwrap_or_default().iter().filter_map(|one| one.str_at("port")) {
            any = true;
            let path = planned.path.clone();
            let port = match flight.cloud.part("network", &format!("/v2.0/ports/{id}"), "port").await {
                Ok(port) => port,
                Err(unread) => {
                    let message = format!("the port {id} of {path}: {}", unread.why());
                    found.push(Finding::skipped(message, vec![path]));
                    continue;
                }
            };
            let device = port.str_at("device_id").unwrap_or_default();
            // Servers of this tree may give it back.
            if !device.is_empty() && !flight.work.objects.contains(device) {
                found.push(Finding::fail(format!("{path}: the port {id} is used by {device}"), vec![path]));
            }
        }
    }
    any.then_some(found)
}
