//! The pre-flight: what is checked in the cloud before a request begins.

use async_trait::async_trait;
pub use kiln_plan_document::Check;
use kiln_store::{Error, Stack};

/// Checks requests.
#[async_trait]
pub trait Preflight: Send + Sync {
    /// Whether each create and update is checked, not only those that ask for it.
    fn is_for_all(&self) -> bool;
    /// Checks the create or the update of a root stack that is about to begin. It may be asked again, after a take-over.
    async fn check(&self, stack: &Stack) -> Result<Vec<Check>, Error>;
}
