//! OS::Cinder::*

use kiln_resource::Operation;
use kiln_value::{Class, Value, value};

use crate::openstack::ground::Ground;
use crate::openstack::neutron::network;
use crate::resource::Outcome;
use crate::scenarios;

scenarios!(a_volume, a_volume_and_its_backup, an_attachment, refusals);

async fn a_volume(ground: &Ground) {
    let given = value!({"size": 1, "description": "d", "metadata": {"a": 1}});
    let mut volume = ground.made("OS::Cinder::Volume", "volume", given).await;
    let shown =
        volume.attributes(&["size", "status", "display_name", "metadata_values", "metadata", "encrypted"]).await;
    assert_eq!(shown["size"], "1".into());
    assert_eq!(shown["status"], "available".into());
    assert_eq!(shown["display_name"], volume.facts.physical_name.as_str().into());
    assert_eq!(shown["metadata_values"], value!({"a": "1"}));
    assert_eq!(shown["metadata"], "{\"a\": \"1\"}".into());
    assert_eq!(shown["encrypted"], "False".into());

    let changed =
        value!({"size": 2, "name": "kilntest-n", "description": "e", "metadata": {"b": "2"}, "read_only": true});
    assert_eq!(volume.update(changed).await.unwrap(), Outcome::Updated);
    let shown = volume.attributes(&["size", "display_name", "display_description", "metadata_values"]).await;
    assert_eq!(shown["size"], "2".into());
    assert_eq!(shown["display_name"], "kilntest-n".into());
    assert_eq!(shown["display_description"], "e".into());
    assert_eq!(shown["metadata_values"].str_at("b"), Some("2"));
    let smaller = volume.update(value!({"size": 1, "name": "kilntest-n", "description": "e"})).await.unwrap_err();
    assert_eq!(smaller.to_string(), "NotSupported: Shrinking volume is not supported.");
    volume.delete().await;
    assert_eq!(volume.attribute("size").await, Value::Null);
    volume.delete().await;
}

async fn a_volume_and_its_backup(ground: &Ground) {
    let mut volume = ground.made("OS::Cinder::Volume", "volume", value!({"size": 1})).await;
    volume.act(Operation::Snapshot).await.unwrap();
    let backup = volume.facts.data.get("backup_id").cloned().unwrap();
    // A repeated call finds the backup.
    volume.act(Operation::Snapshot).await.unwrap();
    assert_eq!(volume.facts.data.get("backup_id"), Some(&backup));
    let restored = volume.driver().restored(&volume.facts.data).unwrap();
    assert_eq!(restored.get("backup_id"), Some(&backup));
    assert_eq!(restored.get("image"), Some(&Value::Null));
    let mut again = ground.made("OS::Cinder::Volume", "again", value!({"size": 1, "backup_id": backup})).await;
    assert_eq!(again.attribute("size").await, "1".into());
    again.delete().await;
    volume.delete_snapshot().await;
    volume.delete_snapshot().await;
    volume.delete().await;
}

async fn an_attachment(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.91.0.0/24").await;
    let given = value!({"image": "cirros", "flavor": "m1.nano", "networks": [{"network": net.id()}]});
    let mut server = ground.made("OS::Nova::Server", "server", given).await;
    let mut one = ground.made("OS::Cinder::Volume", "one", value!({"size": 1})).await;
    let mut two = ground.made("OS::Cinder::Volume", "two", value!({"size": 1})).await;
    let ends = |volume: &str| value!({"instance_uuid": server.id(), "volume_id": volume});
    let (first, second) = (ends(one.id()), ends(two.id()));
    let mut attachment = ground.made("OS::Cinder::VolumeAttachment", "attachment", first).await;
    attachment.check().await.unwrap();
    assert_eq!(one.attribute("status").await, "in-use".into());
    assert_eq!(attachment.update(second).await.unwrap(), Outcome::Updated);
    assert_eq!(attachment.id(), two.id());
    let states = [one.attribute("status").await, two.attribute("status").await];
    assert_eq!(states, [Value::from("available"), "in-use".into()]);
    attachment.delete().await;
    assert_eq!(two.attribute("status").await, "available".into());
    attachment.delete().await;
    for resource in [&mut server, &mut one, &mut two, &mut subnet, &mut net] {
        resource.delete().await;
    }
}

async fn refusals(ground: &Ground) {
    let mut volume = ground.resource("OS::Cinder::Volume", "volume");
    volume.give(value!({"image": "cirros"})).await.unwrap();
    let text = volume.validate().unwrap_err().text.clone();
    assert!(text.starts_with("If neither \"backup_id\" nor \"size\" is provided"), "{text}");
    let failure = volume.create(value!({"size": 1, "volume_type": "kiln-no-such-type"})).await.unwrap_err();
    assert!(failure.class == Class::NotFound || failure.class == Class::BadRequest, "{failure}");
    assert!(volume.facts.physical_id.is_none());
}
