//! What a service looks at when it starts, so that a mistake is told in one line and not found by its users.

use anyhow::{Result, bail};
use kiln_cloud::{CloudError, Session};
use kiln_store::{StackQuery, Store};

/// Stacks whose credentials are tried with the key.
const TRIED: u64 = 20;

/// The service's own user at Keystone.
pub(crate) struct OwnUser {
    /// Keystone.
    pub(crate) url: String,
    /// The user's name.
    pub(crate) name: String,
    /// A session of that user.
    pub(crate) session: Session,
}

/// Whether Keystone is there and takes the service's password. A Keystone that does not answer may be starting as well:
/// that is only told.
pub(crate) async fn keystone(own: &OwnUser) -> Result<()> {
    let OwnUser { url, name, session } = own;
    let token = session.token().await.map_err(|error| match error {
        CloudError::NoToken { cause, .. } => *cause,
        error => error,
    });
    match token {
        Ok(_) => Ok(()),
        Err(error) if error.status() == Some(401) => bail!(
            "Keystone at {url} refuses the user {name:?}: check username, password, project_name and the domains in \
             [keystone_authtoken]"
        ),
        Err(error) if error.status() == Some(404) => {
            bail!("[keystone_authtoken] auth_url {url}: there is no Keystone v3 ({error})")
        }
        Err(error @ (CloudError::Transport { .. } | CloudError::Status { .. } | CloudError::NotSent { .. })) => {
            tracing::error!("[keystone_authtoken] auth_url {url}: Keystone cannot be asked now ({error})");
            Ok(())
        }
        Err(error) => bail!("[keystone_authtoken] auth_url {url}: {error}"),
    }
}

/// Whether the key opens what is stored.
pub(crate) async fn key(store: &dyn Store) -> Result<()> {
    let stacks = store.stacks(&StackQuery { limit: Some(TRIED), ..StackQuery::default() }).await?;
    let mut closed = None;
    for id in stacks.iter().filter_map(|stack| stack.credentials) {
        match store.credentials(id).await {
            Ok(_) => return Ok(()),
            Err(kiln_store::Error::Damaged(why)) => closed = Some(why),
            Err(_) => {}
        }
    }
    match closed {
        Some(why) => bail!(
            "[DEFAULT] auth_encryption_key does not open what this database holds ({why}): set the key that it was \
             filled with"
        ),
        None => Ok(()),
    }
}
