//! OS::Nova::FloatingIP and OS::Nova::FloatingIPAssociation, which are floating IPs of Neutron.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Map, Value};

use crate::call::{NEUTRON, absent_is_fine};
use crate::neutron::server_address::{associate, dissociate, external_network, server_of};
use crate::rest::Shape;
use crate::{path, queue};

/// A floating IP of an external network.
pub(super) struct FloatingIp;

#[async_trait]
impl Shape for FloatingIp {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let network = match cx.facts.property("pool").as_str().filter(|pool| !pool.is_empty()) {
            Some(pool) => pool.into(),
            None => external_network(cx).await?,
        };
        body.insert("floating_network_id".to_owned(), network);
        Ok(())
    }

    async fn live(&self, _cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        live.extend(object.get("floating_network_id").map(|network| ("pool".to_owned(), network.clone())));
        Ok(())
    }
}

/// The association of a floating IP with a server. It is no object: its ID is that of the resource.
pub(super) struct FloatingIpAssociation;

fn text<'a>(properties: &'a Map, name: &str) -> &'a str {
    properties.get(name).and_then(Value::as_str).unwrap_or_default()
}

async fn tie(cx: &Context<'_>) -> Result<Step, Failure> {
    let properties = &cx.facts.properties;
    associate(cx, text(properties, "floating_ip"), text(properties, "server_id")).await.map(|()| Step::done())
}

impl TypeRules for FloatingIpAssociation {
    fn reference(&self, facts: &Facts) -> Value {
        facts.physical_name.as_str().into()
    }
}

#[async_trait]
impl Driver for FloatingIpAssociation {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, which is idempotent.
            Operation::Create => Ok(queue::now("tie").id(cx.facts.id.as_str())),
            Operation::Update { before, changed } => {
                if changed.contains_key("floating_ip") {
                    absent_is_fine(dissociate(cx, text(before, "floating_ip")).await)?;
                }
                tie(cx).await
            }
            Operation::Delete => {
                if cx.facts.physical_id.is_some() {
                    absent_is_fine(dissociate(cx, text(&cx.facts.properties, "floating_ip")).await)?;
                }
                Ok(Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, _state: &Value) -> Result<Step, Failure> {
        tie(cx).await
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let id = cx.facts.property("floating_ip");
        let path = format!("/v2.0/floatingips/{}", path::segment(&kiln_value::text::str(id)));
        let server = server_of(cx, &NEUTRON.show(cx, path, "floatingip").await?).await?;
        Ok(Map::from([("floating_ip".to_owned(), id.clone()), ("server_id".to_owned(), server)]))
    }
}
