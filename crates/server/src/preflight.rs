//! The pre-flight of requests in an engine: `[kiln] preflight`.

use async_trait::async_trait;
use kiln_engine::{Check, Preflight};
use kiln_service::Service;
use kiln_store::{Error, Stack};

/// The checks of the plan that a request would follow.
pub(crate) struct PlanChecks {
    pub(crate) service: Service,
    /// Whether each create and update is checked.
    pub(crate) is_for_all: bool,
}

#[async_trait]
impl Preflight for PlanChecks {
    fn is_for_all(&self) -> bool {
        self.is_for_all
    }

    async fn check(&self, stack: &Stack) -> Result<Vec<Check>, Error> {
        self.service.preflight_of_request(stack).await
    }
}
