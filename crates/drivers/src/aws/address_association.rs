//! AWS::EC2::EIPAssociation

use std::net::IpAddr;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, FailureKind, Found, Operation, PropertyChange, Step, TypeRules};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use crate::call::{NEUTRON, absent_is_fine};
use crate::neutron::server_address::{associate, dissociate, server_of, set_port};
use crate::validation::{failed, is_given, unspecified};
use crate::{path, queue};

/// A floating IP that belongs to a server or port: it is given by its address (`EIP`) or ID (`AllocationId`), which is
/// the ID of the resource too.
pub(super) struct AddressAssociation;

fn text<'a>(properties: &'a Map, name: &str) -> Option<&'a str> {
    properties.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The ID of the floating IP.
async fn floating_ip(cx: &Context<'_>, properties: &Map) -> Result<String, Failure> {
    match (text(properties, "AllocationId"), text(properties, "EIP")) {
        (Some(id), _) => Ok(id.to_owned()),
        (None, address) => cx.cloud.find("neutron.ip", address.unwrap_or_default()).await,
    }
}

/// The port of the properties.
async fn port(cx: &Context<'_>, properties: &Map) -> Result<Value, Failure> {
    let query = match (text(properties, "NetworkInterfaceId"), text(properties, "InstanceId")) {
        (Some(port), _) => [("id", port)],
        (None, server) => [("device_id", server.unwrap_or_default())],
    };
    let ports = NEUTRON.list(cx, "/v2.0/ports", &query, "ports").await?;
    let missing = || Failure::new(FailureKind::NotFound, Class::NotFound, "Failed to update, can not found port info.");
    ports.into_iter().next().ok_or_else(missing)
}

/// The router of a VPC, which has the name of its network, gets the network of the floating IP as its gateway.
async fn open_gateway(cx: &Context<'_>, id: &str, port: &Value) -> Result<(), Failure> {
    let network = path::segment(port.str_at("network_id").unwrap_or_default());
    let network = NEUTRON.show(cx, format!("/v2.0/networks/{network}"), "network").await?;
    let name = network.str_at("name").unwrap_or_default();
    let routers = NEUTRON.list(cx, "/v2.0/routers", &[("name", name)], "routers").await?;
    let router = match routers.as_slice() {
        [] => return Ok(()),
        [router] => router.str_at("id").unwrap_or_default(),
        _ => return Err(Failure::other(Class::Error, format!("Multiple routers found with name {name}"))),
    };
    let address = NEUTRON.show(cx, format!("/v2.0/floatingips/{}", path::segment(id)), "floatingip").await?;
    let gateway = value!({"network_id": (address.get("floating_network_id").cloned())});
    let path = format!("/v2.0/routers/{}", path::segment(router));
    NEUTRON.put(cx, path, value!({"router": {"external_gateway_info": gateway}})).await.map(|_| ())
}

/// Associates. Idempotent.
async fn tie(cx: &Context<'_>) -> Result<(), Failure> {
    let properties = &cx.facts.properties;
    let id = floating_ip(cx, properties).await?;
    if text(properties, "EIP").is_some() {
        return associate(cx, &id, text(properties, "InstanceId").unwrap_or_default()).await;
    }
    let port = port(cx, properties).await?;
    open_gateway(cx, &id, &port).await?;
    set_port(cx, &id, value!({"port_id": (port.get("id").cloned())})).await
}

async fn untie(cx: &Context<'_>, properties: &Map) -> Result<(), Failure> {
    match floating_ip(cx, properties).await {
        Ok(id) => absent_is_fine(dissociate(cx, &id).await),
        Err(failure) if failure.is_not_found() => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn id(facts: &Facts) -> &str {
    text(&facts.properties, "EIP").or_else(|| text(&facts.properties, "AllocationId")).unwrap_or_default()
}

impl TypeRules for AddressAssociation {
    fn reference(&self, facts: &Facts) -> Value {
        facts.physical_name.as_str().into()
    }

    /// Another address for another server is another association.
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        let is_changed = |name: &str| change.changed.iter().any(|changed| changed == name);
        let becomes = |name: &str| is_changed(name) && change.after.get(name).is_some_and(Value::is_truthy);
        (is_changed("EIP") || is_changed("AllocationId")) && (becomes("InstanceId") || becomes("NetworkInterfaceId"))
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let has = |name: &str| is_given(facts, name);
        if has("EIP") == has("AllocationId") {
            return Err(failed("Either 'EIP' or 'AllocationId' must be provided."));
        }
        if has("EIP") && !has("InstanceId") {
            return Err(failed("Must specify 'InstanceId' if you specify 'EIP'."));
        }
        if !has("InstanceId") && !has("NetworkInterfaceId") {
            return Err(unspecified(&["InstanceId", "NetworkInterfaceId"]));
        }
        Ok(())
    }
}

#[async_trait]
impl Driver for AddressAssociation {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, which is idempotent.
            Operation::Create => Ok(queue::now("tie").id(id(cx.facts))),
            Operation::Update { before, changed } => {
                if changed.contains_key("EIP") || changed.contains_key("AllocationId") {
                    untie(cx, before).await?;
                }
                tie(cx).await?;
                Ok(Step::done().id(id(cx.facts)))
            }
            Operation::Delete => {
                if cx.facts.physical_id.is_some() {
                    untie(cx, &cx.facts.properties).await?;
                }
                Ok(Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, _state: &Value) -> Result<Step, Failure> {
        tie(cx).await.map(|()| Step::done())
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let id = cx.facts.require_id()?;
        let query = [(if id.parse::<IpAddr>().is_ok() { "floating_ip_address" } else { "id" }, id)];
        let found = NEUTRON.list(cx, "/v2.0/floatingips", &query, "floatingips").await?;
        let missing =
            || Failure::new(FailureKind::NotFound, Class::NotFound, format!("the floating IP {id} is deleted"));
        let address = found.first().ok_or_else(missing)?;
        let part = |key: &str| address.get(key).cloned().unwrap_or_default();
        let mut live = Map::from([
            ("EIP".to_owned(), part("floating_ip_address")),
            ("AllocationId".to_owned(), part("id")),
            ("NetworkInterfaceId".to_owned(), part("port_id")),
        ]);
        if cx.facts.property("InstanceId").is_truthy() {
            live.insert("InstanceId".to_owned(), server_of(cx, address).await?);
        }
        Ok(live)
    }
}
