//! A request that is processed by an endpoint.

use std::sync::Arc;

use http::HeaderMap;
use kiln_identity::Caller;
use kiln_service::{Error, Service};
use kiln_stack::Backends;
use kiln_store::{Stack, StackId, Store};
use kiln_value::{Map, Value};
use kiln_web::Query;

use crate::api::Parts;
use crate::error::ApiError;
use crate::http::route::PathParams;
use crate::http::watchers::Watchers;
use crate::instantiation::Instantiation;
use crate::link::Links;

/// A request with the data that an endpoint needs.
pub(crate) struct Call {
    pub(crate) api: Arc<Parts>,
    pub(crate) caller: Arc<Caller>,
    /// `req-…`.
    pub(crate) request_id: String,
    pub(crate) params: PathParams,
    pub(crate) query: Query,
    /// The JSON object of the body, if there is one.
    pub(crate) body: Option<Value>,
    pub(crate) headers: HeaderMap,
    /// The URL without the query.
    pub(crate) url: String,
    /// The path with the query, as they were sent.
    pub(crate) path_and_query: String,
    pub(crate) links: Links,
    /// The requests that wait for events.
    pub(crate) watchers: Arc<Watchers>,
    /// Whether the service is stopping: nothing waits any more.
    pub(crate) stopping: tokio::sync::watch::Receiver<bool>,
}

impl Call {
    /// The use cases.
    pub(crate) fn service(&self) -> &Service {
        &self.api.service
    }

    /// The dependencies of the use cases.
    pub(crate) fn backends(&self) -> &Backends {
        &self.api.service.backends
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.api.service.backends.store
    }

    /// Rejects callers of another project (except administrators), and callers without permission for `action`.
    pub(crate) fn allow(&self, action: &str) -> Result<(), ApiError> {
        self.same_project()?;
        self.enforce(action, self.project())
    }

    /// The project that a request is about: that of the path. An administrator in the path of another project acts for
    /// the own one, but finds the stacks of all, as in Heat.
    pub(crate) fn project(&self) -> &str {
        let own = &self.caller.project_id;
        if self.caller.is_admin && !own.is_empty() { own } else { self.params.get("tenant_id") }
    }

    /// Rejects callers of another project (except administrators).
    pub(crate) fn same_project(&self) -> Result<(), ApiError> {
        let own = self.caller.project_id == self.params.get("tenant_id");
        if own || self.caller.is_admin || self.caller.is_system { Ok(()) } else { Err(ApiError::foreign_project()) }
    }

    /// Rejects callers without permission for `action` in a project.
    pub(crate) fn enforce(&self, action: &str, project: &str) -> Result<(), ApiError> {
        let allowed = self.service().policy.allows(action, &self.caller, project);
        if allowed { Ok(()) } else { Err(Error::Forbidden(action.to_owned()).into()) }
    }

    /// The JSON object of a request that requires one.
    pub(crate) fn body(&self) -> Result<&Map, ApiError> {
        self.body.as_ref().and_then(Value::as_map).ok_or_else(ApiError::malformed)
    }

    /// The body of a request that creates, updates, previews or validates a stack.
    pub(crate) async fn instantiation(&self) -> Result<Instantiation<'_>, ApiError> {
        Instantiation::gather(self.body()?, self.service(), &self.caller).await
    }

    /// The live stack of the path.
    pub(crate) async fn stack(&self) -> Result<Stack, ApiError> {
        let (id, name) = self.address()?;
        Ok(self.service().stack(&self.caller, id, name).await?)
    }

    /// The stack of the path, including deleted ones.
    pub(crate) async fn stack_or_deleted(&self) -> Result<Stack, ApiError> {
        let (id, name) = self.address()?;
        Ok(self.service().stack_or_deleted(&self.caller, id, name).await?)
    }

    /// ID and name in the path. An invalid ID is treated as an unknown stack.
    fn address(&self) -> Result<(StackId, &str), Error> {
        let name = self.params.get("stack_name");
        let id = self.params.get("stack_id").parse().map_err(|_| Error::NoStack(name.to_owned()))?;
        Ok((id, name))
    }
}
