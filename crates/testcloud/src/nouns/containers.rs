//! Clusters of Magnum and containers of Zun.

use serde_json::{Value, json};

use super::{Id, NOUN, Noun, States};
use crate::keystone::Caller;
use crate::neutron::find_group;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) const NOUNS: &[Noun] = &[
    Noun {
        service: Service::ContainerInfra,
        path: &["clusters"],
        many: "clusters",
        id: Id::Uuid("uuid"),
        required: &["cluster_template_id"],
        optional: &["name", "keypair", "node_count", "master_count", "discovery_url", "create_timeout"],
        defaults: r#"{"status_reason": null, "api_address": "https://10.0.0.9:6443"}"#,
        states: Some(States {
            field: "status",
            making: "CREATE_IN_PROGRESS",
            made: "CREATE_COMPLETE",
            changing: "UPDATE_IN_PROGRESS",
            deleting: "DELETE_IN_PROGRESS",
            failed: "CREATE_FAILED",
        }),
        ..NOUN
    },
    Noun {
        service: Service::Container,
        path: &["containers"],
        many: "containers",
        id: Id::Uuid("uuid"),
        required: &["image"],
        optional: &[
            "name",
            "command",
            "cpu",
            "memory",
            "environment",
            "workdir",
            "labels",
            "image_pull_policy",
            "restart_policy",
            "interactive",
            "tty",
            "image_driver",
            "hints",
            "hostname",
            "security_groups",
            "mounts",
            "nets",
        ],
        update: "PATCH",
        changes: &["name", "cpu", "memory"],
        defaults: r#"{"status_reason": null}"#,
        states: Some(States {
            field: "status",
            making: "Creating",
            made: "Running",
            changing: "",
            deleting: "Deleting",
            failed: "Error",
        }),
        ..NOUN
    },
];

/// The network interfaces of a container. Its ports are no objects of Neutron here.
pub(super) fn route(world: &mut CloudState, request: &ServiceCall, segments: &[&str]) -> Option<Outcome> {
    let ["containers", id, what @ ("network_list" | "network_attach" | "network_detach")] = segments else {
        return None;
    };
    Some(interfaces(world, request, id, what))
}

/// Zun shows the IDs of security groups, and addresses by network; neither hints nor mounts.
pub(super) fn as_zun_shows(world: &CloudState, caller: &Caller, row: &mut Row) -> Result<(), Refusal> {
    row.shift_remove("hints");
    row.shift_remove("mounts");
    let mut groups = Vec::new();
    for group in row.texts("security_groups") {
        let found = find_group(world, &caller.project, &group);
        groups.push(
            found.into_iter().next().ok_or_else(|| Refusal::missing(format!("Security group {group} not found")))?,
        );
    }
    row.put("security_groups", groups);
    for net in row.shift_remove("nets").as_ref().and_then(Value::as_array).into_iter().flatten() {
        let port = net["port"].as_str().and_then(|port| world.neutron.ports.get(port));
        let network = port.map_or_else(|| net["network"].clone(), |port| json!(port.text("network_id")));
        let first = || Value::from(format!("port-of-{}", net["network"].as_str().unwrap_or_default()));
        let port = net.get("port").cloned().unwrap_or_else(first);
        row.push("_interfaces", interface(Some(&network), port, net.get("v4-fixed-ip")));
    }
    show_addresses(row);
    Ok(())
}

fn show_addresses(row: &mut Row) {
    let mut shown = Row::new();
    for interface in row.list("_interfaces") {
        let network = interface["net_id"].as_str().unwrap_or_default();
        let address = interface["fixed_ips"][0]["ip_address"].as_str().unwrap_or("10.0.0.6");
        shown.push(network, json!({"addr": address, "version": 4, "port": interface["port_id"]}));
    }
    row.put("addresses", Value::Object(shown));
}

fn interfaces(world: &mut CloudState, request: &ServiceCall, id: &str, what: &str) -> Outcome {
    let missing = || Refusal::missing(format!("Container {id} could not be found."));
    let key = {
        let mut rows = world.nouns.rows.by("_noun", "container/containers");
        rows.find(|row| row.text("_id") == id).ok_or_else(missing)?.text("id").to_owned()
    };
    let port = world.uuid();
    let edited = world.nouns.rows.edit(&key, |row| match what {
        "network_list" => Ok(json!({"networks": row.list("_interfaces")})),
        "network_attach" => {
            let given = |name: &str| request.param(name).map(Value::from);
            let port = given("port").unwrap_or(Value::from(port));
            row.push("_interfaces", interface(given("network").as_ref(), port, given("fixed_ip").as_ref()));
            show_addresses(row);
            Ok(json!({}))
        }
        _ => {
            let port = request.param("port").unwrap_or_default();
            if !row.list("_interfaces").iter().any(|own| own["port_id"] == port) {
                return Err(Refusal::bad("The port is not attached"));
            }
            row.drop_from("_interfaces", |own| own["port_id"] == port);
            show_addresses(row);
            Ok(json!({}))
        }
    });
    Ok(Reply::ok(edited.ok_or_else(missing)??))
}

fn interface(network: Option<&Value>, port: Value, address: Option<&Value>) -> Value {
    let addresses: Vec<Value> = address.map(|address| json!({"ip_address": address})).into_iter().collect();
    let mut row = Row::new();
    row.put("net_id", network.cloned().unwrap_or_default());
    row.put("port_id", port);
    row.put("fixed_ips", addresses);
    Value::Object(row)
}
