//! `AWS::CloudFormation::Stack`: a nested stack of a template at a URL, which is one of the files of the stack.

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Nested, Operation, Step};
use kiln_template::select;
use kiln_value::{Diagnostic, Map, Value};

/// The driver. The engine creates and updates the nested stack.
pub(super) struct NestedStack;

#[async_trait]
impl Driver for NestedStack {
    async fn start(&self, _: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done())
    }

    /// Nothing is made outside.
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

    fn nested(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        // A URL that is not known yet.
        let url = facts.property("TemplateURL").as_str()?;
        Some(Ok(Nested {
            template_url: Some(url.to_owned()),
            parameters: facts.property("Parameters").as_map().cloned().unwrap_or_default(),
            timeout_mins: facts.property("TimeoutInMinutes").as_i64(),
            ..Nested::default()
        }))
    }

    fn refers_by_arn(&self) -> bool {
        true
    }

    fn draft_needs(&self) -> &'static [&'static str] {
        &["TemplateURL", "Parameters"]
    }

    /// `Outputs.<name>`.
    fn nested_attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        _: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        outputs.get(name.strip_prefix("Outputs.")?).map(|output| select(output.clone(), path))
    }
}
