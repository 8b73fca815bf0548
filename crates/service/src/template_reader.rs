//! Reads templates from URLs, if the operator allows it.

use async_trait::async_trait;

use crate::{Error, Service};

/// Why a template could not be read from a URL. The texts do not tell what is at an address that may not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The text is not a URL of HTTP.
    #[error("Invalid URL scheme {0}")]
    Scheme(String),
    /// The host has no address that may be used.
    #[error("the address of {0} is not allowed")]
    Address(String),
    /// The template is larger than `max_template_size`.
    #[error("Template exceeds maximum allowed size ({0} bytes)")]
    Size(usize),
    /// The server did not return a template.
    #[error("Failed to retrieve template from {0}")]
    Failed(String),
}

/// Reads texts from URLs that users specify. An implementation protects the network of the service.
#[async_trait]
pub trait TemplateReader: Send + Sync {
    /// The text at a URL, of at most `limit` bytes.
    async fn read(&self, url: &str, limit: usize) -> Result<String, ReadError>;
}

impl Service {
    /// The template at a URL.
    ///
    /// # Errors
    /// [`Error::TemplateUrl`], always if the operator does not allow URLs.
    pub async fn template_at(&self, url: &str) -> Result<String, Error> {
        let Some(reader) = &self.templates else {
            return Err(Error::TemplateUrl("reading templates from URLs is disabled".to_owned()));
        };
        let read = reader.read(url, self.options.limits.template).await;
        read.map_err(|error| Error::TemplateUrl(error.to_string()))
    }
}
