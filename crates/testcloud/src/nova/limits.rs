//! Limits, quotas, availability zones, services and hypervisors.

use serde_json::{Value, json};

use super::build::HOSTS;
use super::{Call, admin_only};
use crate::nouns;
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// Servers, cores and MiB of memory that a project uses.
pub(super) fn used(world: &CloudState, project: &str) -> (i64, i64, i64) {
    world.nova.servers.by("tenant_id", project).fold((0, 0, 0), |(servers, cores, ram), server| {
        let flavor = server.get("_flavor").and_then(Value::as_object);
        let of = |field: &str| flavor.map_or(0, |flavor| flavor.int(field));
        (servers + 1, cores + of("vcpus"), ram + of("ram"))
    })
}

fn signed(limit: Option<u64>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

/// Checks the quota of the project for `count` servers of a flavor.
pub(super) fn check(world: &CloudState, project: &str, count: i64, flavor: &Row) -> Result<(), Refusal> {
    let quota = &world.options.quota;
    if quota.instances.is_none() && quota.cores.is_none() && quota.ram.is_none() {
        return Ok(());
    }
    let (servers, cores, ram) = used(world, project);
    let checks = [
        ("instances", signed(quota.instances), servers, count),
        ("cores", signed(quota.cores), cores, count * flavor.int("vcpus")),
        ("ram", signed(quota.ram), ram, count * flavor.int("ram")),
    ];
    let over = checks.into_iter().find(|(_, limit, used, more)| *limit >= 0 && used + more > *limit);
    over.map_or(Ok(()), |(name, limit, used, more)| {
        Err(Refusal::forbidden(format!(
            "Quota exceeded for {name}: Requested {more}, but already used {used} of {limit} {name}"
        )))
    })
}

pub(super) fn route(world: &CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    if call.request.method != "GET" {
        return Err(Refusal::no_route());
    }
    let quota = &world.options.quota;
    match rest {
        ["limits"] => {
            let (servers, cores, ram) = used(world, &call.caller.project);
            Ok(Reply::ok(json!({"limits": {"rate": [], "absolute": {
                "maxTotalInstances": signed(quota.instances), "maxTotalCores": signed(quota.cores),
                "maxTotalRAMSize": signed(quota.ram), "maxServerMeta": 128, "maxTotalKeypairs": signed(quota.key_pairs),
                "maxServerGroups": signed(quota.server_groups), "maxServerGroupMembers": -1,
                "totalRAMUsed": ram, "totalCoresUsed": cores, "totalInstancesUsed": servers,
                "totalServerGroupsUsed": world.nova.groups.by("project_id", &call.caller.project).count(),
            }}})))
        }
        ["os-quota-sets", project] | ["os-quota-sets", project, "defaults" | "detail"] => {
            if !call.caller.owns(project) {
                admin_only(call.caller, "os-quota-sets:show")?;
            }
            let mut defaults = json!({
                "id": project, "cores": signed(quota.cores), "instances": signed(quota.instances),
                "key_pairs": signed(quota.key_pairs), "metadata_items": 128, "ram": signed(quota.ram),
                "server_group_members": -1, "server_groups": signed(quota.server_groups),
            });
            let mut add = |limits: &[(&str, i64)]| {
                if let Some(defaults) = defaults.as_object_mut() {
                    defaults.extend(limits.iter().map(|(name, limit)| ((*name).to_owned(), json!(limit))));
                }
            };
            // Those of networks, until Nova left them to Neutron, and those of files, until it took none any more.
            if call.minor < 36 {
                add(&[("fixed_ips", -1), ("floating_ips", -1), ("security_groups", -1), ("security_group_rules", -1)]);
            }
            if call.minor < 57 {
                add(&[
                    ("injected_files", 5),
                    ("injected_file_content_bytes", 10240),
                    ("injected_file_path_bytes", 255),
                ]);
            }
            Ok(Reply::ok(json!({"quota_set": (nouns::quota_of(world, &format!("compute {project}"), defaults))})))
        }
        ["os-availability-zone", ..] => {
            let zone = json!({"zoneName": "nova", "zoneState": {"available": true}, "hosts": null});
            Ok(Reply::ok(json!({"availabilityZoneInfo": [zone]})))
        }
        ["os-services"] => {
            admin_only(call.caller, "os-services:list")?;
            let service = |(at, host): (usize, &&str)| {
                json!({
                    "id": if call.minor >= 53 { json!((at + 1).to_string()) } else { json!(at + 1) }, "binary": "nova-compute", "host": host, "zone": "nova", "status": "enabled", "state": "up",
                    "disabled_reason": null, "updated_at": world.micro_stamp(), "forced_down": false,
                })
            };
            Ok(Reply::ok(json!({"services": HOSTS.iter().enumerate().map(service).collect::<Vec<_>>()})))
        }
        ["os-hypervisors", ..] => {
            admin_only(call.caller, "os-hypervisors:list")?;
            let host = |(at, host): (usize, &&str)| json!({"id": at + 1, "hypervisor_hostname": host, "state": "up", "status": "enabled"});
            Ok(Reply::ok(json!({"hypervisors": HOSTS.iter().enumerate().map(host).collect::<Vec<_>>()})))
        }
        ["extensions"] => Ok(Reply::ok(json!({"extensions": []}))),
        _ => Err(Refusal::no_route()),
    }
}
