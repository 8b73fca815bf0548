//! OS::Neutron::RouterInterface

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, FailureKind, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Diagnostic, Map, Value};

use crate::call::{NEUTRON, absent_is_fine};
use crate::path;
use crate::validation::{conflict, one_of};

/// The interface of a router in a subnet. Its ID is `<router>:subnet_id=<subnet>` or `<router>:port_id=<port>`.
pub(super) struct RouterInterface;

/// The owners of interface ports: for an ordinary, a distributed and a highly available router.
const OWNERS: [&str; 3] =
    ["network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface"];

/// The ID, the router, and the target: `subnet_id` or `port_id`, and its ID.
fn target(facts: &Facts) -> Option<(&'static str, &str)> {
    let value = |property: &str| facts.properties.get(property).and_then(Value::as_str).filter(|v| !v.is_empty());
    value("subnet").map(|id| ("subnet_id", id)).or_else(|| value("port").map(|id| ("port_id", id)))
}

fn describe(facts: &Facts) -> Option<(String, &str, &'static str, &str)> {
    let router = facts.property("router").as_str()?;
    let (key, value) = target(facts)?;
    Some((format!("{router}:{key}={value}"), router, key, value))
}

/// The parts of a physical ID; earlier versions of Heat wrote `<router>:<subnet>`.
fn parse(id: &str) -> Option<(&str, &str, &str)> {
    let (router, rest) = id.split_once(':')?;
    let (key, value) = rest.split_once('=').unwrap_or(("subnet_id", rest));
    Some((router, key, value))
}

fn body(key: &str, value: &str) -> Value {
    Value::from_iter([(key, value)])
}

impl TypeRules for RouterInterface {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if !facts.property("subnet").is_null() && !facts.property("port").is_null() {
            return Err(conflict(&["subnet", "port"]));
        }
        one_of(facts, "subnet", "port")
    }
}

#[async_trait]
impl Driver for RouterInterface {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                let (id, router, key, value) = describe(cx.facts).ok_or_else(|| {
                    let text = "At least one of the following properties must be specified: subnet, port.";
                    Failure::other(Class::PropertyUnspecifiedError, text)
                })?;
                let path = format!("/v2.0/routers/{}/add_router_interface", path::segment(router));
                NEUTRON.put(cx, path, body(key, value)).await?;
                Ok(Step::done().id(id))
            }
            Operation::Delete => {
                if let Some((router, key, value)) = cx.facts.physical_id.as_deref().and_then(parse) {
                    let path = format!("/v2.0/routers/{}/remove_router_interface", path::segment(router));
                    absent_is_fine(NEUTRON.put(cx, path, body(key, value)).await)?;
                }
                Ok(Step::done())
            }
            Operation::Check => self.require_port(cx).await.map(|()| Step::done()),
            Operation::Update { changed, .. } if !changed.is_empty() => Ok(Step::replace()),
            Operation::Update { .. }
            | Operation::Suspend
            | Operation::Resume
            | Operation::Adopt
            | Operation::Snapshot => Ok(Step::done()),
        }
    }

    /// An interface is what its router and its subnet or port say, or it does not exist.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        self.require_port(cx).await?;
        let is_told = |name: &&str| !cx.facts.property(name).is_null();
        let told = ["router", "subnet", "port"].into_iter().filter(is_told);
        Ok(told.map(|name| (name.to_owned(), cx.facts.property(name).clone())).collect())
    }

    /// Router and subnet (or port) identify the interface: Neutron refuses a second one.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let id = describe(cx.facts).map(|(id, ..)| id);
        Ok(self.port(cx).await?.and(id).map_or(Found::NotMade, |id| Found::Made(Step::done().id(id))))
    }
}

impl RouterInterface {
    async fn require_port(&self, cx: &Context<'_>) -> Result<(), Failure> {
        let message = || format!("The Resource ({}) could not be found.", cx.facts.name);
        let missing = || Failure::new(FailureKind::NotFound, Class::EntityNotFound, message());
        self.port(cx).await?.map(drop).ok_or_else(missing)
    }

    /// The port of the interface.
    async fn port(&self, cx: &Context<'_>) -> Result<Option<Value>, Failure> {
        let Some((_, router, key, value)) = describe(cx.facts) else { return Ok(None) };
        let ports = NEUTRON.list(cx, "/v2.0/ports", &[("device_id", router)], "ports").await?;
        Ok(ports.into_iter().find(|port| {
            let addresses = port.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
            let is_interface = port.str_at("device_owner").is_some_and(|owner| OWNERS.contains(&owner));
            match key {
                "port_id" => port.str_at("id") == Some(value),
                _ => is_interface && addresses.iter().any(|a| a.str_at("subnet_id") == Some(value)),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ids_of_all_formats_are_read() {
        assert_eq!(parse("r:subnet_id=s"), Some(("r", "subnet_id", "s")));
        assert_eq!(parse("r:port_id=p"), Some(("r", "port_id", "p")));
        assert_eq!(parse("r:s"), Some(("r", "subnet_id", "s")));
        assert_eq!(parse("r"), None);
    }
}
