//! `AWS::CloudFormation::Stack`: a nested stack of a template at a URL, which is one of the files of the stack.

use indexmap::IndexMap;
use kiln_resource::{Facts, Nested, NestedStack, TypeRules};
use kiln_template::select;
use kiln_value::{Diagnostic, Map, Value};

/// The driver. The engine creates and updates the nested stack.
pub(super) struct StackAtUrl;

impl TypeRules for StackAtUrl {
    fn refers_by_arn(&self) -> bool {
        true
    }
}

impl NestedStack for StackAtUrl {
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

    fn draft_needs(&self) -> &'static [&'static str] {
        &["TemplateURL", "Parameters"]
    }

    /// `Outputs.<name>`.
    fn attribute(
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
