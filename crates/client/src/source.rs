//! Reads the files of users and documents, and from the network only what is allowed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use base64::Engine as _;
use http::{HeaderMap, Method};
use kiln_cloud::{HttpRequest, Transport};
use url::Url;

use crate::address;

/// Timeout of the server of a template.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of redirects.
const REDIRECTS: usize = 5;

const UNSUPPORTED: &str = "only file, http and https URLs are supported";
const ELSEWHERE: &str = "it is on the network; use --allow-remote to allow such references";

/// Reads the texts of a request.
#[derive(Clone, Default)]
pub struct Source {
    web: Option<Arc<dyn Transport>>,
    references: bool,
}

impl Source {
    /// Reads files only.
    pub fn files() -> Self {
        Self::default()
    }

    /// Also reads `http:` and `https:` URLs of the user, and references in these documents to the same host. References
    /// that name another host, or that their host redirects to another one, are read only if `references` is set.
    pub fn with_web(transport: Arc<dyn Transport>, references: bool) -> Self {
        Self { web: Some(transport), references }
    }

    /// The content of a URL from the user.
    pub async fn read(&self, url: &str) -> Result<Vec<u8>, String> {
        if let Some(path) = address::file_of(url) {
            return file(path).map_err(|error| error.to_string());
        }
        match (&self.web, Url::parse(url)) {
            (Some(web), Ok(url)) => get(&**web, url, |_| true).await,
            _ => Err(UNSUPPORTED.to_owned()),
        }
    }

    /// The content of a reference in the document at `from`.
    pub async fn read_reference(&self, url: &str, from: &str) -> Result<Vec<u8>, String> {
        if address::scheme(url) == Some("file") {
            // A document from the network must not refer to local files.
            return match Url::parse(from) {
                Ok(from) if from.scheme() != "file" => {
                    Err("a document from the network cannot refer to local files".to_owned())
                }
                _ => self.read(url).await,
            };
        }
        match (&self.web, Url::parse(url), Url::parse(from)) {
            (Some(web), Ok(to), Ok(from)) if !self.references => {
                get(&**web, to, |to| to.origin() == from.origin()).await
            }
            (None, Ok(to), Ok(from)) if to.origin() != from.origin() => Err(ELSEWHERE.to_owned()),
            _ => self.read(url).await,
        }
    }
}

/// The contents of the pipes that this process has read: a pipe can be read once, and a command may need its document
/// several times.
static PIPES: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// The content of a file or a pipe.
fn file(path: PathBuf) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(&path)?;
    if kind.is_file() || kind.is_dir() {
        return fs::read(path);
    }
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(content) = pipes.get(&path) {
        return Ok(content.clone());
    }
    let content = fs::read(&path)?;
    pipes.insert(path, content.clone());
    Ok(content)
}

/// The content of a URL; `allows` decides about it, and about each URL to which a server redirects.
async fn get(web: &dyn Transport, mut url: Url, allows: impl Fn(&Url) -> bool) -> Result<Vec<u8>, String> {
    for _ in 0..=REDIRECTS {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UNSUPPORTED.to_owned());
        }
        if !allows(&url) {
            return Err(ELSEWHERE.to_owned());
        }
        let request = HttpRequest {
            method: Method::GET,
            url: url.clone(),
            headers: HeaderMap::new(),
            body: None,
            timeout: TIMEOUT,
        };
        let response = web.send(request).await.map_err(|error| error.to_string())?;
        match response.header("location") {
            Some(location) if response.status.is_redirection() => {
                url = url.join(location).map_err(|error| error.to_string())?;
            }
            _ if response.status.is_success() => return Ok(response.body.to_vec()),
            _ => return Err(format!("HTTP {}", response.status)),
        }
    }
    Err("too many redirects".to_owned())
}

/// The content of a file as text: if it is not UTF-8, it is encoded as base64 in lines of 76, like Python's
/// `encodebytes`.
pub(crate) fn text_of(content: Vec<u8>) -> String {
    String::from_utf8(content).unwrap_or_else(|error| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(error.as_bytes());
        let mut lines = String::with_capacity(encoded.len() + encoded.len() / 76 + 1);
        for (i, c) in encoded.chars().enumerate() {
            if i > 0 && i % 76 == 0 {
                lines.push('\n');
            }
            lines.push(c);
        }
        lines.push('\n');
        lines
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_content_goes_as_base64_lines() {
        assert_eq!(text_of(b"plain\n".to_vec()), "plain\n");
        let long = text_of(vec![0xff; 60]);
        assert_eq!(long.lines().map(str::len).collect::<Vec<_>>(), [76, 4]);
        assert!(long.ends_with('\n'));
    }
}
