//! What an engine's process may do: go on, stand still, or nothing ever again.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

const OPEN: u8 = 0;
const SHUT: u8 = 1;
const DEAD: u8 = 2;

/// Stands between an engine and everything outside: an answer, a timer or a ring reaches it only through the gate.
#[derive(Debug, Default)]
pub struct Gate {
    state: AtomicU8,
    changed: Notify,
}

impl Gate {
    /// Stands still.
    pub fn shut(&self) {
        let _ = self.state.compare_exchange(OPEN, SHUT, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Goes on.
    pub fn open(&self) {
        let _ = self.state.compare_exchange(SHUT, OPEN, Ordering::SeqCst, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Ends.
    pub fn kill(&self) {
        self.state.store(DEAD, Ordering::SeqCst);
    }

    /// Whether the process is gone.
    pub fn is_dead(&self) -> bool {
        self.state.load(Ordering::SeqCst) == DEAD
    }

    /// Waits until the engine goes on; for ever if it is dead.
    pub async fn pass(&self) {
        loop {
            // Waits for the change from now on, whatever comes between the look and the wait.
            let changed = self.changed.notified();
            match self.state.load(Ordering::SeqCst) {
                OPEN => return,
                DEAD => std::future::pending().await,
                _ => changed.await,
            }
        }
    }
}
