//! The language server of the page: messages of JSON-RPC over a WebSocket.
//!
//! What checks the texts is given by the program ([`Language`]). Here is what one browser may ask of it: how many sockets, how
//! long a message, how much time of the processor, and until when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts as _;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use http::request::Parts as Head;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::PageError;
use crate::session::Session;

/// Checks the texts of editors. It must read no file of this machine.
pub trait Language: Send + Sync {
    /// A session of one editor.
    fn session(&self) -> Box<dyn LanguageSession>;
}

/// What an editor has opened.
pub trait LanguageSession: Send {
    /// Takes a message of JSON-RPC; returns those to send.
    fn receive(&mut self, message: &Value) -> Vec<Value>;
    /// The diagnostics of what has changed since.
    fn settle(&mut self) -> Vec<Value>;
    /// The bytes of the open texts.
    fn bytes(&self) -> usize;
}

/// The longest message, in bytes: a template with its files is a message for each of them.
const LONGEST: usize = 1 << 20;
/// The bytes of all texts of one editor.
const MOST_BYTES: usize = 4 << 20;
/// Sockets of one user, and of all.
const MOST_OF_USER: usize = 8;
const MOST: usize = 64;
/// Texts are checked when no message has come for this long.
const PAUSE: Duration = Duration::from_millis(150);
/// A socket without messages is closed. The page opens another one.
const IDLE: Duration = Duration::from_mins(10);
/// The longest time of one message.
const SLOWEST: Duration = Duration::from_secs(5);
const LONGEST_SOCKET: Duration = Duration::from_hours(24);

/// The open sockets of a process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sockets {
    language: Arc<dyn Language>,
    open: Arc<Mutex<BTreeMap<String, usize>>>,
    /// Half of the processors: what an editor asks for never takes all of them.
    running: Arc<Semaphore>,
}

/// The place of a socket among those of its user.
struct Seat {
    open: Arc<Mutex<BTreeMap<String, usize>>>,
    user: String,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
        }
        open.retain(|_, count| *count > 0);
    }
}

impl Sockets {
    pub(crate) fn new(language: Arc<dyn Language>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { language, open: Arc::default(), running: Arc::new(Semaphore::new((processors / 2).max(1))) }
    }

    /// Opens a socket for a session that has been checked.
    pub(crate) async fn open(&self, mut head: Head, session: &Session) -> Result<Response, PageError> {
        let upgrade = WebSocketUpgrade::from_request_parts(&mut head, &()).await;
        let upgrade = upgrade.map_err(|error| PageError::Form(error.body_text()))?;
        let seat = self.seat(&session.user.id).ok_or(PageError::Sockets)?;
        let end = Instant::now() + left(session);
        let (running, checks) = (Arc::clone(&self.running), self.language.session());
        let upgrade = upgrade.max_message_size(LONGEST).max_frame_size(LONGEST);
        Ok(upgrade.on_upgrade(async move |socket| {
            Talk { socket, checks: Some(checks), running, end }.run().await;
            drop(seat);
        }))
    }

    fn seat(&self, user: &str) -> Option<Seat> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = open.get(user).copied().unwrap_or_default();
        if of_user >= MOST_OF_USER || open.values().sum::<usize>() >= MOST {
            return None;
        }
        open.insert(user.to_owned(), of_user + 1);
        Some(Seat { open: Arc::clone(&self.open), user: user.to_owned() })
    }
}

/// The time until the token of a session expires.
#[expect(clippy::disallowed_methods, reason = "Keystone's time of expiry, on the clock of this host")]
fn left(session: &Session) -> Duration {
    let Ok(end) = session.expires_at.parse::<Timestamp>() else { return LONGEST_SOCKET };
    Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default().min(LONGEST_SOCKET)
}

/// One socket.
struct Talk {
    socket: WebSocket,
    /// `None` while it works, and after it was too slow.
    checks: Option<Box<dyn LanguageSession>>,
    running: Arc<Semaphore>,
    end: Instant,
}

/// Why a socket is closed, in the words and numbers of the protocol.
type Reason = (u16, &'static str);

impl Talk {
    async fn run(mut self) {
        let Err(Some((code, reason))) = self.talk().await else { return };
        let frame = CloseFrame { code, reason: reason.into() };
        // It may be closed already.
        drop(timeout(PAUSE, self.socket.send(Message::Close(Some(frame)))).await);
    }

    /// Until the socket ends: with a reason, or because the browser has closed it.
    async fn talk(&mut self) -> Result<(), Option<Reason>> {
        let mut is_settled = true;
        loop {
            let wait = Instant::now() + if is_settled { IDLE } else { PAUSE };
            match timeout_at(wait.min(self.end), self.socket.recv()).await {
                Ok(Some(Ok(Message::Text(text)))) => {
                    let message: Value = serde_json::from_str(&text)
                        .map_err(|_| Some((close_code::INVALID, "a message that is not JSON")))?;
                    self.work(move |checks| checks.receive(&message)).await?;
                    is_settled = false;
                }
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
                Ok(Some(Ok(Message::Binary(_)))) => return Err(Some((close_code::UNSUPPORTED, "binary messages"))),
                // Too long a message is an error of the socket, which answers it.
                Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return Err(None),
                Err(_) if Instant::now() >= self.end => {
                    return Err(Some((close_code::POLICY, "the session has ended")));
                }
                Err(_) if is_settled => return Err(Some((close_code::AWAY, "nothing was asked for ten minutes"))),
                Err(_) => {
                    self.work(|checks| checks.settle()).await?;
                    is_settled = true;
                }
            }
        }
    }

    /// Lets another thread work, and sends what comes of it.
    async fn work(
        &mut self,
        work: impl FnOnce(&mut dyn LanguageSession) -> Vec<Value> + Send + 'static,
    ) -> Result<(), Option<Reason>> {
        let slow = Some((close_code::POLICY, "the text takes too long to check"));
        let busy = timeout(SLOWEST, Arc::clone(&self.running).acquire_owned()).await;
        let Ok(Ok(permit)) = busy else { return Err(Some((close_code::AGAIN, "the service is busy"))) };
        let Some(mut checks) = self.checks.take() else { return Err(slow) };
        let worked = spawn_blocking(move || {
            // A thread cannot be stopped. It keeps its place among those that may run.
            let _permit: OwnedSemaphorePermit = permit;
            let told = work(&mut *checks);
            (checks, told)
        });
        let Ok(Ok((checks, told))) = timeout(SLOWEST, worked).await else { return Err(slow) };
        if checks.bytes() > MOST_BYTES {
            return Err(Some((close_code::SIZE, "the texts are too long")));
        }
        self.checks = Some(checks);
        for message in told {
            let text = Message::text(message.to_string());
            let sent = timeout(SLOWEST, self.socket.send(text)).await;
            sent.map_err(|_| None)?.map_err(|_| None)?;
        }
        Ok(())
    }
}
