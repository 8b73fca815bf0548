//! File names and URLs, joined as python-heatclient does.
//!
//! The names in `files` are sent to the service, so they must be equal to those of the reference client. This module
//! implements Python's `urllib.parse.urljoin`, which encodes nothing, unlike the `url` crate.

use std::path::{Component, Path, PathBuf};

use kiln_value::url::quote;

/// The parts of a URL that matter for joining.
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    /// The part from `?` or `#`.
    tail: &'a str,
}

fn split(url: &str) -> Parts<'_> {
    let (scheme, rest) = match scheme(url) {
        Some(scheme) => (Some(scheme), url.get(scheme.len() + 1..).unwrap_or_default()),
        None => (None, url),
    };
    let (authority, rest) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, rest) = rest.split_at(end);
            (Some(authority), rest)
        }
        None => (None, rest),
    };
    let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    Parts { scheme, authority, path, tail }
}

/// The scheme of a URL; `None` for a plain path.
pub fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    named.then_some(scheme)
}

/// Resolves a reference in a document at `base`.
pub fn join(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let (from, to) = (split(base), split(reference));
    let elsewhere = to.scheme.is_some_and(|scheme| from.scheme != Some(scheme));
    if elsewhere || to.authority.is_some_and(|a| !a.is_empty()) {
        return match (to.scheme, from.scheme) {
            (None, Some(scheme)) => format!("{scheme}:{reference}"),
            _ => reference.to_owned(),
        };
    }
    let path = if to.path.is_empty() { from.path.to_owned() } else { resolve(from.path, to.path) };
    let scheme = from.scheme.map(|scheme| format!("{scheme}:")).unwrap_or_default();
    let authority = from.authority.map(|authority| format!("//{authority}")).unwrap_or_default();
    let slash = if from.authority.is_some() && !path.is_empty() && !path.starts_with('/') { "/" } else { "" };
    format!("{scheme}{authority}{slash}{path}{}", to.tail)
}

/// Resolves a path relative to another one and removes `.` and `..`.
fn resolve(base: &str, path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    if !path.starts_with('/') {
        segments.extend(base.split('/'));
        if segments.last().is_some_and(|last| !last.is_empty()) {
            segments.pop();
        }
    }
    segments.extend(path.split('/'));
    let last = segments.len().saturating_sub(1);
    let mut resolved: Vec<&str> = Vec::new();
    for (i, segment) in segments.iter().enumerate() {
        match *segment {
            "" if i > 0 && i < last => {}
            ".." => _ = resolved.pop(),
            "." => {}
            segment => resolved.push(segment),
        }
    }
    if matches!(segments.last(), Some(&("." | ".."))) {
        resolved.push("");
    }
    let joined = resolved.join("/");
    if joined.is_empty() { "/".to_owned() } else { joined }
}

/// The base of references in a document at `url`, with a trailing `/`.
pub fn base_of(url: &str) -> String {
    let path = split(url).path;
    let directory = match path.rfind('/') {
        Some(0) => "/",
        Some(end) => path.get(..end).unwrap_or_default().trim_end_matches('/'),
        None => "",
    };
    with_slash(join(url, directory))
}

/// The URL with a trailing `/`.
pub fn with_slash(mut url: String) -> String {
    if !url.ends_with('/') {
        url.push('/');
    }
    url
}

/// The URL for a user's argument: URLs do not change, paths become `file://` URLs with symbolic links resolved.
pub fn url_of(name: &str) -> String {
    if scheme(name).is_some() {
        return name.to_owned();
    }
    let path = real_path(Path::new(name));
    format!("file://{}", quote(&path.to_string_lossy(), "/"))
}

/// The absolute path without symbolic links. Parts that do not exist are kept, as in Python's `Path.resolve`.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut real = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => _ = real.pop(),
            component => real.push(component),
        }
        if let Ok(resolved) = real.canonicalize() {
            real = resolved;
        }
    }
    real
}

/// The file of a `file:` URL; `None` for other URLs and other hosts.
pub fn file_of(url: &str) -> Option<PathBuf> {
    let parts = split(url);
    let local = parts.authority.is_none_or(|host| host.is_empty() || host.eq_ignore_ascii_case("localhost"));
    if parts.scheme != Some("file") || !local {
        return None;
    }
    let name = format!("{}{}", parts.path, parts.tail.split('#').next().unwrap_or_default());
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(&name).collect();
    Some(path_of(bytes))
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_as_python_does() {
        // Each expectation was computed by Python 3.11's urljoin.
        for (base, reference, joined) in [
            ("file:///t/", "a.yaml", "file:///t/a.yaml"),
            ("file:///t/", "sub/a b.yaml", "file:///t/sub/a b.yaml"),
            ("file:///t/", "../a.yaml", "file:///a.yaml"),
            ("file:///t/", "../../../a.yaml", "file:///a.yaml"),
            ("file:///t/u/", "./x//y", "file:///t/u/x/y"),
            ("file:///t/u/", "..", "file:///t/"),
            ("file:///t/u/", "/abs.yaml", "file:///abs.yaml"),
            ("file:///t/", "file:///o/b.yaml", "file:///o/b.yaml"),
            ("file:///t/", "http://h/b.yaml", "http://h/b.yaml"),
            ("http://h/d/", "c.yaml?x=1#f", "http://h/d/c.yaml?x=1#f"),
            ("http://h/d/", "//i/c.yaml", "http://i/c.yaml"),
            ("http://h/d/", "", "http://h/d/"),
            ("http://h", "c.yaml", "http://h/c.yaml"),
            ("file:///t/", "my:odd", "my:odd"),
        ] {
            assert_eq!(join(base, reference), joined, "{base} + {reference}");
        }
    }

    #[test]
    fn references_are_relative_to_the_directory() {
        for (url, base) in [
            ("file:///a/b.yaml", "file:///a/"),
            ("file:///b.yaml", "file:///"),
            ("http://h/a/b.yaml?x", "http://h/a/"),
            ("http://h", "http://h/"),
        ] {
            assert_eq!(base_of(url), base);
        }
    }

    #[test]
    fn paths_become_urls_and_back() {
        let url = url_of("/no such/a#b.yaml");
        assert_eq!(url, "file:///no%20such/a%23b.yaml");
        assert_eq!(file_of(&url), Some("/no such/a#b.yaml".into()));
        assert_eq!(file_of("file:///a b.yaml#part"), Some("/a b.yaml".into()));
        assert_eq!(file_of("file://other/a"), None);
        assert_eq!(url_of("https://h/x"), "https://h/x");
    }
}
