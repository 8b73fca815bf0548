//! A plug-in: its program, its processes, and starts after faults.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_value::{Secret, Value};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::call::{CallError, masked};
use crate::process::Process;
use crate::program::Program;

/// Most calls of a plug-in at the same time.
const CALLS: usize = 32;
/// Most of these for a project, so that calls that hang leave room for those of others.
const CALLS_OF_PROJECT: usize = 16;
/// Most processes of a plug-in at the same time. A program may answer one call after the other, so calls of different
/// projects have different processes as long as there are enough.
const PROCESSES: usize = 4;
/// The pause before the second start in a row; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before a start.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A process that lived so long is started again without a pause.
const SOUND_AGE: Duration = Duration::from_mins(1);

/// A plug-in. It runs a few processes that get calls; the second one is started when a call of another project is in
/// progress in the first one.
pub struct Plugin {
    pub(crate) name: String,
    program: Program,
    limit: Duration,
    processes: [Mutex<Current>; PROCESSES],
    seats: Lock<Seats>,
    /// A call has ended.
    free: Notify,
}

/// The calls in progress.
#[derive(Default)]
struct Seats {
    /// Of each process, the number of calls by project.
    calls: [HashMap<String, usize>; PROCESSES],
}

impl Seats {
    /// The process for a call of a project: where all calls are of the project, one without calls, or the one with the
    /// fewest. `None`: it must wait.
    fn take(&mut self, project: &str) -> Option<usize> {
        let of_project = |calls: &HashMap<String, usize>| calls.get(project).copied().unwrap_or(0);
        let count = |calls: &HashMap<String, usize>| calls.values().sum::<usize>();
        if self.calls.iter().map(of_project).sum::<usize>() >= CALLS_OF_PROJECT
            || self.calls.iter().map(count).sum::<usize>() >= CALLS
        {
            return None;
        }
        let order = |calls: &HashMap<String, usize>| {
            let (own, all) = (of_project(calls), count(calls));
            (all > own, own == 0, all)
        };
        let (process, calls) = self.calls.iter_mut().enumerate().min_by_key(|(_, calls)| order(calls))?;
        *calls.entry(project.to_owned()).or_default() += 1;
        Some(process)
    }

    fn release(&mut self, process: usize, project: &str) {
        let Some(calls) = self.calls.get_mut(process) else { return };
        if let Some(count) = calls.get_mut(project) {
            *count -= 1;
            if *count == 0 {
                calls.remove(project);
            }
        }
    }
}

/// The place of a call in a process, released on drop.
struct Seat<'a> {
    plugin: &'a Plugin,
    process: usize,
    project: String,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.plugin.seats().release(self.process, &self.project);
        self.plugin.free.notify_waiters();
    }
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
        let (processes, seats) = (<[Mutex<Current>; PROCESSES]>::default(), Lock::default());
        Self { name, program, limit, processes, seats, free: Notify::new() }
    }

    /// The same under another name.
    pub(crate) fn named(mut self, name: String) -> Self {
        self.name = name;
        self
    }

    /// Calls a method that needs no cloud, with a limit of its own.
    pub(crate) async fn call(&self, method: &str, params: Value, limit: Duration) -> Result<Value, CallError> {
        CallLine { limit, ..self.line("").await? }.call(method, params, None).await
    }

    /// A process that is ready for a call of a project. Waits for its turn and for the pause after a fault, at most for the
    /// limit of a call.
    pub(crate) async fn line(&self, project: &str) -> Result<CallLine<'_>, CallError> {
        let line = async {
            let seat = self.seat(project).await;
            Ok(CallLine { process: self.process(seat.process).await?, limit: self.limit, _seat: seat })
        };
        let limit = self.limit.as_secs_f64();
        let late = || CallError::NotSent(format!("the process did not take a call within {limit} seconds"));
        tokio::time::timeout(self.limit, line).await.unwrap_or_else(|_| Err(late()))
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn seat(&self, project: &str) -> Seat<'_> {
        loop {
            let mut freed = std::pin::pin!(self.free.notified());
            // From here on no notification is missed.
            freed.as_mut().enable();
            let taken = self.seats().take(project);
            if let Some(process) = taken {
                return Seat { plugin: self, process, project: project.to_owned() };
            }
            freed.await;
        }
    }

    async fn process(&self, number: usize) -> Result<Arc<Process>, CallError> {
        let current = self.processes.get(number).ok_or_else(|| CallError::NotSent("no such process".to_owned()))?;
        let mut current = current.lock().await;
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
    _seat: Seat<'a>,
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
