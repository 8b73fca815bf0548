//! Keeps the token of a session: one token request at a time for all waiting callers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::error::CloudError;
use crate::token::Token;
use crate::transport::TransportError;

/// The result of a token request.
type Outcome = Result<Arc<Token>, CloudError>;

/// After a failed renewal the old token stays in use, and the next renewal starts after this time.
const AGAIN: Duration = Duration::from_secs(10);

/// The token of a session, renewed before it expires.
#[derive(Default)]
pub(crate) struct TokenKeeper(Mutex<State>);

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// The running request.
    pending: Option<watch::Receiver<Option<Outcome>>>,
}

struct Current {
    token: Arc<Token>,
    /// Time of renewal. Uses the monotonic clock and the lifetime of the token, so that clocks may differ.
    renew_at: Instant,
    /// The token is not used after this time.
    ends_at: Instant,
}

impl TokenKeeper {
    /// Keeps a token that is valid already.
    pub(crate) fn of(token: Token) -> Self {
        let keeper = Self::default();
        keeper.keep(&Ok(Arc::new(token)), Instant::now());
        keeper
    }

    /// The token, requested with `ask` if necessary. The request runs in its own task, which continues when all callers
    /// have given up. While the token is valid, callers do not wait for a renewal, and no caller waits longer than
    /// `limit`.
    pub(crate) async fn token<F>(self: &Arc<Self>, limit: Duration, ask: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Result<Token, CloudError>> + Send + 'static,
    {
        let mut pending = {
            let mut state = self.state();
            let now = Instant::now();
            let is_asked = state.pending.as_ref().is_some_and(|pending| pending.has_changed().is_ok());
            if let Some(current) = state.current.as_ref().filter(|current| now < current.ends_at) {
                let token = Arc::clone(&current.token);
                if now >= current.renew_at && !is_asked {
                    state.pending = Some(self.ask(ask()));
                }
                return Ok(token);
            }
            match &state.pending {
                Some(pending) if is_asked => pending.clone(),
                _ => state.pending.insert(self.ask(ask())).clone(),
            }
        };
        let lost = |error| CloudError::Transport { service: "identity".into(), url: "/v3/auth/tokens".into(), error };
        match timeout(limit, pending.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => {
                outcome.clone().unwrap_or_else(|| Err(lost(TransportError::Broken("no outcome".into()))))
            }
            // The task was dropped with its runtime.
            Ok(Err(_)) => Err(lost(TransportError::Broken("the request was canceled".into()))),
            Err(_) => Err(lost(TransportError::Timeout)),
        }
    }

    /// Starts a request.
    fn ask(
        self: &Arc<Self>,
        request: impl Future<Output = Result<Token, CloudError>> + Send + 'static,
    ) -> watch::Receiver<Option<Outcome>> {
        let (told, pending) = watch::channel(None);
        let (keeper, asked_at) = (Arc::clone(self), Instant::now());
        tokio::spawn(async move {
            let outcome = request.await.map(Arc::new);
            keeper.keep(&outcome, asked_at);
            told.send_replace(Some(outcome));
        });
        pending
    }

    fn keep(&self, outcome: &Outcome, asked_at: Instant) {
        let mut state = self.state();
        state.pending = None;
        match (outcome, &mut state.current) {
            (Ok(token), current) => {
                let life = token.info.expires_at.duration_since(token.info.issued_at);
                let life = Duration::try_from(life).unwrap_or_default();
                // The last tenth, at most five minutes, is for the renewal; its end is for requests in progress.
                let renewal = (life / 10).min(Duration::from_mins(5));
                let margin = (life / 20).min(Duration::from_secs(30));
                *current = Some(Current {
                    token: Arc::clone(token),
                    renew_at: asked_at + life.saturating_sub(renewal),
                    ends_at: asked_at + life.saturating_sub(margin),
                });
            }
            (Err(error), Some(current)) => {
                tracing::warn!(%error, "failed to renew a token; the old one stays in use");
                current.renew_at = Instant::now() + AGAIN;
            }
            (Err(_), None) => {}
        }
    }

    /// Drops a token that a service rejected, unless it has already been replaced.
    pub(crate) fn forget(&self, refused: &Token) {
        let mut state = self.state();
        if state.current.as_ref().is_some_and(|current| current.token.secret == refused.secret) {
            state.current = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
