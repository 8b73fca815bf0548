//! Quotas of projects.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::MemoryStore;
use crate::Error;
use crate::quota::{Quota, QuotaStore};

#[async_trait]
impl QuotaStore for MemoryStore {
    async fn set_quotas(&self, project: &str, changes: &BTreeMap<Quota, Option<i64>>) -> Result<(), Error> {
        let (mut state, _) = self.open();
        let quotas = state.quotas.entry(project.to_owned()).or_default();
        for (quota, most) in changes {
            match most {
                Some(most) => drop(quotas.insert(*quota, *most)),
                None => drop(quotas.remove(quota)),
            }
        }
        Ok(())
    }

    async fn has_quotas(&self) -> Result<bool, Error> {
        Ok(self.open().0.quotas.values().any(|quotas| !quotas.is_empty()))
    }
}
