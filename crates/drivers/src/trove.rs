//! OS::Trove::*

mod cluster;
mod instance;

use std::sync::Arc;

use kiln_resource::{Context, Driver, Facts, ResourceType};
use kiln_value::{Diagnostic, Map, Value, value};

use crate::call::{TROVE, is_uuid_like};
use crate::path::segment;
use crate::rest::shaped;
use crate::validation::failed;

/// The driver of a Trove type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Trove::Instance" => Some(Arc::new(instance::Instance::new(resource_type)?)),
        "OS::Trove::Cluster" => shaped(resource_type, cluster::Cluster),
        _ => None,
    }
}

/// Why an instance is in one of the failed states.
fn reason(state: &str) -> Option<String> {
    let text = match state {
        "FAILED" => {
            "The database instance was created, but heat failed to set up the datastore. If a database instance is in \
             the FAILED state, it should be deleted and a new one should be created."
        }
        "ERROR" => "The last operation for the database instance failed due to an error.",
        _ => return None,
    };
    Some(text.to_owned())
}

/// A version requires its type.
fn check_datastore(facts: &Facts) -> Result<(), Diagnostic> {
    let is_given = |name: &str| crate::validation::is_given(facts, name);
    if is_given("datastore_version") && !is_given("datastore_type") {
        return Err(failed("Not allowed - datastore_version without datastore_type."));
    }
    Ok(())
}

fn has_datastore(facts: &Facts) -> bool {
    facts.property("datastore_type").is_truthy() && facts.property("datastore_version").is_truthy()
}

/// Whether the datastore has the version.
async fn check_version(cx: &Context<'_>) -> Result<(), Diagnostic> {
    let [kind, version] =
        ["datastore_type", "datastore_version"].map(|name| kiln_value::text::str(cx.facts.property(name)));
    let path = format!("/datastores/{}/versions", segment(&kind));
    let versions = TROVE.list(cx, path, &[], "versions").await;
    let versions = versions.map_err(|failure| Diagnostic::new(failure.class, failure.message))?;
    let names: Vec<&str> = versions.iter().filter_map(|version| version.str_at("name")).collect();
    if names.contains(&version.as_str()) {
        return Ok(());
    }
    Err(failed(format!(
        "Datastore version {version} for datastore type {kind} is not valid. Allowed versions are {}.",
        names.join(", ")
    )))
}

/// The datastore of an object. The template may have IDs, which Trove does not show.
fn read_datastore(cx: &Context<'_>, object: &Value, live: &mut Map) {
    for (property, key) in [("datastore_type", "type"), ("datastore_version", "version")] {
        live.shift_remove(property);
        let shown = object.get("datastore").and_then(|datastore| datastore.get(key));
        if let Some(shown) = shown.filter(|_| !cx.facts.property(property).as_str().is_some_and(is_uuid_like)) {
            live.insert(property.to_owned(), shown.clone());
        }
    }
}

/// The given networks to which the instance is connected, and those of others. `None` if the Trove is an old one, which
/// does not show them, or the template gives a port, which no Trove shows.
fn shown_networks(addresses: Option<&Value>, given: &[Value]) -> Option<Value> {
    let text = |map: &Value, key: &str| map.str_at(key).filter(|text| !text.is_empty()).map(str::to_owned);
    let addresses = addresses?.as_list()?.iter();
    let mut present: Vec<(String, Option<String>)> =
        addresses.filter_map(|address| Some((text(address, "network")?, text(address, "address")))).collect();
    if present.is_empty() || given.iter().any(|network| text(network, "port").is_some()) {
        return None;
    }
    let mut shown = Vec::new();
    for network in given {
        let is_it = |(id, address): &(String, Option<String>)| {
            text(network, "network").as_ref() == Some(id)
                && text(network, "fixed_ip").is_none_or(|fixed| address.as_ref() == Some(&fixed))
        };
        if let Some(at) = present.iter().position(is_it) {
            present.swap_remove(at);
            shown.push(network.clone());
        }
    }
    let others = present.into_iter().map(|(network, address)| value!({"network": network, "fixed_ip": address}));
    shown.extend(others);
    Some(shown.into())
}

/// A list of maps with only a name.
fn named(names: Option<&Value>) -> Value {
    names.and_then(Value::as_list).unwrap_or_default().iter().map(|name| value!({"name": (name.clone())})).collect()
}
