//! The trace of a run.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use crate::clock::TrueTime;

/// Collects lines if it is enabled.
#[derive(Debug)]
pub(crate) struct Trace {
    on: bool,
    time: TrueTime,
    text: Mutex<String>,
}

impl Trace {
    /// A trace.
    pub(crate) fn new(on: bool, time: TrueTime) -> Self {
        Self { on, time, text: Mutex::default() }
    }

    /// Adds a line; `what` is evaluated only if necessary.
    pub(crate) fn note(&self, who: &str, what: impl FnOnce() -> String) {
        if self.on {
            let ms = self.time.ms();
            let what = what();
            let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(text, "{:6}.{:03} {who:<8} {what}", ms / 1000, ms % 1000);
        }
    }

    /// All lines so far.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
