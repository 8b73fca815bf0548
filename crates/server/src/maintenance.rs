//! Maintenance: a setting in the database, which all processes with an API follow.

use std::time::Duration;

use kiln_store::{Error, SqlStore};
use kiln_value::Chain;
use kiln_web::Maintenance;

/// The name of the setting.
const SETTING: &str = "maintenance";
/// How long after a change a process may not know of it.
const INTERVAL: Duration = Duration::from_secs(2);

/// What clients are told; `None`: there is no maintenance.
///
/// # Errors
/// Errors of the store.
pub async fn read(store: &SqlStore) -> Result<Option<String>, Error> {
    store.setting(SETTING).await
}

/// Begins maintenance with a text for clients, or ends it.
///
/// # Errors
/// Errors of the store.
pub async fn set(store: &SqlStore, text: Option<&str>) -> Result<(), Error> {
    store.set(SETTING, text).await
}

/// Follows the setting, for ever.
pub(crate) async fn follow(store: &SqlStore, maintenance: &Maintenance) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        match read(store).await {
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
