//! The quotas of the services, compared with the whole plan.

use std::collections::BTreeMap;

use kiln_value::{Map, Value};

use super::demand::Demand;
use super::planned::{Does, Planned};
use super::reader::Unread;
use super::{Finding, Findings, Flight, named};

/// What an object takes of the quotas.
type Needs = BTreeMap<(&'static str, &'static str), i64>;

/// The types that take one of a quota each.
const ONE: [(&str, (&str, &str)); 12] = [
    ("OS::Cinder::Volume", ("block-storage", "volumes")),
    ("OS::Cinder::Backup", ("block-storage", "backups")),
    ("OS::Neutron::Net", ("network", "network")),
    ("OS::Neutron::Subnet", ("network", "subnet")),
    ("OS::Neutron::SubnetPool", ("network", "subnetpool")),
    ("OS::Neutron::Port", ("network", "port")),
    ("OS::Neutron::Router", ("network", "router")),
    ("OS::Neutron::FloatingIP", ("network", "floatingip")),
    ("OS::Nova::FloatingIP", ("network", "floatingip")),
    ("OS::Neutron::SecurityGroup", ("network", "security_group")),
    ("OS::Neutron::SecurityGroupRule", ("network", "security_group_rule")),
    ("OS::Nova::ServerGroup", ("compute", "server_groups")),
];

const SERVER: &str = "OS::Nova::Server";

/// Services with quotas that are not compared, by the beginning of their types.
const OTHERS: [&str; 8] = [
    "OS::Octavia::",
    "OS::Designate::",
    "OS::Manila::",
    "OS::Trove::",
    "OS::Magnum::",
    "OS::Barbican::",
    "OS::Zun::",
    "OS::Sahara::",
];

/// The quota of a service: limit and use.
type Quota = BTreeMap<String, (i64, i64)>;

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    let mut demands: BTreeMap<(&str, &str), Demand> = BTreeMap::new();
    let (mut unknown, mut others) = (Vec::new(), Vec::new());
    for planned in flight.work.resources.iter().filter(|one| one.does != Does::Keep) {
        if planned.makes() && OTHERS.iter().any(|prefix| planned.kind.starts_with(prefix)) {
            others.push(planned.path.clone());
        }
        if planned.kind != SERVER && !ONE.iter().any(|(kind, _)| *kind == planned.kind) {
            continue;
        }
        let now = match planned.before() {
            Some(before) => needs(flight, planned, &before, &mut Vec::new()).await,
            None => Needs::new(),
        };
        let then = match planned.after {
            Some(after) => needs(flight, planned, after, &mut unknown).await,
            None => Needs::new(),
        };
        for thing in now.keys().chain(then.keys().filter(|thing| !now.contains_key(*thing))) {
            let of = |needs: &Needs| needs.get(thing).copied().unwrap_or_default();
            demands.entry(*thing).or_default().add(planned, of(&now), of(&then));
        }
    }
    demands.retain(|_, demand| demand.most() > 0);
    if demands.is_empty() && others.is_empty() {
        return None;
    }
    let mut found = Vec::new();
    let mut quotas: BTreeMap<&str, Result<Quota, Unread>> = BTreeMap::new();
    for ((service, thing), demand) in demands {
        if !quotas.contains_key(service) {
            quotas.insert(service, quota(flight, service).await);
        }
        match quotas.get(service) {
            Some(Ok(quota)) => found.extend(exceeded(service, thing, quota, demand)),
            Some(Err(unread)) => {
                let message = format!("the quota of {service}: {}", unread.why());
                if !found.iter().any(|one: &Finding| one.message == message) {
                    found.push(Finding::skipped(message, Vec::new()));
                }
            }
            None => {}
        }
    }
    if !unknown.is_empty() {
        let message = format!("how much {} needs is known only later", named(&unknown));
        found.push(Finding::skipped(message, unknown));
    }
    if !others.is_empty() {
        let message = format!("the quota of the service of {} is not compared", named(&others));
        found.push(Finding::skipped(message, others));
    }
    Some(found)
}

/// What exceeds a limit. Names a group by its first members.
fn exceeded(service: &str, thing: &str, quota: &Quota, demand: Demand) -> Option<Finding> {
    let (limit, used) = *quota.get(thing)?;
    if limit < 0 {
        return None;
    }
    let (least, most) = (demand.least(), demand.most());
    let needs = |more: i64| {
        let names = named(&demand.resources);
        format!("{service} allows {limit} {thing}, {used} are used, and {names} would need {more} more")
    };
    if least > 0 && used + least > limit {
        return Some(Finding::fail(needs(least), demand.resources));
    }
    if most > 0 && used + most > limit {
        let message = format!("{} until old objects are deleted", needs(most));
        return Some(Finding::warn(message, demand.resources));
    }
    None
}

/// What an object with these properties takes. What depends on values that are known only later is added to `unknown`.
async fn needs(flight: &Flight<'_>, planned: &Planned<'_>, properties: &Map, unknown: &mut Vec<String>) -> Needs {
    let mut needs = Needs::new();
    if let Some((_, thing)) = ONE.iter().find(|(kind, _)| *kind == planned.kind) {
        needs.insert(*thing, 1);
    }
    match planned.kind {
        "OS::Cinder::Volume" => match properties.get("size") {
            Some(Value::Unknown(_)) => unknown.push(planned.path.clone()),
            size => _ = needs.insert(("block-storage", "gigabytes"), size.and_then(Value::as_i64).unwrap_or_default()),
        },
        SERVER => server(flight, planned, properties, &mut needs, unknown).await,
        _ => {}
    }
    needs
}

async fn server(
    flight: &Flight<'_>,
    planned: &Planned<'_>,
    properties: &Map,
    needs: &mut Needs,
    unknown: &mut Vec<String>,
) {
    needs.insert(("compute", "instances"), 1);
    let flavor = match properties.get("flavor").and_then(Value::as_str) {
        Some(id) => flight.cloud.flavor(id).await.ok(),
        None => None,
    };
    match flavor {
        Some(flavor) => {
            for (field, thing) in [("vcpus", "cores"), ("ram", "ram")] {
                needs.insert(("compute", thing), flavor.get(field).and_then(Value::as_i64).unwrap_or_default());
            }
        }
        None => unknown.push(planned.path.clone()),
    }
    // Nova makes a port for each network that is given without one.
    let networks = properties.get("networks").and_then(Value::as_list).unwrap_or_default();
    let own = networks.iter().filter(|one| {
        let is_given = |key: &str| one.get(key).is_some_and(|value| *value != Value::Null);
        !is_given("port") && !is_given("allocate_network") && (is_given("network") || is_given("subnet"))
    });
    let own = i64::try_from(own.count()).unwrap_or_default();
    if own > 0 {
        needs.insert(("network", "port"), own);
    }
    // And a volume for each disk of a volume that does not exist yet.
    let disks = properties.get("block_device_mapping_v2").and_then(Value::as_list).unwrap_or_default();
    for disk in disks {
        let is_given = |key: &str| disk.get(key).is_some_and(|value| *value != Value::Null);
        if !is_given("volume_id")
            && (is_given("image") || is_given("snapshot_id"))
            && let Some(size) = disk.get("volume_size").and_then(Value::as_i64)
        {
            *needs.entry(("block-storage", "volumes")).or_default() += 1;
            *needs.entry(("block-storage", "gigabytes")).or_default() += size;
        }
    }
}

/// The quota of the project.
async fn quota(flight: &Flight<'_>, service: &str) -> Result<Quota, Unread> {
    let cloud = &flight.cloud;
    if service == "network" {
        let project = cloud.project().await.ok_or_else(|| Unread::Failed("the project is not known".to_owned()))?;
        let details = cloud.part("network", &format!("/v2.0/quotas/{project}/details"), "quota").await?;
        let entry = |(name, one): (&String, &Value)| {
            let number = |key: &str| one.get(key).and_then(Value::as_i64);
            Some((name.clone(), (number("limit")?, number("used")? + number("reserved").unwrap_or_default())))
        };
        return Ok(details.as_map().map(|map| map.iter().filter_map(entry).collect()).unwrap_or_default());
    }
    let limits = cloud.part(service, "/limits", "limits").await?;
    let names: &[(&str, &str, &str)] = if service == "compute" {
        &[
            ("instances", "maxTotalInstances", "totalInstancesUsed"),
            ("cores", "maxTotalCores", "totalCoresUsed"),
            ("ram", "maxTotalRAMSize", "totalRAMUsed"),
            ("server_groups", "maxServerGroups", "totalServerGroupsUsed"),
        ]
    } else {
        &[
            ("volumes", "maxTotalVolumes", "totalVolumesUsed"),
            ("gigabytes", "maxTotalVolumeGigabytes", "totalGigabytesUsed"),
            ("backups", "maxTotalBackups", "totalBackupsUsed"),
        ]
    };
    let absolute = limits.get("absolute").cloned().unwrap_or_default();
    let number = |key: &str| absolute.get(key).and_then(Value::as_i64);
    let entry = |(name, limit, used): &(&str, &str, &str)| Some(((*name).to_owned(), (number(limit)?, number(used)?)));
    Ok(names.iter().filter_map(entry).collect())
}
