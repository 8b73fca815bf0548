//! Quotas: limits of single projects, which operators change while the service runs.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kiln_resource::state::UnknownWord;

use crate::Error;

/// What a project may have only so many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quota {
    /// Stacks, without nested ones.
    Stacks,
    /// Resources of a stack with its nested stacks.
    ResourcesPerStack,
    /// Snapshots of a stack.
    SnapshotsPerStack,
    /// Software configs.
    SoftwareConfigs,
    /// Software deployments.
    SoftwareDeployments,
}

impl Quota {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Stacks,
        Self::ResourcesPerStack,
        Self::SnapshotsPerStack,
        Self::SoftwareConfigs,
        Self::SoftwareDeployments,
    ];

    /// Its word in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stacks => "stacks",
            Self::ResourcesPerStack => "resources_per_stack",
            Self::SnapshotsPerStack => "snapshots_per_stack",
            Self::SoftwareConfigs => "software_configs",
            Self::SoftwareDeployments => "software_deployments",
        }
    }
}

impl std::str::FromStr for Quota {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|quota| quota.as_str() == word).ok_or_else(|| UnknownWord(word.to_owned()))
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
