//! Types of Amazon, and floating IPs of servers.

use kiln_testcloud::Service;
use kiln_value::{Value, value};

use super::{Case, case};

pub(crate) fn ec2_instance() -> Case {
    let given = |flavor: &str, tag: &str| {
        value!({
            "ImageId": "cirros", "InstanceType": flavor, "SubnetId": "{subnet}", "SecurityGroups": ["default"],
            "Tags": [{"Key": "a", "Value": tag}], "Volumes": [{"VolumeId": "{one}", "Device": "/dev/vdb"}],
            "UserData": "#!/bin/sh", "NovaSchedulerHints": [{"Key": "k", "Value": "v"}],
        })
    };
    case("AWS::EC2::Instance", given("m1.nano", "x"))
        .on_network()
        .needs("one", "OS::Cinder::Volume", value!({"size": 1}))
        .needs("group", "OS::Neutron::SecurityGroup", value!({}))
        .needs("card", "OS::Neutron::Port", value!({"network": "{net}"}))
        .needs("key", "OS::Nova::KeyPair", value!({"name": "mine"}))
        .asks("snapshot", "block-storage", "/v3/snapshots", value!({"snapshot": {"volume_id": "{one}"}}))
        .updated(given("m1.micro", "y"))
        .built_by(Service::Compute, "/servers$")
}

pub(crate) fn ec2_security_group() -> Case {
    let given = |port: &str| {
        value!({
            "GroupDescription": "d",
            "SecurityGroupIngress": [
                {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "CidrIp": "0.0.0.0/0"},
                {"IpProtocol": "icmp", "FromPort": "-1", "ToPort": "-1", "CidrIp": "0.0.0.0/0"},
            ],
        })
    };
    case("AWS::EC2::SecurityGroup", given("22"))
        .needs("one", "OS::Neutron::SecurityGroup", value!({}))
        .needs("two", "OS::Neutron::SecurityGroup", value!({}))
        .updated(given("80"))
}

pub(crate) fn ec2_volume() -> Case {
    let given = value!({"Size": 1, "AvailabilityZone": "nova", "Tags": [{"Key": "a", "Value": "b"}]});
    let backup = value!({"backup": {"volume_id": "{one}"}});
    case("AWS::EC2::Volume", given)
        .needs("one", "OS::Cinder::Volume", value!({"size": 1}))
        .asks("backup", "block-storage", "/v3/backups", backup)
        .built_by(Service::Volume, "/volumes$")
}

pub(crate) fn ec2_volume_attachment() -> Case {
    let given = value!({"InstanceId": "{server}", "VolumeId": "{one}", "Device": "/dev/vdc"});
    case("AWS::EC2::VolumeAttachment", given).beside_server().needs("one", "OS::Cinder::Volume", value!({"size": 1}))
}

impl Case {
    /// A server behind a router.
    fn routed_server(self) -> Self {
        let server = value!({"image": "cirros", "flavor": "m1.nano", "networks": [{"network": "{net}"}]});
        self.behind_router().needs("server", "OS::Nova::Server", server)
    }
}

pub(crate) fn ec2_address() -> Case {
    case("AWS::EC2::EIP", value!({})).routed_server().updated(value!({"InstanceId": "{server}"}))
}

pub(crate) fn ec2_address_association() -> Case {
    let given = value!({"InstanceId": "{server}", "AllocationId": "{address}"});
    let address = value!({"floating_network": "public", "floating_ip_address": "172.24.4.77"});
    case("AWS::EC2::EIPAssociation", given)
        .routed_server()
        .needs("address", "OS::Neutron::FloatingIP", address)
        .needs("port", "OS::Neutron::Port", value!({"network": "{net}"}))
        .by_admin()
}

pub(crate) fn nova_floating_ip() -> Case {
    case("OS::Nova::FloatingIP", value!({"pool": "public"}))
}

pub(crate) fn nova_floating_ip_association() -> Case {
    let given = |address: &str| value!({"server_id": "{server}", "floating_ip": address});
    case("OS::Nova::FloatingIPAssociation", given("{one}"))
        .routed_server()
        .needs("one", "OS::Nova::FloatingIP", value!({}))
        .needs("two", "OS::Nova::FloatingIP", value!({}))
        .updated(given("{two}"))
}

impl Case {
    /// A VPC `{vpc}` with a subnet `{inner}`.
    fn in_vpc(self) -> Self {
        let subnet = value!({"VpcId": "{vpc}", "CidrBlock": "10.73.0.0/24"});
        self.needs("vpc", "AWS::EC2::VPC", value!({})).needs("inner", "AWS::EC2::Subnet", subnet)
    }
}

pub(crate) fn ec2_vpc() -> Case {
    case("AWS::EC2::VPC", value!({"CidrBlock": "10.0.0.0/16"})).keeping("router_id")
}

pub(crate) fn ec2_subnet() -> Case {
    case("AWS::EC2::Subnet", value!({"VpcId": "{vpc}", "CidrBlock": "10.73.0.0/24"})).needs(
        "vpc",
        "AWS::EC2::VPC",
        value!({}),
    )
}

/// Without a route table: see tests/suite/openstack/amazon.rs.
pub(crate) fn ec2_gateway_attachment() -> Case {
    case("AWS::EC2::VPCGatewayAttachment", value!({"VpcId": "{vpc}", "InternetGatewayId": "any"})).needs(
        "vpc",
        "AWS::EC2::VPC",
        value!({}),
    )
}

pub(crate) fn ec2_route_table() -> Case {
    case("AWS::EC2::RouteTable", value!({"VpcId": "{vpc}"})).needs("vpc", "AWS::EC2::VPC", value!({}))
}

pub(crate) fn ec2_route_table_association() -> Case {
    let ends = value!({"RouteTableId": "{table}", "SubnetId": "{inner}"});
    case("AWS::EC2::SubnetRouteTableAssociation", ends).in_vpc().needs(
        "table",
        "AWS::EC2::RouteTable",
        value!({"VpcId": "{vpc}"}),
    )
}

pub(crate) fn ec2_network_interface() -> Case {
    let given = |groups: Value| value!({"SubnetId": "{inner}", "Description": "d", "GroupSet": groups});
    case("AWS::EC2::NetworkInterface", given(value!(["default"]))).in_vpc().updated(given(value!([])))
}

pub(crate) fn s3_bucket() -> Case {
    let given = value!({
        "AccessControl": "PublicRead", "WebsiteConfiguration": {"IndexDocument": "index.html"},
        "Tags": [{"Key": "a", "Value": "b"}],
    });
    case("AWS::S3::Bucket", given)
}

pub(crate) fn iam_user() -> Case {
    case("AWS::IAM::User", value!({"LoginProfile": {"Password": "given"}}))
}
