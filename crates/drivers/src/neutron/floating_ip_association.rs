//! OS::Neutron::FloatingIPAssociation

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, Sibling, Step};
use kiln_value::{Map, Value, value};

use super::{NEUTRON, interfaces_to_ports_of};
use crate::call::absent_is_fine;
use crate::path;

/// A floating address tied to a port. It is only a state of the floating address: its id is Kiln's own.
pub(super) struct FloatingIpAssociation;

async fn put(cx: &Context<'_>, floating_ip: &Value, body: Value) -> Result<Value, Failure> {
    let id = floating_ip.as_str().unwrap_or_default();
    let path = format!("/v2.0/floatingips/{}", path::segment(id));
    NEUTRON.put(cx, path, value!({"floatingip": body})).await
}

async fn untie(cx: &Context<'_>, floating_ip: &Value) -> Result<(), Failure> {
    absent_is_fine(put(cx, floating_ip, value!({"port_id": null})).await)
}

async fn tie(cx: &Context<'_>) -> Result<Step, Failure> {
    let property = |name| cx.facts.property(name);
    let mut body = value!({"port_id": property("port_id")});
    if let (Some(body), false) = (body.as_map_mut(), property("fixed_ip_address").is_null()) {
        body.insert("fixed_ip_address".into(), property("fixed_ip_address").clone());
    }
    put(cx, property("floatingip_id"), body).await?;
    Ok(Step::done().id(cx.facts.id.as_str()))
}

#[async_trait]
impl Driver for FloatingIpAssociation {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => tie(cx).await,
            Operation::Update { before, changed } => {
                if let (true, Some(former)) = (changed.contains_key("floatingip_id"), before.get("floatingip_id")) {
                    untie(cx, former).await?;
                }
                tie(cx).await
            }
            Operation::Delete => {
                if cx.facts.physical_id.is_some() {
                    untie(cx, cx.facts.property("floatingip_id")).await?;
                }
                Ok(Step::done())
            }
            Operation::Check | Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => {
                Ok(Step::done())
            }
        }
    }

    /// Address and port are a natural key. What is not tied may be tied again.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let id = cx.facts.property("floatingip_id").as_str().unwrap_or_default();
        let address = NEUTRON.seek(cx, format!("/v2.0/floatingips/{}", path::segment(id)), "floatingip").await?;
        let port = cx.facts.property("port_id").as_str();
        let is_tied = address.is_some_and(|address| port.is_some() && address.str_at("port_id") == port);
        Ok(if is_tied { Found::Made(Step::done().id(cx.facts.id.as_str())) } else { Found::NotMade })
    }

    async fn attributes(&self, _cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        Ok(names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect())
    }

    fn dependencies(&self, this: &Sibling<'_>, siblings: &[Sibling<'_>]) -> Vec<String> {
        interfaces_to_ports_of(this, siblings)
    }
}
