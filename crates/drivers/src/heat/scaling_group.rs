//! Groups whose size changes: a nested stack with members of any age, the oldest of which leave first.
//!
//! A member keeps its definition until a rolling update replaces it. The names of members are short IDs that follow
//! from the ID of the group and a counter in its data, so no name is used twice.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use indexmap::IndexMap;
use kiln_resource::physical_name::short_id;
use kiln_resource::scaling::{Batch, Rolling};
use kiln_resource::{Facts, Member, Nested, size_limit};
use kiln_template::select;
use kiln_value::{Class, Diagnostic, Map, Value, text, value};
use uuid::Uuid;

use super::members;
use super::rolling::{self, Policy};

/// The number of names that were used, in the group's data.
const USED_NAMES: &str = "used_names";

/// Whatever the limit of resources is: a template with so many members fills the memory of an engine.
const MOST_MEMBERS: i64 = 50_000;

/// What a type of groups wants.
pub(super) struct Wanted {
    /// The definition of a new member.
    pub(super) definition: Value,
    /// The number of members.
    pub(super) size: i64,
    /// How members get the new definition, if they get it at all.
    pub(super) rolling: Option<Policy>,
}

/// The number of members that are not failed.
pub(super) fn size(facts: &Facts) -> i64 {
    i64::try_from(facts.nested.members.iter().filter(|member| !member.failed).count()).unwrap_or(i64::MAX)
}

/// The size that an update keeps: the healthy members, or in a rolling update all members at its start, because its
/// batches may add some for a time.
pub(super) fn size_to_keep(facts: &Facts, rolling: bool) -> i64 {
    let all = match rolling::progress(&facts.nested.step) {
        Some(progress) => progress.target,
        None if rolling => count(facts),
        None => return size(facts),
    };
    i64::try_from(all).unwrap_or(i64::MAX)
}

/// The step that brings a group to a size.
pub(super) fn resized(size: i64) -> Value {
    value!({"size": size})
}

/// The next members of a group, as names and definitions, with what its row must store and the step after that.
pub(super) fn next(
    facts: &Facts,
    wanted: &Wanted,
    template: impl Fn(Map, &[String]) -> Value,
) -> Result<Nested, Diagnostic> {
    let mut names = Names::of(facts);
    let (members, then, pause) = if facts.nested.last_step {
        (last(facts, wanted, &mut names)?, None, Duration::ZERO)
    } else {
        step(facts, wanted, &mut names)?
    };
    let order: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
    let template = template(members.into_iter().collect(), &order);
    let data = Map::from([(USED_NAMES.to_owned(), Value::Int(names.used))]);
    Ok(Nested { template, data, then, pause, ..Nested::default() })
}

type Definitions = Vec<(String, Value)>;

/// One step: a batch of the rolling update, or the change of the size at its end.
fn step(
    facts: &Facts,
    wanted: &Wanted,
    names: &mut Names,
) -> Result<(Definitions, Option<Value>, Duration), Diagnostic> {
    let size = match facts.nested.step.get("size").and_then(Value::as_i64) {
        Some(size) => size,
        None => wanted.size,
    };
    let resize = resized(wanted.size);
    if let Some(policy) = wanted.rolling
        && facts.nested.step.get("size").is_none()
    {
        let batch = match rolling::progress(&facts.nested.step) {
            Some(progress) => policy.step(progress, Rolling::after),
            None => policy.first(facts, whole(facts, wanted), Rolling::after)?,
        };
        if let Some(rolling::Step { batch, then }) = batch {
            // There is no pause between the last batch and the change of the size.
            let pause = if then.is_some() { policy.pause } else { Duration::ZERO };
            let members = changed(facts, &wanted.definition, batch, names);
            return Ok((members, Some(then.unwrap_or(resize)), pause));
        }
    }
    let batch = Batch { size: checked(size, &wanted.definition)?, changes: 0 };
    let members = changed_in_order(&in_order(&facts.nested.members), &wanted.definition, batch, names);
    Ok((members, None, Duration::ZERO))
}

/// The members after all steps.
fn last(facts: &Facts, wanted: &Wanted, names: &mut Names) -> Result<Definitions, Diagnostic> {
    let members = match wanted.rolling {
        Some(policy) => rolled(facts, wanted, policy, names),
        None => in_order(&facts.nested.members),
    };
    let batch = Batch { size: checked(wanted.size, &wanted.definition)?, changes: 0 };
    Ok(changed_in_order(&members, &wanted.definition, batch, names))
}

/// The members after all batches.
fn rolled(facts: &Facts, wanted: &Wanted, policy: Policy, names: &mut Names) -> Definitions {
    let mut rolling = whole(facts, wanted);
    let mut old: VecDeque<&Member> = outdated_first(facts, &wanted.definition).into();
    old.retain(|member| member.definition != wanted.definition);
    let (mut left, mut created, mut size) = (BTreeSet::new(), Vec::new(), rolling.current);
    while let Some(batch) = policy.step(rolling, Rolling::after).map(|step| step.batch) {
        for _ in batch.size..size {
            left.extend(old.pop_front().map(|member| &member.name));
        }
        let new = batch.size.saturating_sub(size);
        created.extend((0..new).map(|_| names.next()));
        for _ in new..batch.changes {
            old.pop_front();
        }
        let next = rolling.after(batch);
        if next == rolling {
            break;
        }
        (size, rolling) = (batch.size, next);
    }
    let kept = facts.nested.members.iter().map(|member| &member.name).filter(|name| !left.contains(name)).cloned();
    let mut members: Definitions = kept.chain(created).map(|name| (name, wanted.definition.clone())).collect();
    let most = usize::try_from(size).unwrap_or(usize::MAX);
    members.drain(..members.len().saturating_sub(most));
    members
}

/// A rolling update of all members; of a group that shrinks, of those that stay.
fn whole(facts: &Facts, wanted: &Wanted) -> Rolling {
    let current = count(facts);
    let size = u64::try_from(wanted.size).ok().filter(|size| *size > 0);
    Rolling { target: size.unwrap_or(current).min(current), current, up_to_date: 0 }
}

/// The number of members with the failed ones.
fn count(facts: &Facts) -> u64 {
    u64::try_from(facts.nested.members.len()).unwrap_or(u64::MAX)
}

/// The size of a group of members with this definition, if it is not too large.
fn checked(size: i64, definition: &Value) -> Result<u64, Diagnostic> {
    if size > MOST_MEMBERS {
        let text = format!("Request limit exceeded: A group cannot have more than {MOST_MEMBERS} members.");
        return Err(Diagnostic::new(Class::RequestLimitExceeded, text));
    }
    size_limit::check_group(usize::try_from(size).unwrap_or(0), definition.size())?;
    Ok(u64::try_from(size).unwrap_or(0))
}

fn in_order(members: &[Member]) -> Definitions {
    members.iter().map(|member| (member.name.clone(), member.definition.clone())).collect()
}

/// The members in the order in which they are replaced: failed ones, those with an old definition, the oldest.
fn outdated_first<'a>(facts: &'a Facts, definition: &Value) -> Vec<&'a Member> {
    let mut members: Vec<&Member> = facts.nested.members.iter().collect();
    members.sort_by_key(|member| (!member.failed, member.definition == *definition));
    members
}

/// The members after a batch.
fn changed(facts: &Facts, definition: &Value, batch: Batch, names: &mut Names) -> Definitions {
    let old = outdated_first(facts, definition);
    let old: Definitions = old.into_iter().map(|member| (member.name.clone(), member.definition.clone())).collect();
    changed_in_order(&old, definition, batch, names)
}

fn changed_in_order(old: &[(String, Value)], definition: &Value, batch: Batch, names: &mut Names) -> Definitions {
    rolling::definitions(old, batch, || names.next(), |_| definition.clone())
}

/// Names of new members.
struct Names {
    group: Uuid,
    used: i64,
}

impl Names {
    fn of(facts: &Facts) -> Self {
        let used = facts.data.get(USED_NAMES).and_then(Value::as_i64).unwrap_or(0);
        Self { group: facts.id.parse().unwrap_or_default(), used }
    }

    fn next(&mut self) -> String {
        let hash = Uuid::new_v5(&self.group, self.used.to_string().as_bytes());
        self.used += 1;
        short_id(uuid::Builder::from_random_bytes(*hash.as_bytes()).into_uuid()).unwrap_or_default()
    }
}

/// The outputs that give the wanted attributes of a group: maps, because the age of the members is known only later.
pub(super) fn outputs(names: &[String], wanted: &[Vec<Value>]) -> Map {
    let mut outputs = Map::new();
    for path in wanted {
        let Some((Value::Str(key), rest)) = path.split_first() else { continue };
        let Some(path) = member_path(key, rest) else { continue };
        let read = |name: &String| value!({"get_attr": ([&[name.into()], path.as_slice()].concat())});
        let each: Map = names.iter().map(|name| (name.clone(), read(name))).collect();
        outputs.insert(output_name(&path), value!({"value": each}));
    }
    outputs
}

/// The members' attribute from which an attribute of the group is computed; `None` if there is none.
fn member_path(key: &str, rest: &[Value]) -> Option<Vec<Value>> {
    let path = match key {
        "outputs" | "outputs_list" => rest.to_vec(),
        _ => {
            let (_, attribute) = key.strip_prefix("resource.")?.split_once('.')?;
            [&[attribute.into()], rest].concat()
        }
    };
    (!path.is_empty()).then_some(path)
}

fn output_name(path: &[Value]) -> String {
    let parts: Vec<String> = std::iter::once("outputs".to_owned()).chain(path.iter().map(text::str)).collect();
    parts.join(", ")
}

/// An attribute of a group, from the outputs of the nested stack and the reference IDs of the healthy members, oldest
/// first.
pub(super) fn attribute(outputs: &Map, refs: &IndexMap<String, Value>, key: &str, path: &[Value]) -> Option<Value> {
    match key {
        "current_size" => return Some(Value::Int(i64::try_from(refs.len()).unwrap_or(i64::MAX))),
        "refs" => return Some(select(refs.values().cloned().collect(), path)),
        "refs_map" => return Some(select(refs.iter().map(|(k, v)| (k.clone(), v.clone())).collect(), path)),
        _ => {}
    }
    let member = |index: &str| index.parse::<usize>().ok().and_then(|index| refs.get_index(index));
    if let Some(index) = key.strip_prefix("resource.").filter(|rest| !rest.contains('.')) {
        let (_, reference) = member(index)?;
        return Some(select(reference.clone(), path));
    }
    let values = outputs.get(&output_name(&member_path(key, path)?))?.as_map()?;
    let there = refs.keys().filter_map(|name| Some((name.clone(), values.get(name)?.clone())));
    match key {
        "outputs" => Some(there.collect::<Map>().into()),
        "outputs_list" => Some(there.map(|(_, value)| value).collect()),
        _ => {
            let index = key.strip_prefix("resource.")?.split_once('.')?.0;
            values.get(member(index)?.0).cloned()
        }
    }
}

/// What `get_resource` gives for a group: its name, once it exists.
pub(super) fn reference(facts: &Facts) -> Value {
    if facts.physical_id.is_some() { name(facts).into() } else { facts.name.as_str().into() }
}

/// The name of a group.
pub(super) fn name(facts: &Facts) -> &str {
    &facts.physical_name
}

/// The template of a group in HOT.
pub(super) fn hot_template(members: Map, names: &[String], wanted: &[Vec<Value>]) -> Value {
    members::template(members, outputs(names, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(count: usize) -> Facts {
        let member = |n: usize| Member {
            name: char::from(b'a' + u8::try_from(n).unwrap()).to_string(),
            definition: value!({"v": 1}),
            ..Member::default()
        };
        Facts {
            id: "3f2504e0-4f89-41d3-9a0c-0305e82c3301".to_owned(),
            physical_id: Some("nested".to_owned()),
            nested: kiln_resource::NestedFacts {
                members: (0..count).map(member).collect(),
                ..kiln_resource::NestedFacts::default()
            },
            ..Facts::default()
        }
    }

    fn wanted(size: i64, batch_size: u64, min_in_service: u64) -> Wanted {
        let rolling = (batch_size > 0).then_some(Policy { batch_size, min_in_service, pause: Duration::from_secs(9) });
        Wanted { definition: value!({"v": 2}), size, rolling }
    }

    /// All steps, as `name` with the old definition, `name*` with the new one, and the new members as `+`.
    fn steps(mut facts: Facts, wanted: &Wanted) -> Vec<String> {
        let mut steps = Vec::new();
        loop {
            let nested = next(&facts, wanted, |members, _| members.into()).unwrap();
            let members = nested.template.as_map().unwrap();
            let shown = |(name, definition): (&String, &Value)| {
                let name = if name.len() > 1 { "+" } else { name };
                if *definition == wanted.definition { format!("{name}*") } else { name.to_owned() }
            };
            let mut all: Vec<String> = members.iter().map(shown).collect();
            all.sort();
            steps.push(all.join(" "));
            assert!(members.keys().collect::<BTreeSet<_>>().len() == members.len());
            facts.data.extend(nested.data);
            // New members are the youngest.
            let age = |name: &String| facts.nested.members.iter().position(|m| m.name == *name).unwrap_or(usize::MAX);
            let mut next: Vec<Member> = members
                .iter()
                .map(|(name, d)| Member { name: name.clone(), definition: d.clone(), ..Member::default() })
                .collect();
            next.sort_by_key(|member| age(&member.name));
            facts.nested.members = next;
            match nested.then {
                Some(then) => facts.nested.step = then,
                None => return steps,
            }
        }
    }

    #[test]
    fn members_are_replaced_oldest_first() {
        assert_eq!(steps(group(3), &wanted(3, 2, 0)), ["a* b* c", "a* b* c*", "a* b* c*"]);
        // A group grows after the batches and shrinks during them.
        assert_eq!(steps(group(2), &wanted(4, 1, 0)), ["a* b", "a* b*", "+* +* a* b*"]);
        assert_eq!(steps(group(3), &wanted(1, 3, 0)), ["c*", "c*"]);
        assert_eq!(steps(group(4), &wanted(3, 2, 0)), ["b* c* d", "b* c* d*", "b* c* d*"]);
        assert_eq!(steps(group(4), &wanted(2, 1, 3)), ["b* c d", "b* c* d", "b* c*", "b* c*"]);
        assert_eq!(steps(group(3), &wanted(2, 0, 0)), ["b c"]);
        assert_eq!(steps(group(1), &wanted(3, 0, 0)), ["+* +* a"]);
        assert!(steps(group(0), &wanted(0, 1, 0)).iter().all(String::is_empty));
    }

    #[test]
    fn members_stay_in_service_and_none_keeps_an_old_definition() {
        let expected = ["+* a* b c d e", "+* a* b* c* d e", "+* a* b* c* e*", "+* a* b* c* e*"];
        assert_eq!(steps(group(5), &wanted(5, 2, 4)), expected);
    }

    #[test]
    fn the_last_step_follows_from_the_first() {
        for count in 0..8 {
            for size in 0..6 {
                for (batch, min) in [(0, 0), (1, 0), (1, 5), (2, 4), (3, 20), (9, 1)] {
                    let mut facts = group(count);
                    if let Some(member) = facts.nested.members.get_mut(1) {
                        member.definition = value!({"v": 2});
                    }
                    let wanted = wanted(size, batch, min);
                    let all = steps(facts.clone(), &wanted);
                    facts.nested.last_step = true;
                    let last = steps(facts, &wanted);
                    assert_eq!(all.last(), last.last(), "{count} {size} {batch} {min}: {all:?}");
                }
            }
        }
    }

    #[test]
    fn failed_members_leave_first() {
        let mut facts = group(3);
        facts.nested.members[0].failed = true;
        facts.nested.members[0].name = "c".to_owned();
        facts.nested.members[2].name = "a".to_owned();
        assert_eq!(size(&facts), 2);
        assert_eq!(steps(facts, &wanted(2, 0, 0)), ["a b"]);
    }

    #[test]
    fn attributes_are_in_the_order_of_age() {
        let wanted = [
            vec!["outputs".into(), "ip".into()],
            vec!["outputs_list".into(), "ip".into()],
            vec!["resource.1.ip".into()],
            vec!["refs".into()],
        ];
        let names = ["x".to_owned(), "y".to_owned()];
        let made = outputs(&names, &wanted);
        assert_eq!(
            Value::from(made),
            value!({"outputs, ip": {"value": {
            "x": {"get_attr": ["x", "ip"]}, "y": {"get_attr": ["y", "ip"]}}}})
        );
        let outputs = value!({"outputs, ip": {"x": 1, "y": 2, "gone": 3}});
        let refs = IndexMap::from([("y".to_owned(), "ry".into()), ("x".to_owned(), "rx".into())]);
        let read = |key: &str, path: &[Value]| attribute(outputs.as_map().unwrap(), &refs, key, path);
        assert_eq!(read("outputs", &["ip".into()]), Some(value!({"y": 2, "x": 1})));
        assert_eq!(read("outputs_list", &["ip".into()]), Some(value!([2, 1])));
        assert_eq!(read("resource.1.ip", &[]), Some(1.into()));
        assert_eq!(read("resource.0", &[]), Some("ry".into()));
        assert_eq!(read("resource.2", &[]), None);
        assert_eq!(read("refs", &[]), Some(value!(["ry", "rx"])));
        assert_eq!(read("refs_map", &["x".into()]), Some("rx".into()));
        assert_eq!(read("current_size", &[]), Some(2.into()));
        assert_eq!(read("outputs", &[]), None);
        assert_eq!(read("other", &[]), None);
    }
}
