//! `AWS::AutoScaling::LaunchConfiguration`: holds the settings of the instances of a group, which reads them.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Diagnostic, Map};

use crate::validation::{failed, is_given};

/// The type's driver.
pub(super) struct LaunchConfiguration;

impl TypeRules for LaunchConfiguration {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if is_given(facts, "InstanceId") {
            return Ok(());
        }
        let missing = ["ImageId", "InstanceType"].iter().find(|name| !is_given(facts, name));
        match missing {
            Some(name) => {
                let text = format!("If without InstanceId, ImageId and InstanceType are required. Missing: {name}.");
                Err(failed(text))
            }
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Driver for LaunchConfiguration {
    /// All properties are immutable. A change of the metadata alone replaces nothing.
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        Ok(match operation {
            Operation::Create => Step::done().id(&cx.facts.physical_name),
            Operation::Update { changed, .. } if !changed.is_empty() => Step::replace(),
            _ => Step::done(),
        })
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}
