//! The quotas of a project: a setting, not an object. The ID of the resource is its physical name, as in Heat.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Diagnostic, Map, Value};

use crate::call::Service;
use crate::{path, queue, validation};

/// Where a service keeps the quotas of a project.
pub(crate) struct Quota {
    service: Service,
    collection: &'static str,
    /// The key of the limits in bodies.
    member: &'static str,
    /// Names of the limits, as the error for a resource without any lists them.
    limits: &'static [&'static str],
}

impl Quota {
    pub(crate) const fn new(
        service: Service,
        collection: &'static str,
        member: &'static str,
        limits: &'static [&'static str],
    ) -> Self {
        Self { service, collection, member, limits }
    }

    fn path(&self, facts: &Facts) -> String {
        let project = kiln_value::text::str(facts.property("project"));
        format!("{}/{}", self.collection, path::segment(&project))
    }

    /// Sets all limits that have a value. Idempotent.
    async fn set(&self, cx: &Context<'_>) -> Result<Step, Failure> {
        let limits = cx.facts.properties.iter().filter(|(name, value)| *name != "project" && !value.is_null());
        let limits: Map = limits.map(|(name, value)| (name.clone(), value.clone())).collect();
        let body = Value::from_iter([(self.member.to_owned(), Value::Map(limits))]);
        self.service.put(cx, self.path(cx.facts), body).await?;
        Ok(Step::done())
    }
}

impl TypeRules for Quota {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if self.limits.iter().any(|name| validation::is_given(facts, name)) {
            return Ok(());
        }
        Err(validation::unspecified(self.limits))
    }
}

#[async_trait]
impl Driver for Quota {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, so that a delete always restores the default quotas.
            Operation::Create => Ok(queue::now("set").id(cx.facts.physical_name.as_str())),
            Operation::Update { .. } => self.set(cx).await,
            Operation::Delete => {
                if cx.facts.physical_id.is_some() {
                    self.service.delete(cx, self.path(cx.facts)).await?;
                }
                Ok(Step::done())
            }
            Operation::Check => {
                self.service.get(cx, self.path(cx.facts)).await?;
                Ok(Step::done())
            }
            Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, _state: &Value) -> Result<Step, Failure> {
        self.set(cx).await
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let limits = self.service.show(cx, self.path(cx.facts), self.member).await?;
        let limit = |name: &&str| Some(((*name).to_owned(), limits.get(name)?.clone()));
        let project = ("project".to_owned(), cx.facts.property("project").clone());
        Ok(self.limits.iter().filter_map(limit).chain([project]).collect())
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let limits = self.service.seek(cx, self.path(cx.facts), self.member).await?.unwrap_or_default();
        Ok(names.iter().map(|name| ((*name).to_owned(), limits.clone())).collect())
    }
}
