//! Manila's shares, Mistral's workflows, Magnum, Trove and Zun.

use kiln_testcloud::Service;
use kiln_value::{Value, value};

use super::{Case, case};

pub(crate) fn share() -> Case {
    let given = |rules: Value, metadata: Value| {
        value!({
            "share_protocol": "NFS", "size": 1, "share_type": "{kind}", "share_network": "{net_of_shares}",
            "access_rules": rules, "metadata": metadata,
        })
    };
    let rule = |to: &str| value!({"access_to": to, "access_type": "ip"});
    case("OS::Manila::Share", given(value!([(rule("10.0.0.1")), (rule("10.0.0.2"))]), value!({"a": "b"})))
        .needs("kind", "OS::Manila::ShareType", value!({"name": "given", "driver_handles_share_servers": true}))
        .needs("net_of_shares", "OS::Manila::ShareNetwork", value!({}))
        .updated(given(value!([(rule("10.0.0.2")), (rule("10.0.0.3"))]), value!({"c": "d"})))
        .built_by(Service::Share, "/shares$")
        .by_admin()
}

pub(crate) fn share_described() -> Case {
    let given = |text: &str| value!({"share_protocol": "CIFS", "size": 1, "name": "given", "description": text});
    case("OS::Manila::Share", given("d")).updated(given("e")).built_by(Service::Share, "/shares$")
}

pub(crate) fn share_network() -> Case {
    let given = |service: &str, text: &str| value!({"neutron_subnet": "{subnet}", "security_services": [service], "description": text});
    let service = || value!({"type": "ldap"});
    case("OS::Manila::ShareNetwork", given("{one}", "d"))
        .on_network()
        .needs("one", "OS::Manila::SecurityService", service())
        .needs("two", "OS::Manila::SecurityService", service())
        .updated(given("{two}", "e"))
}

pub(crate) fn share_type() -> Case {
    let given = |specs: Value| value!({"name": "given", "driver_handles_share_servers": false, "is_public": false, "extra_specs": specs});
    case("OS::Manila::ShareType", given(value!({"a": "1", "b": "2"})))
        .updated(given(value!({"b": "3", "c": "4"})))
        .by_admin()
}

fn definition(description: &str) -> Value {
    let task = value!({"name": "first", "action": "std.echo", "input": {"output": "x"}, "on_success": ["second"]});
    value!({
        "type": "direct", "description": description, "input": {"a": 1}, "task_defaults": {"wait_before": 1},
        "tasks": [task, {"name": "second", "action": "std.noop"}],
    })
}

pub(crate) fn workflow() -> Case {
    case("OS::Mistral::Workflow", definition("d")).updated(definition("e"))
}

pub(crate) fn workflow_named() -> Case {
    let mut given = definition("d");
    given.as_map_mut().expect("a map").insert("name".to_owned(), "given".into());
    case("OS::Mistral::Workflow", given)
}

pub(crate) fn external_resource() -> Case {
    let given = |word: &str| {
        let run = value!({"workflow": "{flow}", "params": {"env": {"e": "f"}}});
        let actions =
            value!({"CREATE": (run.clone()), "UPDATE": {"workflow": "{flow}"}, "DELETE": {"workflow": "{flow}"}});
        value!({"actions": actions, "input": {"resource_id": "own", "word": word}})
    };
    case("OS::Mistral::ExternalResource", given("a"))
        .needs("flow", "OS::Mistral::Workflow", definition("d"))
        .updated(given("b"))
}

fn template() -> Value {
    value!({"image": "cirros", "flavor": "m1.nano", "external_network": "public", "coe": "kubernetes"})
}

pub(crate) fn cluster() -> Case {
    let given = |count: i64| value!({"cluster_template": "{template}", "node_count": count});
    case("OS::Magnum::Cluster", given(1))
        .needs("template", "OS::Magnum::ClusterTemplate", template())
        .updated(given(2))
        .built_by(Service::ContainerInfra, "/clusters$")
}

pub(crate) fn cluster_named() -> Case {
    case("OS::Magnum::Cluster", value!({"cluster_template": "{template}", "name": "given"}))
        .needs("template", "OS::Magnum::ClusterTemplate", template())
        .untold()
}

pub(crate) fn database_instance() -> Case {
    let user =
        |password: &str, databases: Value| value!({"name": "user", "password": password, "databases": databases});
    let given = |flavor: &str, size: i64, databases: Value, user: Value| {
        value!({
            "flavor": flavor, "size": size, "databases": databases, "users": [user],
            "networks": [{"network": "{net}"}], "datastore_type": "mysql", "datastore_version": "8.0",
        })
    };
    let databases = |names: [&str; 2]| -> Value { names.iter().map(|name| value!({"name": (*name)})).collect() };
    case("OS::Trove::Instance", given("m1.nano", 1, databases(["one", "two"]), user("old", value!(["one"]))))
        .on_network()
        .updated(given("m1.micro", 2, databases(["two", "three"]), user("new", value!(["two"]))))
        .built_by(Service::Database, "/instances$")
}

pub(crate) fn database_instance_named() -> Case {
    let given = |name: &str| value!({"flavor": "m1.nano", "size": 1, "name": name});
    case("OS::Trove::Instance", given("given")).updated(given("other"))
}

pub(crate) fn database_cluster() -> Case {
    let one = value!({"flavor": "m1.nano", "volume_size": 1, "networks": [{"network": "{net}"}]});
    let given = value!({"datastore_type": "mysql", "datastore_version": "8.0", "instances": [(one.clone()), one]});
    case("OS::Trove::Cluster", given).on_network().built_by(Service::Database, "/clusters$")
}

pub(crate) fn container() -> Case {
    let given = |cpu: f64, network: &str| {
        value!({
            "image": "cirros", "cpu": cpu, "memory": 128, "command": "sh -c 'echo hi'",
            "restart_policy": "on-failure:3", "interactive": true, "environment": {"A": "b"},
            "mounts": [{"volume_size": 1, "mount_path": "/data"}], "networks": [{"network": network}],
        })
    };
    case("OS::Zun::Container", given(0.5, "{net}"))
        .on_network()
        .needs("other", "OS::Neutron::Net", value!({}))
        .needs("group", "OS::Neutron::SecurityGroup", value!({}))
        .updated(given(1.5, "{other}"))
        .built_by(Service::Container, "/containers$")
}

pub(crate) fn container_named() -> Case {
    let given = |name: &str| value!({"image": "cirros", "name": name});
    case("OS::Zun::Container", given("given")).updated(given("other"))
}
