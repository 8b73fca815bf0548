//! The key that encrypts secrets, if the configuration has none: it is made once, and kept in a file.
//!
//! Heat has a default, which is public, so kolla-ansible and openstack-helm set no key.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use kiln_config::Config;
use kiln_config::options::{kiln, stacks};
use kiln_stack::Chance;
use kiln_value::Secret;

use crate::secret_source::SecretSource;

const FROM: &str = "[kiln] encryption_key_from";

/// The key of the configuration, wherever it is.
pub(crate) async fn of(config: &Config) -> Result<Secret<String>> {
    match source(config)? {
        Some(source) => source.read(config).await.context(FROM),
        None => local(config),
    }
}

/// Whether the configuration has a key. Nothing is called: a key that is elsewhere is not known.
pub(crate) fn check(config: &Config) -> Result<Option<Secret<String>>> {
    match source(config)? {
        Some(source) => source.check(config).context(FROM).map(|()| None),
        None => local(config).map(Some),
    }
}

/// Where the key is, if it is not on this machine.
pub(crate) fn source(config: &Config) -> Result<Option<SecretSource>> {
    let Some(text) = config.text(&kiln::ENCRYPTION_KEY_FROM) else { return Ok(None) };
    if config.is_set(&stacks::AUTH_ENCRYPTION_KEY) {
        bail!("{FROM} is set, and [DEFAULT] auth_encryption_key too");
    }
    text.parse().map(Some).context(FROM)
}

fn local(config: &Config) -> Result<Secret<String>> {
    config.secret(&stacks::AUTH_ENCRYPTION_KEY).map_or_else(|| read(config), Ok)
}

/// The key in the file.
fn read(config: &Config) -> Result<Secret<String>> {
    let file = path(config);
    match fs::read_to_string(&file) {
        Ok(text) => Ok(Secret::new(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(anyhow!(
            "[DEFAULT] auth_encryption_key is not set: run 'openssl rand -hex 16' to generate a key. A service makes one itself if \
             there is the folder of {}",
            file.display()
        )),
        Err(error) => Err(anyhow!("[kiln] encryption_key_file: {}: {error}", file.display())),
    }
}

/// Makes a key, unless the configuration or the file has one.
pub(crate) fn make_if_missing(config: &Config) -> Result<()> {
    let file = path(config);
    let has_folder = file.parent().is_some_and(Path::is_dir);
    let is_set = config.is_set(&stacks::AUTH_ENCRYPTION_KEY) || config.is_set(&kiln::ENCRYPTION_KEY_FROM);
    if is_set || file.exists() || !has_folder {
        return Ok(());
    }
    let chance = Chance::from_os();
    let key: String = chance.seed().iter().take(16).fold(String::new(), |key, byte| key + &format!("{byte:02x}"));
    // Another process may do the same: the first one wins, and nobody reads half a key.
    let own = file.with_extension(chance.uuid().to_string());
    let made = write(&own, &key).and_then(|()| fs::hard_link(&own, &file));
    _ = fs::remove_file(&own);
    match made {
        Ok(()) => {
            tracing::warn!(
                file = %file.display(),
                "[DEFAULT] auth_encryption_key is not set: made a key. Back it up, and copy it to the other hosts"
            );
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(anyhow!("[kiln] encryption_key_file: cannot make {}: {error}", file.display())),
    }
}

fn write(file: &Path, key: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(key.as_bytes())?;
    file.sync_all()
}

fn path(config: &Config) -> PathBuf {
    config.text(&kiln::ENCRYPTION_KEY_FILE).map(PathBuf::from).unwrap_or_default()
}
