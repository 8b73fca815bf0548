//! Sends events to the receivers of webhooks: signatures of Standard Webhooks, the handshake of `CloudEvents`, and addresses that may
//! be called. The options are `[webhooks]`.

mod sender;
mod signature;

use anyhow::{Context as _, Result, ensure};
use http::HeaderValue;
use kiln_cloud::{SharedClient, TlsOptions};
use kiln_config::Config;
use kiln_config::options::webhooks;

pub use self::sender::Sender;

/// Whether the service has webhooks.
pub fn is_on(config: &Config) -> Result<bool> {
    config.flag(&webhooks::ENABLED)
}

/// What calls the receivers. `hostname`: the origin, if none is configured.
pub fn of_config(config: &Config, hostname: &str) -> Result<Sender> {
    let authorities = config
        .text(&webhooks::CA_FILE)
        .map(|file| std::fs::read(&file).with_context(|| format!("[webhooks] ca_file {file}")));
    let tls = TlsOptions { authorities: authorities.transpose()?, ..TlsOptions::default() };
    let networks = config.list(&webhooks::NETWORKS);
    let origin = config.text(&webhooks::ORIGIN).unwrap_or_else(|| hostname.to_owned());
    ensure!(
        origin.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte)),
        "[webhooks] origin: {origin:?} is not a host name"
    );
    Ok(Sender {
        public: SharedClient::for_users(&tls, &networks, true).context("[webhooks] networks")?,
        listed: SharedClient::for_users(&tls, &networks, false).context("[webhooks] networks")?,
        origin: HeaderValue::from_str(&origin).context("[webhooks] origin")?,
        timeout: config.seconds(&webhooks::TIMEOUT)?,
    })
}

#[cfg(test)]
mod tests;
