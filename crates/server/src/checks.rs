//! Checks at the start of a service, so that configuration errors are reported in one line.

use anyhow::{Result, bail};
use kiln_cloud::{CloudError, Session};
use kiln_config::Config;
use kiln_config::options::kiln;
use kiln_store::{SqlStore, StackQuery, Store};

/// Number of stacks whose credentials are decrypted to check the key.
const TRIED: u64 = 20;

/// The Keystone user of the service.
pub struct OwnUser {
    /// URL of Keystone.
    pub url: String,
    /// The user's name.
    pub name: String,
    /// A session of that user.
    pub session: Session,
}

/// Checks that Keystone is reachable and accepts the password of the service. A Keystone that does not respond may
/// still
/// be starting: this is only logged.
pub async fn keystone(own: &OwnUser) -> Result<()> {
    let OwnUser { url, name, session } = own;
    let token = session.token().await.map_err(|error| match error {
        CloudError::NoToken { cause, .. } => *cause,
        error => error,
    });
    match token {
        Ok(_) => Ok(()),
        Err(error) if error.status() == Some(401) => bail!(
            "Keystone at {url} rejects the user {name:?}: check username, password, project_name and the domains in \
             [keystone_authtoken]"
        ),
        Err(error) if error.status() == Some(404) => {
            bail!("[keystone_authtoken] auth_url {url}: no Keystone v3 API found ({error})")
        }
        Err(error @ (CloudError::Transport { .. } | CloudError::Status { .. } | CloudError::NotSent { .. })) => {
            tracing::error!("[keystone_authtoken] auth_url {url}: Keystone is not reachable ({error})");
            Ok(())
        }
        Err(error) => bail!("[keystone_authtoken] auth_url {url}: {error}"),
    }
}

/// Checks that the key decrypts the stored credentials.
pub async fn key(store: &dyn Store) -> Result<()> {
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
            "[DEFAULT] auth_encryption_key does not decrypt the data in this database ({why}): set the key that the \
             data was encrypted with"
        ),
        None => Ok(()),
    }
}

/// Checks that the database has no live stacks of Heat: nobody would see them, although their objects exist. If requests are
/// passed on to Heat, everybody sees them there.
pub async fn stacks_of_heat(config: &Config, store: &SqlStore) -> Result<()> {
    if config.text(&kiln::HEAT_API_URL).is_some() {
        return Ok(());
    }
    match store.stacks_of_heat().await? {
        None | Some(0) => Ok(()),
        Some(stacks) => bail!(
            "this database contains {stacks} live stacks of Heat, which Kiln does not show: it has its own tables. Take \
             them over with 'kiln manage take-over', or let Heat continue with them"
        ),
    }
}
