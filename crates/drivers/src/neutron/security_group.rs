//! OS::Neutron::SecurityGroup

use async_trait::async_trait;
use futures::future::join_all;
use kiln_resource::{Context, Facts, Failure, FailureKind};
use kiln_value::{Diagnostic, Map, Value, value};

use super::NEUTRON;
use crate::call::security_group_id;
use crate::path;
use crate::rest::{Edit, Shape};
use crate::validation::failed;

/// A security group with its rules.
///
/// Unlike in Heat, an update does not touch unchanged rules, so that the traffic they allow is never interrupted.
pub(super) struct SecurityGroup;

#[async_trait]
impl Shape for SecurityGroup {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.shift_remove("rules");
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        body.shift_remove("rules");
        Ok(())
    }

    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("rules").is_truthy()
    }

    fn note(&self, object: &Value) -> Value {
        rules_of(object)
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, noted: &Value) -> Result<(), Failure> {
        match cx.facts.property("rules") {
            rules if rules.is_truthy() => set_rules(cx, id, rules, noted).await,
            _ => Ok(()),
        }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        match edit.changed.get("rules") {
            Some(rules) => set_rules(cx, id, rules, &Value::Null).await,
            None => Ok(()),
        }
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if facts.property("name").as_str() == Some("default") {
            return Err(failed("Security groups cannot be assigned the name \"default\"."));
        }
        Ok(())
    }
}

/// Most rules of a group that are created at the same time.
const AT_ONCE: usize = 4;

/// The fields that identify a rule in Neutron.
const KEY: [&str; 7] =
    ["direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_group_id", "remote_ip_prefix"];

fn is_same(one: &Value, other: &Value) -> bool {
    KEY.iter().all(|key| one.get(key).unwrap_or(&Value::Null) == other.get(key).unwrap_or(&Value::Null))
}

/// A rule of the template in Neutron's format.
async fn rule(cx: &Context<'_>, group: &str, given: &Value) -> Result<Value, Failure> {
    let mut rule = given.as_map().cloned().unwrap_or_default();
    let by_group = rule.shift_remove("remote_mode").is_some_and(|mode| mode.as_str() == Some("remote_group_id"));
    if by_group {
        let remote = rule.get("remote_group_id").and_then(Value::as_str).filter(|r| !r.is_empty());
        let remote = match remote {
            None => group.to_owned(),
            Some(name) => security_group_id(cx, name).await?,
        };
        rule.insert("remote_group_id".into(), remote.into());
        rule.shift_remove("remote_ip_prefix");
    } else {
        rule.shift_remove("remote_group_id");
    }
    rule.retain(|_, value| !value.is_null());
    rule.insert("security_group_id".into(), group.into());
    Ok(Value::Map(rule))
}

/// The rules of a group in Neutron, or null: what identifies them, and their IDs.
pub(crate) fn rules_of(group: &Value) -> Value {
    let Some(rules) = group.get("security_group_rules").and_then(Value::as_list) else { return Value::Null };
    let fields = |rule: &Value| -> Map {
        let keys = KEY.iter().chain(&["id"]);
        keys.filter_map(|key| Some(((*key).to_owned(), rule.get(key)?.clone()))).collect()
    };
    rules.iter().map(|rule| Value::Map(fields(rule))).collect()
}

/// Sets exactly these rules, and the default egress rules if none of them is for egress. `known` are the rules of a group
/// that was just created; otherwise they are read.
pub(crate) async fn set_rules(cx: &Context<'_>, id: &str, given: &Value, known: &Value) -> Result<(), Failure> {
    let mut wanted: Vec<Value> = Vec::new();
    for given in given.as_list().unwrap_or_default() {
        let rule = rule(cx, id, given).await?;
        if !wanted.iter().any(|other| is_same(other, &rule)) {
            wanted.push(rule);
        }
    }
    if !wanted.iter().any(|rule| rule.str_at("direction") == Some("egress")) {
        for ethertype in ["IPv4", "IPv6"] {
            wanted.push(value!({"direction": "egress", "ethertype": ethertype, "security_group_id": id}));
        }
    }
    let present = if known.is_null() {
        let path = format!("/v2.0/security-groups/{}", path::segment(id));
        &rules_of(&NEUTRON.show(cx, path, "security_group").await?)
    } else {
        known
    };
    let present = present.as_list().unwrap_or_default();
    for rule in present.iter().filter(|rule| !wanted.iter().any(|w| is_same(w, rule))) {
        let rule = rule.str_at("id").unwrap_or_default();
        NEUTRON.delete(cx, format!("/v2.0/security-group-rules/{}", path::segment(rule))).await?;
    }
    let missing: Vec<&Value> = wanted.iter().filter(|rule| !present.iter().any(|p| is_same(p, rule))).collect();
    // Each takes Neutron a tenth of a second or more. All of them change the row of their group, so not too many at once.
    for rules in missing.chunks(AT_ONCE) {
        let created = join_all(rules.iter().map(|rule| create_rule(cx, rule))).await;
        created.into_iter().collect::<Result<(), Failure>>()?;
    }
    Ok(())
}

async fn create_rule(cx: &Context<'_>, rule: &Value) -> Result<(), Failure> {
    let body = value!({"security_group_rule": (rule.clone())});
    match NEUTRON.post(cx, "/v2.0/security-group-rules", body).await {
        // The same rule in another notation.
        Err(failure) if failure.kind == FailureKind::Conflict => Ok(()),
        outcome => outcome.map(drop),
    }
}
