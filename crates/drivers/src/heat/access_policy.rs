//! `OS::Heat::AccessPolicy`: names the resources whose metadata a user of `AWS::IAM::User` can read. The APIs check it.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, Sibling, Siblings, Step, TypeRules};
use kiln_value::{Diagnostic, Value};

use crate::validation::failed;

/// The driver. There is no object and no ID; `get_resource` gives the name.
pub(super) struct AccessPolicy;

impl TypeRules for AccessPolicy {
    fn validate_among(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Result<(), Diagnostic> {
        let names = this.properties().get("AllowedResources").and_then(Value::as_list).unwrap_or_default();
        match names.iter().filter_map(Value::as_str).find(|name| siblings.get(name).is_none()) {
            Some(name) => Err(failed(format!("AccessPolicy resource {name} not in stack"))),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Driver for AccessPolicy {
    async fn start(&self, _: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done())
    }

    /// Nothing is made.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }
}
