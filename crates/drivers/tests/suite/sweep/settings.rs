//! How properties are given to find their effects.

use kiln_value::{Value, value};

/// How a property is given if two usual values beside the properties of the case are invalid, or have the same effect.
pub(crate) struct Setting {
    pub(crate) kind: &'static str,
    pub(crate) property: &'static str,
    /// Two values; null for the usual ones.
    pub(crate) values: Value,
    /// Further properties, or null for those that the property excludes.
    pub(crate) beside: Value,
    /// Further properties beside one of the values.
    pub(crate) only: Option<(Value, Value)>,
}

fn usual(kind: &'static str, property: &'static str) -> Setting {
    values(kind, property, Value::Null)
}

fn values(kind: &'static str, property: &'static str, values: Value) -> Setting {
    Setting { kind, property, values, beside: value!({}), only: None }
}

impl Setting {
    fn beside(self, beside: Value) -> Self {
        Self { beside, ..self }
    }

    fn only_with(self, value: impl Into<Value>, beside: Value) -> Self {
        Self { only: Some((value.into(), beside)), ..self }
    }
}

/// The sender or receiver of a rule as one of two groups.
fn source(rules: &str, property: &'static str) -> Setting {
    let rules = Value::from_iter([(rules, value!([{"IpProtocol": "tcp", "FromPort": "1", "ToPort": "90"}]))]);
    values("AWS::EC2::SecurityGroup", property, value!(["{one}", "{two}"])).beside(rules)
}

pub(crate) fn settings() -> Vec<Setting> {
    vec![
        usual("AWS::AutoScaling::ScalingPolicy", "MinAdjustmentStep")
            .beside(value!({"AdjustmentType": "PercentChangeInCapacity"})),
        values("AWS::EC2::EIP", "InstanceId", value!(["{server}", "{other}"])),
        values("AWS::EC2::EIPAssociation", "AllocationId", value!(["{address}", "value-b"])),
        values("AWS::EC2::EIPAssociation", "EIP", value!(["172.24.4.77", "10.71.0.42"]))
            .beside(value!({"AllocationId": null})),
        values("AWS::EC2::EIPAssociation", "InstanceId", value!(["{server}", "value-b"])),
        values("AWS::EC2::EIPAssociation", "NetworkInterfaceId", value!(["{port}", "value-b"]))
            .beside(value!({"InstanceId": null})),
        usual("AWS::EC2::Instance", "BlockDeviceMappings.DeviceName")
            .beside(value!({"BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": {"SnapshotId": "{snapshot}"}}]})),
        usual("AWS::EC2::Instance", "BlockDeviceMappings.Ebs.DeleteOnTermination")
            .beside(value!({"BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": {"SnapshotId": "{snapshot}"}}]})),
        values("AWS::EC2::Instance", "BlockDeviceMappings.Ebs.VolumeSize", value!(["2", "3"]))
            .beside(value!({"BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": {"SnapshotId": "{snapshot}"}}]})),
        values("AWS::EC2::Instance", "AvailabilityZone", value!(["nova", "value-b"])),
        values("AWS::EC2::Instance", "BlockDeviceMappings.Ebs.SnapshotId", value!(["{snapshot}", "value-b"]))
            .beside(value!({"BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": {}}]})),
        values("AWS::EC2::Instance", "KeyName", value!(["{key}", "value-b"])),
        values("AWS::EC2::Instance", "NetworkInterfaces", value!([["{card}"], ["value-b"]]))
            .beside(value!({"SecurityGroups": null, "SubnetId": null})),
        values("AWS::EC2::Instance", "SecurityGroupIds", value!([["{group}"], ["default"]]))
            .beside(value!({"SecurityGroups": null})),
        values("AWS::EC2::Instance", "SubnetId", value!(["{subnet}", "private-subnet"])),
        values("AWS::EC2::Instance", "Volumes.VolumeId", value!(["{one}", "value-b"])),
        values("AWS::EC2::NetworkInterface", "PrivateIpAddress", value!(["10.73.0.41", "10.73.0.42"])),
        values("AWS::EC2::NetworkInterface", "SubnetId", value!(["{inner}", "private-subnet"])),
        values("AWS::EC2::SecurityGroup", "SecurityGroupEgress.CidrIp", value!(["10.1.0.0/24", "10.2.0.0/24"]))
            .beside(value!({"SecurityGroupEgress": [{"IpProtocol": "tcp", "FromPort": "1", "ToPort": "90"}]})),
        values("AWS::EC2::SecurityGroup", "SecurityGroupEgress.FromPort", value!(["41", "42"]))
            .beside(value!({"SecurityGroupEgress": [{"IpProtocol": "tcp", "ToPort": "90"}]})),
        values("AWS::EC2::SecurityGroup", "SecurityGroupEgress.ToPort", value!(["41", "42"]))
            .beside(value!({"SecurityGroupEgress": [{"IpProtocol": "tcp", "FromPort": "1"}]})),
        values("AWS::EC2::SecurityGroup", "SecurityGroupEgress.IpProtocol", value!(["tcp", "udp"])),
        source("SecurityGroupEgress", "SecurityGroupEgress.SourceSecurityGroupId"),
        source("SecurityGroupEgress", "SecurityGroupEgress.SourceSecurityGroupName"),
        source("SecurityGroupIngress", "SecurityGroupIngress.SourceSecurityGroupId"),
        source("SecurityGroupIngress", "SecurityGroupIngress.SourceSecurityGroupName"),
        values("AWS::EC2::SecurityGroup", "SecurityGroupIngress.FromPort", value!(["41", "42"]))
            .beside(value!({"SecurityGroupIngress": [{"IpProtocol": "tcp", "ToPort": "90"}]})),
        values("AWS::EC2::SecurityGroup", "SecurityGroupIngress.ToPort", value!(["41", "42"]))
            .beside(value!({"SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": "1"}]})),
        values("AWS::EC2::Volume", "SnapshotId", value!(["{backup}", "value-b"])),
        values("AWS::S3::Bucket", "AccessControl", value!(["PublicRead", "Private"])),
        usual("OS::Barbican::Order", "ca_id")
            .beside(value!({"type": "certificate", "algorithm": null, "bit_length": null})),
        usual("OS::Barbican::Order", "pass_phrase").beside(value!({"type": "asymmetric"})),
        usual("OS::Barbican::Order", "profile")
            .beside(value!({"type": "certificate", "algorithm": null, "bit_length": null, "ca_id": "c"})),
        usual("OS::Barbican::Order", "request_data")
            .beside(value!({"type": "certificate", "algorithm": null, "bit_length": null})),
        values("OS::Barbican::Order", "request_type", value!(["custom", "full-cmc"]))
            .beside(value!({"type": "certificate", "algorithm": null, "bit_length": null})),
        usual("OS::Barbican::Order", "source_container_ref")
            .beside(value!({"type": "certificate", "algorithm": null, "bit_length": null})),
        usual("OS::Barbican::Order", "subject_dn")
            .beside(value!({"type": "certificate", "algorithm": null, "bit_length": null})),
        values("OS::Barbican::Order", "type", value!(["key", "asymmetric"])),
        usual("OS::Barbican::Secret", "payload_content_encoding")
            .beside(value!({"payload_content_type": "application/octet-stream"})),
        values("OS::Barbican::Secret", "payload_content_type", value!(["application/octet-stream", "text/plain"]))
            .beside(value!({"payload": "YQ=="}))
            .only_with("application/octet-stream", value!({"payload_content_encoding": "base64"})),
        values("OS::Blazar::Host", "extra_capability", value!([{"gpu": "True"}, {"gpu": "False"}])),
        values("OS::Blazar::Lease", "before_end_date", value!(["2026-02-01 11:00", "2026-02-01 12:00"])),
        values("OS::Blazar::Lease", "end_date", value!(["2026-02-03 10:00", "2026-02-04 10:00"])),
        usual("OS::Blazar::Lease", "events.event_type").beside(value!({"events": [{"time": "2026-02-01 11:00"}]})),
        values("OS::Blazar::Lease", "events.time", value!(["2026-02-01 11:00", "2026-02-01 12:00"])),
        usual("OS::Blazar::Lease", "reservations.affinity")
            .beside(value!({"reservations": [{"resource_type": "virtual:instance"}]})),
        usual("OS::Blazar::Lease", "reservations.amount")
            .beside(value!({"reservations": [{"resource_type": "virtual:instance"}]})),
        usual("OS::Blazar::Lease", "reservations.disk_gb")
            .beside(value!({"reservations": [{"resource_type": "virtual:instance"}]})),
        usual("OS::Blazar::Lease", "reservations.memory_mb")
            .beside(value!({"reservations": [{"resource_type": "virtual:instance"}]})),
        usual("OS::Blazar::Lease", "reservations.vcpus")
            .beside(value!({"reservations": [{"resource_type": "virtual:instance"}]})),
        values("OS::Blazar::Lease", "start_date", value!(["2026-01-03 10:00", "2026-01-04 10:00"])),
        values("OS::Cinder::QoSAssociation", "qos_specs", value!(["{specs}", "value-b"])),
        values("OS::Cinder::QoSAssociation", "volume_types", value!([["{one}"], ["{two}"]])),
        values("OS::Cinder::Volume", "image", value!(["cirros", "value-b"])),
        usual("OS::Cinder::Volume", "imageRef").beside(value!({"image": null})),
        usual("OS::Cinder::VolumeType", "is_public").beside(value!({"projects": null})),
        values("OS::Designate::RecordSet", "zone", value!(["sweep.test.", "value-b"])),
        usual("OS::Designate::Zone", "type").beside(value!({"masters": ["10.0.0.1"]})),
        values("OS::Glance::WebImage", "container_format", value!(["bare", "ovf"])),
        usual("OS::Heat::DeployedServer", "deployment_swift_data.container")
            .beside(value!({"software_config_transport": "POLL_TEMP_URL"})),
        usual("OS::Heat::DeployedServer", "deployment_swift_data.object")
            .beside(value!({"software_config_transport": "POLL_TEMP_URL"})),
        values("OS::Heat::DeployedServer", "software_config_transport", value!(["POLL_SERVER_CFN", "ZAQAR_MESSAGE"])),
        usual("OS::Heat::ScalingPolicy", "min_adjustment_step")
            .beside(value!({"adjustment_type": "percent_change_in_capacity"})),
        values("OS::Heat::WaitConditionHandle", "signal_transport", value!(["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])),
        usual("OS::Keystone::Group", "roles.domain").beside(value!({"roles": [{"role": "member"}]})),
        usual("OS::Keystone::GroupRoleAssignment", "roles.project").beside(value!({"roles": [{"role": "member"}]})),
        usual("OS::Keystone::User", "roles.domain").beside(value!({"roles": [{"role": "member"}]})),
        usual("OS::Keystone::User", "roles.project").beside(value!({"roles": [{"role": "member"}]})),
        usual("OS::Keystone::UserRoleAssignment", "roles.domain").beside(value!({"roles": [{"role": "member"}]})),
        values(
            "OS::Manila::Share",
            "share_type",
            value!(["7d8cf13f-6a34-4ae8-9b34-3a9b9a4b8d01", "7d8cf13f-6a34-4ae8-9b34-3a9b9a4b8d02"]),
        ),
        values("OS::Manila::ShareNetwork", "neutron_subnet", value!(["{subnet}", "private-subnet"])),
        values("OS::Mistral::CronTrigger", "first_time", value!(["2041-01-01 10:00", "2042-01-01 10:00"])),
        usual("OS::Mistral::Workflow", "tasks.concurrency")
            .beside(value!({"tasks": [{"name": "a", "action": "std.noop", "with_items": "i in 1"}]})),
        values("OS::Mistral::Workflow", "input", value!([{"a": "value-a"}, {"b": "value-b"}])),
        values("OS::Mistral::Workflow", "tasks.policies", value!([{"timeout": 5}, {"timeout": 6}])),
        usual("OS::Mistral::Workflow", "tasks.requires")
            .beside(value!({"type": "reverse", "params": {"task_name": "it"}})),
        usual("OS::Mistral::Workflow", "tasks.workflow").beside(value!({"tasks": [{"name": "a"}]})),
        usual("OS::Mistral::Workflow", "type").beside(value!({"params": {"task_name": "it"}})),
        usual("OS::Neutron::FloatingIP", "fixed_ip_address").beside(value!({"port_id": "{port}"})),
        values("OS::Neutron::NetworkGateway", "connections.segmentation_type", value!(["vlan", "flat"]))
            .beside(value!({"connections": [{"network": "{net}", "segmentation_id": 0}]})),
        usual("OS::Neutron::SecurityGroup", "rules.remote_group_id")
            .beside(value!({"rules": [{"remote_mode": "remote_group_id"}]})),
        usual("OS::Neutron::SecurityGroup", "rules.remote_mode")
            .beside(value!({"rules": [{"protocol": "tcp", "remote_ip_prefix": "10.0.0.0/8"}]})),
        values("OS::Neutron::Subnet", "gateway_ip", value!(["10.72.0.7", "10.72.0.8"])),
        usual("OS::Neutron::Subnet", "ipv6_address_mode").beside(value!({"ip_version": 6, "cidr": "fd00::/64"})),
        usual("OS::Neutron::Subnet", "ipv6_ra_mode").beside(value!({"ip_version": 6, "cidr": "fd00::/64"})),
        usual("OS::Neutron::Subnet", "prefixlen").beside(value!({"cidr": null, "subnetpool": "p"})),
        values("OS::Neutron::Subnet", "segment", value!(["value-a", null])),
        usual("OS::Neutron::Subnet", "subnetpool").beside(value!({"cidr": null})),
        values("OS::Nova::FloatingIPAssociation", "server_id", value!(["{server}", "value-b"])),
        usual("OS::Nova::Server", "block_device_mapping.delete_on_termination")
            .beside(value!({"block_device_mapping": [{"device_name": "vda", "volume_id": "v"}]})),
        usual("OS::Nova::Server", "block_device_mapping.device_name")
            .beside(value!({"block_device_mapping": [{"volume_id": "v"}]})),
        usual("OS::Nova::Server", "block_device_mapping.volume_size")
            .beside(value!({"block_device_mapping": [{"device_name": "vda", "snapshot_id": "v"}]})),
        usual("OS::Nova::Server", "block_device_mapping_v2.boot_index")
            .beside(value!({"block_device_mapping_v2": [{"volume_id": "v"}]})),
        usual("OS::Nova::Server", "block_device_mapping_v2.image").beside(value!({"image": null})),
        usual("OS::Nova::Server", "block_device_mapping_v2.image_id").beside(value!({"image": null})),
        usual("OS::Nova::Server", "block_device_mapping_v2.snapshot_id").beside(value!({"image": null})),
        usual("OS::Nova::Server", "deployment_swift_data.container")
            .beside(value!({"software_config_transport": "POLL_TEMP_URL", "user_data_format": "SOFTWARE_CONFIG"})),
        usual("OS::Nova::Server", "deployment_swift_data.object")
            .beside(value!({"software_config_transport": "POLL_TEMP_URL", "user_data_format": "SOFTWARE_CONFIG"})),
        values("OS::Nova::Server", "networks.allocate_network", value!(["none", "auto"]))
            .beside(value!({"networks": null})),
        usual("OS::Nova::Server", "networks.network").beside(value!({"networks": [{}]})),
        usual("OS::Nova::Server", "networks.uuid").beside(value!({"networks": [{}]})),
        values("OS::Nova::Server", "networks.subnet", value!(["{subnet}", "private-subnet"]))
            .beside(value!({"networks": [{}]})),
        values("OS::Nova::Server", "software_config_transport", value!(["POLL_SERVER_CFN", "ZAQAR_MESSAGE"]))
            .beside(value!({"user_data_format": "SOFTWARE_CONFIG"})),
        values("OS::Nova::Server", "user_data_format", value!(["RAW", "HEAT_CFNTOOLS"]))
            .beside(value!({"user_data": "a"})),
        values("OS::Octavia::L7Policy", "action", value!(["REDIRECT_TO_URL", "REDIRECT_TO_URL"])),
        usual("OS::Octavia::L7Policy", "redirect_pool")
            .beside(value!({"action": "REDIRECT_TO_POOL", "redirect_url": null})),
        usual("OS::Octavia::L7Rule", "type").beside(value!({"key": "k"})),
        values("OS::Octavia::Pool", "session_persistence.type", value!(["SOURCE_IP", "HTTP_COOKIE"]))
            .beside(value!({"session_persistence": {}})),
        usual("OS::Trove::Cluster", "instances.networks.port")
            .beside(value!({"instances": [{"flavor": "1", "volume_size": 1}]})),
        values("OS::Trove::Instance", "users.databases", value!([["a"], ["b"]]))
            .beside(value!({"databases": [{"name": "a"}, {"name": "b"}]})),
        values("OS::Zaqar::Subscription", "subscriber", value!(["http://a", "http://b"])),
        values("OS::Zun::Container", "security_groups", value!([["{group}"], ["default"]])),
        values("OS::Zun::Container", "restart_policy", value!(["always", "no"])),
    ]
}
