//! The Heat that Kiln stands before.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use kiln_config::Config;
use kiln_config::option::ConfigOption;
use kiln_config::options::kiln;
use kiln_store::OwnerStore;
use kiln_web::{ConnectionLimits, Heat};
use url::Url;

use crate::clients;

/// The API of Heat whose URL an option sets. It gets as many requests at the same time as half of Kiln's connections, so that a
/// Heat that hangs leaves room for the projects of Kiln.
pub(crate) fn heat(
    config: &Config,
    option: &'static ConfigOption,
    owners: &Arc<dyn OwnerStore>,
    limits: &ConnectionLimits,
) -> Result<Option<Arc<Heat>>> {
    let Some(url) = url(config, option)? else { return Ok(None) };
    let transport = clients::transport(config, &config.account("keystone_authtoken")?)?;
    let most = (limits.seats() / 2).max(1);
    Ok(Some(Arc::new(Heat::new(Arc::clone(owners), url, transport, most))))
}

/// Checks the options.
pub(crate) fn check(config: &Config) -> Result<()> {
    let (api, cfn) = (url(config, &kiln::HEAT_API_URL)?, url(config, &kiln::HEAT_CFN_URL)?);
    if api.is_some() != cfn.is_some() && config.flag(&kiln::CFN_API)? {
        bail!("[kiln] heat_api_url and heat_cfn_url: set both, so that the signals of servers reach Heat too");
    }
    Ok(())
}

/// The URL that an option sets.
pub(crate) fn url(config: &Config, option: &'static ConfigOption) -> Result<Option<Url>> {
    let Some(text) = config.text(option) else { return Ok(None) };
    let named = || format!("[kiln] {}", option.name());
    let url = Url::parse(&text).with_context(named)?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
        bail!("{}: this must be the URL of an HTTP server, without a query", named());
    }
    Ok(Some(url))
}
