//! Quotas: limits of single projects, which operators change while the service runs.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kiln_resource::words;

use crate::Error;

words! {
    /// What a project may have only so many of.
    Quota {
        /// Stacks, without nested ones.
        Stacks = "stacks",
        /// Resources of a stack with its nested stacks.
        ResourcesPerStack = "resources_per_stack",
        /// Snapshots of a stack.
        SnapshotsPerStack = "snapshots_per_stack",
        /// Software configs.
        SoftwareConfigs = "software_configs",
        /// Software deployments.
        SoftwareDeployments = "software_deployments",
        /// Saved plans and change sets.
        SavedPlans = "saved_plans",
        /// Stacks with an operation in progress, without nested ones.
        OperationsInProgress = "operations_in_progress",
        /// Requests that wait for events in one process.
        EventStreams = "event_streams",
    }
}

/// The quotas of a project that differ from the configuration; -1: no limit.
pub type Quotas = BTreeMap<Quota, i64>;

/// The limit of a project: its own one, or that of the configuration. `None`: no limit.
pub fn limit(quotas: &Quotas, quota: Quota, usual: Option<u64>) -> Option<u64> {
    quotas.get(&quota).map_or(usual, |most| u64::try_from(*most).ok())
}

/// Changes quotas. [`crate::Store::quotas`] reads them.
#[async_trait]
pub trait QuotaStore: Send + Sync {
    /// Sets quotas of a project; `None` removes one.
    async fn set_quotas(&self, project: &str, changes: &BTreeMap<Quota, Option<i64>>) -> Result<(), Error>;
    /// Whether any project has quotas.
    async fn has_quotas(&self) -> Result<bool, Error>;
}
