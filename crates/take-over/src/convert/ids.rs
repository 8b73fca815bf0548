//! The IDs of objects that Heat does not store, in the form in which Kiln needs them to undo what was made.

use std::collections::HashMap;

use kiln_plan::Kind;
use kiln_resource::{Facts, Resource, ResourceId, State};
use kiln_value::{Value, text};

/// Gives a row the ID that Kiln's type needs and Heat has left out.
pub(super) fn complete(row: &mut Resource, kind: &Kind, facts: &Facts) {
    if row.physical_id.is_some() || row.state == State::INIT {
        return;
    }
    let property = |name: &str| text::str(facts.property(name));
    row.physical_id = match kind.resource_type().name.as_str() {
        "OS::Keystone::UserRoleAssignment" | "OS::Keystone::GroupRoleAssignment" => Some(row.name.clone()),
        "AWS::EC2::SubnetRouteTableAssociation" => {
            Some(format!("{}:{}", property("RouteTableId"), property("SubnetId")))
        }
        // The name of the latter is also what `Ref` gives.
        "AWS::EC2::VPCGatewayAttachment" | "AWS::AutoScaling::LaunchConfiguration" => Some(facts.physical_name.clone()),
        _ => None,
    };
}

/// The ID that Heat stores for a row of Kiln: the reverse of [`complete`].
pub(crate) fn heat_id(row: &Resource) -> Option<String> {
    const WITHOUT: [&str; 5] = [
        "OS::Keystone::UserRoleAssignment",
        "OS::Keystone::GroupRoleAssignment",
        "AWS::EC2::SubnetRouteTableAssociation",
        "AWS::EC2::VPCGatewayAttachment",
        "AWS::AutoScaling::LaunchConfiguration",
    ];
    row.physical_id.clone().filter(|_| !WITHOUT.contains(&row.implementation.as_str()))
}

/// Gives elastic IPs their addresses, to which `Ref` refers: Heat asks for them, and stores them in the associations only.
pub(super) fn complete_addresses(rows: &mut [Resource]) {
    let mut addresses: HashMap<ResourceId, Value> = HashMap::new();
    for row in rows.iter().filter(|row| row.implementation == "AWS::EC2::EIPAssociation") {
        let Some(address) = row.properties().get("EIP") else { continue };
        for required in &row.requires {
            addresses.entry(*required).or_insert_with(|| address.clone());
        }
    }
    for row in rows.iter_mut().filter(|row| row.implementation == "AWS::EC2::EIP") {
        row.data.extend(addresses.remove(&row.id).map(|address| ("address".to_owned(), address)));
    }
}

/// Gives the attachments of gateways the routers that they have connected: those of the route tables of their VPC.
pub(super) fn complete_attachments(rows: &mut [Resource]) {
    let mut routers: HashMap<String, Vec<String>> = HashMap::new();
    for row in rows.iter().filter(|row| row.implementation == "AWS::EC2::RouteTable") {
        if let (Some(vpc), Some(id)) = (row.properties().get("VpcId"), &row.physical_id) {
            routers.entry(text::str(vpc)).or_default().push(id.clone());
        }
    }
    for row in rows.iter_mut().filter(|row| row.implementation == "AWS::EC2::VPCGatewayAttachment") {
        let vpc = row.properties().get("VpcId").map(text::str).unwrap_or_default();
        let connected = routers.get(&vpc).map_or_else(String::new, |ids| ids.join(","));
        row.data.insert("routers".to_owned(), connected.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kiln_resource::{Action, StackId, Status, StoredDefinition};
    use kiln_value::value;
    use uuid::Uuid;

    use super::*;

    fn row(resource_type: &str, properties: &kiln_value::Value, id: Option<&str>) -> Resource {
        let mut row = Resource::new(
            StackId(Uuid::nil()),
            ResourceId(Uuid::nil()),
            "one",
            resource_type,
            jiff::Timestamp::UNIX_EPOCH,
        );
        row.state = State::new(Action::Create, Status::Complete);
        row.physical_id = id.map(str::to_owned);
        let properties = properties.as_map().cloned().unwrap_or_default();
        let definition = StoredDefinition::of_type(resource_type).with_properties(properties.clone(), properties);
        row.definition = Some(Arc::new(definition));
        row
    }

    #[test]
    fn types_without_an_id_in_heat_get_what_undoes_them() {
        let types = kiln_resource::shipped::types().unwrap();
        let types = kiln_plan::ResourceTypes::new(kiln_resource::Registry::build(types, |_| None));
        let subnet = value!({"RouteTableId": "r1", "SubnetId": "s1"});
        for (name, properties, id, expected) in [
            ("OS::Keystone::UserRoleAssignment", value!({}), None, Some("one")),
            ("OS::Keystone::GroupRoleAssignment", value!({}), None, Some("one")),
            ("AWS::EC2::SubnetRouteTableAssociation", subnet, None, Some("r1:s1")),
            ("AWS::EC2::VPCGatewayAttachment", value!({}), None, Some("s-one")),
            ("AWS::AutoScaling::LaunchConfiguration", value!({}), None, Some("s-one")),
            ("OS::Heat::WaitCondition", value!({}), None, None),
            ("OS::Nova::Server", value!({}), Some("id"), Some("id")),
        ] {
            let mut row = row(name, &properties, id);
            let facts =
                Facts { physical_name: "s-one".to_owned(), properties: row.properties().clone(), ..Facts::default() };
            complete(&mut row, &Kind::Type(Arc::clone(types.types.get(name).unwrap())), &facts);
            assert_eq!(row.physical_id.as_deref(), expected, "{name}");
            assert_eq!(heat_id(&row).as_deref(), id, "{name}: what Heat has stored");
            row.physical_id = None;
            row.state = State::INIT;
            complete(&mut row, &Kind::Type(Arc::clone(types.types.get(name).unwrap())), &facts);
            assert_eq!(row.physical_id, None, "{name}");
        }
    }

    #[test]
    fn addresses_are_known_from_their_associations() {
        let mut rows = vec![
            row("AWS::EC2::EIP", &value!({}), Some("f1")),
            row("AWS::EC2::EIPAssociation", &value!({"EIP": "172.24.1.9"}), Some("172.24.1.9")),
        ];
        complete_addresses(&mut rows);
        assert!(rows[0].data.is_empty(), "it belongs to another one");
        let address = rows[0].id;
        rows[1].requires.push(address);
        complete_addresses(&mut rows);
        assert_eq!(rows[0].data.get("address"), Some(&"172.24.1.9".into()));
    }

    #[test]
    fn gateways_know_the_routers_of_their_network() {
        let of = |vpc: &str| value!({ "VpcId": vpc });
        let mut rows = vec![
            row("AWS::EC2::RouteTable", &of("v1"), Some("r1")),
            row("AWS::EC2::RouteTable", &of("v2"), Some("r2")),
            row("AWS::EC2::RouteTable", &of("v1"), Some("r3")),
            row("AWS::EC2::VPCGatewayAttachment", &of("v1"), Some("a")),
        ];
        complete_attachments(&mut rows);
        assert_eq!(rows[3].data.get("routers"), Some(&"r1,r3".into()));
        assert!(rows[0].data.is_empty());
    }
}
