//! AWS::EC2::SecurityGroup

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Map, Value, value};

use crate::neutron::{security_group_rules, set_security_group_rules};
use crate::rest::{Edit, Shape};

/// A security group of Neutron, with rules for IPv4.
pub(super) struct SecurityGroup;

/// A port; a negative one means none.
fn port(rule: &Value, key: &str) -> Option<i64> {
    let port = rule.get(key).filter(|port| !port.is_null())?;
    port.as_i64().or_else(|| port.as_str()?.trim().parse().ok()).filter(|port| *port >= 0)
}

/// A rule as in OS::Neutron::SecurityGroup.
fn rule(given: &Value, direction: &str) -> Value {
    let text = |key: &str| given.get(key).filter(|value| value.is_truthy()).cloned();
    let has_ports = ["FromPort", "ToPort"].iter().any(|key| given.get(key).is_some_and(|port| !port.is_null()));
    let group = text("SourceSecurityGroupId").or_else(|| text("SourceSecurityGroupName"));
    let mode = if group.is_some() { "remote_group_id" } else { "remote_ip_prefix" };
    let prefix = text("CidrIp").filter(|_| has_ports);
    value!({
        "direction": direction, "ethertype": "IPv4", "protocol": (text("IpProtocol")), "remote_mode": mode,
        "port_range_min": (port(given, "FromPort")), "port_range_max": (port(given, "ToPort")),
        "remote_ip_prefix": prefix, "remote_group_id": group,
    })
}

fn rules(facts: &Facts) -> Value {
    let of = |property: &str, direction: &'static str| {
        let given = facts.property(property).as_list().unwrap_or_default();
        given.iter().map(|given| rule(given, direction)).collect::<Vec<_>>()
    };
    let mut rules = of("SecurityGroupIngress", "ingress");
    rules.extend(of("SecurityGroupEgress", "egress"));
    Value::List(rules)
}

#[async_trait]
impl Shape for SecurityGroup {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.insert("name".to_owned(), cx.facts.physical_name.as_str().into());
        Ok(())
    }

    fn has_more(&self, facts: &Facts) -> bool {
        rules(facts).is_truthy()
    }

    fn note(&self, object: &Value) -> Value {
        security_group_rules(object)
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, noted: &Value) -> Result<(), Failure> {
        let rules = rules(cx.facts);
        if rules.is_truthy() { set_security_group_rules(cx, id, &rules, noted).await } else { Ok(()) }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let is_changed =
            ["SecurityGroupIngress", "SecurityGroupEgress"].iter().any(|key| edit.changed.contains_key(*key));
        if is_changed { set_security_group_rules(cx, id, &rules(cx.facts), &Value::Null).await } else { Ok(()) }
    }
}
