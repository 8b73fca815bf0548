//! The driver of types that Kiln cannot create yet.

use async_trait::async_trait;
use kiln_value::{Diagnostic, Map, Value};

use crate::{Context, Driver, Facts, Failure, Found, Nested, Operation, Step};

/// The driver of types that Kiln only knows by their schema: they are validated and shown, and cannot be created.
pub struct NotImplemented {
    /// The nested stack of such a type, for validation; see [`Driver::nested_draft`].
    pub nested_draft: fn(&Facts) -> Option<Nested>,
    /// See [`Driver::draft_needs`].
    pub draft_needs: &'static [&'static str],
}

impl Default for NotImplemented {
    /// A type without a nested stack.
    fn default() -> Self {
        Self { nested_draft: |_| None, draft_needs: &[] }
    }
}

#[async_trait]
impl Driver for NotImplemented {
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

    fn nested_draft(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        (self.nested_draft)(facts).map(Ok)
    }

    fn draft_needs(&self) -> &'static [&'static str] {
        self.draft_needs
    }
}
