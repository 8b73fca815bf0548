//! OS::Nova::ServerGroup

use async_trait::async_trait;
use kiln_resource::{Context, Failure};
use kiln_value::{Map, Value};

use crate::rest::Shape;

/// From this microversion, Nova accepts one policy with rules instead of a list of policies.
pub(super) const MICROVERSION: &str = "2.64";

/// A server group.
pub(super) struct ServerGroup;

#[async_trait]
impl Shape for ServerGroup {
    async fn live(&self, _cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let policy = object.get("policy").map(|policy| ("policies".to_owned(), Value::List(vec![policy.clone()])));
        live.extend(policy);
        Ok(())
    }

    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let policy = body.shift_remove("policies").as_ref().and_then(|policies| policies.at(0)).cloned();
        body.insert("policy".into(), policy.unwrap_or_default());
        if let Some(Value::Map(rules)) = body.get_mut("rules") {
            rules.retain(|_, value| !value.is_null());
            if rules.is_empty() {
                body.shift_remove("rules");
            }
        }
        Ok(())
    }
}
