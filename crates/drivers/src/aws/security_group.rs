//! AWS::EC2::SecurityGroup

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Map, Value, value};

use crate::neutron::rules;
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

/// The properties with rules, and the direction of their rules.
const PROPERTIES: [(&str, &str); 2] = [("SecurityGroupIngress", "ingress"), ("SecurityGroupEgress", "egress")];

/// Rules of Neutron by the property that they belong to.
fn by_direction(rules: &Value) -> Map {
    let of = |(property, direction): (&str, &str)| {
        let rules = rules.as_list().unwrap_or_default().iter();
        let own = rules.filter(|rule| rule.str_at("direction") == Some(direction)).cloned();
        (property.to_owned(), Value::List(own.collect()))
    };
    PROPERTIES.map(of).into()
}

fn given(facts: &Facts) -> Value {
    let of = |(property, direction): (&str, &'static str)| {
        let rules = facts.property(property).as_list().unwrap_or_default();
        rules.iter().map(|given| rule(given, direction)).collect::<Vec<_>>()
    };
    let rules: Vec<Value> = PROPERTIES.into_iter().flat_map(of).collect();
    Value::List(rules)
}

#[async_trait]
impl Shape for SecurityGroup {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.insert("name".to_owned(), cx.facts.physical_name.as_str().into());
        Ok(())
    }

    fn has_more(&self, facts: &Facts) -> bool {
        given(facts).is_truthy()
    }

    fn note(&self, object: &Value) -> Value {
        rules::of(object)
    }

    fn keep(&self, facts: &Facts, object: &Value) -> Map {
        rules::keep(object, &given(facts))
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, noted: &Value) -> Result<(), Failure> {
        let given = given(cx.facts);
        if given.is_truthy() { rules::set(cx, id, &given, noted).await } else { Ok(()) }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let is_changed = PROPERTIES.iter().any(|(property, _)| edit.changed.contains_key(*property));
        if is_changed { rules::set(cx, id, &given(cx.facts), &Value::Null).await } else { Ok(()) }
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        if let Some(rules) = rules::live(cx, object, &given(cx.facts)).await? {
            live.extend(by_direction(&rules));
        }
        Ok(())
    }

    async fn expected(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        Ok(by_direction(&rules::expected(cx, &given(cx.facts)).await?))
    }
}
