//! Maintenance: a setting in the database, which all processes with an API follow.

use std::time::Duration;

use kiln_store::SqlStore;
use kiln_value::Chain;
use kiln_web::Maintenance;

/// How long after a change a process may not know of it.
const INTERVAL: Duration = Duration::from_secs(2);

/// Follows the setting, for ever.
pub(crate) async fn follow(store: &SqlStore, maintenance: &Maintenance) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        match store.maintenance().await {
            Ok(text) => {
                if text != maintenance.text() {
                    tracing::warn!(text, "{}", if text.is_some() { "maintenance begins" } else { "maintenance ends" });
                    maintenance.set(text);
                }
            }
            // It stays as it is.
            Err(error) => tracing::warn!("whether there is maintenance was not read: {}", Chain(&error)),
        }
    }
}
