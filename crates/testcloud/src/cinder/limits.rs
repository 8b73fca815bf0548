//! Limits, quotas, availability zones, services, and collections that are always empty.

use serde_json::json;

use super::{Call, admin_only};
use crate::nouns;
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::Fields;

fn signed(limit: Option<u64>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

/// Volumes, snapshots and GiB of both that a project uses.
fn used(world: &CloudState, project: &str) -> (i64, i64, i64) {
    let sum = |(count, size): (i64, i64), more: i64| (count + 1, size + more);
    let volumes =
        world.cinder.volumes.by("os-vol-tenant-attr:tenant_id", project).map(|row| row.int("size")).fold((0, 0), sum);
    let snapshots = world.cinder.snapshots.by("project_id", project).map(|row| row.int("size")).fold((0, 0), sum);
    (volumes.0, snapshots.0, volumes.1 + snapshots.1)
}

fn over(what: &str) -> Refusal {
    Refusal::new(413, "", what.to_owned())
}

fn check_size(world: &CloudState, gigabytes: i64, size: i64) -> Result<(), Refusal> {
    let limit = signed(world.options.quota.gigabytes);
    if limit < 0 || gigabytes + size <= limit {
        return Ok(());
    }
    Err(over(&format!(
        "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested {size}G, \
         quota is {limit}G and {gigabytes}G has been consumed."
    )))
}

/// Checks the quota of the project for `count` volumes with a total of `size` GiB.
pub(super) fn check(world: &CloudState, project: &str, count: i64, size: i64) -> Result<(), Refusal> {
    let quota = &world.options.quota;
    if quota.volumes.is_none() && quota.gigabytes.is_none() {
        return Ok(());
    }
    let (volumes, _, gigabytes) = used(world, project);
    let limit = signed(quota.volumes);
    if limit >= 0 && volumes + count > limit {
        return Err(over(&format!(
            "VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded for quota 'volumes'."
        )));
    }
    check_size(world, gigabytes, size)
}

/// Checks the quota of the project for a snapshot.
pub(super) fn check_snapshot(world: &CloudState, project: &str, size: i64) -> Result<(), Refusal> {
    let (_, snapshots, gigabytes) = used(world, project);
    let limit = signed(world.options.quota.snapshots);
    if limit >= 0 && snapshots + 1 > limit {
        return Err(over(&format!("SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) exceeded")));
    }
    check_size(world, gigabytes, size)
}

pub(super) fn route(world: &CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    if call.request.method != "GET" {
        return Err(Refusal::no_route());
    }
    let quota = &world.options.quota;
    match rest {
        ["limits"] => {
            let (volumes, snapshots, gigabytes) = used(world, &call.caller.project);
            Ok(Reply::ok(json!({"limits": {"rate": [], "absolute": {
                "maxTotalVolumes": signed(quota.volumes), "maxTotalSnapshots": signed(quota.snapshots),
                "maxTotalVolumeGigabytes": signed(quota.gigabytes), "maxTotalBackups": -1, "maxTotalBackupGigabytes": -1,
                "totalVolumesUsed": volumes, "totalGigabytesUsed": gigabytes, "totalSnapshotsUsed": snapshots,
                "totalBackupsUsed": 0, "totalBackupGigabytesUsed": 0,
            }}})))
        }
        ["os-quota-sets", project, ..] => {
            if !call.caller.owns(project) {
                admin_only(call.caller, "volume_extension:quotas:show")?;
            }
            let defaults = json!({
                "id": project, "volumes": signed(quota.volumes), "snapshots": signed(quota.snapshots),
                "gigabytes": signed(quota.gigabytes), "per_volume_gigabytes": -1, "backups": -1, "backup_gigabytes": -1,
                "groups": -1,
            });
            Ok(Reply::ok(json!({"quota_set": (nouns::quota_of(world, &format!("volume {project}"), defaults))})))
        }
        ["os-availability-zone"] => {
            let zone = |name: &str| json!({"zoneName": name, "zoneState": {"available": true}});
            let zones = ["nova", "east"].map(zone);
            Ok(Reply::ok(json!({"availabilityZoneInfo": zones})))
        }
        ["os-services"] => {
            admin_only(call.caller, "volume_extension:services:index")?;
            let service = json!({
                "binary": "cinder-volume", "host": "cinder@fake", "zone": "nova", "status": "enabled", "state": "up",
                "updated_at": world.micro_stamp(), "disabled_reason": null,
            });
            Ok(Reply::ok(json!({"services": [service]})))
        }
        ["backups"] | ["backups", "detail"] => Ok(Reply::ok(json!({"backups": []}))),
        ["backups", id] => Err(Refusal::missing(format!("Backup {id} could not be found."))),
        ["extensions"] => {
            let extensions = ["encryption", "os-quota-sets", "os-types-manage", "os-volume-type-access", "qos-specs"];
            let shown: Vec<_> = extensions.iter().map(|alias| json!({"alias": alias, "name": alias})).collect();
            Ok(Reply::ok(json!({"extensions": shown})))
        }
        _ => Err(Refusal::no_route()),
    }
}
