//! One request on its way through an endpoint.

use std::sync::Arc;

use http::HeaderMap;
use kiln_identity::Caller;
use kiln_store::{Stack, StackId};
use kiln_value::{Map, Value};

use crate::api::Parts;
use crate::error::ApiError;
use crate::http::query::Query;
use crate::http::route::PathParams;
use crate::link::Links;

/// A request with all that an endpoint needs.
pub(crate) struct Call {
    pub(crate) api: Arc<Parts>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) params: PathParams,
    pub(crate) query: Query,
    /// The JSON object, if there is one to be read.
    pub(crate) body: Option<Value>,
    pub(crate) headers: HeaderMap,
    /// The URL without its query.
    pub(crate) url: String,
    pub(crate) links: Links,
}

impl Call {
    /// Refuses a caller of another project (administrators excepted) and one to whom the policy forbids `action`.
    pub(crate) fn allow(&self, action: &str) -> Result<(), ApiError> {
        let tenant = self.params.get("tenant_id");
        self.same_project()?;
        self.enforce(action, tenant)
    }

    /// Refuses a caller of another project (administrators excepted).
    pub(crate) fn same_project(&self) -> Result<(), ApiError> {
        let own = self.caller.project_id == self.params.get("tenant_id");
        if own || self.caller.is_admin || self.caller.is_system { Ok(()) } else { Err(ApiError::foreign_project()) }
    }

    /// Refuses a caller to whom the policy forbids `action` in a project.
    pub(crate) fn enforce(&self, action: &str, project: &str) -> Result<(), ApiError> {
        if self.api.policy.allows(action, &self.caller, project) { Ok(()) } else { Err(ApiError::forbidden(action)) }
    }

    /// The JSON object of a request that must have one.
    pub(crate) fn body(&self) -> Result<&Map, ApiError> {
        self.body.as_ref().and_then(Value::as_map).ok_or_else(ApiError::malformed)
    }

    /// The live stack that the path names.
    pub(crate) async fn stack(&self) -> Result<Stack, ApiError> {
        self.find(false).await
    }

    /// The stack that the path names, deleted ones too.
    pub(crate) async fn stack_or_deleted(&self) -> Result<Stack, ApiError> {
        self.find(true).await
    }

    async fn find(&self, deleted: bool) -> Result<Stack, ApiError> {
        let name = self.params.get("stack_name");
        let Ok(id) = self.params.get("stack_id").parse::<StackId>() else {
            return Err(ApiError::no_stack(name));
        };
        let stack = self.api.backends.store.stack(id).await?;
        let stack = stack.filter(|stack| self.sees(stack) && stack.name == name);
        stack.filter(|stack| deleted || stack.deleted.is_none()).ok_or_else(|| ApiError::no_stack(name))
    }

    /// Whether the stack is the caller's: of the project, of the project of its own users, or any for administrators.
    pub(crate) fn sees(&self, stack: &Stack) -> bool {
        let own = &self.caller.project_id;
        self.caller.is_admin || stack.project == *own || stack.user_project.as_ref() == Some(own)
    }
}
