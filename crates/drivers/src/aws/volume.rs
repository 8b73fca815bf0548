//! AWS::EC2::Volume and AWS::EC2::VolumeAttachment

use async_trait::async_trait;
use kiln_value::{Map, Value};

use super::translated::Translation;

/// A volume of Cinder. Its snapshot is a backup.
pub(super) struct Volume;

/// Tags as a map.
pub(super) fn tags(tags: Option<&Value>) -> Value {
    let list = tags.and_then(Value::as_list).unwrap_or_default();
    let entry = |tag: &Value| Some((tag.str_at("Key")?.to_owned(), tag.get("Value")?.clone()));
    if list.is_empty() { Value::Null } else { Value::Map(list.iter().filter_map(entry).collect()) }
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
}

/// An attachment of a volume to a server.
pub(super) struct Attachment;

#[async_trait]
impl Translation for Attachment {
    fn properties(&self, properties: &Map) -> Map {
        let names = [("InstanceId", "instance_uuid"), ("VolumeId", "volume_id"), ("Device", "mountpoint")];
        renamed(properties, &names)
    }
}
