//! The state of an engine process: running, paused or dead.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

const OPEN: u8 = 0;
const SHUT: u8 = 1;
const DEAD: u8 = 2;

/// The gate between an engine and everything outside: responses, timers and rings must pass it.
#[derive(Debug, Default)]
pub struct Gate {
    state: AtomicU8,
    changed: Notify,
}

impl Gate {
    /// Pauses the engine; false if it does not run.
    pub fn shut(&self) -> bool {
        self.state.compare_exchange(OPEN, SHUT, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Resumes the engine.
    pub fn open(&self) {
        let _ = self.state.compare_exchange(SHUT, OPEN, Ordering::SeqCst, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Kills the engine.
    pub fn kill(&self) {
        self.state.store(DEAD, Ordering::SeqCst);
    }

    /// Whether the engine is dead.
    pub fn is_dead(&self) -> bool {
        self.state.load(Ordering::SeqCst) == DEAD
    }

    /// Waits until the engine runs; forever if it is dead.
    pub async fn pass(&self) {
        loop {
            // Registers for the notification before the check, so that no change is missed.
            let changed = self.changed.notified();
            match self.state.load(Ordering::SeqCst) {
                OPEN => return,
                DEAD => std::future::pending().await,
                _ => changed.await,
            }
        }
    }
}
