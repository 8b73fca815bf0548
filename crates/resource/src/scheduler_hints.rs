//! Hints of the operator for the schedulers of Nova and Cinder.

use async_trait::async_trait;
use kiln_value::Map;

use crate::{Context, Failure};

/// Changes the hints that a create sends to a scheduler.
#[async_trait]
pub trait SchedulerHints: Send + Sync {
    /// The hints that are sent in place of these. Called before the first call of a create, possibly several times.
    async fn changed(&self, cx: &Context<'_>, hints: Map) -> Result<Map, Failure>;
}
