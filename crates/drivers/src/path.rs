//! Paths of requests.

/// A percent-encoded path segment: only letters, digits, `-`, `.`, `_` and `~` are not encoded.
pub(crate) fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The last segment of an ID that is a URL; any other ID unchanged.
pub(crate) fn last_segment(id: &str) -> &str {
    let is_url = id.starts_with("http://") || id.starts_with("https://");
    if is_url { id.trim_end_matches('/').rsplit('/').next().unwrap_or(id) } else { id }
}

#[cfg(test)]
mod tests {
    #[test]
    fn slashes_are_encoded() {
        assert_eq!(super::segment("a/b c-1.é~"), "a%2Fb%20c-1.%C3%A9~");
    }

    #[test]
    fn only_urls_have_segments() {
        assert_eq!(super::last_segment("http://h:9311/v1/secrets/5f-1"), "5f-1");
        assert_eq!(super::last_segment("a/b"), "a/b");
    }
}
