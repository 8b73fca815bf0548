//! Updates the interfaces of a server to those of its template.

use std::time::Duration;

use kiln_resource::{CloudRequest, Context, Failure, FailureKind, Method};
use kiln_value::{Map, Value, value};

use super::{networks, server_path, status, task_state};
use crate::call::{NEUTRON, NOVA};
use crate::{path, queue};

/// An interface: as requested by a template (partial), or as returned by Nova (complete).
#[derive(Clone, Debug, PartialEq)]
struct Interface {
    port: Option<String>,
    network: Option<String>,
    fixed_ip: Option<String>,
    subnet: Option<String>,
}

impl Interface {
    fn of_template(network: &Value) -> Self {
        let text = |key: &str| network.str_at(key).filter(|t| !t.is_empty()).map(str::to_owned);
        Self { port: text("port"), network: text("network"), fixed_ip: text("fixed_ip"), subnet: text("subnet") }
    }

    fn of_nova(interface: &Value) -> Self {
        let address = interface.get("fixed_ips").and_then(|ips| ips.at(0));
        let text = |value: Option<&str>| value.map(str::to_owned);
        Self {
            port: text(interface.str_at("port_id")),
            network: text(interface.str_at("net_id")),
            fixed_ip: text(address.and_then(|a| a.str_at("ip_address"))),
            subnet: text(address.and_then(|a| a.str_at("subnet_id"))),
        }
    }

    /// Whether the other interface has all values of this request.
    fn holds_in(&self, other: &Self) -> bool {
        let holds = |own: &Option<String>, other: &Option<String>| own.is_none() || own == other;
        holds(&self.port, &other.port)
            && holds(&self.network, &other.network)
            && holds(&self.fixed_ip, &other.fixed_ip)
            && holds(&self.subnet, &other.subnet)
    }
}

/// The interfaces to detach and the requests to fulfil.
#[derive(Debug, PartialEq)]
struct Difference {
    /// Ports to detach.
    gone: Vec<String>,
    /// Indexes of requests without an interface.
    new: Vec<usize>,
    /// Fulfilled requests: index and port.
    kept: Vec<(usize, String)>,
}

/// Compares interfaces. An interface is kept for the request it was created for, if that request still exists.
fn difference(present: &[Interface], former: &[Interface], wanted: &[Interface]) -> Difference {
    let mut left: Vec<(&Interface, Option<&Interface>)> = present.iter().map(|is| (is, None)).collect();
    for was in former {
        if let Some((_, slot)) = left.iter_mut().find(|(is, slot)| slot.is_none() && was.holds_in(is)) {
            *slot = Some(was);
        }
    }
    let mut difference = Difference { gone: Vec::new(), new: Vec::new(), kept: Vec::new() };
    let mut open: Vec<usize> = Vec::new();
    let mut take = |index: usize, wish: &Interface, must_be_same: bool, kept: &mut Vec<(usize, String)>| {
        let fits =
            |(is, was): &(&Interface, Option<&Interface>)| wish.holds_in(is) && (!must_be_same || *was == Some(wish));
        let Some(at) = left.iter().position(fits) else { return false };
        kept.push((index, left.remove(at).0.port.clone().unwrap_or_default()));
        true
    };
    // Without former requests, Nova chose the only interface: it is detached.
    let may_keep = !former.is_empty();
    for (index, wish) in wanted.iter().enumerate() {
        if !(may_keep && take(index, wish, true, &mut difference.kept)) {
            open.push(index);
        }
    }
    for index in open {
        let kept = may_keep && wanted.get(index).is_some_and(|wish| take(index, wish, false, &mut difference.kept));
        if !kept {
            difference.new.push(index);
        }
    }
    difference.gone = left.into_iter().filter_map(|(is, _)| is.port.clone()).collect();
    difference
}

/// The ports in the properties of a server.
pub(super) fn named_ports(properties: &Map) -> Vec<&str> {
    let networks = properties.get("networks").and_then(Value::as_list).unwrap_or_default();
    networks.iter().filter_map(|network| network.str_at("port")).filter(|port| !port.is_empty()).collect()
}

/// Detaches these ports from the server; returns the time until the next poll, or `None` when none of them is attached.
pub(super) async fn detach(cx: &Context<'_>, ports: &[&str]) -> Result<Option<Duration>, Failure> {
    let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(None) };
    let path = format!("{}/os-interface", server_path(id));
    let attached = NOVA.list(cx, path.as_str(), &[], "interfaceAttachments").await?;
    let held: Vec<&str> = attached.iter().filter_map(|at| at.str_at("port_id")).filter(|p| ports.contains(p)).collect();
    let detaching = !held.is_empty() && is_detaching(cx, id).await?;
    for port in held.iter().filter(|_| !detaching) {
        match NOVA.delete(cx, format!("{path}/{}", path::segment(port))).await {
            // Nova detaches from a server that is active, paused or stopped. It may also still be executing the detach.
            Err(failure) if failure.kind == FailureKind::Conflict => {
                let server = NOVA.show(cx, server_path(id), "server").await?;
                match status(&server) {
                    "ERROR" => return Ok(None),
                    "ACTIVE" | "PAUSED" | "SHUTOFF" | "BUILD" => {}
                    _ if task_state(&server).is_some() => {}
                    // Suspended or shelved, for example: it stays so.
                    _ => return Err(failure),
                }
            }
            other => other?,
        }
    }
    if held.is_empty() && !ports.is_empty() {
        // A server that is being built gets its ports only at the end, and Neutron releases a port only after Nova has
        // released it.
        let server = NOVA.show(cx, server_path(id), "server").await?;
        let bound = NEUTRON.list(cx, "/v2.0/ports", &[("device_id", id)], "ports").await?;
        let is_bound = bound.iter().filter_map(|port| port.str_at("id")).any(|port| ports.contains(&port));
        let is_held = status(&server) == "BUILD" || (is_bound && status(&server) != "ERROR");
        return Ok(is_held.then(|| queue::pace(cx.polls)));
    }
    Ok((!held.is_empty()).then(|| queue::pace(cx.polls)))
}

/// Whether Nova is still executing a detach. It must not be requested again: the second one would release the port when
/// another server already has it.
async fn is_detaching(cx: &Context<'_>, server: &str) -> Result<bool, Failure> {
    let path = format!("{}/os-instance-actions", server_path(server));
    let actions = NOVA.list(cx, path.as_str(), &[], "instanceActions").await?;
    let Some(newest) = actions.first().filter(|action| action.str_at("action") == Some("detach_interface")) else {
        return Ok(false);
    };
    let request = newest.str_at("request_id").unwrap_or_default();
    let call = CloudRequest::new(NOVA.0, Method::Get, format!("{path}/{}", path::segment(request)));
    let action = match cx.cloud.call(call.microversion("2.51")).await {
        Ok(response) => response.body,
        // An older Nova does not show events.
        Err(failure) if !failure.is_passing() => return Ok(false),
        Err(failure) => return Err(failure),
    };
    let events = action.get("instanceAction").and_then(|action| action.get("events")).and_then(Value::as_list);
    let is_open = |event: &Value| event.get("finish_time").is_none_or(Value::is_null);
    Ok(events.is_some_and(|events| events.is_empty() || events.iter().any(is_open)))
}

/// The steps of a change of the networks.
pub(super) struct Changes {
    /// Tasks, in order.
    pub(super) tasks: Vec<Value>,
    /// IDs of the ports that were created for them.
    pub(super) made: Vec<String>,
}

/// The tasks that lead from the current interfaces to those of the template. Floating IPs are moved immediately.
pub(super) async fn changes(cx: &Context<'_>, present: &[Value], before: &Map) -> Result<Changes, Failure> {
    let wanted = cx.facts.property("networks");
    let allocation = networks::allocation(wanted);
    let wanted = if allocation.is_some() { &[] } else { wanted.as_list().unwrap_or_default() };
    let former = before.get("networks").unwrap_or(&Value::Null);
    let was_allocated = networks::allocation(former).is_some();
    let former = if was_allocated { &[] } else { former.as_list().unwrap_or_default() };
    let mut changes = Changes { tasks: Vec::new(), made: Vec::new() };
    if wanted.is_empty() && former.is_empty() && allocation.is_none() && !was_allocated {
        return Ok(changes);
    }
    let read = |networks: &[Value]| networks.iter().map(Interface::of_template).collect::<Vec<_>>();
    let is: Vec<Interface> = present.iter().map(Interface::of_nova).collect();
    let difference = difference(&is, &read(former), &read(wanted));

    let floating = |network: &Value| network.str_at("floating_ip").filter(|f| !f.is_empty()).map(str::to_owned);
    let still: Vec<String> = wanted.iter().filter_map(floating).collect();
    for gone in former.iter().filter_map(floating).filter(|address| !still.contains(address)) {
        networks::untie(cx, &gone).await?;
    }
    let own = networks::internal_ports(&cx.facts.data);
    for (index, port) in &difference.kept {
        let Some(network) = wanted.get(*index) else { continue };
        if own.contains(port) {
            networks::settle_port(cx, network, port).await?;
        }
        if let Some(floating) = floating(network) {
            networks::tie(cx, &floating, port, network.str_at("fixed_ip")).await?;
        }
    }
    let mut count = present.len();
    for port in difference.gone {
        changes.tasks.push(value!({"do": "detach", "port": port}));
        count = count.saturating_sub(1);
    }
    for index in difference.new {
        let Some(network) = wanted.get(index) else { continue };
        let mut task = attach(cx, network, index, &mut changes.made).await?;
        if let Some(task) = task.as_map_mut() {
            task.insert("before".into(), count.into());
        }
        changes.tasks.push(task);
        count += 1;
    }
    // Without requests, Nova attaches the first free port, as in a create; `none` means none.
    if wanted.is_empty() && allocation != Some("none") {
        changes.tasks.push(value!({"do": "attach", "before": count}));
    }
    Ok(changes)
}

async fn attach(cx: &Context<'_>, network: &Value, index: usize, made: &mut Vec<String>) -> Result<Value, Failure> {
    let text = |key: &str| network.str_at(key).filter(|t| !t.is_empty());
    let port = match text("port") {
        Some(port) => Some(port.to_owned()),
        // Nova does not accept a subnet or security groups here, so a port is created for them.
        None if text("subnet").is_some() || cx.facts.property("security_groups").is_truthy() => {
            let port = networks::spare_port(cx, network, index).await?;
            made.push(port.clone());
            Some(port)
        }
        None => None,
    };
    if let (Some(port), Some(floating)) = (&port, text("floating_ip")) {
        networks::tie(cx, floating, port, text("fixed_ip")).await?;
    }
    if let Some(port) = port {
        return Ok(value!({"do": "attach", "port": port}));
    }
    let id = networks::network_id(cx, network).await?;
    Ok(value!({"do": "attach", "network": id, "fixed_ip": text("fixed_ip")}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(port: &str, network: &str, address: &str) -> Interface {
        let some = |text: &str| Some(text.to_owned());
        Interface { port: some(port), network: some(network), fixed_ip: some(address), subnet: some("s") }
    }

    fn wish(network: Option<&str>, port: Option<&str>, address: Option<&str>) -> Interface {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Interface { port: text(port), network: text(network), fixed_ip: text(address), subnet: None }
    }

    #[test]
    fn unchanged_interfaces_are_kept() {
        let present = [is("p1", "a", "10.0.0.1"), is("p2", "b", "10.1.0.1")];
        let (a, b, c) = (wish(Some("a"), None, None), wish(Some("b"), None, None), wish(Some("c"), None, None));
        let got = difference(&present, &[a.clone(), b], &[a, c]);
        let expected = Difference { gone: vec!["p2".into()], new: vec![1], kept: vec![(0, "p1".into())] };
        assert_eq!(got, expected);
    }

    #[test]
    fn a_matching_interface_is_used_for_a_new_request() {
        let present = [is("p1", "a", "10.0.0.1")];
        let got = difference(&present, &[wish(Some("a"), None, None)], &[wish(None, Some("p1"), None)]);
        assert_eq!((got.gone.len(), got.new.len()), (0, 0));
    }

    #[test]
    fn the_interface_that_nova_chose_is_detached() {
        let present = [is("p1", "a", "10.0.0.1")];
        let got = difference(&present, &[], &[wish(Some("a"), None, None)]);
        assert_eq!((got.gone, got.new), (vec!["p1".to_owned()], vec![0]));
    }

    #[test]
    fn the_same_network_twice_means_two_interfaces() {
        let present = [is("p1", "a", "10.0.0.1")];
        let a = wish(Some("a"), None, None);
        let got = difference(&present, std::slice::from_ref(&a), &[a.clone(), a.clone()]);
        assert_eq!((got.gone.len(), got.new), (0, vec![1]));
    }
}
