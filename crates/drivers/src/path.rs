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

#[cfg(test)]
mod tests {
    #[test]
    fn slashes_are_encoded() {
        assert_eq!(super::segment("a/b c-1.é~"), "a%2Fb%20c-1.%C3%A9~");
    }
}
