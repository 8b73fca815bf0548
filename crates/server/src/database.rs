//! Opens the database with its configured options.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use kiln_config::Config;
use kiln_config::options::{kiln, server, stacks};
use kiln_store::{Durability, Options, SchemaState, SqlStore, Store};
use kiln_value::{Chain, Secret, secret};

use crate::encryption_key;

/// Heat's default of `auth_encryption_key`. It is public.
pub(crate) const PUBLIC_KEY: &str = "notgood but just long enough i t";

/// Whether a key is Heat's default.
pub fn is_public(key: &Secret<String>) -> bool {
    key.expose() == PUBLIC_KEY
}

/// Opens the configured store; upgrades its schema if processes do that ([`kiln::MIGRATE`]).
pub async fn open(config: &Config) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(open_as(config, options(config).await?).await?))
}

/// Opens a store with these options as [`open`] does.
pub async fn open_as(config: &Config, options: Options) -> Result<SqlStore> {
    if config.choice(&kiln::MIGRATE)?.as_deref() != Some("manual") {
        return open_with(options).await;
    }
    let store = Box::pin(opened(options, false)).await?;
    let versions = store.schema_versions().await?;
    match versions.state() {
        SchemaState::Current | SchemaState::UsableNewer => Ok(store),
        SchemaState::Missing | SchemaState::Older => bail!(
            "[kiln] migrate: the schema of the database has version {}, and this program needs {}: run 'kiln manage db sync'",
            versions.done,
            versions.latest
        ),
        SchemaState::TooNew => bail!(
            "the schema of the database has version {}, from a newer version of Kiln; this version supports up to {}",
            versions.done,
            versions.latest
        ),
    }
}

/// Opens a store and upgrades its schema.
pub async fn open_with(options: Options) -> Result<SqlStore> {
    // The futures of databases are deep: the compiler has a limit.
    Box::pin(opened(options, true)).await
}

/// Opens the configured store as it is.
pub async fn open_unchanged(config: &Config) -> Result<SqlStore> {
    Box::pin(opened(options(config).await?, false)).await
}

async fn opened(options: Options, migrate: bool) -> Result<SqlStore> {
    if is_public(&options.key) {
        tracing::warn!("[DEFAULT] auth_encryption_key is Heat's default, which is public: set your own key");
    }
    let url = options.url.clone();
    let without_effect = options.without_effect().unwrap_or_default();
    let opened = async {
        let store = SqlStore::open(options).await?;
        if migrate {
            store.migrate().await?;
        }
        if let Some(encryption) = store.encryption().await? {
            tracing::info!("connected to {encryption}");
        }
        for (name, why) in without_effect {
            tracing::info!("[database] connection: {name} has no effect: {why}");
        }
        Ok::<_, kiln_store::Error>(store)
    };
    match opened.await {
        Ok(store) => Ok(store),
        Err(error) => Err(refused(&url, &error)),
    }
}

/// An error of the key or of the database, without its password: the message of a library may contain the URL.
pub(crate) fn refused(url: &str, error: &kiln_store::Error) -> anyhow::Error {
    let why = match error {
        kiln_store::Error::Unusable(why) => Chain(&**why).to_string(),
        error => Chain(error).to_string(),
    };
    if why.starts_with("auth_encryption_key") {
        return anyhow!("[DEFAULT] {why}: run 'openssl rand -hex 16' to generate one");
    }
    if why.starts_with("older_encryption_keys") {
        return anyhow!("[kiln] {why}");
    }
    anyhow!("[database] connection {}: {}", without_password(url), without_secrets(&why, url))
}

/// The secrets in the database are encrypted with another key.
pub(crate) fn other_key(noted: &str) -> anyhow::Error {
    anyhow!(
        "[DEFAULT] auth_encryption_key is not the key of this database, whose ID is {noted}: set the key of the other hosts, or \
         add it to [kiln] older_encryption_keys until 'kiln manage update-params' has run"
    )
}

/// The options of the store, with the key wherever it is.
pub async fn options(config: &Config) -> Result<Options> {
    let options = without_key(config)?;
    with_key(options, Box::pin(encryption_key::of(config)).await?)
}

/// Reads the options of the store, but calls nobody for its key: if it is elsewhere, another one stands for it.
pub(crate) fn check(config: &Config) -> Result<Options> {
    let options = without_key(config)?;
    with_key(options, encryption_key::check(config)?.unwrap_or_else(|| Secret::new("0".repeat(32))))
}

fn with_key(options: Options, key: Secret<String>) -> Result<Options> {
    let options = Options { key, ..options };
    options.check().map_err(|error| refused(&options.url, &error))?;
    Ok(options)
}

fn without_key(config: &Config) -> Result<Options> {
    let url = config.text(&server::CONNECTION).ok_or_else(|| {
        anyhow!("[database] connection is not set; use for example sqlite:///var/lib/kiln/kiln.db or postgresql://…")
    })?;
    let mut options = Options::new(url, Secret::new(String::new()));
    options.older_keys = config.list(&kiln::OLDER_ENCRYPTION_KEYS).into_iter().map(Secret::new).collect();
    options.encrypt_values = config.flag(&stacks::ENCRYPT_PARAMETERS_AND_PROPERTIES)?;
    options.max_connections = config.number(&server::MAX_POOL_SIZE)?;
    options.max_age = config.limit(&server::CONNECTION_RECYCLE_TIME)?.map(Duration::from_secs);
    options.wsrep_sync_wait = config.given_number(&server::MYSQL_WSREP_SYNC_WAIT)?;
    if config.flag(&server::SQLITE_SYNCHRONOUS)? {
        options.durability = Durability::Power;
    }
    options.notifications = kiln_bus::is_configured(config)?;
    options.webhooks = kiln_webhook::is_on(config)?;
    Ok(options)
}

/// A database URL without its password.
pub fn without_password(url: &str) -> String {
    let (url, query) = url.split_once('?').map_or((url, None), |(url, query)| (url, Some(query)));
    // A password may also be a parameter.
    let shown =
        |pair: &str| pair.split_once("password").map_or(pair.to_owned(), |(name, _)| format!("{name}password=***"));
    let query = query.map(|query| query.split('&').map(shown).collect::<Vec<_>>().join("&"));
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    let Some((front, place)) = url.rsplit_once('@') else { return format!("{url}{query}") };
    // The password starts at the last colon that is not part of the scheme, even in a malformed URL.
    let scheme = front.find("//").map_or_else(|| front.find(':').map_or(0, |at| at + 1), |at| at + 2);
    let (scheme, user) = front.split_at(scheme);
    let user = user.split(':').next().unwrap_or_default();
    format!("{scheme}{user}:***@{place}{query}")
}

/// Removes the database URL and its password from a message.
fn without_secrets(message: &str, url: &str) -> String {
    let Some((front, _)) = url.rsplit_once('@') else { return message.to_owned() };
    let native = url.split_once("://").map_or(url, |(_, rest)| rest);
    let secret = front.rsplit([':', '/']).next().unwrap_or_default();
    secret::masked(&message.replace(url, "<url>").replace(native, "<url>"), secret, "***")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_ini::DEFAULT;

    #[test]
    fn no_message_shows_the_password_of_the_database() {
        for (url, shown) in [
            ("mysql+pymysql://heat:s3cret@db/heat", "mysql+pymysql://heat:***@db/heat"),
            ("postgresql:/heat:s3cret@db/heat", "postgresql:/heat:***@db/heat"),
            ("nosuch://heat:s3:cr@et@db/heat", "nosuch://heat:***@db/heat"),
            ("sqlite:///a.db", "sqlite:///a.db"),
            ("postgresql://heat@db/h?password=s3cret&port=1", "postgresql://heat:***@db/h?password=***&port=1"),
        ] {
            assert_eq!(without_password(url), shown);
            let quoted = without_secrets(&format!("no driver for {url}"), url);
            assert!(!quoted.contains("s3cret") && !quoted.contains("cr@et"), "{quoted}");
        }
    }

    #[test]
    fn no_service_starts_without_a_key() {
        let options = |given: &[(&str, &str, String)]| {
            let mut all = vec![("database", "connection", "sqlite::memory:".to_owned())];
            all.extend_from_slice(given);
            let config = Config::of_options(&all);
            check(&config).map_err(|error| error.to_string())
        };
        assert!(options(&[]).unwrap_err().starts_with("[DEFAULT] auth_encryption_key is not set"));
        let key = |text: &str| Secret::new(text.to_owned());
        let set = |option, text: &str| (DEFAULT, option, text.to_owned());
        let own = set("auth_encryption_key", "0123456789abcdef0123456789abcdef");
        assert!(!options(std::slice::from_ref(&own)).unwrap().encrypt_values);
        let older = ("kiln", "older_encryption_keys", "fedcba9876543210, 0123456789abcdef".to_owned());
        let all = options(&[own, set("encrypt_parameters_and_properties", "true"), older]).unwrap();
        assert!(all.encrypt_values);
        assert_eq!(all.older_keys, [key("fedcba9876543210"), key("0123456789abcdef")]);
    }

    #[test]
    fn reads_wait_for_other_nodes_only_on_request() {
        let options = |given: &[(&str, &str, String)]| {
            let key = (DEFAULT, "auth_encryption_key", "0123456789abcdef0123456789abcdef".to_owned());
            let mut all = vec![("database", "connection", "mysql://db/heat".to_owned()), key];
            all.extend_from_slice(given);
            let config = Config::of_options(&all);
            check(&config).map(|options| options.wsrep_sync_wait).map_err(|error| error.to_string())
        };
        let wait = |text: &str| [("database", "mysql_wsrep_sync_wait", text.to_owned())];
        assert_eq!(options(&[]), Ok(None));
        assert_eq!(options(&wait("1")), Ok(Some(1)));
        assert!(options(&wait("16")).unwrap_err().contains("not a whole number from 0 to 15"));
    }
}
