//! Block devices in the create request of a server.

use kiln_resource::Facts;
use kiln_value::{Map, Value, value};

/// `block_device_mapping` and `block_device_mapping_v2` of the request, if the properties specify them.
///
/// If `block_device_mapping_v2` is present, Nova requires the image as one of its devices.
pub(super) fn add(facts: &Facts, server: &mut Map) {
    let old = facts.property("block_device_mapping").as_list().unwrap_or_default();
    if !old.is_empty() {
        server.insert("block_device_mapping".into(), old.iter().map(first_kind).collect());
    }
    let new = facts.property("block_device_mapping_v2").as_list().unwrap_or_default();
    if new.is_empty() {
        return;
    }
    let mut devices: Vec<Value> = Vec::with_capacity(new.len() + 1);
    if let Some(image) = facts.property("image").as_str() {
        devices.push(value!({
            "uuid": image,
            "source_type": "image",
            "destination_type": "local",
            "boot_index": 0,
            "delete_on_termination": true,
        }));
    }
    devices.extend(new.iter().map(second_kind));
    server.insert("block_device_mapping_v2".into(), devices.into());
}

/// A device of `block_device_mapping`: a volume or a snapshot with a device name.
fn first_kind(given: &Value) -> Value {
    let mut device = Map::new();
    for key in ["device_name", "volume_size", "delete_on_termination"] {
        if let Some(value) = given.get(key).filter(|v| v.is_truthy()) {
            device.insert(key.into(), value.clone());
        }
    }
    let (key, id) = match given.get("snapshot_id").filter(|v| v.is_truthy()) {
        Some(id) => ("snapshot_id", id),
        None => ("volume_id", given.get("volume_id").unwrap_or(&Value::Null)),
    };
    device.insert(key.into(), id.clone());
    Value::Map(device)
}

fn second_kind(given: &Value) -> Value {
    let has = |key: &str| given.get(key).filter(|v| v.is_truthy());
    let source = [("volume_id", "volume"), ("snapshot_id", "snapshot"), ("image", "image")]
        .into_iter()
        .find_map(|(key, kind)| has(key).map(|id| (id, kind)));
    let mut device = match (source, has("swap_size")) {
        (Some((id, kind)), _) => value!({
            "uuid": id,
            "source_type": kind,
            "destination_type": "volume",
            "boot_index": 0,
            "delete_on_termination": false,
        }),
        (None, Some(size)) => value!({
            "source_type": "blank",
            "destination_type": "local",
            "boot_index": -1,
            "delete_on_termination": true,
            "guest_format": "swap",
            "volume_size": size,
        }),
        (None, None) => value!({
            "source_type": "blank",
            "destination_type": "local",
            "boot_index": -1,
            "delete_on_termination": true,
        }),
    };
    let Some(entries) = device.as_map_mut() else { return Value::Null };
    if source.is_none() {
        for (key, wire) in [("ephemeral_size", "volume_size"), ("ephemeral_format", "guest_format")] {
            if let Some(value) = has(key) {
                entries.insert(wire.into(), value.clone());
            }
        }
    }
    if let Some(name) = has("device_name") {
        entries.insert("device_name".into(), name.clone());
    }
    for key in ["device_type", "disk_bus", "boot_index", "volume_size", "delete_on_termination", "volume_type"] {
        if let Some(value) = given.get(key).filter(|v| !v.is_null()) {
            entries.insert(key.into(), value.clone());
        }
    }
    device
}

/// Whether a device specifies a volume type, which Nova supports from 2.67.
pub(super) fn has_volume_type(facts: &Facts) -> bool {
    let devices = facts.property("block_device_mapping_v2").as_list().unwrap_or_default();
    devices.iter().any(|device| device.get("volume_type").is_some_and(Value::is_truthy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(properties: &Value) -> Value {
        let properties = properties.as_map().unwrap().clone();
        let mut server = Map::new();
        add(&Facts { properties, ..Facts::default() }, &mut server);
        Value::Map(server)
    }

    #[test]
    fn a_server_boots_from_a_volume() {
        let made =
            devices(&value!({"block_device_mapping_v2": [{"volume_id": "v", "boot_index": null, "image": null}]}));
        let expected = value!({"block_device_mapping_v2": [{
            "uuid": "v", "source_type": "volume", "destination_type": "volume", "boot_index": 0,
            "delete_on_termination": false,
        }]});
        assert_eq!(made, expected);
    }

    #[test]
    fn the_image_comes_first() {
        let made = devices(&value!({"image": "i", "block_device_mapping_v2": [{"swap_size": 64}]}));
        let kinds = made.get("block_device_mapping_v2").unwrap().as_list().unwrap().iter();
        let kinds: Vec<_> = kinds.map(|d| d.str_at("source_type").unwrap()).collect();
        assert_eq!(kinds, ["image", "blank"]);
    }

    #[test]
    fn old_mappings_have_device_names() {
        let given = value!({"block_device_mapping": [
            {"device_name": "vda", "volume_id": "v", "snapshot_id": null, "delete_on_termination": false}]});
        let expected = value!({"block_device_mapping": [{"device_name": "vda", "volume_id": "v"}]});
        assert_eq!(devices(&given), expected);
    }
}
