//! AWS::EC2::Volume and AWS::EC2::VolumeAttachment

use async_trait::async_trait;
use kiln_value::{Map, Value, value};

use super::translated::Translation;

/// A volume of Cinder. Its snapshot is a backup.
pub(super) struct Volume;

/// Tags as a map.
pub(super) fn tags(tags: Option<&Value>) -> Value {
    let list = tags.and_then(Value::as_list).unwrap_or_default();
    let entry = |tag: &Value| Some((tag.str_at("Key")?.to_owned(), tag.get("Value")?.clone()));
    if list.is_empty() { Value::Null } else { Value::Map(list.iter().filter_map(entry).collect()) }
}

/// The tags of the properties that are in the metadata. Others are no tags.
pub(super) fn present_tags(properties: &Map, metadata: &Value) -> Value {
    let given = properties.get("Tags").and_then(Value::as_list).unwrap_or_default().iter();
    let tag = |tag: &Value| {
        let key = tag.str_at("Key")?;
        Some(value!({"Key": key, "Value": (metadata.get(key)?.clone())}))
    };
    given.filter_map(tag).collect()
}

/// The values in an object under other names.
pub(super) fn present(live: &Map, names: &[(&str, &str)]) -> Map {
    names.iter().filter_map(|(from, to)| Some(((*to).to_owned(), live.get(*from)?.clone()))).collect()
}

/// Properties under other names.
pub(super) fn renamed(properties: &Map, names: &[(&str, &str)]) -> Map {
    let value = |from: &str| properties.get(from).cloned().unwrap_or_default();
    names.iter().map(|(from, to)| ((*to).to_owned(), value(from))).collect()
}

#[async_trait]
impl Translation for Volume {
    fn properties(&self, properties: &Map) -> Map {
        let names = [("AvailabilityZone", "availability_zone"), ("Size", "size"), ("SnapshotId", "backup_id")];
        let mut volume = renamed(properties, &names);
        volume.insert("metadata".to_owned(), tags(properties.get("Tags")));
        volume
    }

    fn live(&self, properties: &Map, live: &Map) -> Map {
        let metadata = live.get("metadata").unwrap_or(&Value::Null);
        let mut own = present(live, &[("availability_zone", "AvailabilityZone"), ("size", "Size")]);
        own.insert("Tags".to_owned(), present_tags(properties, metadata));
        // Cinder notes it when it restores the backup.
        own.extend(metadata.get("src_backup_id").map(|backup| ("SnapshotId".to_owned(), backup.clone())));
        own
    }
}

/// An attachment of a volume to a server.
pub(super) struct Attachment;

#[async_trait]
impl Translation for Attachment {
    fn properties(&self, properties: &Map) -> Map {
        let names = [("InstanceId", "instance_uuid"), ("VolumeId", "volume_id"), ("Device", "mountpoint")];
        renamed(properties, &names)
    }

    fn live(&self, _properties: &Map, live: &Map) -> Map {
        present(live, &[("instance_uuid", "InstanceId"), ("volume_id", "VolumeId")])
    }
}
