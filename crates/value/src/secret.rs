//! Values that must not be seen.

use std::fmt;

/// Holds a secret: prints as `******`, so that it cannot reach a log, an event or a response by accident.
///
/// It has no `Serialize`: to store or send one takes a deliberate [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a secret.
    pub fn new(secret: T) -> Self {
        Self(secret)
    }

    /// The secret itself. Every call is a place to review.
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
