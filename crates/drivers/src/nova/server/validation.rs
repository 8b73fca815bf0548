//! Validation of a server beyond its schema.

use kiln_resource::Facts;
use kiln_value::{Diagnostic, Value};

use super::networks;
use crate::validation::{conflict, failed, is_given};

/// Heat's checks of a server, except those that require the cloud.
pub(super) fn validate(facts: &Facts) -> Result<(), Diagnostic> {
    let is_software_config = facts.property("user_data_format").as_str() == Some("SOFTWARE_CONFIG");
    if is_software_config && facts.metadata.get("deployments").is_some() {
        return Err(failed(
            "deployments key not allowed in resource metadata with user_data_format of SOFTWARE_CONFIG",
        ));
    }
    block_devices(facts)?;
    let wanted = facts.property("networks");
    let list = wanted.as_list().unwrap_or_default();
    for network in list {
        interface(facts, network)?;
    }
    if networks::allocation(wanted).is_some() && list.len() != 1 {
        return Err(failed(
            "Property \"allocate_network\" can not be specified if multiple network interfaces set for server.",
        ));
    }
    let has_port = list.iter().any(|network| has(network, "port"));
    if has_port && facts.property("security_groups").is_truthy() {
        return Err(conflict(&["security_groups", "networks/port"]));
    }
    Ok(())
}

fn has(map: &Value, key: &str) -> bool {
    map.get(key).is_some_and(|value| !value.is_null())
}

fn interface(facts: &Facts, network: &Value) -> Result<(), Diagnostic> {
    let allocates = network.get("allocate_network").is_some_and(Value::is_truthy);
    if !allocates && !["network", "port", "subnet"].iter().any(|key| has(network, key)) {
        return Err(failed(format!(
            "One of the properties \"network\", \"port\", \"allocate_network\" or \"subnet\" should be set for the \
             specified network of server \"{}\".",
            facts.name
        )));
    }
    let given = network.as_map().into_iter().flatten().filter(|(_, value)| !value.is_null()).count();
    if allocates && given != 1 {
        return Err(failed("Can not specify \"allocate_network\" with other keys of networks at the same time."));
    }
    if has(network, "fixed_ip") && has(network, "port") {
        return Err(conflict(&["networks/fixed_ip", "networks/port"]));
    }
    if has(network, "floating_ip") && has(network, "network") && !has(network, "port") && !has(network, "subnet") {
        return Err(failed(
            "Property \"floating_ip\" is not supported if only \"network\" is specified, because the corresponding \
             port can not be retrieved.",
        ));
    }
    Ok(())
}

fn block_devices(facts: &Facts) -> Result<(), Diagnostic> {
    let old = facts.property("block_device_mapping").as_list().unwrap_or_default();
    let new = facts.property("block_device_mapping_v2").as_list().unwrap_or_default();
    if !old.is_empty() && !new.is_empty() {
        return Err(conflict(&["block_device_mapping", "block_device_mapping_v2"]));
    }
    let has_image = is_given(facts, "image");
    let mut bootable = has_image;
    for device in old {
        let name = device.str_at("device_name").unwrap_or_default();
        bootable |= name == "vda";
        match (has(device, "volume_id"), has(device, "snapshot_id")) {
            (true, true) => return Err(conflict(&["volume_id", "snapshot_id"])),
            (false, false) => {
                let message = format!("Either volume_id or snapshot_id must be specified for device mapping {name}");
                return Err(failed(message));
            }
            _ => {}
        }
    }
    let mut boots = usize::from(has_image);
    for device in new {
        let disks = ["volume_id", "snapshot_id", "image"].iter().filter(|key| has(device, key)).count();
        let ephemeral = ["ephemeral_size", "ephemeral_format"].iter().any(|key| has(device, key));
        match disks + usize::from(has(device, "swap_size")) + usize::from(ephemeral) {
            0 => {
                return Err(failed(
                    "Either volume_id, snapshot_id, image_id, swap_size, ephemeral_size or ephemeral_format must be \
                     specified.",
                ));
            }
            1 => {}
            _ => {
                let keys = ["volume_id", "snapshot_id", "image", "swap_size", "ephemeral_size", "ephemeral_format"];
                return Err(conflict(&keys));
            }
        }
        let index = device.get("boot_index").and_then(Value::as_i64);
        if disks > 0 && index.unwrap_or(0) == 0 {
            bootable = true;
            boots += 1;
        }
    }
    if !bootable {
        return Err(failed(format!("Neither image nor bootable volume is specified for instance {}", facts.name)));
    }
    if !new.is_empty() && boots != 1 {
        return Err(failed(format!("Multiple bootable sources for instance {}.", facts.name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    fn error(properties: &Value) -> String {
        let facts = Facts { name: "s".into(), properties: properties.as_map().unwrap().clone(), ..Facts::default() };
        validate(&facts).map_or_else(|e| e.text.clone(), |()| String::new())
    }

    #[test]
    fn a_server_requires_a_boot_source() {
        assert_eq!(error(&value!({"image": "i"})), "");
        assert_eq!(error(&value!({})), "Neither image nor bootable volume is specified for instance s");
        let volume = value!([{"volume_id": "v", "boot_index": null}]);
        assert_eq!(error(&value!({"block_device_mapping_v2": volume.clone()})), "");
        let twice = value!({"image": "i", "block_device_mapping_v2": volume});
        assert_eq!(error(&twice), "Multiple bootable sources for instance s.");
    }

    #[test]
    fn interfaces_are_checked() {
        let networks = |network: Value| error(&value!({"image": "i", "networks": [network]}));
        assert!(networks(value!({"fixed_ip": "10.0.0.1"})).starts_with("One of the properties \"network\", \"port\""));
        assert_eq!(
            networks(value!({"port": "p", "fixed_ip": "10.0.0.1"})),
            "Cannot define the following properties at the same time: networks/fixed_ip, networks/port."
        );
        assert!(networks(value!({"network": "n", "floating_ip": "f"})).starts_with("Property \"floating_ip\""));
        assert!(networks(value!({"network": "n", "allocate_network": "auto"})).starts_with("Can not specify"));
    }
}
