//! `OS::Heat::ResourceGroup`: a nested stack with any number of members from one definition (docs/heat-behaviour.md
//! §15.1).

use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;
use kiln_resource::scaling::{Batch, Rolling};
use kiln_resource::{Facts, Group, Member, Nested, NestedStack, TypeRules, size_limit};
use kiln_value::{Class, Diagnostic, Map, Value, text};

use super::members;
use super::rolling::{self, Policy};

/// The names that removal policies have taken out, kept in the resource's data as Heat keeps them.
const SKIPPED: &str = "name_blacklist";

/// Whatever the limit of resources is: a template with so many members fills the memory of an engine.
const MOST_MEMBERS: usize = 50_000;

/// The update policies.
const BATCH_CREATE: &str = "batch_create";
const ROLLING_UPDATE: &str = "rolling_update";

/// The nested template of a group: members called `names`, and outputs for the `wanted` attributes (name and path).
pub fn template(definition: &Value, index_var: &str, names: &[String], wanted: &[Vec<Value>]) -> Value {
    let members = names.iter().map(|name| (name.clone(), member(definition, index_var, name, false))).collect();
    members::template(members, members::outputs(names, wanted, true))
}

/// The first `count` numbers that are not skipped, as names.
pub fn names(count: usize, skipped: &BTreeSet<String>) -> Vec<String> {
    (0_u64..).map(|n| n.to_string()).filter(|name| !skipped.contains(name)).take(count).collect()
}

/// A member: the definition with the index in its properties' values, and without those that are null unless these are
/// kept.
fn member(definition: &Value, index_var: &str, name: &str, keep_nulls: bool) -> Value {
    let mut member = Map::from([("type".to_owned(), definition.get("type").cloned().unwrap_or_default())]);
    if let Some(properties) = definition.get("properties").and_then(Value::as_map) {
        let given = properties.iter().filter(|(_, value)| keep_nulls || !value.is_null());
        let indexed: Map = given.map(|(key, value)| (key.clone(), with_index(value, index_var, name))).collect();
        member.insert("properties".to_owned(), indexed.into());
    }
    if let Some(metadata) = definition.get("metadata").filter(|m| !m.is_null()) {
        member.insert("metadata".to_owned(), metadata.clone());
    }
    member.into()
}

fn with_index(value: &Value, index_var: &str, name: &str) -> Value {
    match value {
        Value::Str(text) => text.replace(index_var, name).into(),
        Value::List(items) => items.iter().map(|item| with_index(item, index_var, name)).collect(),
        Value::Map(map) => map.iter().map(|(key, v)| (key.clone(), with_index(v, index_var, name))).collect(),
        other => other.clone(),
    }
}

/// The names that are skipped: those remembered (unless the policies' mode is to forget them) and those that the
/// removal policies name, by name or by reference id.
fn skipped(facts: &Facts) -> BTreeSet<String> {
    let remembered = remembered(facts);
    if !facts.nested.step.is_null() {
        // The first step has stored them all; the removed members no longer have a reference ID.
        return remembered;
    }
    let members = Member::references(&facts.nested.members);
    let mut skipped = match facts.property("removal_policies_mode").as_str() {
        Some("update") => BTreeSet::new(),
        _ => remembered.clone(),
    };
    let policies = facts.property("removal_policies").as_list().unwrap_or_default();
    let entries = policies.iter().filter_map(|policy| policy.get("resource_list")?.as_list()).flatten();
    for entry in entries {
        let name = text::str(entry);
        let is_name = remembered.contains(&name) || facts.physical_id.is_none() || members.contains_key(&name);
        if is_name {
            skipped.insert(name);
        } else if let Some((name, _)) = members.iter().find(|(_, reference)| *reference == entry) {
            skipped.insert(name.clone());
        }
    }
    skipped
}

/// The name of the policy for this create or update. Later steps know it from the first one.
fn policy_name(facts: &Facts) -> Option<&str> {
    if let Some(name) = facts.nested.step.str_at("policy") {
        return Some(name);
    }
    match facts.physical_id {
        None => Some(BATCH_CREATE),
        Some(_) => facts.nested.changed.iter().any(|name| name == "resource_def").then_some(ROLLING_UPDATE),
    }
}

/// The policy, if the members change in batches.
fn policy(facts: &Facts) -> Option<Policy> {
    facts.nested.update_policy.get(policy_name(facts)?).and_then(Value::as_map).map(Policy::of)
}

/// The next step, if the members change in batches.
fn step(facts: &Facts, count: usize, skipped: &BTreeSet<String>) -> Result<Option<rolling::Step>, Diagnostic> {
    let Some(policy) = policy(facts).filter(|_| !facts.nested.last_step) else { return Ok(None) };
    let mut step = first_or_next(facts, policy, count, skipped)?;
    if let (Some(then), Some(name)) =
        (step.as_mut().and_then(|step| step.then.as_mut()?.as_map_mut()), policy_name(facts))
    {
        then.insert("policy".to_owned(), name.into());
    }
    Ok(step)
}

fn first_or_next(
    facts: &Facts,
    policy: Policy,
    count: usize,
    skipped: &BTreeSet<String>,
) -> Result<Option<rolling::Step>, Diagnostic> {
    if let Some(progress) = rolling::progress(&facts.nested.step) {
        return Ok(policy.step(progress, Rolling::after_numbered));
    }
    // A failed member in addition to the wanted ones was temporary in an earlier update: it is created again like one.
    let wanted: BTreeSet<String> = names(count, skipped).into_iter().collect();
    let counts = |member: &&Member| {
        let is_skipped = skipped.contains(&member.name);
        if member.failed { is_skipped || wanted.contains(&member.name) } else { !is_skipped }
    };
    let current = facts.nested.members.iter().filter(counts).count();
    let size = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let rolling = Rolling { target: size(count), current: size(current), up_to_date: 0 };
    policy.first(facts, rolling, Rolling::after_numbered)
}

/// The members after a batch, in the order of their indexes, in which the attributes of the group list them. Those that are
/// not wanted go first, then those with the highest index change. A failed member gets the new definition like a new one.
fn after_batch(facts: &Facts, batch: Batch, count: usize, skipped: &BTreeSet<String>) -> Vec<(String, Value)> {
    let size = usize::try_from(batch.size).unwrap_or(usize::MAX);
    let names = names(size, skipped);
    let index: HashMap<&str, usize> = names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let priority = |name: &str| match index.get(name) {
        None => 0,
        Some(index) if *index < count => count - index,
        Some(_) => size,
    };
    let there = facts.nested.members.iter().filter(|member| !member.failed && !skipped.contains(&member.name));
    let mut old: Vec<(String, Value)> = there.map(|member| (member.name.clone(), member.definition.clone())).collect();
    old.sort_by_cached_key(|(name, _)| priority(name));
    let existing: BTreeSet<&str> = old.iter().map(|(name, _)| name.as_str()).collect();
    let mut new = names.iter().filter(|name| !existing.contains(name.as_str())).cloned();
    let (definition, index_var) = (facts.property("resource_def"), index_var(facts));
    let customized = |name: &str| member(definition, index_var, name, false);
    let mut members = rolling::definitions(&old, batch, || new.next().unwrap_or_default(), customized);
    members.sort_by_cached_key(|(name, _)| name.parse::<u64>().unwrap_or(u64::MAX));
    members
}

fn count(facts: &Facts) -> Result<usize, Diagnostic> {
    let count = facts.property("count").as_i64().unwrap_or_default();
    usize::try_from(count)
        .map_err(|_| Diagnostic::new(Class::ValueError, format!("A group cannot have {count} members.")))
}

fn index_var(facts: &Facts) -> &str {
    facts.property("index_var").as_str().unwrap_or("%index%")
}

fn remembered(facts: &Facts) -> BTreeSet<String> {
    let names = facts.data.get(SKIPPED).and_then(Value::as_str).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The type's driver. The engine creates and updates the nested stack; the driver only describes it.
pub(super) struct ResourceGroup;

impl TypeRules for ResourceGroup {
    fn update_policies(&self) -> &'static [&'static str] {
        &[BATCH_CREATE, ROLLING_UPDATE]
    }
}

impl NestedStack for ResourceGroup {
    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let count = match count(facts) {
            Ok(count) if count > MOST_MEMBERS => {
                let text = format!("Request limit exceeded: A group cannot have more than {MOST_MEMBERS} members.");
                return Some(Err(Diagnostic::new(Class::RequestLimitExceeded, text)));
            }
            Ok(count) => count,
            Err(error) => return Some(Err(error)),
        };
        if let Err(error) = size_limit::check_group(count, facts.property("resource_def").size()) {
            return Some(Err(error));
        }
        let skipped = skipped(facts);
        let step = match step(facts, count, &skipped) {
            Ok(step) => step,
            Err(error) => return Some(Err(error)),
        };
        let (template, then) = if let Some(step) = step {
            let members: Map = after_batch(facts, step.batch, count, &skipped).into_iter().collect();
            let names: Vec<String> = members.keys().cloned().collect();
            (members::template(members, members::outputs(&names, wanted, true)), step.then)
        } else {
            let names = names(count, &skipped);
            (template(facts.property("resource_def"), index_var(facts), &names, wanted), None)
        };
        let pause = policy(facts).map(|policy| policy.pause).unwrap_or_default();
        let skipped: Vec<String> = skipped.into_iter().collect();
        let data = Map::from([(SKIPPED.to_owned(), skipped.join(",").into())]);
        Some(Ok(Nested { template, data, then, pause, ..Nested::default() }))
    }

    /// One member with all that is given for it; a group without members has nothing to validate.
    fn draft(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        match count(facts) {
            Ok(0) => None,
            Ok(_) => {
                let names = names(1, &skipped(facts));
                let definition = facts.property("resource_def");
                let member = |name: &String| (name.clone(), member(definition, index_var(facts), name, true));
                let template = members::template(names.iter().map(member).collect(), Map::new());
                Some(Ok(Nested { template, ..Nested::default() }))
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn attribute(
        &self,
        facts: &Facts,
        outputs: &Map,
        refs: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        match name {
            "removed_rsrc_list" => Some(remembered(facts).into_iter().collect()),
            _ => members::attribute(outputs, refs, name, path, true),
        }
    }

    fn group(&self) -> Option<&dyn Group> {
        Some(self)
    }
}

impl Group for ResourceGroup {
    fn initial_size(&self, facts: &Facts) -> Option<usize> {
        count(facts).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kiln_value::value;

    use super::*;

    fn group(count: i64, data: &Value, policies: &Value) -> Facts {
        let properties = value!({
            "count": count,
            "index_var": "%index%",
            "resource_def": {"type": "OS::Heat::Value", "properties": {"value": "v-%index%", "type": null}, "metadata": null},
            "removal_policies": (policies.clone()),
            "removal_policies_mode": "append"
        });
        Facts {
            name: "grp".to_owned(),
            properties: properties.as_map().unwrap().clone(),
            data: data.as_map().unwrap().clone(),
            ..Facts::default()
        }
    }

    fn there<const N: usize>(members: [(&str, &str); N]) -> Vec<Member> {
        let definition =
            |name: &str| value!({"type": "OS::Heat::Value", "properties": {"value": (format!("old-{name}"))}});
        let member = |(name, reference): (&str, &str)| Member {
            name: name.to_owned(),
            reference: reference.into(),
            definition: definition(name),
            failed: false,
        };
        members.map(member).into()
    }

    /// The members of all steps of an update, as `name` with the old definition or `name*` with the new one.
    fn steps(mut facts: Facts) -> Vec<String> {
        let mut steps = Vec::new();
        loop {
            let nested = ResourceGroup.nested(&facts, &[]).unwrap().unwrap();
            facts.data.extend(nested.data);
            let template = nested.template.get("resources").and_then(Value::as_map).cloned().unwrap_or_default();
            let shown = |(name, definition): (&String, &Value)| {
                let value = definition.get("properties").unwrap().str_at("value").unwrap().to_owned();
                if value.starts_with("old") { name.clone() } else { format!("{name}*") }
            };
            let members: Vec<String> = template.iter().map(shown).collect();
            steps.push(members.join(" "));
            facts.nested.members = template
                .into_iter()
                .map(|(name, definition)| Member { reference: name.as_str().into(), name, definition, failed: false })
                .collect();
            facts.physical_id = facts
                .physical_id
                .or_else(|| (!facts.nested.update_policy.contains_key(BATCH_CREATE)).then(String::new));
            match nested.then {
                Some(then) => facts.nested.step = then,
                None => return steps,
            }
        }
    }

    fn rolling(count: i64, policy: Value) -> Facts {
        let mut facts = group(count, &value!({}), &value!([]));
        facts.nested.members = there([("0", "a"), ("1", "b"), ("2", "c")]);
        facts.physical_id = Some("nested".to_owned());
        facts.nested.changed = vec!["resource_def".to_owned()];
        facts.nested.update_policy = Map::from([(ROLLING_UPDATE.to_owned(), policy)]);
        facts
    }

    #[test]
    fn members_change_in_batches_from_the_highest_index() {
        let policy = value!({"max_batch_size": 2, "min_in_service": 0, "pause_time": 0});
        assert_eq!(steps(rolling(3, policy.clone())), ["0 1* 2*", "0* 1* 2*"]);
        assert_eq!(steps(rolling(4, policy.clone())), ["0 1 2* 3*", "0* 1* 2* 3*"]);
        assert_eq!(steps(rolling(1, policy)), ["0*"]);
        let policy = value!({"max_batch_size": 1, "min_in_service": 3, "pause_time": 0});
        // The group grows by one member, which is removed in the end.
        assert_eq!(steps(rolling(3, policy)), ["0 1 2 3*", "0 1 2* 3*", "0 1* 2* 3*", "0* 1* 2* 3*", "0* 1* 2*"]);
    }

    #[test]
    fn failed_and_removed_members_change_in_the_first_batch() {
        let policy = value!({"max_batch_size": 1, "min_in_service": 0, "pause_time": 0});
        let mut facts = rolling(3, policy.clone());
        facts.nested.members[0].failed = true;
        assert_eq!(steps(facts), ["0* 1 2", "0* 1 2*", "0* 1* 2*"]);
        // Seed 49786 of the simulation: a member that was temporary in a failed update does not count as changed.
        let mut facts = rolling(2, value!({"max_batch_size": 3, "min_in_service": 1, "pause_time": 0}));
        (facts.nested.members[1].failed, facts.nested.members[2].failed) = (true, true);
        assert_eq!(steps(facts), ["0 1* 2*", "0* 1*"]);
        let mut facts = rolling(2, policy);
        facts.properties.insert("removal_policies".to_owned(), value!([{"resource_list": ["b"]}]));
        facts.properties.insert("removal_policies_mode".to_owned(), "update".into());
        assert_eq!(steps(facts), ["0 2*", "0* 2*"]);
    }

    #[test]
    fn only_a_new_definition_changes_members_in_batches() {
        let mut facts = rolling(5, value!({"max_batch_size": 1, "pause_time": 0}));
        facts.nested.changed = vec!["count".to_owned()];
        assert_eq!(steps(facts), ["0* 1* 2* 3* 4*"]);
        let mut facts = rolling(5, value!({"max_batch_size": 1, "pause_time": 0}));
        facts.nested.last_step = true;
        assert_eq!(steps(facts), ["0* 1* 2* 3* 4*"]);
    }

    #[test]
    fn members_are_created_in_batches() {
        let mut facts = group(5, &value!({}), &value!([]));
        facts.nested.update_policy =
            Map::from([(BATCH_CREATE.to_owned(), value!({"max_batch_size": 2, "pause_time": 7}))]);
        let nested = ResourceGroup.nested(&facts, &[]).unwrap().unwrap();
        assert_eq!(nested.pause, Duration::from_secs(7));
        assert_eq!(steps(facts), ["0* 1*", "0* 1* 2* 3*", "0* 1* 2* 3* 4*"]);
    }

    #[test]
    fn makes_members_and_the_outputs_that_are_read() {
        let facts = group(2, &value!({}), &value!([]));
        let wanted = [
            vec!["refs".into()],
            vec!["value".into()],
            vec!["attributes".into(), "value".into()],
            vec!["resource.1.value".into()],
        ];
        let nested = ResourceGroup.nested(&facts, &wanted).unwrap().unwrap();
        let expected = value!({
            "heat_template_version": "2015-04-30",
            "resources": {
                "0": {"type": "OS::Heat::Value", "properties": {"value": "v-0"}},
                "1": {"type": "OS::Heat::Value", "properties": {"value": "v-1"}}
            },
            "outputs": {
                "refs": {"value": [{"get_resource": "0"}, {"get_resource": "1"}]},
                "value": {"value": [{"get_attr": ["0", "value"]}, {"get_attr": ["1", "value"]}]},
                "attributes, value": {"value": {"0": {"get_attr": ["0", "value"]}, "1": {"get_attr": ["1", "value"]}}},
                "resource.1.value": {"value": {"get_attr": ["1", "value"]}},
                "refs_map": {"value": {"0": {"get_resource": "0"}, "1": {"get_resource": "1"}}}
            }
        });
        assert_eq!(nested.template, expected);
    }

    #[test]
    fn refuses_a_negative_count() {
        assert!(ResourceGroup.nested(&group(-1, &value!({}), &value!([])), &[]).unwrap().is_err());
    }

    #[test]
    fn jumps_over_removed_members() {
        let mut facts = group(3, &value!({}), &value!([{"resource_list": ["1", "c", "9"]}]));
        facts.nested.members = there([("0", "a"), ("1", "b"), ("2", "c")]);
        facts.physical_id = Some("nested".to_owned());
        let nested = ResourceGroup.nested(&facts, &[]).unwrap().unwrap();
        let names: Vec<&String> = nested.template.get("resources").unwrap().as_map().unwrap().keys().collect();
        assert_eq!(names, ["0", "3", "4"]);
        assert_eq!(nested.data.get("name_blacklist"), Some(&"1,2".into()));
    }

    #[test]
    fn reads_attributes_of_the_nested_stack() {
        let facts = group(2, &value!({"name_blacklist": "1"}), &value!([]));
        let outputs = value!({"value": ["x", "y"], "resource.0.value, k": 5});
        let refs = IndexMap::from([("0".to_owned(), "a".into()), ("2".to_owned(), "b".into())]);
        let read =
            |name: &str, path: &[Value]| ResourceGroup.attribute(&facts, outputs.as_map().unwrap(), &refs, name, path);
        assert_eq!(read("refs", &[]), Some(value!(["a", "b"])));
        assert_eq!(read("refs", &[1.into()]), Some("b".into()));
        assert_eq!(read("refs", &[2.into()]), Some(Value::Null));
        assert_eq!(read("resource.2", &[]), Some("b".into()));
        assert_eq!(read("resource.0.value", &["k".into()]), Some(5.into()));
        assert_eq!(read("value", &[]), Some(value!(["x", "y"])));
        assert_eq!(read("value", &[1.into()]), Some("y".into()));
        assert_eq!(read("removed_rsrc_list", &[]), Some(value!(["1"])));
        assert_eq!(read("attributes", &[]), None);
        assert_eq!(read("nothing", &[]), None);
    }
}
