//! `OS::Heat::AutoScalingGroup` (docs/heat-behaviour.md §15.3).

use indexmap::IndexMap;
use kiln_resource::{Facts, Group, Nested, NestedStack, Rescale, TypeRules};
use kiln_value::{Diagnostic, Map, Value};

use super::members;
use super::rolling::Policy;
use super::scaling_group::{self, Wanted};
use super::scaling_limits::Limits;

/// A name in place of the members' names, which differ.
const MEMBER: &str = "aaaaaaaaaaaa";

/// The type's driver. The engine creates and keeps the nested stack.
pub(super) struct AutoScalingGroup;

fn limits(facts: &Facts) -> Limits {
    Limits::of(facts, ["min_size", "max_size", "desired_capacity", "cooldown"])
}

fn wanted(facts: &Facts) -> Wanted {
    let limits = limits(facts);
    let definition = facts.property("resource").clone();
    // An interrupted update may have left members with another definition than that of the last success.
    let differs = facts.nested.members.iter().any(|member| member.definition != definition);
    let changes = differs || facts.nested.step.get("target").is_some();
    let policy = facts.property("rolling_updates").as_map().filter(|_| changes).map(Policy::of);
    let size = match facts.physical_id {
        Some(_) => limits.kept(scaling_group::size_to_keep(facts, policy.is_some())),
        None => limits.first(),
    };
    Wanted { definition, size, rolling: policy }
}

impl TypeRules for AutoScalingGroup {
    fn reference(&self, facts: &Facts) -> Value {
        scaling_group::reference(facts)
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        limits(facts).validate()
    }
}

impl NestedStack for AutoScalingGroup {
    fn nested(&self, facts: &Facts, read: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let template = |members, names: &[String]| scaling_group::hot_template(members, names, read);
        Some(scaling_group::next(facts, &wanted(facts), template))
    }

    /// One member, whatever the size is: Heat validates and shows one.
    fn draft(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let resource = facts.property("resource").as_map()?;
        let member = Map::from([(MEMBER.to_owned(), resource.clone().into())]);
        Some(Ok(Nested { template: members::template(member, Map::new()), ..Nested::default() }))
    }

    fn draft_needs(&self) -> &'static [&'static str] {
        &["resource"]
    }

    fn attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        refs: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        scaling_group::attribute(outputs, refs, name, path)
    }

    fn group(&self) -> Option<&dyn Group> {
        Some(self)
    }
}

impl Group for AutoScalingGroup {
    fn initial_size(&self, facts: &Facts) -> Option<usize> {
        usize::try_from(limits(facts).first()).ok()
    }

    fn members_by_age(&self) -> bool {
        true
    }

    fn completed(&self, facts: &Facts, size: usize, now: f64) -> Option<Map> {
        Some(limits(facts).after_change(facts, size, now))
    }

    fn rescale(&self, facts: &Facts, adjustment: &Value, now: f64) -> Option<Rescale> {
        limits(facts).rescale(facts, adjustment, now)
    }

    fn rescaled(&self, facts: &Facts, adjustment: &Value, succeeded: bool, now: f64) -> Map {
        limits(facts).rescaled(facts, adjustment, succeeded, now)
    }
}
