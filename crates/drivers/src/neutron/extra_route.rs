//! OS::Neutron::ExtraRoute and OS::Neutron::ExtraRouteSet

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, FailureKind, Found, Operation, Sibling, Siblings, Step, TypeRules};
use kiln_value::{Class, Map, Value, value};

use super::sibling_property;
use crate::call::{NEUTRON, absent_is_fine};
use crate::path;

fn router_path(router: &Value, action: &str) -> String {
    format!("/v2.0/routers/{}{action}", path::segment(router.as_str().unwrap_or_default()))
}

/// The routes of a router; `None` if it does not exist.
async fn routes_of(cx: &Context<'_>, router: &Value) -> Result<Option<Vec<Value>>, Failure> {
    let router = NEUTRON.seek(cx, router_path(router, ""), "router").await?;
    Ok(router.map(|router| router.get("routes").and_then(Value::as_list).unwrap_or_default().to_vec()))
}

/// The interfaces of the router, and, for a single route, its gateway: the next hops are behind them.
fn ways_of(this: &Sibling<'_>, siblings: &Siblings<'_>, with_gateway: bool) -> Vec<String> {
    let Some(router) = sibling_property(this, &["router", "router_id"]) else { return Vec::new() };
    let gateways = siblings.of_type("OS::Neutron::RouterGateway").filter(|_| with_gateway);
    let ways = siblings.of_type("OS::Neutron::RouterInterface").chain(gateways);
    let of_router = ways.filter(|way| sibling_property(way, &["router", "router_id"]) == Some(router));
    of_router.map(|way| way.name.to_owned()).collect()
}

/// One route of a router. Its ID is `<router>:<destination>:<next hop>`.
pub(super) struct ExtraRoute;

impl ExtraRoute {
    fn route(cx: &Context<'_>) -> Value {
        value!({
            "destination": (cx.facts.property("destination").clone()), "nexthop": (cx.facts.property("nexthop").clone()),
        })
    }

    fn id(cx: &Context<'_>) -> String {
        let [router, destination, hop] =
            ["router_id", "destination", "nexthop"].map(|name| kiln_value::text::str(cx.facts.property(name)));
        format!("{router}:{destination}:{hop}")
    }

    async fn set(cx: &Context<'_>, routes: Vec<Value>) -> Result<(), Failure> {
        let path = router_path(cx.facts.property("router_id"), "");
        NEUTRON.put(cx, path, value!({"router": {"routes": routes}})).await.map(|_| ())
    }
}

impl TypeRules for ExtraRoute {
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        ways_of(this, siblings, true)
    }
}

#[async_trait]
impl Driver for ExtraRoute {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let (router, route) = (cx.facts.property("router_id"), Self::route(cx));
        match operation {
            Operation::Create => {
                let mut present = routes_of(cx, router).await?.unwrap_or_default();
                if present.contains(&route) {
                    return Err(Failure::other(Class::Error, "Route duplicates an existing route."));
                }
                present.push(route);
                Self::set(cx, present).await?;
                Ok(Step::done().id(Self::id(cx)))
            }
            Operation::Delete => {
                let present = if cx.facts.physical_id.is_some() { routes_of(cx, router).await? } else { None };
                if let Some(mut present) = present.filter(|present| present.contains(&route)) {
                    present.retain(|other| *other != route);
                    absent_is_fine(Self::set(cx, present).await)?;
                }
                Ok(Step::done())
            }
            Operation::Update { changed, .. } if !changed.is_empty() => Ok(Step::replace()),
            _ => Ok(Step::done()),
        }
    }

    /// A route is what its router, destination and next hop say, or it does not exist.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let routes = routes_of(cx, cx.facts.property("router_id")).await?.unwrap_or_default();
        if !routes.contains(&Self::route(cx)) {
            let message = format!("The route {} could not be found.", Self::id(cx));
            return Err(Failure::new(FailureKind::NotFound, Class::NotFound, message));
        }
        let read = |name: &str| (name.to_owned(), cx.facts.property(name).clone());
        Ok(["router_id", "destination", "nexthop"].map(read).into_iter().collect())
    }

    /// A create checks first that the router does not have the route.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let routes = routes_of(cx, cx.facts.property("router_id")).await?.unwrap_or_default();
        let is_there = routes.contains(&Self::route(cx));
        Ok(if is_there { Found::Made(Step::done().id(Self::id(cx))) } else { Found::NotMade })
    }
}

/// Several routes of a router, which Neutron adds and removes without touching others. Its ID is that of the router.
pub(super) struct ExtraRouteSet;

impl ExtraRouteSet {
    async fn send(cx: &Context<'_>, action: &str, routes: &[Value]) -> Result<(), Failure> {
        let path = router_path(cx.facts.property("router"), action);
        NEUTRON.put(cx, path, value!({"router": {"routes": (routes.to_vec())}})).await.map(|_| ())
    }

    async fn refuse_known(cx: &Context<'_>, wanted: &[Value]) -> Result<(), Failure> {
        let router = cx.facts.property("router");
        let present = routes_of(cx, router).await?.unwrap_or_default();
        let Some(known) = wanted.iter().find(|route| present.contains(route)) else { return Ok(()) };
        let text = |name: &str| known.get(name).map(kiln_value::text::str).unwrap_or_default();
        let name = format!("{},{}={}", kiln_value::text::str(router), text("destination"), text("nexthop"));
        let message = format!("The physical resource for {name} exists.");
        Err(Failure::new(FailureKind::Other, Class::PhysicalResourceExists, message))
    }
}

fn routes(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_list).unwrap_or_default()
}

impl TypeRules for ExtraRouteSet {
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        ways_of(this, siblings, false)
    }
}

#[async_trait]
impl Driver for ExtraRouteSet {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let own = routes(cx.facts.properties.get("routes"));
        let router = kiln_value::text::str(cx.facts.property("router"));
        match operation {
            Operation::Create => {
                Self::refuse_known(cx, own).await?;
                Self::send(cx, "/add_extraroutes", own).await?;
                Ok(Step::done().id(router))
            }
            Operation::Update { before, .. } => {
                let before = routes(before.get("routes"));
                let gone: Vec<Value> = before.iter().filter(|route| !own.contains(route)).cloned().collect();
                let new: Vec<Value> = own.iter().filter(|route| !before.contains(route)).cloned().collect();
                // Neutron ignores routes that are gone, and routes that the router has already.
                Self::send(cx, "/remove_extraroutes", &gone).await?;
                Self::send(cx, "/add_extraroutes", &new).await?;
                Ok(Step::done())
            }
            Operation::Delete => {
                if cx.facts.physical_id.is_some() {
                    absent_is_fine(Self::send(cx, "/remove_extraroutes", own).await)?;
                }
                Ok(Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    /// The routes of the template that the router has: its others do not belong to the resource.
    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let router = cx.facts.property("router");
        let missing = || Failure::new(FailureKind::NotFound, Class::NotFound, "The router could not be found.");
        let present = routes_of(cx, router).await?.ok_or_else(missing)?;
        let own = routes(cx.facts.properties.get("routes")).iter().filter(|route| present.contains(route));
        Ok(Map::from([("router".to_owned(), router.clone()), ("routes".to_owned(), own.cloned().collect())]))
    }

    /// A create checks first that the router has none of the routes.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let router = cx.facts.property("router");
        let present = routes_of(cx, router).await?.unwrap_or_default();
        let is_there = routes(cx.facts.properties.get("routes")).iter().all(|route| present.contains(route));
        let made = Step::done().id(kiln_value::text::str(router));
        Ok(if is_there { Found::Made(made) } else { Found::NotMade })
    }
}
