//! Free addresses (IPv4) of networks and subnets.

use std::collections::BTreeMap;

use kiln_value::{Map, Value};

use super::demand::Demand;
use super::network::{Address, Range};
use super::planned::{Does, Planned};
use super::{Finding, Findings, Flight, named};

/// The types whose objects take addresses.
const TAKERS: [&str; 3] = ["OS::Neutron::Port", "OS::Nova::Server", "OS::Neutron::FloatingIP"];

/// Where addresses are taken from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// The subnets of a network.
    Network(String),
    /// A subnet.
    Subnet(String),
    /// A subnet of the plan, by its path.
    Planned(String),
}

/// How many addresses there are.
struct Space {
    free: i64,
    /// Whether others, whose ports the caller cannot see, may have taken some of them.
    is_shared: bool,
}

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    let mut demands: BTreeMap<Place, Demand> = BTreeMap::new();
    let takers = flight.work.resources.iter().filter(|one| one.does != Does::Keep && TAKERS.contains(&one.kind));
    for planned in takers {
        let taken = |properties: Option<&Map>| properties.map(|one| takes(flight, planned, one)).unwrap_or_default();
        let (now, then) = (taken(planned.before().as_ref()), taken(planned.after));
        let of = |list: &[Place], place: &Place| {
            i64::try_from(list.iter().filter(|one| *one == place).count()).unwrap_or_default()
        };
        let mut places: Vec<&Place> = now.iter().chain(&then).collect();
        places.sort();
        places.dedup();
        for place in places {
            demands.entry(place.clone()).or_default().add(planned, of(&now, place), of(&then, place));
        }
    }
    demands.retain(|_, demand| demand.most() > 0);
    let mut found = Vec::new();
    for (place, demand) in &demands {
        let (what, space) = match place {
            Place::Network(id) => (format!("the network {id}"), of_network(flight, id).await),
            Place::Subnet(id) => (format!("the subnet {id}"), of_subnet(flight, id).await),
            Place::Planned(path) => (format!("the subnet {path}"), Ok(of_planned(flight, path))),
        };
        let space = match space {
            Ok(Some(space)) => space,
            Ok(None) => continue,
            Err(why) => {
                found.push(Finding::skipped(format!("the free addresses of {what}: {why}"), demand.resources.clone()));
                continue;
            }
        };
        let message = |more: i64| {
            let free = space.free.max(0);
            format!("{what} has {free} free addresses, and {} would need {more}", named(&demand.resources))
        };
        if demand.least() > space.free.max(0) {
            found.push(Finding::fail(message(demand.least()), demand.resources.clone()));
        } else if demand.most() > space.free.max(0) {
            let message = format!("{} until old objects are deleted", message(demand.most()));
            found.push(Finding::warn(message, demand.resources.clone()));
        } else if space.is_shared {
            let message = format!("the free addresses of {what}: ports of other projects are not visible");
            found.push(Finding::skipped(message, demand.resources.clone()));
        }
    }
    (!demands.is_empty()).then_some(found)
}

/// Where an object takes an address that it does not choose. An address that is given need not be in a pool.
fn takes(flight: &Flight<'_>, planned: &Planned<'_>, properties: &Map) -> Vec<Place> {
    let of = |network: Option<&Value>, subnet: Option<&Value>| match (subnet, network) {
        (Some(Value::Str(id)), _) => Some(Place::Subnet(id.clone())),
        (Some(unknown @ Value::Unknown(_)), _) => {
            let subnet = flight.work.referred(planned, unknown, "OS::Neutron::Subnet")?;
            Some(Place::Planned(subnet.path.clone()))
        }
        (_, Some(Value::Str(id))) => Some(Place::Network(id.clone())),
        _ => None,
    };
    let list = |name: &str| properties.get(name).and_then(Value::as_list).unwrap_or_default();
    match planned.kind {
        "OS::Neutron::Port" => {
            let fixed = list("fixed_ips");
            if fixed.is_empty() {
                return of(properties.get("network"), None).into_iter().collect();
            }
            let free = fixed.iter().filter(|one| one.str_at("ip_address").is_none());
            free.filter_map(|one| of(properties.get("network"), one.get("subnet"))).collect()
        }
        "OS::Nova::Server" => {
            let own = list("networks").iter().filter(|one| {
                let is_given = |key: &str| one.get(key).is_some_and(|value| *value != Value::Null);
                let extra = one.get("port_extra_properties").and_then(|extra| extra.get("no_fixed_ips"));
                !is_given("port") && !is_given("fixed_ip") && extra != Some(&Value::Bool(true))
            });
            own.filter_map(|one| of(one.get("network"), one.get("subnet"))).collect()
        }
        "OS::Neutron::FloatingIP" if properties.get("floating_ip_address").is_none() => {
            of(properties.get("floating_network"), properties.get("floating_subnet")).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The pools of a subnet of IPv4.
fn pools(subnet: &Value) -> Vec<Range> {
    if subnet.get("ip_version").and_then(Value::as_i64) == Some(6) {
        return Vec::new();
    }
    let pools = subnet.get("allocation_pools").and_then(Value::as_list).unwrap_or_default();
    pools.iter().filter_map(|pool| Range::of(pool.str_at("start")?, pool.str_at("end")?)).collect()
}

fn size(pools: &[Range]) -> i64 {
    pools.iter().map(|pool| i64::try_from(pool.size()).unwrap_or(i64::MAX)).fold(0, i64::saturating_add)
}

async fn of_network(flight: &Flight<'_>, id: &str) -> Result<Option<Space>, String> {
    let subnets = flight.cloud.list("network", "/v2.0/subnets", &[("network_id", id)], "subnets").await;
    let subnets = subnets.map_err(|unread| unread.why().to_owned())?;
    let all: Vec<Range> = subnets.iter().flat_map(pools).collect();
    if flight.work.may_add_subnet(id) {
        return Ok(None);
    }
    if subnets.is_empty() {
        return Err("no subnet is visible".to_owned());
    }
    // A subnet of IPv6 has enough.
    if all.is_empty() {
        return Ok(None);
    }
    space(flight, id, &all).await.map(Some)
}

async fn of_subnet(flight: &Flight<'_>, id: &str) -> Result<Option<Space>, String> {
    let subnet = flight.cloud.part("network", &format!("/v2.0/subnets/{id}"), "subnet").await;
    let subnet = subnet.map_err(|unread| unread.why().to_owned())?;
    let pools = pools(&subnet);
    match subnet.str_at("network_id") {
        Some(network) if !pools.is_empty() => space(flight, network, &pools).await.map(Some),
        _ => Ok(None),
    }
}

/// What is left of pools. Ports of others are visible to the owner of the network.
async fn space(flight: &Flight<'_>, network: &str, pools: &[Range]) -> Result<Space, String> {
    let cloud = &flight.cloud;
    let ports = cloud.list("network", "/v2.0/ports", &[("network_id", network)], "ports").await;
    let ports = ports.map_err(|unread| unread.why().to_owned())?;
    let addresses = ports.iter().flat_map(|port| port.get("fixed_ips").and_then(Value::as_list).unwrap_or_default());
    let used = addresses.filter_map(|one| Address::of(one.str_at("ip_address")?));
    let used = used.filter(|address| pools.iter().any(|pool| pool.has(*address))).count();
    let owner = cloud.part("network", &format!("/v2.0/networks/{network}"), "network").await;
    let owner =
        owner.ok().and_then(|one| one.str_at("project_id").or_else(|| one.str_at("tenant_id")).map(str::to_owned));
    let is_shared = owner.is_none() || owner != cloud.project().await;
    Ok(Space { free: size(pools) - i64::try_from(used).unwrap_or(i64::MAX), is_shared })
}

/// A subnet that the plan makes; `None` if its size is not known.
fn of_planned(flight: &Flight<'_>, path: &str) -> Option<Space> {
    let subnet = flight.work.of_type("OS::Neutron::Subnet").find(|one| one.path == path && one.makes())?;
    let made = subnet.made()?;
    let given = made.get("allocation_pools").and_then(Value::as_list).unwrap_or_default();
    let free = if given.is_empty() {
        let range = Range::of_cidr(subnet.text("cidr")?)?;
        // Not the network and the broadcast address, and not the gateway, unless it is given: then it may be outside.
        let size = i64::try_from(range.size()).unwrap_or(i64::MAX);
        if size <= 2 { size } else { size - 2 - i64::from(!made.contains_key("gateway_ip")) }
    } else {
        size(&pools(&Value::Map(made.clone())))
    };
    Some(Space { free, is_shared: false })
}
