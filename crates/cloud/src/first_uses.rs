//! The first requests with a new token.
//!
//! A service asks Keystone about each token that it does not know, and remembers the answer for minutes (the cache of
//! keystonemiddleware). If fifty requests with a new token arrive at once, it asks fifty times. So a service gets only a
//! few until it has responded to one of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Requests with a token to a service that does not know it yet.
const FEW: usize = 4;
/// How long others wait for a response to them: by then, the service has asked Keystone, unless both are slow.
const PATIENCE: Duration = Duration::from_secs(1);

/// The services that a token has been used at. Clones share the same data.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstUses(Arc<Mutex<HashMap<String, Arc<Semaphore>>>>);

/// A request with the token.
pub(crate) struct Use {
    /// Closed when the service knows the token.
    turns: Arc<Semaphore>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl FirstUses {
    /// Waits until a request may be sent to a service: its key is [`crate::exchange::Exchange::key`].
    pub(crate) async fn admit(&self, service: String) -> Use {
        let turns = {
            let mut services = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(services.entry(service).or_insert_with(|| Arc::new(Semaphore::new(FEW))))
        };
        let turn = timeout(PATIENCE, Arc::clone(&turns).acquire_owned()).await;
        Use { turns, _turn: turn.ok().and_then(Result::ok) }
    }
}

impl Use {
    /// The service has responded, so it knows the token.
    pub(crate) fn responded(self) {
        self.turns.close();
    }
}
