//! `AWS::ElasticLoadBalancing::LoadBalancer`: a nested stack with a server that runs HAProxy.
//!
//! The configuration of HAProxy is in the metadata of the server, so that a change of the instances changes only these:
//! the server reads them every minute. The instances are external resources of the nested stack, which gives their
//! addresses.

use indexmap::{IndexMap, IndexSet};
use kiln_resource::{Facts, Nested, NestedStack, TypeRules};
use kiln_value::{Diagnostic, Map, Value, text, value};

use crate::validation::failed;

/// The driver. The engine creates and updates the nested stack.
pub(super) struct LoadBalancer;

/// Parameters of the nested stack that have the values of the stack's own parameters with these names.
const INHERITED: &[&str] = &["KeyName", "LbFlavor", "LBTimeout", "LbImageId"];

/// The first boot: applies the metadata, and signals the result.
const USER_DATA: &str = include_str!("load_balancer/user_data.sh");
/// The part of HAProxy's configuration that is always the same.
const GLOBAL: &str = include_str!("load_balancer/haproxy.cfg");

fn number(map: Option<&Value>, key: &str) -> String {
    map.and_then(|map| map.get(key)).map(text::str).unwrap_or_default()
}

/// The configuration of HAProxy: texts, and the addresses of the instances.
fn configuration(facts: &Facts, members: &[String]) -> Value {
    let listener = facts.property("Listeners").at(0);
    let check = Some(facts.property("HealthCheck")).filter(|check| check.is_truthy());
    let mut parts: Vec<Value> = vec![GLOBAL.into()];
    parts.push(
        format!("\nfrontend http\n    bind *:{}\n    default_backend servers\n", number(listener, "LoadBalancerPort"))
            .into(),
    );
    let backend = "\nbackend servers\n    balance roundrobin\n    option http-server-close\n    option forwardfor\n    option httpchk\n";
    parts.push(backend.into());
    parts.extend(check.map(|_| format!("    timeout check {}s\n", number(check, "Timeout")).into()));
    let checked = check.map_or_else(String::new, |_| {
        let of = |key| number(check, key);
        format!(" check inter {}s fall {} rise {}", of("Interval"), of("UnhealthyThreshold"), of("HealthyThreshold"))
    });
    for (member, at) in members.iter().zip(1..) {
        parts.push(format!("    server server{at} ").into());
        parts.push(value!({"get_attr": [(member.as_str()), "PublicIp"]}));
        parts.push(format!(":{}{checked}\n", number(listener, "InstancePort")).into());
    }
    value!({"list_join": ["", parts]})
}

fn file(content: Value, mode: &str) -> Value {
    value!({"content": content, "mode": mode, "owner": "root", "group": "root"})
}

/// What cfn-init sets up.
fn metadata(configuration: Value) -> Value {
    let join = |parts: Value| value!({"list_join": ["", parts]});
    let credentials = join(value!([
        "AWSAccessKeyId=", {"get_resource": "lb_key"}, "\n",
        "AWSSecretKey=", {"get_attr": ["lb_key", "SecretAccessKey"]}, "\n",
    ]));
    let hup = join(value!([
        "[main]\nstack=", {"get_param": "OS::stack_id"},
        "\ncredential-file=/etc/cfn/cfn-credentials\ninterval=60\n",
    ]));
    let hooks = join(value!([
        "[init]\ntriggers=post.update\npath=Resources.LB_instance.Metadata\naction=/opt/aws/bin/cfn-init -s ",
        {"get_param": "OS::stack_id"},
        " -r LB_instance && systemctl reload-or-restart haproxy.service\nrunas=root\n",
    ]));
    value!({"AWS::CloudFormation::Init": {"config": {
        "packages": {"yum": {"haproxy": [], "socat": []}},
        "services": {"systemd": {"crond": {"enabled": "true", "ensureRunning": "true"}}},
        "files": {
            "/etc/cfn/cfn-credentials": (file(credentials, "000400")),
            "/etc/cfn/cfn-hup.conf": (file(hup, "000400")),
            "/etc/cfn/hooks.conf": (file(hooks, "000400")),
            "/etc/haproxy/haproxy.cfg": (file(configuration, "000644")),
            "/tmp/cfn-hup-crontab.txt": (file("MAIL=\"\"\n* * * * * /opt/aws/bin/cfn-hup -f\n".into(), "000600")),
        },
    }}})
}

/// The entry of the data with the members of groups, by the name of the group.
const GROUPS: &str = "group_members";

/// The own instances and the members of groups, each once.
fn instances(facts: &Facts) -> Vec<String> {
    let own = facts.property("Instances").as_list().unwrap_or_default();
    let groups = facts.data.get(GROUPS).and_then(Value::as_map).into_iter().flat_map(Map::values);
    let all = own.iter().chain(groups.filter_map(Value::as_list).flatten());
    let all: IndexSet<String> = all.map(text::str).collect();
    all.into_iter().collect()
}

fn template(facts: &Facts) -> Value {
    let instances = instances(facts);
    // The ID of an external resource cannot change, so that it is a part of the name.
    let names: Vec<String> = instances.iter().map(|id| format!("instance_{id}")).collect();
    let mut resources: Map = names
        .iter()
        .zip(&instances)
        .map(|(name, id)| (name.clone(), value!({"type": "AWS::EC2::Instance", "external_id": (id.as_str())})))
        .collect();
    let user_data = value!({"str_replace": {
        "template": USER_DATA,
        "params": {"$STACK": {"get_param": "OS::stack_id"}, "$HANDLE": {"get_resource": "WaitHandle"}},
    }});
    let properties = value!({
        "ImageId": {"get_param": "LbImageId"},
        "InstanceType": {"get_param": "LbFlavor"},
        "KeyName": {"get_param": "KeyName"},
        "SecurityGroups": {"get_param": "SecurityGroups"},
        "UserData": user_data,
    });
    let server = value!({
        "type": "AWS::EC2::Instance", "properties": properties,
        "metadata": (metadata(configuration(facts, &names))),
    });
    let condition = value!({"Handle": {"get_resource": "WaitHandle"}, "Timeout": {"get_param": "LBTimeout"}});
    let own = value!({
        "lb_user": {"type": "AWS::IAM::User"},
        "lb_key": {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "lb_user"}}},
        "LB_instance": server,
        "WaitHandle": {"type": "AWS::CloudFormation::WaitConditionHandle"},
        "WaitCondition": {
            "type": "AWS::CloudFormation::WaitCondition", "depends_on": "LB_instance", "properties": condition,
        },
    });
    resources.extend(own.as_map().cloned().unwrap_or_default());
    value!({
        "heat_template_version": "2018-08-31",
        "parameters": {
            "KeyName": {"type": "string"},
            "LbImageId": {"type": "string", "default": "Fedora-Cloud-Base-20141203-21.x86_64"},
            "LbFlavor": {"type": "string", "default": "m1.small"},
            "LBTimeout": {"type": "string", "default": "600"},
            "SecurityGroups": {"type": "comma_delimited_list", "default": []},
        },
        "resources": resources,
        "outputs": {"PublicIp": {"value": {"get_attr": ["LB_instance", "PublicIp"]}}},
    })
}

impl TypeRules for LoadBalancer {
    fn reference(&self, facts: &Facts) -> Value {
        facts.name.as_str().into()
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if facts.property("Listeners").as_list().is_some_and(<[Value]>::is_empty) {
            return Err(failed("A load balancer needs a listener."));
        }
        let check = facts.property("HealthCheck");
        let seconds = |key: &str| check.get(key).and_then(Value::as_i64);
        match (seconds("Interval"), seconds("Timeout")) {
            (Some(interval), Some(timeout)) if interval < timeout => {
                Err(failed("Interval must be larger than Timeout"))
            }
            _ => Ok(()),
        }
    }
}

impl NestedStack for LoadBalancer {
    fn nested(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let mut parameters = Map::new();
        if let Some(groups) = facts.property("SecurityGroups").as_list() {
            parameters.insert("SecurityGroups".to_owned(), groups.to_vec().into());
        }
        Some(Ok(Nested { template: template(facts), parameters, inherited: INHERITED, ..Nested::default() }))
    }

    /// The members of groups are kept in the data: the property `Instances` belongs to the template.
    fn with_members(&self, facts: &Facts, group: &str, members: &[Value]) -> Option<Map> {
        let mut groups = facts.data.get(GROUPS).and_then(Value::as_map).cloned().unwrap_or_default();
        let before = match members {
            [] => groups.shift_remove(group),
            members => groups.insert(group.to_owned(), members.to_vec().into()),
        };
        let changes = before.as_ref().and_then(Value::as_list).unwrap_or_default() != members;
        changes.then(|| Map::from([(GROUPS.to_owned(), groups.into())]))
    }

    /// Only the address is known; the others are empty.
    fn attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        _: &IndexMap<String, Value>,
        name: &str,
        _: &[Value],
    ) -> Option<Value> {
        match name {
            "DNSName" => outputs.get("PublicIp").cloned(),
            _ => Some("".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(check: Value) -> Facts {
        let properties = value!({
            "Instances": ["i1", "i2"], "HealthCheck": check, "SecurityGroups": ["g"],
            "Listeners": [{"LoadBalancerPort": 80, "InstancePort": 8080, "Protocol": "HTTP"}],
        });
        Facts { properties: properties.as_map().unwrap().clone(), ..Facts::default() }
    }

    #[test]
    fn the_servers_are_the_instances() {
        let check = value!({"Interval": 30, "Timeout": 5, "HealthyThreshold": 3, "UnhealthyThreshold": 4, "Target": "HTTP:80/"});
        let nested = LoadBalancer.nested(&facts(check), &[]).unwrap().unwrap();
        let resources = nested.template.get("resources").unwrap();
        let second = resources.get("instance_i2").unwrap();
        assert_eq!(second.str_at("external_id"), Some("i2"));
        let metadata = resources.get("LB_instance").unwrap().get("metadata").unwrap();
        let shown = text::json(metadata);
        assert!(shown.contains("bind *:80\\n"), "{shown}");
        assert!(shown.contains("timeout check 5s\\n"), "{shown}");
        let server = r#""    server server2 ", {"get_attr": ["instance_i2", "PublicIp"]}, ":8080 check inter 30s fall 4 rise 3\n""#;
        assert!(shown.contains(server), "{shown}");
        assert_eq!(nested.parameters.get("SecurityGroups"), Some(&value!(["g"])));
    }

    #[test]
    fn members_of_groups_are_instances_too() {
        let mut facts = facts(Value::Null);
        let change = LoadBalancer.with_members(&facts, "g", &["i2".into(), "m1".into()]).unwrap();
        facts.data.extend(change);
        assert_eq!(instances(&facts), ["i1", "i2", "m1"]);
        assert_eq!(LoadBalancer.with_members(&facts, "g", &["i2".into(), "m1".into()]), None);
        facts.data.extend(LoadBalancer.with_members(&facts, "h", &["m2".into()]).unwrap());
        facts.data.extend(LoadBalancer.with_members(&facts, "g", &[]).unwrap());
        assert_eq!(instances(&facts), ["i1", "i2", "m2"]);
        assert_eq!(LoadBalancer.with_members(&facts, "g", &[]), None);
    }

    #[test]
    fn the_interval_of_checks_is_longer_than_one() {
        let wrong = facts(value!({"Interval": 4, "Timeout": 5}));
        assert_eq!(LoadBalancer.validate(&wrong).unwrap_err().text, "Interval must be larger than Timeout");
        assert!(LoadBalancer.validate(&facts(Value::Null)).is_ok());
        let shown = text::json(&template(&facts(Value::Null)));
        assert!(!shown.contains("timeout check") && shown.contains(":8080\\n"), "{shown}");
    }
}
