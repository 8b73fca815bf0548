//! `OS::Heat::AutoScalingGroup`: only its template, for validation. It cannot be created yet.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Nested, Operation, Step};
use kiln_value::{Diagnostic, Map, Value};

use super::members;

/// Members have random names in Heat; this one stands for any of them.
const MEMBER: &str = "aaaaaaaaaaaa";

/// The type's driver.
pub(super) struct ScalingGroup;

#[async_trait]
impl Driver for ScalingGroup {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // Nothing was ever created, so there is nothing to delete.
            Operation::Delete => Ok(Step::done()),
            _ => Err(Failure::other("NotSupported", format!("{} is not implemented yet.", cx.facts.resource_type))),
        }
    }

    fn is_implemented(&self) -> bool {
        false
    }

    /// Nothing is created in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }

    /// One member, whatever the size is: Heat validates and shows one.
    fn nested_draft(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let resource = facts.property("resource").as_map()?;
        let member = Map::from([(MEMBER.to_owned(), resource.clone().into())]);
        let template = members::template(member, Map::new());
        Some(Ok(Nested { template, ..Nested::default() }))
    }

    fn draft_needs(&self) -> &'static [&'static str] {
        &["resource"]
    }
}
