//! Groups of software deployments: a nested stack with one deployment for each server.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;
use kiln_resource::scaling::{Batch, Rolling};
use kiln_resource::{Facts, Member, Nested, NestedStack, TypeRules, size_limit};
use kiln_template::select;
use kiln_value::{Diagnostic, Map, Value, text, value};

use super::members;
use super::rolling::{self, Policy};

/// The update policies.
const BATCH_CREATE: &str = "batch_create";
const ROLLING_UPDATE: &str = "rolling_update";

/// The driver of the groups; it has the type of the members.
pub(super) struct Deployments(&'static str);

impl Deployments {
    /// The group with this type.
    pub(super) fn of_type(name: &str) -> Option<Self> {
        match name {
            "OS::Heat::SoftwareDeploymentGroup" | "OS::Heat::SoftwareDeployments" => {
                Some(Self("OS::Heat::SoftwareDeployment"))
            }
            "OS::Heat::StructuredDeploymentGroup" | "OS::Heat::StructuredDeployments" => {
                Some(Self("OS::Heat::StructuredDeployment"))
            }
            _ => None,
        }
    }
}

impl TypeRules for Deployments {
    fn update_policies(&self) -> &'static [&'static str] {
        &[BATCH_CREATE, ROLLING_UPDATE]
    }
}

impl NestedStack for Deployments {
    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let shared: usize = shared(facts).map(|(_, value)| value.size()).sum();
        if let Err(error) = size_limit::check_group(servers(facts).count(), shared) {
            return Some(Err(error));
        }
        let Some(policy) = policy(facts) else {
            return Some(Ok(Nested { template: template(facts, self.0, wanted), ..Nested::default() }));
        };
        let step = match step(facts, policy) {
            Ok(step) => step,
            Err(error) => return Some(Err(error)),
        };
        let (template, then) = match step {
            Some(step) => (of_members(after_batch(facts, self.0, step.batch), wanted), step.then),
            None => (template(facts, self.0, wanted), None),
        };
        Some(Ok(Nested { template, then, pause: policy.pause, ..Nested::default() }))
    }

    fn draft_needs(&self) -> &'static [&'static str] {
        &["servers"]
    }

    fn attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        _: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        outputs.get(&format!("attributes, {}", attribute(name))).map(|all| select(all.clone(), path))
    }
}

/// Members of the type `member`, named as the servers are, with all properties of the group.
pub fn template(facts: &Facts, member: &str, wanted: &[Vec<Value>]) -> Value {
    of_members(servers(facts).map(|name| (name.clone(), definition(facts, member, name))).collect(), wanted)
}

fn servers(facts: &Facts) -> impl Iterator<Item = &String> {
    facts.property("servers").as_map().into_iter().flatten().map(|(name, _)| name)
}

/// The properties that all members have.
fn shared(facts: &Facts) -> impl Iterator<Item = (&String, &Value)> {
    facts.properties.iter().filter(|(name, _)| *name != "servers")
}

fn definition(facts: &Facts, member: &str, name: &str) -> Value {
    let mut properties: Map = shared(facts).map(|(name, value)| (name.clone(), value.clone())).collect();
    let server = facts.property("servers").get(name).cloned().unwrap_or_default();
    properties.insert("server".to_owned(), server);
    value!({"type": member, "properties": properties})
}

fn of_members(members: Map, wanted: &[Vec<Value>]) -> Value {
    let outputs = wanted.iter().filter_map(|path| {
        let attribute = attribute(&text::str(path.first()?));
        let each = members.keys().map(|name| (name.clone(), value!({"get_attr": [name, (attribute.as_str())]})));
        Some((format!("attributes, {attribute}"), value!({"value": (each.collect::<Value>())})))
    });
    let outputs = outputs.collect::<Map>();
    members::template(members, outputs)
}

/// The policy, if the members change in batches. Every update of a group may change its members.
fn policy(facts: &Facts) -> Option<Policy> {
    let of_step = || facts.nested.step.str_at("policy");
    let name = of_step().unwrap_or(if facts.physical_id.is_none() { BATCH_CREATE } else { ROLLING_UPDATE });
    facts.nested.update_policy.get(name).and_then(Value::as_map).filter(|_| !facts.nested.last_step).map(Policy::of)
}

/// The next step.
fn step(facts: &Facts, policy: Policy) -> Result<Option<rolling::Step>, Diagnostic> {
    let mut step = if let Some(progress) = rolling::progress(&facts.nested.step) {
        policy.step(progress, Rolling::after_numbered)
    } else {
        let size = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let (target, current) = (size(servers(facts).count()), size(kept(facts).count()));
        policy.first(facts, Rolling { target, current, up_to_date: 0 }, Rolling::after_numbered)?
    };
    // Later steps cannot tell a create from an update.
    let name = if facts.physical_id.is_none() { BATCH_CREATE } else { ROLLING_UPDATE };
    let name = facts.nested.step.str_at("policy").unwrap_or(name);
    if let Some(then) = step.as_mut().and_then(|step| step.then.as_mut()?.as_map_mut()) {
        then.insert("policy".to_owned(), name.into());
    }
    Ok(step)
}

/// The members whose server is still one of the group.
fn kept(facts: &Facts) -> impl Iterator<Item = &Member> {
    let servers = facts.property("servers");
    facts.nested.members.iter().filter(|member| servers.get(&member.name).is_some())
}

/// The members after a batch, in the order of the servers; the last ones change first. A failed member is like a new one.
/// Those whose server is gone go with the first batch: Heat would deploy to no server in their place.
fn after_batch(facts: &Facts, member: &str, batch: Batch) -> Map {
    let names: Vec<&String> = servers(facts).collect();
    let index: HashMap<&str, usize> = names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let place = |name: &str| index.get(name).copied().unwrap_or_default();
    let there = kept(facts).filter(|member| !member.failed);
    let mut old: Vec<(String, Value)> = there.map(|member| (member.name.clone(), member.definition.clone())).collect();
    old.sort_by_key(|(name, _)| Reverse(place(name)));
    let existing: BTreeSet<&str> = old.iter().map(|(name, _)| name.as_str()).collect();
    let mut new = names.iter().filter(|name| !existing.contains(name.as_str())).map(|name| (*name).clone());
    let customized = |name: &str| definition(facts, member, name);
    let mut members = rolling::definitions(&old, batch, || new.next().unwrap_or_default(), customized);
    members.sort_by_key(|(name, _)| place(name));
    members.into_iter().collect()
}

/// The attribute of a deployment that an attribute of its group gathers.
fn attribute(of_group: &str) -> String {
    match of_group {
        "deploy_stdouts" | "deploy_stderrs" => of_group.trim_end_matches('s').to_owned(),
        "deploy_status_codes" => "deploy_status_code".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deploys_to_each_server() {
        let mut facts = Facts::default();
        facts.properties.insert("servers".to_owned(), value!({"a": "id"}));
        facts.properties.insert("name".to_owned(), Value::Null);
        let made = template(&facts, "OS::Heat::SoftwareDeployment", &[vec!["deploy_stdouts".into()]]);
        let expected = value!({
            "heat_template_version": "2015-04-30",
            "resources": {"a": {"type": "OS::Heat::SoftwareDeployment", "properties": {"name": null, "server": "id"}}},
            "outputs": {"attributes, deploy_stdout": {"value": {"a": {"get_attr": ["a", "deploy_stdout"]}}}}
        });
        assert_eq!(made, expected);
    }

    #[test]
    fn members_change_in_batches() {
        let policies = value!({"rolling_update": {"max_batch_size": 2, "pause_time": 1}});
        let properties = value!({"servers": {"a": "1", "b": "2", "c": "3"}, "config": "new"});
        let mut facts = Facts {
            physical_id: Some("nested".to_owned()),
            nested: kiln_resource::NestedFacts {
                update_policy: policies.as_map().unwrap().clone(),
                ..kiln_resource::NestedFacts::default()
            },
            properties: properties.as_map().unwrap().clone(),
            ..Facts::default()
        };
        let member = |name: &str| Member {
            name: name.to_owned(),
            definition: value!({"type": "T", "properties": {"config": "old"}}),
            ..Member::default()
        };
        // A server is gone, and one is new.
        facts.nested.members = ["a", "b", "gone"].map(member).into();
        let mut steps = Vec::new();
        loop {
            let nested = Deployments("T").nested(&facts, &[]).unwrap().unwrap();
            assert_eq!(nested.pause, std::time::Duration::from_secs(1));
            let resources = nested.template.get("resources").and_then(Value::as_map).unwrap().clone();
            let config = |one: &Value| one.get("properties").unwrap().str_at("config").unwrap().to_owned();
            let shown: Vec<_> = resources.iter().map(|(name, one)| format!("{name}={}", config(one))).collect();
            steps.push(shown.join(" "));
            let there = |(name, definition)| Member { name, definition, ..Default::default() };
            facts.nested.members = resources.into_iter().map(there).collect();
            match nested.then {
                Some(then) => facts.nested.step = then,
                None => break,
            }
        }
        assert_eq!(steps.last().map(String::as_str), Some("a=new b=new c=new"), "{steps:?}");
        assert_eq!(steps.len(), 2, "{steps:?}");
    }
}
