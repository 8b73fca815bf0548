//! OS::Trove::*

mod cluster;
mod instance;

use std::sync::Arc;

use kiln_resource::{Context, Driver, Facts, ResourceType};
use kiln_value::{Diagnostic, Value, value};

use crate::call::TROVE;
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

/// A list of maps with only a name.
fn named(names: Option<&Value>) -> Value {
    names.and_then(Value::as_list).unwrap_or_default().iter().map(|name| value!({"name": (name.clone())})).collect()
}
