//! Quotas: how many stacks, resources and so on a project may have, and how much it may do at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln_identity::Caller;
use kiln_resource::Status;
use kiln_stack::Clock;
use kiln_store::StackQuery;
use kiln_store::quota::{Quota, QuotaStore, Quotas, limit};

use crate::{Error, Limits, Service};

/// How long after the first quota a process may not know that there are any.
const INTERVAL: Duration = Duration::from_secs(2);

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

    /// Follows whether there are any, for ever.
    pub async fn follow(&self, clock: &dyn Clock) {
        loop {
            clock.sleep(INTERVAL).await;
            if let Err(error) = self.in_use.read(&*self.store).await {
                tracing::debug!(%error, "failed to see whether projects have quotas");
            }
        }
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
                Quota::SavedPlans => Some(store.count_plans(project).await?),
                Quota::OperationsInProgress => Some(self.operations_in_progress(project).await?),
                Quota::ResourcesPerStack | Quota::SnapshotsPerStack | Quota::EventStreams => None,
            };
            let usual = usual(&self.options.limits, quota);
            states.push(QuotaState { quota, limit: limit(&quotas, quota, usual), usual, in_use });
        }
        Ok(states)
    }

    /// The maximum number of requests of a project that wait for events in this process.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn most_event_streams(&self, project: &str) -> Result<Option<u64>, Error> {
        self.limit_of(project, Quota::EventStreams).await
    }

    /// Refuses one more operation in a project that has its maximum in progress. Administrators have no limit.
    pub(crate) async fn check_operations(&self, caller: &Caller, project: &str) -> Result<(), Error> {
        let limit = self.limit_of(project, Quota::OperationsInProgress).await?.filter(|_| !caller.is_admin);
        match limit {
            Some(limit) if self.operations_in_progress(project).await? >= limit => Err(Error::TooManyOperations(limit)),
            _ => Ok(()),
        }
    }

    async fn operations_in_progress(&self, project: &str) -> Result<u64, Error> {
        let statuses = vec![Status::InProgress.as_str().to_owned()];
        let query = StackQuery { project: Some(project.to_owned()), statuses, ..StackQuery::default() };
        Ok(self.backends.store.count_stacks(&query).await?)
    }

    /// A limit of a project.
    pub(crate) async fn limit_of(&self, project: &str, quota: Quota) -> Result<Option<u64>, Error> {
        Ok(limit(&self.quotas_of(project).await?, quota, usual(&self.options.limits, quota)))
    }

    /// The maximum number of resources of a stack of a project.
    pub(crate) async fn most_resources(&self, project: &str) -> Result<Option<usize>, Error> {
        Ok(self.most_with(&self.quotas_of(project).await?))
    }

    /// The maximum number of resources of a stack with these quotas.
    pub(crate) fn most_with(&self, quotas: &Quotas) -> Option<usize> {
        let usual = usual(&self.options.limits, Quota::ResourcesPerStack);
        let most = limit(quotas, Quota::ResourcesPerStack, usual);
        most.map(|most| usize::try_from(most).unwrap_or(usize::MAX))
    }

    async fn quotas_of(&self, project: &str) -> Result<Quotas, Error> {
        if self.options.quotas.0.load(Ordering::Relaxed) {
            return Ok(self.backends.store.quotas(project).await?);
        }
        Ok(Quotas::new())
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
        Quota::SavedPlans => limits.plans_per_project,
        Quota::OperationsInProgress => limits.operations_per_project,
        Quota::EventStreams => limits.streams_per_project,
    }
}
