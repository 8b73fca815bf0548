//! OS::Neutron::Firewall and OS::Neutron::FirewallRule

use async_trait::async_trait;
use kiln_resource::{Context, Failure};
use kiln_value::{Map, Value};

use crate::rest::{Edit, Shape};

/// A firewall.
pub(super) struct Firewall;

#[async_trait]
impl Shape for Firewall {
    async fn attribute(&self, _cx: &Context<'_>, _object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        let text = "This attribute is currently unsupported in neutron firewall resource.";
        Ok((name == "shared").then(|| text.into()))
    }
}

/// A rule of a firewall policy. For Neutron, no protocol means any.
pub(super) struct FirewallRule;

fn any_protocol(body: &mut Map) {
    if let Some(protocol) = body.get_mut("protocol").filter(|protocol| protocol.as_str() == Some("any")) {
        *protocol = Value::Null;
    }
}

#[async_trait]
impl Shape for FirewallRule {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        any_protocol(body);
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        any_protocol(body);
        Ok(())
    }

    async fn live(&self, _cx: &Context<'_>, _object: &Value, live: &mut Map) -> Result<(), Failure> {
        if let Some(protocol) = live.get_mut("protocol").filter(|protocol| protocol.is_null()) {
            *protocol = "any".into();
        }
        Ok(())
    }
}
