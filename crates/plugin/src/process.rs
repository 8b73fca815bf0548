//! A running process of a plug-in: sends requests and matches the responses.
//!
//! A fault is charged to a call only if it is certain whose it is: that of a call without a response in time, and any
//! other if a single call was in progress. After a fault the process gets no more calls: those in progress may still be
//! answered, then it is killed.

use std::collections::{HashMap, VecDeque};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_value::{Map, Secret, Value, value};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::call::{CallError, masked, quoted};
use crate::lines::{Line, Lines};
use crate::program::Program;

/// Longest response in bytes.
const RESPONSE: usize = 4 << 20;
/// Longest line of the log in bytes.
const LOG_LINE: usize = 4_000;
/// Most lines of the log in a second.
const LOG_RATE: u32 = 100;
/// How many tokens are removed from the log: those of the last calls.
const TOKENS: usize = 64;
/// Time that a process has to end after it has closed its output, and to be read after it has ended.
const PARTING: Duration = Duration::from_secs(1);

/// A process. When it is dropped, the process ends after the calls in progress.
pub(crate) struct Process {
    requests: mpsc::UnboundedSender<String>,
    shared: Arc<Shared>,
    started: Instant,
}

struct Shared {
    name: String,
    state: Mutex<State>,
    /// The process has no calls and gets none.
    idle: Notify,
}

#[derive(Default)]
struct State {
    calls: HashMap<u64, oneshot::Sender<Result<Value, CallError>>>,
    next: u64,
    /// No more calls.
    retired: bool,
    /// What it did wrong, without a call to charge it to.
    fault: Option<String>,
    /// How it ended.
    end: Option<String>,
    /// The last line of its standard error.
    said: String,
    tokens: VecDeque<Secret<String>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the process as soon as no call is in progress.
    fn retire(&self, state: &mut State) {
        state.retired = true;
        if state.calls.is_empty() {
            self.idle.notify_one();
        }
    }

    /// The process has done something wrong.
    fn fault(&self, text: String) {
        tracing::warn!(plugin = self.name, fault = text, "the process of a plug-in is ended after a fault");
        let mut state = self.lock();
        let only = if state.calls.len() == 1 { state.calls.keys().next().copied() } else { None };
        match only.and_then(|id| state.calls.remove(&id)) {
            Some(call) => {
                let _ = call.send(Err(CallError::Broken(text)));
            }
            None => state.fault = Some(text),
        }
        self.retire(&mut state);
    }

    /// A text of the process for a message.
    fn quoted(&self, text: &str) -> String {
        let tokens: Vec<Secret<String>> = self.lock().tokens.iter().cloned().collect();
        quoted(text, &tokens)
    }

    /// A line of the standard output.
    fn response(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            return;
        }
        let Ok(Value::Map(mut message)) = serde_json::from_str::<Value>(&text) else {
            return self.fault(format!("it wrote a line that is no response in JSON: {}", self.quoted(&text)));
        };
        let id = message.get("id").and_then(Value::as_i64).and_then(|id| u64::try_from(id).ok());
        let mut state = self.lock();
        match id.and_then(|id| state.calls.remove(&id)) {
            Some(call) => {
                let _ = call.send(outcome(&mut message));
                if state.retired {
                    self.retire(&mut state);
                }
            }
            // Of a call that was given up.
            None if state.retired => {}
            None => {
                drop(state);
                self.fault(format!("it sent a response to no request: {}", self.quoted(&text)));
            }
        }
    }

    /// A line of the standard error, as it is logged.
    fn said(&self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        let mut state = self.lock();
        let tokens: Vec<Secret<String>> = state.tokens.iter().cloned().collect();
        let text = masked(text.trim_end(), &tokens);
        if !text.trim().is_empty() {
            state.said = quoted(&text, &[]);
        }
        text
    }

    /// The process has ended.
    fn ended(&self, status: Option<ExitStatus>) {
        let mut state = self.lock();
        state.retired = true;
        let how = status.map_or_else(|| "closed its output".to_owned(), |status| format!("ended ({status})"));
        let said = if state.said.is_empty() { String::new() } else { format!(": {}", state.said) };
        let fault = state.fault.as_ref().map(|fault| format!("; {fault}")).unwrap_or_default();
        let text = format!("the process {how}{said}{fault}");
        state.end = Some(text.clone());
        let calls = std::mem::take(&mut state.calls);
        let is_single = calls.len() == 1;
        for call in calls.into_values() {
            let text = text.clone();
            let _ = call.send(Err(if is_single { CallError::Broken(text) } else { CallError::Interrupted(text) }));
        }
    }
}

/// The result in a response.
fn outcome(message: &mut Map) -> Result<Value, CallError> {
    match (message.shift_remove("result"), message.shift_remove("error")) {
        (Some(result), None | Some(Value::Null)) => Ok(result),
        (None | Some(Value::Null), Some(error @ Value::Map(_))) => Err(CallError::Reported(error)),
        _ => Err(CallError::Broken("the response has neither a result nor an error".to_owned())),
    }
}

impl Process {
    /// Starts a process. Its log has this name.
    pub(crate) fn start(program: &Program, name: &str) -> std::io::Result<Self> {
        let mut child = program.spawn()?;
        let (requests, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { name: name.to_owned(), state: Mutex::default(), idle: Notify::new() });
        let input = child.stdin.take();
        tokio::spawn(attend(child, Arc::clone(&shared)));
        tokio::spawn(write(input, queue));
        Ok(Self { requests, shared, started: Instant::now() })
    }

    /// Whether it gets calls.
    pub(crate) fn is_usable(&self) -> bool {
        !self.shared.lock().retired
    }

    /// How long ago it was started.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Calls a method and waits for the response. If this future is dropped, the call goes on, so that its limit is
    /// kept.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: Value,
        token: Option<Secret<String>>,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let (answer, mut answered) = oneshot::channel();
        let id = {
            let mut state = self.shared.lock();
            if state.retired {
                let why = state.end.clone().or_else(|| state.fault.clone());
                return Err(CallError::NotSent(why.unwrap_or_else(|| "the process is ending".to_owned())));
            }
            let id = state.next;
            state.next += 1;
            state.calls.insert(id, answer);
            if let Some(token) = token.filter(|token| !state.tokens.contains(token)) {
                state.tokens.truncate(TOKENS - 1);
                state.tokens.push_front(token);
            }
            id
        };
        let request = value!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // A process that has ended is noticed by its attendant.
        let _ = self.requests.send(serde_json::to_string(&request).unwrap_or_default() + "\n");
        // The input stays open until the call has ended.
        let (shared, open) = (Arc::clone(&self.shared), self.requests.clone());
        let waiting = tokio::spawn(async move {
            let _open = open;
            if let Ok(answer) = tokio::time::timeout(limit, &mut answered).await {
                return answer.unwrap_or_else(|_| Err(CallError::Interrupted("the process ended".to_owned())));
            }
            let mut state = shared.lock();
            state.calls.remove(&id);
            let fault = state.fault.as_ref().map(|fault| format!("; {fault}")).unwrap_or_default();
            shared.retire(&mut state);
            Err(CallError::Broken(format!("no response within {} seconds{fault}", limit.as_secs_f64())))
        });
        waiting.await.unwrap_or_else(|error| Err(CallError::Broken(error.to_string())))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        self.shared.retire(&mut state);
    }
}

/// Writes requests, until the process does not read them any more.
async fn write(input: Option<ChildStdin>, mut queue: mpsc::UnboundedReceiver<String>) {
    let Some(mut input) = input else { return };
    while let Some(line) = queue.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads from a process until it ends or is not needed any more.
async fn attend(mut child: Child, shared: Arc<Shared>) {
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let log = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            if let Some(errors) = errors {
                log(&shared, Lines::new(BufReader::new(errors), LOG_LINE)).await;
            }
        }
    });
    let read = async {
        let Some(output) = output else { return };
        let mut lines = Lines::new(BufReader::with_capacity(64 << 10, output), RESPONSE);
        while let Some(line) = lines.next().await {
            match line {
                Line::Whole(line) => shared.response(&line),
                Line::TooLong(_) => shared.fault(format!("it sent a line of more than {RESPONSE} bytes")),
            }
        }
    };
    tokio::pin!(read);
    let status = tokio::select! {
        () = &mut read => tokio::time::timeout(PARTING, child.wait()).await.ok().and_then(Result::ok),
        status = child.wait() => {
            // A child of the process may keep its output open.
            let _ = tokio::time::timeout(PARTING, &mut read).await;
            status.ok()
        }
        () = shared.idle.notified() => None,
    };
    let _ = child.kill().await;
    // What it said last explains its end.
    let _ = tokio::time::timeout(PARTING, log).await;
    shared.ended(status);
}

/// Logs the lines of the standard error, within a rate.
async fn log<R: tokio::io::AsyncBufRead + Unpin>(shared: &Shared, mut lines: Lines<R>) {
    let (mut second, mut count) = (Instant::now(), 0_u32);
    while let Some(Line::Whole(line) | Line::TooLong(line)) = lines.next().await {
        let text = shared.said(&line);
        if second.elapsed() >= Duration::from_secs(1) {
            if count > LOG_RATE {
                tracing::warn!(
                    plugin = shared.name,
                    lines = count - LOG_RATE,
                    "the plug-in writes too much: lines left out"
                );
            }
            (second, count) = (Instant::now(), 0);
        }
        count = count.saturating_add(1);
        if count <= LOG_RATE {
            tracing::info!(plugin = shared.name, "{text}");
        }
    }
}
