//! Maintenance: the operator lets requests read, but not change.

use std::sync::{Arc, PoisonError, RwLock};

/// Whether changes are refused now, and what clients are told. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Maintenance(Arc<RwLock<Option<String>>>);

impl Maintenance {
    /// The text for clients; `None`: changes are carried out.
    pub fn text(&self) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins or ends it.
    pub fn set(&self, text: Option<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = text;
    }
}
