//! Rolling updates of groups: a series of nested templates, each of which changes some of the members.

use std::time::Duration;

use kiln_resource::Facts;
use kiln_resource::scaling::{Batch, Rolling};
use kiln_value::{Class, Diagnostic, Map, Value, number, value};

/// How the members change in batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Policy {
    /// Maximum number of members in a batch.
    pub(super) batch_size: u64,
    /// Minimum number of members that stay as they are while others change.
    pub(super) min_in_service: u64,
    /// Time between two batches.
    pub(super) pause: Duration,
}

/// A step of a rolling update.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// The batch.
    pub(super) batch: Batch,
    /// The state after it, for [`kiln_resource::Nested::then`]; `None`: this is the last batch.
    pub(super) then: Option<Value>,
}

impl Policy {
    /// Reads a policy in the words of HOT.
    pub(super) fn of(settings: &Map) -> Self {
        let count = |name: &str| settings.get(name).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
        let pause = settings.get("pause_time").and_then(number::to_f64).unwrap_or_default();
        Self {
            batch_size: count("max_batch_size").unwrap_or(1).max(1),
            min_in_service: count("min_in_service").unwrap_or(0),
            pause: Duration::try_from_secs_f64(pause).unwrap_or(Duration::MAX),
        }
    }

    /// Reads a policy in the words of CFN.
    ///
    /// # Errors
    /// `ValueError` for a pause that is no duration.
    pub(super) fn of_cfn(settings: &Map) -> Result<Self, Diagnostic> {
        let count = |name: &str| settings.get(name).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
        let pause = settings.get("PauseTime").and_then(Value::as_str).map(duration).transpose()?;
        Ok(Self {
            batch_size: count("MaxBatchSize").unwrap_or(1).max(1),
            min_in_service: count("MinInstancesInService").unwrap_or(0),
            pause: Duration::from_secs(pause.unwrap_or(0)),
        })
    }

    /// The first step; `None` if nothing has to change.
    ///
    /// # Errors
    /// Heat's text, if the pauses do not fit into the timeout of the stack.
    pub(super) fn first(
        self,
        facts: &Facts,
        rolling: Rolling,
        after: fn(Rolling, Batch) -> Rolling,
    ) -> Result<Option<Step>, Diagnostic> {
        let pauses = rolling.steps(self.batch_size, self.min_in_service, after).saturating_sub(1);
        let pauses = self.pause.saturating_mul(u32::try_from(pauses).unwrap_or(u32::MAX));
        if !self.pause.is_zero() && facts.nested.action_timeout.is_some_and(|timeout| pauses >= timeout) {
            let text = "The current update policy will result in stack update timeout.";
            return Err(Diagnostic::new(Class::ValueError, text));
        }
        Ok(self.step(rolling, after))
    }

    /// The step after those whose state is `rolling`.
    pub(super) fn step(self, rolling: Rolling, after: fn(Rolling, Batch) -> Rolling) -> Option<Step> {
        if !rolling.needs_update() {
            return None;
        }
        let batch = rolling.next_batch(self.batch_size, self.min_in_service)?;
        let next = after(rolling, batch);
        let then = (next.needs_update() && next != rolling).then(|| stored(next));
        Some(Step { batch, then })
    }
}

/// The stored form of the progress.
fn stored(rolling: Rolling) -> Value {
    let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let Rolling { target, current, up_to_date } = rolling;
    value!({"target": (number(target)), "current": (number(current)), "up_to_date": (number(up_to_date))})
}

/// Reads the stored form of the progress; `None` at the beginning.
pub(super) fn progress(step: &Value) -> Option<Rolling> {
    let number = |name: &str| step.get(name).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
    Some(Rolling { target: number("target")?, current: number("current")?, up_to_date: number("up_to_date")? })
}

/// The current members in the order in which they are replaced or removed, and the next definitions of all members:
/// those that are kept, `changes` of them with a new definition, and new ones. `customized` is the new definition of a
/// member.
pub(super) fn definitions(
    old: &[(String, Value)],
    batch: Batch,
    mut new_name: impl FnMut() -> String,
    customized: impl Fn(&str) -> Value,
) -> Vec<(String, Value)> {
    let size = usize::try_from(batch.size).unwrap_or(usize::MAX);
    let kept = old.get(old.len().saturating_sub(size)..).unwrap_or_default();
    let created = size.saturating_sub(kept.len());
    let mut to_replace = usize::try_from(batch.changes).unwrap_or(usize::MAX).saturating_sub(created);
    let mut members = Vec::with_capacity(size);
    for (name, definition) in kept {
        let new = (to_replace > 0).then(|| customized(name)).filter(|new| new != definition);
        if new.is_some() {
            to_replace -= 1;
        }
        members.push((name.clone(), new.unwrap_or_else(|| definition.clone())));
    }
    for _ in 0..created {
        let name = new_name();
        let definition = customized(&name);
        members.push((name, definition));
    }
    members
}

/// The seconds of a duration `PT12H30M5S`, each part optional; days and larger units are not supported.
///
/// Errors: `ValueError`.
pub fn duration(text: &str) -> Result<u64, Diagnostic> {
    let unknown = || {
        let message = "Only ISO 8601 duration format of the form PT#H#M#S is supported.";
        Diagnostic::new(Class::ValueError, message)
    };
    let mut rest = text.strip_prefix("PT").ok_or_else(unknown)?;
    let mut seconds = 0_u64;
    for (unit, factor) in [('H', 3600), ('M', 60), ('S', 1)] {
        let Some((digits, after)) = rest.split_once(unit) else { continue };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(unknown());
        }
        let part = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
        seconds = part.and_then(|part| seconds.checked_add(part)).ok_or_else(unknown)?;
        rest = after;
    }
    if rest.is_empty() { Ok(seconds) } else { Err(unknown()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("PT12H30M5S"), Ok(45_005));
        for wrong in ["P1D", "PT5S1M", "PT1.5S", "PTS", "PT99999999999999999999S", "PT9999999999999999H"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    fn policy(batch_size: u64, pause: u64) -> Policy {
        Policy { batch_size, min_in_service: 0, pause: Duration::from_secs(pause) }
    }

    #[test]
    fn the_pauses_must_fit_into_the_timeout() {
        let facts = |minutes| {
            let mut facts = Facts::default();
            facts.nested.action_timeout = Some(Duration::from_mins(minutes));
            facts
        };
        let rolling = Rolling { target: 4, current: 4, up_to_date: 0 };
        let first = |minutes, batch, pause| policy(batch, pause).first(&facts(minutes), rolling, Rolling::after);
        let text = "The current update policy will result in stack update timeout.";
        let error = first(3, 1, 60).unwrap_err();
        assert_eq!((&error.class, error.text.as_str()), (&Class::ValueError, text));
        assert!(first(4, 1, 60).is_ok() && first(3, 2, 60).is_ok() && first(1, 4, 1_000).is_ok());
    }

    #[test]
    fn members_are_replaced_then_created() {
        let old: Vec<(String, Value)> = ["a", "b", "c"].map(|name| (name.to_owned(), value!({"v": 1}))).into();
        let run = |size, changes| {
            let mut names = ["x", "y"].iter().map(|name| (*name).to_owned());
            let made = definitions(&old, Batch { size, changes }, || names.next().unwrap(), |_| value!({"v": 2}));
            made.into_iter()
                .map(|(name, d)| format!("{name}{}", d.get("v").unwrap().as_i64().unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(3, 1), ["a2", "b1", "c1"]);
        assert_eq!(run(4, 2), ["a2", "b1", "c1", "x2"]);
        assert_eq!(run(2, 0), ["b1", "c1"]);
        assert_eq!(run(5, 1), ["a1", "b1", "c1", "x2", "y2"]);
        assert!(run(0, 0).is_empty());
    }
}
