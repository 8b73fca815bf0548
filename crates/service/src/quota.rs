//! Quotas: how many stacks, resources and so on a project may have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln_identity::Caller;
use kiln_store::StackQuery;
use kiln_store::quota::{Quota, QuotaStore, Quotas, limit};

use crate::{Error, Limits, Service};

/// A quota of a project, and how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaState {
    /// What it is about.
    pub quota: Quota,
    /// How many there may be; `None`: any number.
    pub limit: Option<u64>,
    /// How many the configuration allows.
    pub usual: Option<u64>,
    /// How many there are; `None`: it is about each stack.
    pub in_use: Option<u64>,
}

/// Whether any project has quotas of its own. While none has, nobody asks the database for them.
#[derive(Clone, Debug, Default)]
pub struct QuotasInUse(Arc<AtomicBool>);

impl QuotasInUse {
    /// Reads it again. What another process has set counts from then on.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn read(&self, store: &dyn QuotaStore) -> Result<(), kiln_store::Error> {
        self.0.store(store.has_quotas().await?, Ordering::Relaxed);
        Ok(())
    }
}

/// Changes quotas.
#[derive(Clone)]
pub struct QuotaChanges {
    /// Their store.
    pub store: Arc<dyn QuotaStore>,
    /// Whether there are any; that of [`crate::Options`].
    pub in_use: QuotasInUse,
}

impl QuotaChanges {
    /// Sets quotas of a project; -1 is no limit, and `None` the limit of the configuration.
    ///
    /// # Errors
    /// [`Error::Value`]: a number below -1; and errors of the store.
    pub async fn set(
        &self,
        caller: &Caller,
        project: &str,
        changes: &BTreeMap<Quota, Option<i64>>,
    ) -> Result<(), Error> {
        if let Some((quota, _)) = changes.iter().find(|(_, most)| most.is_some_and(|most| most < -1)) {
            return Err(Error::Value(format!("'{}' must be a number from 0, or -1 for no limit.", quota.as_str())));
        }
        self.store.set_quotas(project, changes).await?;
        self.in_use.read(&*self.store).await?;
        tracing::info!(project, user = caller.user_id, ?changes, "quotas changed");
        Ok(())
    }
}

impl Service {
    /// The quotas of a project.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn quotas(&self, project: &str) -> Result<Vec<QuotaState>, Error> {
        let store = &self.backends.store;
        let quotas = store.quotas(project).await?;
        let stacks = StackQuery { project: Some(project.to_owned()), ..StackQuery::default() };
        let mut states = Vec::new();
        for quota in Quota::ALL {
            let in_use = match quota {
                Quota::Stacks => Some(store.count_stacks(&stacks).await?),
                Quota::SoftwareConfigs => Some(store.count_software_configs(project).await?),
                Quota::SoftwareDeployments => Some(store.count_software_deployments(project).await?),
                Quota::ResourcesPerStack | Quota::SnapshotsPerStack => None,
            };
            let usual = usual(&self.options.limits, quota);
            states.push(QuotaState { quota, limit: limit(&quotas, quota, usual), usual, in_use });
        }
        Ok(states)
    }

    /// A limit of a project.
    pub(crate) async fn limit_of(&self, project: &str, quota: Quota) -> Result<Option<u64>, Error> {
        let quotas = if self.options.quotas.0.load(Ordering::Relaxed) {
            self.backends.store.quotas(project).await?
        } else {
            Quotas::new()
        };
        Ok(limit(&quotas, quota, usual(&self.options.limits, quota)))
    }

    /// The maximum number of resources of a stack of a project.
    pub(crate) async fn most_resources(&self, project: &str) -> Result<Option<usize>, Error> {
        let limit = self.limit_of(project, Quota::ResourcesPerStack).await?;
        Ok(limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)))
    }
}

/// The limit of the configuration.
fn usual(limits: &Limits, quota: Quota) -> Option<u64> {
    match quota {
        Quota::Stacks => limits.stacks_per_project,
        Quota::ResourcesPerStack => limits.resources_per_stack.map(|limit| limit as u64),
        Quota::SnapshotsPerStack => limits.snapshots_per_stack,
        Quota::SoftwareConfigs => limits.configs_per_project,
        Quota::SoftwareDeployments => limits.deployments_per_project,
    }
}
