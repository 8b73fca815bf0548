//! OS::Manila::ShareNetwork

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, Method};
use kiln_value::{Diagnostic, Map, Value, value};

use super::call;
use crate::call::{NEUTRON, items};
use crate::path::segment;
use crate::rest::{Edit, Shape};
use crate::validation::{dependency, failed};

/// A share network with its security services.
pub(super) struct ShareNetwork;

/// The network of a subnet.
async fn network_of(cx: &Context<'_>, subnet: &str) -> Result<Value, Failure> {
    let subnet = NEUTRON.show(cx, format!("/v2.0/subnets/{}", segment(subnet)), "subnet").await?;
    Ok(subnet.get("network_id").cloned().unwrap_or_default())
}

/// Manila requires the network of a subnet.
async fn complete(cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
    let subnet = body.get("neutron_subnet_id").and_then(Value::as_str).map(str::to_owned);
    if let (Some(subnet), None) = (subnet, body.get("neutron_net_id").filter(|id| id.is_truthy())) {
        body.insert("neutron_net_id".to_owned(), network_of(cx, &subnet).await?);
    }
    Ok(())
}

/// The IDs of the services that the template names.
async fn wanted(cx: &Context<'_>) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for service in cx.facts.property("security_services").as_list().unwrap_or_default() {
        ids.push(cx.cloud.find("manila.security_service", &kiln_value::text::str(service)).await?);
    }
    Ok(ids)
}

/// The IDs of the services of the share network.
async fn present(cx: &Context<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let path = "/v2/security-services/detail".to_owned();
    let request = kiln_resource::CloudRequest::new("sharev2", Method::Get, path).query("share_network_id", id);
    let found = items(cx.cloud.call(request.microversion(super::VERSION)).await?.body, "security_services")?;
    Ok(found.iter().filter_map(|service| service.str_at("id").map(str::to_owned)).collect())
}

/// Adds and removes services.
async fn settle(cx: &Context<'_>, id: &str) -> Result<(), Failure> {
    let (wanted, present) = (wanted(cx).await?, present(cx, id).await?);
    let path = format!("/v2/share-networks/{}/action", segment(id));
    for service in present.iter().filter(|service| !wanted.contains(service)) {
        let body = value!({"remove_security_service": {"security_service_id": (service.as_str())}});
        call(cx, Method::Post, path.clone(), Some(body)).await?;
    }
    for service in wanted.iter().filter(|service| !present.contains(service)) {
        let body = value!({"add_security_service": {"security_service_id": (service.as_str())}});
        call(cx, Method::Post, path.clone(), Some(body)).await?;
    }
    Ok(())
}

#[async_trait]
impl Shape for ShareNetwork {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        complete(cx, body).await
    }

    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("security_services").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        if self.has_more(cx.facts) { settle(cx, id).await } else { Ok(()) }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        if edit.changed.contains_key("security_services") { settle(cx, id).await } else { Ok(()) }
    }

    async fn update_body(&self, cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        complete(cx, body).await
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        if cx.facts.property("neutron_network").is_null() {
            // The network of the subnet.
            live.shift_remove("neutron_network");
        }
        let mut present = present(cx, object.str_at("id").unwrap_or_default()).await?;
        let mut wanted = wanted(cx).await?;
        present.sort_unstable();
        wanted.sort_unstable();
        // The template may name them.
        let given = cx.facts.property("security_services");
        let services = if present == wanted { given.clone() } else { present.into_iter().map(Value::from).collect() };
        live.insert("security_services".to_owned(), services);
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if facts.property("nova_network").is_truthy() {
            return Err(failed("Nova network is no longer supported"));
        }
        if facts.property("neutron_network").is_truthy() && !crate::validation::is_given(facts, "neutron_subnet") {
            return Err(dependency("neutron_network", "neutron_subnet"));
        }
        Ok(())
    }

    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        facts.property("neutron_network").is_truthy() && facts.property("neutron_subnet").is_truthy()
    }

    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        let id = async |property: &str, finder: &str| {
            let id = cx.cloud.find(finder, &kiln_value::text::str(cx.facts.property(property))).await;
            id.map_err(|failure| Diagnostic::new(failure.class, failure.message))
        };
        let subnet = id("neutron_subnet", "neutron.subnet").await?;
        let network = network_of(cx, &subnet).await;
        let network = network.map_err(|failure| Diagnostic::new(failure.class, failure.message))?;
        if network.as_str() == Some(&*id("neutron_network", "neutron.network").await?) {
            return Ok(());
        }
        Err(failed("Provided neutron_subnet does not belong to provided neutron_network."))
    }
}
