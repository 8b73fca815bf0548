//! Templates at URLs: off unless `[kiln] template_urls` is set.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use kiln_cloud::{WebError, WebReader};
use kiln_service::{ReadError, TemplateReader};

use kiln_config::Config;
use kiln_config::options::{kiln, stacks};

struct WebTemplates(WebReader);

/// The reader of templates at URLs; `None` if they are not allowed.
pub fn reader(config: &Config) -> Result<Option<Arc<dyn TemplateReader>>> {
    let is_allowed = config.flag(&kiln::TEMPLATE_URLS)?;
    let networks = config.list(&kiln::TEMPLATE_URL_NETWORKS);
    let timeout = config.seconds(&stacks::TEMPLATE_FETCH_TIMEOUT)?;
    let reader = WebReader::new(&networks, timeout).context("[kiln] template_url_networks")?;
    Ok(is_allowed.then(|| Arc::new(WebTemplates(reader)) as Arc<dyn TemplateReader>))
}

#[async_trait]
impl TemplateReader for WebTemplates {
    async fn read(&self, url: &str, limit: usize) -> Result<String, ReadError> {
        self.0.read(url, limit).await.map_err(|error| {
            // Without the URL, which may contain a password.
            tracing::info!(%error, "failed to read a template from a URL");
            match error {
                WebError::Scheme(scheme) => ReadError::Scheme(scheme),
                WebError::Address(host) => ReadError::Address(host),
                WebError::Size(limit) => ReadError::Size(limit),
                WebError::Failed(_) => ReadError::Failed(url.to_owned()),
            }
        })
    }
}
