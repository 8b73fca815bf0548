//! The files of the page, which are part of the program.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, VARY,
};
use http::request::Parts as Head;
use http::{Method, StatusCode};
use sha2::{Digest as _, Sha256};

struct File {
    name: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

macro_rules! files {
    ($($name:literal: $kind:literal),* $(,)?) => {
        [$(File { name: $name, kind: $kind, content: include_bytes!(concat!("../files/", $name)) }),*]
    };
}

static FILES: [File; 6] = files! {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "editor.js": "text/javascript; charset=utf-8",
    "layout.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
};

/// A file as it is sent.
struct Sent {
    file: &'static File,
    gzip: Vec<u8>,
    etag: HeaderValue,
}

static SENT: LazyLock<Vec<Sent>> = LazyLock::new(|| FILES.iter().filter_map(Sent::of).collect());

impl Sent {
    fn of(file: &'static File) -> Option<Self> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(file.content).ok()?;
        let digest = Sha256::digest(file.content);
        let etag = digest.iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        Some(Self { file, gzip: encoder.finish().ok()?, etag: HeaderValue::try_from(format!("\"{etag}\"")).ok()? })
    }
}

/// The response to a request for a file. The path of the page itself is empty.
pub(crate) fn answer(head: &Head, path: &str) -> Response {
    let name = if path.is_empty() { "index.html" } else { path };
    let Some(sent) = SENT.iter().find(|sent| sent.file.name == name) else {
        return (StatusCode::NOT_FOUND, "There is no such page.").into_response();
    };
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")]).into_response();
    }
    let accepts_gzip = head.headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let accepts_gzip = accepts_gzip.is_some_and(|value| value.contains("gzip"));
    let mut response = if head.headers.get(IF_NONE_MATCH) == Some(&sent.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if accepts_gzip {
        let mut response = Response::new(Body::from(sent.gzip.as_slice()));
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        Response::new(Body::from(sent.file.content))
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(sent.file.kind));
    headers.insert(ETAG, sent.etag.clone());
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // Asked for again each time, so that an upgrade never mixes files of two versions.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
