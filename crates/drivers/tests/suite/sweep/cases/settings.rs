//! Users, groups and roles; settings of projects; volume types and aggregates.

use kiln_value::{Value, value};

use super::{Case, case};

pub(crate) fn keystone_group() -> Case {
    let given =
        |role: &str| value!({"name": "given", "description": "d", "roles": [{"role": role, "project": "demo"}]});
    case("OS::Keystone::Group", given("member")).updated(given("reader")).by_admin()
}

pub(crate) fn keystone_user() -> Case {
    let given = |group: &str, role: &str| {
        value!({
            "password": "secret", "email": "a@b", "default_project": "demo", "groups": [group],
            "roles": [{"role": "reader", "project": "demo"}, {"role": role, "domain": "default"}],
        })
    };
    case("OS::Keystone::User", given("{one}", "member"))
        .needs("one", "OS::Keystone::Group", value!({}))
        .needs("two", "OS::Keystone::Group", value!({}))
        .updated(given("{two}", "reader"))
        .by_admin()
}

pub(crate) fn keystone_domain() -> Case {
    let given = |text: &str| value!({"description": text});
    case("OS::Keystone::Domain", given("d")).updated(given("e")).by_admin()
}

pub(crate) fn user_role_assignment() -> Case {
    let given = |role: &str| value!({"user": "{user}", "roles": [{"role": role, "project": "demo"}]});
    case("OS::Keystone::UserRoleAssignment", given("member"))
        .needs("user", "OS::Keystone::User", value!({}))
        .updated(given("reader"))
        .by_admin()
}

pub(crate) fn group_role_assignment() -> Case {
    let given = |group: &str| value!({"group": group, "roles": [{"role": "member", "domain": "default"}]});
    case("OS::Keystone::GroupRoleAssignment", given("{one}"))
        .needs("one", "OS::Keystone::Group", value!({}))
        .needs("two", "OS::Keystone::Group", value!({}))
        .updated(given("{two}"))
        .by_admin()
}

pub(crate) fn volume_type() -> Case {
    let given = |specs: Value, project: &str| {
        value!({
            "name": "given", "description": "d", "is_public": false, "metadata": specs, "projects": [project],
        })
    };
    case("OS::Cinder::VolumeType", given(value!({"a": "1", "b": "2"}), "demo"))
        .updated(given(value!({"b": "3"}), "alt_demo"))
        .by_admin()
}

pub(crate) fn encrypted_volume_type() -> Case {
    let given = |size: i64| value!({"provider": "luks", "key_size": size, "volume_type": "{type}"});
    case("OS::Cinder::EncryptedVolumeType", given(256))
        .needs("type", "OS::Cinder::VolumeType", value!({"name": "secret"}))
        .updated(given(512))
        .by_admin()
}

pub(crate) fn qos_specs() -> Case {
    let given = |specs: Value| value!({"name": "given", "specs": specs});
    case("OS::Cinder::QoSSpecs", given(value!({"a": "1", "b": "2"}))).updated(given(value!({"b": "3"}))).by_admin()
}

pub(crate) fn qos_association() -> Case {
    let given = |kind: &str| value!({"qos_specs": "{specs}", "volume_types": [kind]});
    case("OS::Cinder::QoSAssociation", given("{one}"))
        .needs("specs", "OS::Cinder::QoSSpecs", value!({"specs": {"a": "1"}}))
        .needs("one", "OS::Cinder::VolumeType", value!({"name": "one"}))
        .needs("two", "OS::Cinder::VolumeType", value!({"name": "two"}))
        .updated(given("{two}"))
        .by_admin()
}

pub(crate) fn cinder_quota() -> Case {
    let given = |volumes: i64| value!({"project": "demo", "volumes": volumes, "gigabytes": 100});
    case("OS::Cinder::Quota", given(3)).updated(given(4)).by_admin()
}

pub(crate) fn nova_quota() -> Case {
    let given = |cores: i64| value!({"project": "demo", "cores": cores, "fixed_ips": 8});
    case("OS::Nova::Quota", given(3)).updated(given(4)).by_admin()
}

pub(crate) fn neutron_quota() -> Case {
    let given = |ports: i64| value!({"project": "demo", "port": ports});
    case("OS::Neutron::Quota", given(30)).updated(given(40)).by_admin()
}

pub(crate) fn octavia_quota() -> Case {
    let given = |pools: i64| value!({"project": "demo", "pool": pools});
    case("OS::Octavia::Quota", given(3)).updated(given(4)).by_admin()
}

pub(crate) fn host_aggregate() -> Case {
    let given = |host: &str, key: &str| {
        let metadata = Value::from_iter([(key.to_owned(), Value::from("1"))]);
        value!({"name": "given", "hosts": [host, "compute3"], "metadata": metadata})
    };
    case("OS::Nova::HostAggregate", given("compute1", "a")).updated(given("compute2", "b")).by_admin()
}
