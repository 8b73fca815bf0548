//! Guards over the connection.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_store::{Author, Error, Guard, GuardId, GuardStore};

use super::StoreLink;
use crate::guards;
use crate::sabotage::Sabotage;

#[async_trait]
impl GuardStore for StoreLink {
    async fn add_guard(&self, guard: &Guard) -> Result<(), Error> {
        let (sim, guard) = (Arc::clone(&self.sim), guard.clone());
        let stored = async move {
            sim.store.add_guard(&guard).await?;
            // A late repetition does not bring back what was lifted.
            if sim.store.guards(&guard.project).await?.iter().any(|there| there.id == guard.id) {
                sim.ledger.guard(guard.id, guards::protected(&sim, &guard).await?);
            }
            Ok(())
        };
        self.write("add_guard", stored).await
    }

    async fn lift_guard(&self, project: &str, id: GuardId, by: &Author) -> Result<bool, Error> {
        let (sim, project, by) = (Arc::clone(&self.sim), project.to_owned(), by.clone());
        let lifted = async move {
            sim.ledger.lift(id);
            sim.store.lift_guard(&project, id, &by).await
        };
        self.write("lift_guard", lifted).await
    }

    async fn guards(&self, project: &str) -> Result<Vec<Guard>, Error> {
        let guards = self.read("guards", self.inner().guards(project)).await?;
        Ok(if self.sim.has(Sabotage::HideGuards) { Vec::new() } else { guards })
    }
}
