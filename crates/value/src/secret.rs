//! Secret values.

use std::fmt;

/// A secret: prints as `******`, so that it does not appear in a log, an event or a response by accident.
///
/// It does not implement `Serialize`: storing or sending it requires an explicit [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a secret.
    pub fn new(secret: T) -> Self {
        Self(secret)
    }

    /// The secret itself. Every use should be reviewed.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("******")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("******")
    }
}

/// The length from which a secret is masked within words too: a secret `1` is not in `512`.
const DISTINCTIVE: usize = 8;

/// The text with a mask in place of a secret. A short secret that starts or ends within a word is not masked.
pub fn masked(text: &str, secret: &str, mask: &str) -> String {
    if secret.is_empty() {
        return text.to_owned();
    }
    if secret.len() >= DISTINCTIVE {
        return text.replace(secret, mask);
    }
    let in_word = |side: Option<char>, edge: Option<char>| {
        side.is_some_and(char::is_alphanumeric) && edge.is_some_and(char::is_alphanumeric)
    };
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(secret) {
        let left = before.chars().next_back().or_else(|| shown.chars().next_back());
        shown.push_str(before);
        let inside = in_word(left, secret.chars().next()) || in_word(after.chars().next(), secret.chars().next_back());
        shown.push_str(if inside { secret } else { mask });
        rest = after;
    }
    shown.push_str(rest);
    shown
}
