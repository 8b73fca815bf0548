//! The driver of types that Kiln cannot create yet.

use async_trait::async_trait;
use kiln_value::{Class, Map};

use crate::{Context, Driver, Failure, Found, Operation, Step, TypeRules};

/// The driver of types that Kiln only knows by their schema: they are validated and shown, and cannot be created.
pub struct NotImplemented;

impl TypeRules for NotImplemented {}

#[async_trait]
impl Driver for NotImplemented {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // Nothing was ever created, so there is nothing to delete.
            Operation::Delete => Ok(Step::done()),
            _ => {
                Err(Failure::other(Class::NotSupported, format!("{} is not implemented yet.", cx.facts.resource_type)))
            }
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

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}
