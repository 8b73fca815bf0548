//! OS::Keystone::UserRoleAssignment and OS::Keystone::GroupRoleAssignment

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, FailureKind, Found, Operation, Step, TypeRules};
use kiln_value::{Diagnostic, Map, Value};

use super::roles::{self, Holder};
use crate::queue;

/// The roles of a user or group that exists. They are no object: the ID is the name of the resource, which Heat returns
/// for it.
pub(super) struct RoleAssignment(pub(super) Holder);

impl RoleAssignment {
    /// The ID of the user or group in these properties.
    async fn holder(&self, cx: &Context<'_>, properties: &Map) -> Result<String, Failure> {
        let finder = match self.0 {
            Holder::User => "keystone.user",
            Holder::Group => "keystone.group",
        };
        let holder = properties.get(self.property()).and_then(Value::as_str);
        cx.cloud.find(finder, holder.unwrap_or_default()).await
    }

    /// The property that names the user or group.
    fn property(&self) -> &'static str {
        match self.0 {
            Holder::User => "user",
            Holder::Group => "group",
        }
    }

    /// Revokes the roles of these properties that others do not keep.
    async fn revoke(&self, cx: &Context<'_>, properties: &Map) -> Result<(), Failure> {
        let roles = properties.get("roles").and_then(Value::as_list).unwrap_or_default();
        match self.holder(cx, properties).await {
            Ok(id) => roles::revoke(cx, self.0, &id, roles).await,
            Err(failure) if failure.kind == FailureKind::NotFound => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

impl TypeRules for RoleAssignment {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        roles::validate(facts)
    }
}

#[async_trait]
impl Driver for RoleAssignment {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, so that a delete revokes what was granted.
            Operation::Create => Ok(queue::now("grant").id(cx.facts.name.as_str())),
            Operation::Update { before, .. } => {
                let id = self.holder(cx, &cx.facts.properties).await?;
                let (old, new) = (before.get("roles").cloned().unwrap_or_default(), cx.facts.property("roles"));
                if self.holder(cx, before).await.ok().as_ref() == Some(&id) {
                    roles::change(cx, self.0, &id, &old, new).await?;
                } else {
                    roles::grant(cx, self.0, &id, new).await?;
                    self.revoke(cx, before).await?;
                }
                Ok(Step::done())
            }
            Operation::Delete => {
                if cx.facts.physical_id.is_some() {
                    self.revoke(cx, &cx.facts.properties).await?;
                }
                Ok(Step::done())
            }
            Operation::Check | Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => {
                Ok(Step::done())
            }
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, _state: &Value) -> Result<Step, Failure> {
        let id = self.holder(cx, &cx.facts.properties).await?;
        roles::grant(cx, self.0, &id, cx.facts.property("roles")).await?;
        Ok(Step::done())
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let id = self.holder(cx, &cx.facts.properties).await?;
        let holder = cx.facts.property(self.property()).clone();
        let roles = roles::granted(cx, self.0, &id, cx.facts.property("roles")).await?;
        Ok(Map::from([(self.property().to_owned(), holder), ("roles".to_owned(), roles)]))
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }
}
