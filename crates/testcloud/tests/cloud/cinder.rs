//! Volumes and snapshots, and errors of Cinder.

use std::time::Duration;

use kiln_testcloud::{Quota, Testcloud};
use serde_json::json;

use crate::client::{Client, NOBODY, start};

#[tokio::test]
async fn bodies_are_checked() {
    let (cloud, demo) = start().await;
    let path = format!("/volume/v3/{}/volumes", demo.project);
    let cases = [
        (json!({}), 400, "malformed or otherwise incorrect"),
        (json!({"size": 0}), 400, "0 is less than the minimum of 1"),
        (json!({"size": "x"}), 400, "does not match '^[0-9]+$'"),
        (json!({"size": 1, "bogus": 1}), 400, "('bogus' was unexpected)"),
        (json!({"size": 1, "volume_type": "nope"}), 404, "Volume type with name nope could not be found."),
        (json!({"size": 1, "snapshot_id": NOBODY}), 404, "Snapshot"),
        (json!({"size": 1, "source_volid": NOBODY}), 404, "Volume"),
        (json!({"size": 1, "imageRef": NOBODY}), 400, "Invalid image identifier"),
        (json!({"size": 1, "availability_zone": "mars"}), 400, "Availability zone 'mars' is invalid."),
    ];
    for (body, status, part) in cases {
        demo.post(&path, json!({"volume": body})).await.refused(status, part);
    }
    demo.post(&path, json!({})).await.refused(400, "'volume' is a required property");
    demo.get(&format!("{path}/{NOBODY}")).await.refused(404, "itemNotFound");
    let id = demo.make(&path, json!({"volume": {"size": 1}})).await;
    let other = Client::new(&cloud, cloud.users().alt_demo).await;
    other.get(&format!("/volume/v3/{}/volumes/{id}", other.project)).await.refused(404, "could not be found");
    other.get(&format!("{path}/{id}")).await.refused(400, "Malformed request url");
    let types = format!("/volume/v3/{}/types", demo.project);
    demo.post(&types, json!({"volume_type": {"name": "x"}})).await.refused(403, "volume_extension:type_create");
}

#[tokio::test]
async fn states_are_checked() {
    let slow = Testcloud::builder().build_time(Duration::from_hours(1)).start().await.unwrap();
    let demo = Client::new(&slow, slow.users().demo).await;
    let volumes = format!("/volume/v3/{}/volumes", demo.project);
    let id = demo.make(&volumes, json!({"volume": {"size": 1}})).await;
    demo.delete(&format!("{volumes}/{id}")).await.refused(400, "Volume status must be available or error");

    let (_cloud, demo) = start().await;
    let base = format!("/volume/v3/{}", demo.project);
    let id = demo.make(&format!("{base}/volumes"), json!({"volume": {"size": 2, "name": "v"}})).await;
    let (one, action) = (format!("{base}/volumes/{id}"), format!("{base}/volumes/{id}/action"));
    demo.wait(&one, "available").await;
    demo.post(&action, json!({"os-extend": {"new_size": 2}})).await.refused(400, "must be greater than current size");
    demo.post(&action, json!({"bogus": {}})).await.refused(400, "There is no such action: bogus.");
    demo.post(&action, json!({"os-extend": {"new_size": 3}})).await.expect(202);
    demo.wait(&one, "available").await;
    assert_eq!(demo.get(&one).await.expect(200)["volume"]["size"], 3);

    let snapshot = demo.make(&format!("{base}/snapshots"), json!({"snapshot": {"volume_id": id}})).await;
    demo.wait(&format!("{base}/snapshots/{snapshot}"), "available").await;
    demo.delete(&one).await.refused(400, "have snapshots");
    let small = json!({"volume": {"size": 1, "snapshot_id": snapshot}});
    demo.post(&format!("{base}/volumes"), small).await.refused(400, "cannot be smaller than the snapshot size 3GB");
    demo.delete(&format!("{base}/snapshots/{snapshot}")).await.expect(202);
    demo.wait(&format!("{base}/snapshots/{snapshot}"), "").await;
    demo.delete(&one).await.expect(202);
    demo.wait(&one, "").await;
}

#[tokio::test]
async fn a_backup_is_restored_to_the_given_volume() {
    let (cloud, demo) = start().await;
    let base = format!("/volume/v3/{}", demo.project);
    let volume = async |size: i64| {
        let id = demo.make(&format!("{base}/volumes"), json!({"volume": {"size": size}})).await;
        demo.wait(&format!("{base}/volumes/{id}"), "available").await;
        id
    };
    let (saved, small, other) = (volume(2).await, volume(1).await, volume(2).await);
    let backup = demo.make(&format!("{base}/backups"), json!({"backup": {"volume_id": saved}})).await;
    demo.wait(&format!("{base}/backups/{backup}"), "available").await;
    let restore = format!("{base}/backups/{backup}/restore");
    demo.post(&restore, json!({"restore": {"volume_id": NOBODY}})).await.refused(404, "could not be found");
    demo.post(&restore, json!({"restore": {"volume_id": small}})).await.refused(400, "too small to restore");
    let volumes = cloud.snapshot().count("volumes");
    let restored = demo.post(&restore, json!({"restore": {"volume_id": other}})).await.expect(202);
    assert_eq!(restored["restore"]["volume_id"], other.as_str());
    demo.post(&restore, json!({"restore": {"volume_id": other}})).await.refused(400, "must be available");
    demo.wait(&format!("{base}/volumes/{other}"), "available").await;
    assert_eq!(cloud.snapshot().count("volumes"), volumes);
}

#[tokio::test]
async fn quotas_are_413() {
    let quota = Quota { volumes: Some(1), gigabytes: Some(5), ..Quota::default() };
    let cloud = Testcloud::builder().build_time(Duration::ZERO).quota(quota).start().await.unwrap();
    let demo = Client::new(&cloud, cloud.users().demo).await;
    let path = format!("/volume/v3/{}/volumes", demo.project);
    demo.post(&path, json!({"volume": {"size": 6}})).await.refused(413, "VolumeSizeExceedsAvailableQuota");
    demo.make(&path, json!({"volume": {"size": 1}})).await;
    demo.post(&path, json!({"volume": {"size": 1}})).await.refused(413, "VolumeLimitExceeded");
}
