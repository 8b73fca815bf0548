//! Follows which projects belong to a Heat.

use std::sync::{Arc, Weak};
use std::time::Duration;

use kiln_service::HeatProjects;
use kiln_store::{Error, SqlStore};
use kiln_value::Chain;

/// How long after a switch a project may be refused, or after the way back be served.
const INTERVAL: Duration = Duration::from_secs(3);

/// The projects that belong to a Heat; they are read again as long as somebody has them.
///
/// # Errors
/// Errors of the store.
pub(crate) async fn followed(store: &SqlStore) -> Result<Arc<HeatProjects>, Error> {
    let projects = Arc::new(HeatProjects::default());
    projects.set(store.projects_of_heat().await?);
    tokio::spawn(follow(store.clone(), Arc::downgrade(&projects)));
    Ok(projects)
}

async fn follow(store: SqlStore, projects: Weak<HeatProjects>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let read = store.projects_of_heat().await;
        let Some(projects) = projects.upgrade() else { return };
        match read {
            Ok(read) => projects.set(read),
            // They stay as they are.
            Err(error) => tracing::warn!("the projects that belong to Heat were not read: {}", Chain(&error)),
        }
    }
}
