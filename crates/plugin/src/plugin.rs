//! A plug-in: its program, the current process, and starts after faults.

use std::sync::Arc;
use std::time::Duration;

use kiln_value::{Secret, Value};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::call::{CallError, masked};
use crate::process::Process;
use crate::program::Program;

/// Most calls of a plug-in at the same time.
const CALLS: usize = 32;
/// The pause before the second start in a row; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before a start.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A process that lived so long is started again without a pause.
const SOUND_AGE: Duration = Duration::from_mins(1);

/// A plug-in. It runs at most one process that gets calls.
pub struct Plugin {
    pub(crate) name: String,
    program: Program,
    limit: Duration,
    permits: Semaphore,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    process: Option<Arc<Process>>,
    /// Processes in a row that did not live long.
    short_lives: u32,
    not_before: Option<Instant>,
}

impl Plugin {
    /// A plug-in that is not started yet. `limit`: longest time of a call.
    pub(crate) fn new(name: String, program: Program, limit: Duration) -> Self {
        Self { name, program, limit, permits: Semaphore::new(CALLS), current: Mutex::default() }
    }

    /// The same under another name.
    pub(crate) fn named(mut self, name: String) -> Self {
        self.name = name;
        self
    }

    /// Calls a method that needs no cloud, with a limit of its own.
    pub(crate) async fn call(&self, method: &str, params: Value, limit: Duration) -> Result<Value, CallError> {
        CallLine { limit, ..self.line().await? }.call(method, params, None).await
    }

    /// A process that is ready for a call. Waits for its turn and for the pause after a fault, at most for the limit of
    /// a call.
    pub(crate) async fn line(&self) -> Result<CallLine<'_>, CallError> {
        let line = async {
            let permit = self.permits.acquire().await.map_err(|error| CallError::NotSent(error.to_string()))?;
            Ok(CallLine { process: self.process().await?, limit: self.limit, _permit: permit })
        };
        let limit = self.limit.as_secs_f64();
        let late = || CallError::NotSent(format!("the process did not take a call within {limit} seconds"));
        tokio::time::timeout(self.limit, line).await.unwrap_or_else(|_| Err(late()))
    }

    async fn process(&self) -> Result<Arc<Process>, CallError> {
        let mut current = self.current.lock().await;
        if let Some(process) = current.process.as_ref().filter(|process| process.is_usable()) {
            return Ok(Arc::clone(process));
        }
        if let Some(old) = current.process.take() {
            current.short_lives = if old.age() >= SOUND_AGE { 0 } else { current.short_lives.saturating_add(1) };
            let pause = pause(current.short_lives);
            tracing::warn!(plugin = self.name, pause = pause.as_secs_f64(), "starting the process of a plug-in again");
            current.not_before = Some(Instant::now() + pause);
        }
        if let Some(time) = current.not_before {
            tokio::time::sleep_until(time).await;
        }
        match Process::start(&self.program, &self.name) {
            Ok(process) => {
                let process = Arc::new(process);
                current.process = Some(Arc::clone(&process));
                current.not_before = None;
                Ok(process)
            }
            Err(error) => {
                current.short_lives = current.short_lives.saturating_add(1);
                current.not_before = Some(Instant::now() + pause(current.short_lives));
                Err(CallError::NotSent(format!("{} cannot be started: {error}", self.program)))
            }
        }
    }
}

/// The pause before a start after so many short lives.
fn pause(short_lives: u32) -> Duration {
    match short_lives.checked_sub(2) {
        None => Duration::ZERO,
        Some(doublings) => FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE),
    }
}

/// A process with room for a call.
pub(crate) struct CallLine<'a> {
    process: Arc<Process>,
    limit: Duration,
    _permit: SemaphorePermit<'a>,
}

impl CallLine<'_> {
    /// Calls a method. The token in the parameters is removed from what the process logs and from its
    /// errors.
    pub(crate) async fn call(
        self,
        method: &str,
        params: Value,
        token: Option<Secret<String>>,
    ) -> Result<Value, CallError> {
        let secrets: Vec<Secret<String>> = token.iter().cloned().collect();
        let result = self.process.call(method, params, token, self.limit).await;
        result.map_err(|error| match error {
            CallError::Reported(mut error) => {
                if let Some(Value::Str(message)) = error.as_map_mut().and_then(|error| error.get_mut("message")) {
                    *message = masked(message, &secrets);
                }
                CallError::Reported(error)
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let millis: Vec<u128> = [0, 1, 2, 3, 4, 10, 11, 1_000].map(|n| pause(n).as_millis()).to_vec();
        assert_eq!(millis, [0, 0, 100, 200, 400, 25_600, 30_000, 30_000]);
    }
}
