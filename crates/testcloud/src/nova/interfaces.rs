//! `/servers/{id}/os-interface`.

use serde_json::{Value, json};

use super::servers::find;
use super::{Call, check_fields, create, instance_actions};
use crate::keystone::Caller;
use crate::neutron::{self, Wanted};
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(world: &mut CloudState, call: Call<'_>, id: &str, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            find(world, call, id)?;
            let ports: Vec<Value> = world.neutron.ports.by("device_id", id).map(show).collect();
            Ok(Reply::ok(json!({"interfaceAttachments": ports})))
        }
        ("GET", [port]) => {
            find(world, call, id)?;
            Ok(Reply::ok(json!({"interfaceAttachment": show(own(world, id, port)?)})))
        }
        ("POST", []) => attach(world, call, id),
        ("DELETE", [port]) => {
            let server = find(world, call, id)?.clone();
            own(world, id, port)?;
            ready(&server, "detach_interface")?;
            let made = server.texts("_made_ports").iter().any(|made| made == port);
            let (id, port) = (id.to_owned(), (*port).to_owned());
            let pause = world.options.build_time / 4;
            let request = instance_actions::begin(world, &id, "detach_interface");
            world.after(pause, move |world| {
                // As in Nova, a repeated detach releases the port even if another server has got it meanwhile.
                if made {
                    neutron::delete_port(world, &port);
                } else if world.neutron.ports.get(&port).is_some() {
                    neutron::unbind(world, &port);
                }
                instance_actions::end(world, &id, &request);
                world.nova.servers.edit(&id, |row| row.drop_from("_made_ports", |own| *own == port.as_str()));
            });
            Ok(Reply::empty(202))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn own<'a>(world: &'a CloudState, id: &str, port: &str) -> Result<&'a Row, Refusal> {
    let row = world.neutron.ports.get(port).filter(|row| row.text("device_id") == id);
    row.ok_or_else(|| Refusal::missing(format!("Port id {port} could not be found.")))
}

fn ready(server: &Row, verb: &str) -> Result<(), Refusal> {
    let (id, vm_state) = (server.text("id"), server.text("OS-EXT-STS:vm_state"));
    if matches!(vm_state, "active" | "paused" | "stopped") {
        return Ok(());
    }
    Err(Refusal::conflict(format!("Cannot '{verb}' instance {id} while it is in vm_state {vm_state}")))
}

fn show(port: &Row) -> Value {
    json!({
        "net_id": port.text("network_id"), "port_id": port.text("id"), "mac_addr": port.text("mac_address"),
        "port_state": port.text("status"), "fixed_ips": port.get("fixed_ips"), "tag": null,
    })
}

fn attach(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    let body = call.request.member("interfaceAttachment")?;
    check_fields("interfaceAttachment", &body, &["net_id", "port_id", "fixed_ips", "tag"], &[])?;
    let server = find(world, call, id)?.clone();
    ready(&server, "attach_interface")?;
    let (network, port) = (body.text("net_id"), body.text("port_id"));
    if !network.is_empty() && !port.is_empty() {
        return Err(Refusal::bad("Must not input both network_id and port_id"));
    }
    let port = if port.is_empty() {
        let mut networks = world.neutron.networks.by("project_id", &call.caller.project);
        let network = match network {
            "" => {
                let first = networks.next().map(|row| row.text("id").to_owned()).unwrap_or_default();
                if networks.next().is_some() {
                    return Err(Refusal::conflict(
                        "Multiple possible networks found, use a Network ID to be more specific.",
                    ));
                }
                first
            }
            given => given.to_owned(),
        };
        drop(networks);
        let seen = |row: &Row| call.caller.owns(row.text("project_id")) || row.flag("shared");
        if !world.neutron.networks.get(&network).is_some_and(seen) {
            return Err(Refusal::missing(format!("Network {network} could not be found.")));
        }
        let fixed_ip = body.list("fixed_ips").first().and_then(|ip| ip.get("ip_address")?.as_str()).map(str::to_owned);
        let wanted = Wanted { network, fixed_ip, groups: Vec::new() };
        let made = neutron::create_for_server(world, &Caller::service(server.text("tenant_id")), &server, &wanted);
        let made = made.map_err(|refusal| Refusal::bad(refusal.message))?;
        world.nova.servers.edit(id, |row| row.push("_made_ports", made.clone()));
        made
    } else {
        create::check_port(world, call.caller, port).map_err(|refusal| {
            let missing = world.neutron.ports.get(port).is_none();
            if missing { Refusal::missing(refusal.message) } else { Refusal::bad(refusal.message) }
        })?;
        neutron::bind(world, port, &server);
        port.to_owned()
    };
    Ok(Reply::ok(json!({"interfaceAttachment": show(own(world, id, &port)?)})))
}
