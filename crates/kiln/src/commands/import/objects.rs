//! The file that says which object each resource of a template becomes, and the files of other tools that say so.

use std::path::{Path, PathBuf};

use kiln_value::Value;

use crate::commands::export::{Object, objects};
use crate::commands::terraform::type_of;

/// The file beside a template: `web.yaml` → `web.import.json`.
pub(super) fn beside(template: &Path) -> PathBuf {
    template.with_extension("import.json")
}

/// An object that a file of another tool names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) resource_type: String,
    pub(super) id: String,
    pub(super) name: String,
}

/// The objects in a state of Terraform or OpenTofu (format 4), and the addresses of resources that Kiln has no type for.
pub(super) fn of_state(state: &Value) -> (Vec<Named>, Vec<String>) {
    let (mut objects, mut unknown) = (Vec::new(), Vec::new());
    for resource in state.get("resources").and_then(Value::as_list).into_iter().flatten() {
        let text = |key: &str| resource.str_at(key).unwrap_or_default();
        if text("mode") != "managed" || !text("type").starts_with("openstack_") {
            continue;
        }
        for instance in resource.get("instances").and_then(Value::as_list).into_iter().flatten() {
            let name = match instance.get("index_key") {
                Some(key) => format!("{}_{}", text("name"), kiln_value::text::str(key)),
                None => text("name").to_owned(),
            };
            let id = instance.get("attributes").and_then(|attributes| attributes.str_at("id"));
            match (type_of(text("type")), id) {
                (Some(named), Some(id)) => {
                    // Terraform writes the owner before some IDs.
                    let id = if named.owner.is_some() { id.rsplit('/').next().unwrap_or_default() } else { id };
                    let (resource_type, id) = (named.resource_type.to_owned(), id.to_owned());
                    objects.push(Named { resource_type, id, name });
                }
                _ => unknown.push(format!("{}.{name}", text("type"))),
            }
        }
    }
    (objects, unknown)
}

/// The type of OpenStack whose objects a type has.
fn native(resource_type: &str) -> &str {
    match resource_type {
        "AWS::EC2::Instance" => "OS::Nova::Server",
        "AWS::EC2::SecurityGroup" => "OS::Neutron::SecurityGroup",
        "AWS::EC2::Volume" => "OS::Cinder::Volume",
        "AWS::EC2::VolumeAttachment" => "OS::Cinder::VolumeAttachment",
        "AWS::EC2::NetworkInterface" => "OS::Neutron::Port",
        "AWS::EC2::Subnet" => "OS::Neutron::Subnet",
        "AWS::EC2::VPC" | "OS::Neutron::ProviderNet" => "OS::Neutron::Net",
        other => other,
    }
}

/// The objects in the export of a stack, also those of its nested stacks.
pub(super) fn of_export(export: &Value) -> Vec<Named> {
    let named = |one: Object| Named {
        resource_type: native(&one.resource_type).to_owned(),
        id: one.id,
        name: one.path.replace('/', "_"),
    };
    objects(export).into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn a_state_names_its_objects() {
        let instance = |id: &str| value!({ "attributes": { "id": id } });
        let state = value!({ "version": 4, "resources": [
            { "mode": "managed", "type": "openstack_compute_instance_v2", "name": "web", "instances": [
                { "index_key": 0, "attributes": { "id": "s0" } }, { "index_key": "blue", "attributes": { "id": "s1" } },
            ] },
            { "mode": "managed", "type": "openstack_lb_member_v2", "name": "one", "instances": [(instance("p1/m1"))] },
            { "mode": "managed", "type": "openstack_networking_router_interface_v2", "name": "port", "instances": [(instance("i"))] },
            { "mode": "data", "type": "openstack_networking_network_v2", "name": "public", "instances": [(instance("n"))] },
            { "mode": "managed", "type": "random_id", "name": "x", "instances": [(instance("x"))] },
        ] });
        let (objects, unknown) = of_state(&state);
        let named: Vec<String> =
            objects.iter().map(|one| format!("{} {} {}", one.name, one.resource_type, one.id)).collect();
        let expected = ["web_0 OS::Nova::Server s0", "web_blue OS::Nova::Server s1", "one OS::Octavia::PoolMember m1"];
        assert_eq!(named, expected);
        assert_eq!(unknown, ["openstack_networking_router_interface_v2.port"]);
    }

    #[test]
    fn an_export_names_its_objects() {
        let export = value!({ "resources": {
            "net": { "type": "OS::Neutron::Net", "resource_id": "n" },
            "group": { "type": "OS::Heat::ResourceGroup", "resource_id": "g", "resources": {
                "0": { "type": "OS::Neutron::Port", "resource_id": "p" },
            } },
            "none": { "type": "OS::Heat::None", "resource_id": null },
        } });
        let named: Vec<String> = of_export(&export).into_iter().map(|one| one.name).collect();
        assert_eq!(named, ["net", "group_0"]);
        assert_eq!(beside(Path::new("a/web.yaml")), Path::new("a/web.import.json"));
    }
}
