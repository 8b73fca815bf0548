//! Guards over the connection.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_store::{Author, Error, Guard, GuardId, GuardStore};

use super::StoreLink;

#[async_trait]
impl GuardStore for StoreLink {
    async fn add_guard(&self, guard: &Guard) -> Result<(), Error> {
        let (sim, guard) = (Arc::clone(&self.sim), guard.clone());
        self.write("add_guard", async move { sim.store.add_guard(&guard).await }).await
    }

    async fn lift_guard(&self, project: &str, id: GuardId, by: &Author) -> Result<bool, Error> {
        let (sim, project, by) = (Arc::clone(&self.sim), project.to_owned(), by.clone());
        self.write("lift_guard", async move { sim.store.lift_guard(&project, id, &by).await }).await
    }

    async fn guards(&self, project: &str) -> Result<Vec<Guard>, Error> {
        self.read("guards", self.inner().guards(project)).await
    }
}
