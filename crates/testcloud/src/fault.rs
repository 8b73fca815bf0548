//! Injected faults: the calls that they affect, and their effects.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::request::{Service, ServiceCall};

/// A fault.
///
/// As JSON, for `POST /faults`: `{"service": "compute", "method": "POST", "path": "/servers", "when": {"nth": 2},
/// "action": {"status": 503}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The service; any if `None`.
    #[serde(default)]
    pub service: Option<Service>,
    /// The HTTP method; any if `None`.
    #[serde(default)]
    pub method: Option<String>,
    /// The path without the version: a prefix (`/servers`); with `*` (any text), a pattern for the whole path
    /// (`/servers/*/action`); with `$` at its end, the exact path (`/servers$`).
    #[serde(default)]
    pub path: String,
    /// Selects among the matching calls.
    #[serde(default)]
    pub when: When,
    /// The effect.
    pub action: Action,
}

/// Selects among the calls that a [`Fault`] matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Every call.
    #[default]
    Always,
    /// Only the n-th call, from 1.
    Nth(u64),
    /// The first n calls.
    Count(u64),
    /// Each call with this probability (0 to 1), determined by the seed of the cloud.
    Probability(f64),
}

/// The effect of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Return this status without executing the call.
    Status(u16),
    /// Execute the call, then return this status, like a gateway after a timeout.
    StatusAfter(u16),
    /// Execute the call, then close the connection without a response.
    LostReply,
    /// Do not execute the call and never respond.
    Hang,
    /// Execute the call and never respond.
    Stall,
    /// Execute the call a second time before it, as if somebody else had sent the same request.
    Twin,
    /// Execute the call with this delay, whether or not the caller still waits.
    Delay(#[serde(with = "seconds")] Duration),
    /// Accept the server, volume or image; its build fails.
    FailBuild,
    /// Accept the server, volume or image; its build takes this much longer.
    SlowBuild(#[serde(with = "seconds")] Duration),
    /// Accept the server, volume or image; its build never ends.
    EndlessBuild,
    /// Execute the call, and omit the object from lists for this time: reads that lag behind writes.
    Lag(#[serde(with = "seconds")] Duration),
}

/// Durations in JSON are seconds with a fraction.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(value.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Fault {
    /// A fault for all calls of a service with `method` and `path`.
    pub fn new(service: Service, method: &str, path: &str, action: Action) -> Self {
        Fault {
            service: Some(service),
            method: Some(method.to_owned()),
            path: path.to_owned(),
            when: When::Always,
            action,
        }
    }

    /// Restricts the fault to some of the calls.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    fn fits(&self, request: &ServiceCall, path: &str) -> bool {
        self.service.is_none_or(|service| service == request.service)
            && self.method.as_ref().is_none_or(|method| method.eq_ignore_ascii_case(&request.method))
            && match self.path.strip_suffix('$') {
                Some(whole) => glob(whole, path),
                None if self.path.contains('*') => glob(&self.path, path),
                None => path.starts_with(&self.path),
            }
    }
}

/// Longer than any test.
const ENDLESS: Duration = Duration::from_hours(100_000);

/// The combined effect of all faults on a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultEffect {
    pub(crate) status: Option<u16>,
    pub(crate) status_after: Option<u16>,
    pub(crate) lost: bool,
    pub(crate) twins: u32,
    pub(crate) hangs: bool,
    pub(crate) stalls: bool,
    pub(crate) lag: Duration,
    pub(crate) delay: Duration,
    pub(crate) build: BuildFault,
}

/// The effect of faults on a build.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BuildFault {
    pub(crate) fails: bool,
    pub(crate) slower: Duration,
}

/// The faults of a cloud.
#[derive(Debug)]
pub struct Faults(Mutex<State>);

#[derive(Debug)]
struct State {
    faults: Vec<(Fault, u64)>,
    chance: StdRng,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Faults(Mutex::new(State { faults: Vec::new(), chance: StdRng::seed_from_u64(seed) }))
    }

    /// Adds a fault. Its counter starts at 0.
    pub fn add(&self, fault: Fault) {
        self.state().faults.push((fault, 0));
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.state().faults.clear();
    }

    /// The faults with the number of matching calls so far.
    pub fn list(&self) -> Vec<(Fault, u64)> {
        self.state().faults.clone()
    }

    pub(crate) fn judge(&self, request: &ServiceCall) -> FaultEffect {
        let mut verdict = FaultEffect::default();
        let path = request.local_path();
        let State { faults, chance } = &mut *self.state();
        for (fault, met) in faults.iter_mut().filter(|(fault, _)| fault.fits(request, &path)) {
            *met += 1;
            let hits = match fault.when {
                When::Always => true,
                When::Nth(nth) => *met == nth,
                When::Count(count) => *met <= count,
                When::Probability(probability) => chance.random_bool(probability.clamp(0.0, 1.0)),
            };
            if hits {
                match fault.action {
                    Action::Status(status) => verdict.status = Some(status),
                    Action::StatusAfter(status) => verdict.status_after = Some(status),
                    Action::LostReply => verdict.lost = true,
                    Action::Twin => verdict.twins += 1,
                    Action::Hang => verdict.hangs = true,
                    Action::Stall => verdict.stalls = true,
                    Action::Delay(delay) => verdict.delay += delay,
                    Action::FailBuild => verdict.build.fails = true,
                    Action::SlowBuild(slower) => verdict.build.slower += slower,
                    Action::EndlessBuild => verdict.build.slower += ENDLESS,
                    Action::Lag(lag) => verdict.lag = verdict.lag.max(lag),
                }
            }
        }
        verdict
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `text` matches `pattern`, in which `*` matches any text.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).filter(|at| tail.is_char_boundary(*at)).any(|at| glob(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(glob("/servers/*/action", "/servers/1/action"));
        assert!(!glob("/servers/*/action", "/servers/1"));
        assert!(glob("*", ""));
    }

    #[test]
    fn json_form() {
        let text = r#"{"service": "compute", "path": "/servers", "when": {"nth": 2}, "action": {"delay": 0.5}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        assert_eq!(fault.when, When::Nth(2));
        assert_eq!(fault.action, Action::Delay(Duration::from_millis(500)));
        let text = r#"{"when": "always", "action": "lost_reply"}"#;
        assert_eq!(serde_json::from_str::<Fault>(text).unwrap().action, Action::LostReply);
    }
}
