//! Resource types whose resources are nested stacks.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_value::{Diagnostic, Map, Value};

use crate::{Context, Driver, Facts, Failure, Found, Group, Operation, Step, TypeRules};

/// The nested stack of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nested {
    /// Its template.
    pub template: Value,
    /// The URL of the template, if it is one of the stack's files: instead of `template`.
    pub template_url: Option<String>,
    /// Maximum duration of its create in minutes; `None`: that of the stack.
    pub timeout_mins: Option<i64>,
    /// Values of the template's parameters.
    pub parameters: Map,
    /// Parameters that get the values of the stack's own parameters with the same names. One that has neither a value
    /// nor a default is removed from the template, with the entries that have its value.
    pub inherited: &'static [&'static str],
    /// Files of the template.
    pub files: BTreeMap<String, String>,
    /// Entries for the resource registry of its environment.
    pub registry: Map,
    /// Entries for the data of the resource.
    pub data: Map,
    /// The template is one of several steps (a batch of a rolling update): when the nested stack has reached it, the
    /// driver is asked again with this in [`crate::NestedFacts::step`].
    pub then: Option<Value>,
    /// The delay before that.
    pub pause: Duration,
}

/// A type whose resources are nested stacks. It only describes them: the engine creates, updates and deletes them.
#[async_trait]
pub trait NestedStack: TypeRules {
    /// The nested stack of this resource. `wanted` are the attributes (name and path) that the template of the parent
    /// reads. `None` if a value that it needs is not known yet.
    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>>;

    /// The property for which [`NestedStack::prepare`] must be called before the nested stack is requested, if there is
    /// one.
    fn prepares(&self, facts: &Facts) -> Option<&'static str> {
        let _ = facts;
        None
    }

    /// What [`NestedStack::nested`] needs from the cloud: entries for the data of the resource, which are in
    /// [`Facts::data`] from then on. May be repeated.
    async fn prepare(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let _ = cx;
        Ok(Map::new())
    }

    /// The data of a load balancer when a group has these members (reference IDs); `None`: they do not change it.
    fn with_members(&self, facts: &Facts, group: &str, members: &[Value]) -> Option<Map> {
        let _ = (facts, group, members);
        None
    }

    /// The nested stack to validate before anything is created. If all members have the same definition, it has one of
    /// them. Unknown values of properties are null. `None`: there is nothing to validate.
    fn draft(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        self.nested(facts, wanted)
    }

    /// The properties that [`NestedStack::draft`] requires.
    fn draft_needs(&self) -> &'static [&'static str] {
        &[]
    }

    /// An attribute of the resource, from the outputs of the nested stack and the references of its resources. `None`
    /// if there is no such attribute.
    fn attribute(
        &self,
        facts: &Facts,
        outputs: &Map,
        refs: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        let _ = (facts, outputs, refs, name, path);
        None
    }

    /// The rules for its members, if it is a group of equal ones.
    fn group(&self) -> Option<&dyn Group> {
        None
    }
}

/// Nothing is created outside of Kiln, so there is nothing to call or to look for.
#[async_trait]
impl<T: NestedStack> Driver for T {
    async fn start(&self, _: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done())
    }

    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    fn nested_stack(&self) -> Option<&dyn NestedStack> {
        Some(self)
    }
}
