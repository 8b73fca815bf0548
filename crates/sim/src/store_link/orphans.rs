//! Orphans over the connection.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_store::{Error, Orphan, OrphanQuery, OrphanStore, ResourceId};

use super::StoreLink;

#[async_trait]
impl OrphanStore for StoreLink {
    async fn orphans(&self, query: &OrphanQuery) -> Result<Vec<Orphan>, Error> {
        self.read("orphans", self.inner().orphans(query)).await
    }

    async fn delete_orphan(&self, project: &str, id: ResourceId) -> Result<bool, Error> {
        let (sim, project) = (Arc::clone(&self.sim), project.to_owned());
        self.write("delete_orphan", async move { sim.store.delete_orphan(&project, id).await }).await
    }
}
