//! The limits of the size of a scaling group, and the time during which the size does not change again.

use jiff::Timestamp;
use kiln_resource::scaling::Adjustment;
use kiln_resource::{Facts, Rescale};
use kiln_value::{Diagnostic, Map, Value, number, text, value};

use super::scaling_group;
use crate::validation::failed;

/// The entries of a group's metadata, as in Heat.
const COOLDOWN_END: &str = "cooldown_end";
const IN_PROGRESS: &str = "scaling_in_progress";

/// The limits of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    min: Option<i64>,
    max: Option<i64>,
    desired: Option<i64>,
    cooldown: Option<i64>,
}

impl Limits {
    /// Reads the properties with these names: minimum, maximum, desired size, cooldown.
    pub(super) fn of(facts: &Facts, names: [&str; 4]) -> Self {
        let [min, max, desired, cooldown] = names.map(|name| facts.property(name).as_i64());
        Self { min, max, desired, cooldown }
    }

    /// Heat's checks; limits that are not known yet are not checked.
    pub(super) fn validate(self) -> Result<(), Diagnostic> {
        if self.min > self.max && self.max.is_some() {
            return Err(failed("MinSize can not be greater than MaxSize"));
        }
        if self.min.is_some_and(|min| min < 0) {
            return Err(failed("The size of AutoScalingGroup can not be less than zero"));
        }
        let Some(desired) = self.desired else { return Ok(()) };
        if self.min.is_some_and(|min| desired < min) || self.max.is_some_and(|max| desired > max) {
            return Err(failed("DesiredCapacity must be between MinSize and MaxSize"));
        }
        Ok(())
    }

    /// The size of a new group. As in Heat, a desired size of 0 counts as none.
    pub(super) fn first(self) -> i64 {
        self.desired.filter(|desired| *desired != 0).or(self.min).unwrap_or(0)
    }

    /// The size of a group after an update.
    pub(super) fn kept(self, current: i64) -> i64 {
        let wanted = self.desired.filter(|desired| *desired != 0).unwrap_or(current);
        self.adjusted(current, Adjustment::Exact, wanted, None)
    }

    /// The size after an adjustment.
    pub(super) fn adjusted(self, current: i64, adjustment: Adjustment, by: i64, min_step: Option<i64>) -> i64 {
        adjustment.new_size(current, by, min_step, self.min.unwrap_or(0), self.max.unwrap_or(i64::MAX))
    }

    /// The metadata after a create or update.
    pub(super) fn after_change(self, facts: &Facts, size: usize, now: f64) -> Map {
        ended(facts, Some((self.cooldown, &format!("ExactCapacity : {size}"))), now)
    }

    /// How a signal to a policy changes the group; `None`: not at all, because the group is not ready, its size would
    /// not change, or the last change was too short a time ago.
    pub(super) fn rescale(self, facts: &Facts, adjustment: &Value, now: f64) -> Option<Rescale> {
        if facts.state.1 != "COMPLETE" || matches!(facts.state.0.as_str(), "DELETE" | "SUSPEND") {
            return None;
        }
        let kind = Adjustment::named(adjustment.str_at("kind").unwrap_or_default());
        let by = adjustment.get("by").and_then(whole)?;
        let current = scaling_group::size(facts);
        let size = self.adjusted(current, kind, by, adjustment.get("min_step").and_then(whole));
        if size == current || is_cooling(facts, now) {
            return None;
        }
        Some(Rescale { step: scaling_group::resized(size), metadata: started(facts) })
    }

    /// The metadata after the change; the cooldown is that of the policy, if it has one.
    pub(super) fn rescaled(self, facts: &Facts, adjustment: &Value, succeeded: bool, now: f64) -> Map {
        let cooldown = adjustment.get("cooldown").and_then(whole).or(self.cooldown);
        let shown = |name: &str| adjustment.get(name).map(text::str).unwrap_or_default();
        let reason = format!("{} : {}", shown("kind"), shown("by"));
        ended(facts, succeeded.then_some((cooldown, &reason)), now)
    }
}

/// A number without its fraction.
fn whole(number: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    number.as_i64().or_else(|| number::to_f64(number).map(|number| number as i64))
}

/// Whether the size may not change yet.
fn is_cooling(facts: &Facts, now: f64) -> bool {
    facts.metadata.get(COOLDOWN_END).and_then(Value::as_map).and_then(|end| end.keys().next()).is_some_and(|end| {
        // Times in this form have the order of texts.
        isoformat(now) < *end
    })
}

/// The metadata while the size changes. It is only shown: the state of the nested stack tells whether it changes.
fn started(facts: &Facts) -> Map {
    let mut metadata = facts.metadata.as_map().cloned().unwrap_or_default();
    metadata.insert(IN_PROGRESS.to_owned(), true.into());
    metadata
}

/// The metadata after a change of the size, with the cooldown and its reason if the size has changed. The cooldown
/// never ends earlier than before.
fn ended(facts: &Facts, changed: Option<(Option<i64>, &str)>, now: f64) -> Map {
    let mut metadata = facts.metadata.as_map().cloned().unwrap_or_default();
    if let Some((cooldown, reason)) = changed {
        #[expect(clippy::cast_precision_loss, reason = "a number of seconds")]
        let end = isoformat(now + cooldown.unwrap_or(0).max(0) as f64);
        let before = metadata.get(COOLDOWN_END).and_then(Value::as_map).and_then(|end| end.keys().next().cloned());
        let end = before.map_or(end.clone(), |before| before.max(end));
        metadata.insert(COOLDOWN_END.to_owned(), value!({ end: reason }));
    }
    metadata.insert(IN_PROGRESS.to_owned(), false.into());
    metadata
}

/// A time in UTC as Python's `isoformat` shows it, without fractions if there are none.
fn isoformat(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    let time = Timestamp::from_microsecond((seconds * 1e6).round() as i64).unwrap_or(Timestamp::MAX);
    let fraction = if time.subsec_microsecond() == 0 { "" } else { ".%6f" };
    time.strftime(&format!("%Y-%m-%dT%H:%M:%S{fraction}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(min: i64, max: i64, desired: Option<i64>) -> Limits {
        Limits { min: Some(min), max: Some(max), desired, cooldown: Some(60) }
    }

    #[test]
    fn sizes_are_within_the_limits() {
        assert_eq!(
            (limits(1, 5, None).first(), limits(1, 5, Some(3)).first(), limits(1, 5, Some(0)).first()),
            (1, 3, 1)
        );
        assert_eq!((limits(1, 5, None).kept(9), limits(1, 5, None).kept(0), limits(1, 5, Some(2)).kept(4)), (5, 1, 2));
    }

    #[test]
    fn limits_must_fit() {
        let text = |limits: Limits| limits.validate().err().map(|error| error.text.clone());
        assert_eq!(text(limits(3, 2, None)).as_deref(), Some("MinSize can not be greater than MaxSize"));
        assert_eq!(
            text(limits(-1, 2, None)).as_deref(),
            Some("The size of AutoScalingGroup can not be less than zero")
        );
        let between = "DesiredCapacity must be between MinSize and MaxSize";
        assert_eq!(text(limits(1, 2, Some(3))).as_deref(), Some(between));
        assert_eq!(text(limits(1, 2, Some(0))).as_deref(), Some(between));
        assert_eq!(text(Limits { max: None, ..limits(3, 2, None) }), None);
    }

    #[test]
    fn a_signal_changes_the_size_if_it_may() {
        let member = |failed| kiln_resource::Member { failed, ..kiln_resource::Member::default() };
        let mut facts = Facts { state: ("UPDATE".to_owned(), "COMPLETE".to_owned()), ..Facts::default() };
        facts.nested.members = vec![member(true), member(false), member(false)];
        let by = |kind: &str, by: i64| value!({"kind": kind, "by": by, "min_step": null, "cooldown": 5});
        let step = |facts: &Facts, adjustment: &Value| {
            limits(1, 5, None).rescale(facts, adjustment, 1_800_000_000.0).map(|rescale| rescale.step)
        };
        assert_eq!(step(&facts, &by("change_in_capacity", 2)), Some(value!({"size": 4})));
        assert_eq!(step(&facts, &by("ExactCapacity", 9)), Some(value!({"size": 5})));
        assert_eq!(step(&facts, &by("percent_change_in_capacity", 10)), Some(value!({"size": 3})));
        assert_eq!(step(&facts, &value!({"kind": "change_in_capacity", "by": (-1.0)})), Some(value!({"size": 1})));
        assert_eq!(step(&facts, &by("exact_capacity", 2)), None);
        for state in [("UPDATE", "FAILED"), ("UPDATE", "IN_PROGRESS"), ("SUSPEND", "COMPLETE")] {
            let facts = Facts { state: (state.0.to_owned(), state.1.to_owned()), ..facts.clone() };
            assert_eq!(step(&facts, &by("change_in_capacity", 2)), None);
        }
        let after = limits(1, 5, None).rescaled(&facts, &by("change_in_capacity", 2), true, 1_800_000_000.0);
        assert_eq!(after.get("cooldown_end"), Some(&value!({"2027-01-15T08:00:05": "change_in_capacity : 2"})));
        facts.metadata = after.into();
        assert_eq!(step(&facts, &by("change_in_capacity", 2)), None);
        let failed = limits(1, 5, None).rescaled(&facts, &by("change_in_capacity", 3), false, 1_900_000_000.0);
        assert_eq!(Value::from(failed), facts.metadata);
    }

    #[test]
    fn a_cooldown_never_ends_earlier() {
        let mut facts = Facts::default();
        assert!(!is_cooling(&facts, 0.0));
        facts.metadata = ended(&facts, Some((Some(60), "ExactCapacity : 2")), 1_800_000_000.5).into();
        let end = value!({"2027-01-15T08:01:00.500000": "ExactCapacity : 2"});
        assert_eq!(facts.metadata, value!({"cooldown_end": end, "scaling_in_progress": false}));
        assert!(is_cooling(&facts, 1_800_000_060.0) && !is_cooling(&facts, 1_800_000_060.5));
        facts.metadata = ended(&facts, Some((None, "x")), 1_800_000_010.0).into();
        assert_eq!(facts.metadata.get("cooldown_end"), Some(&value!({"2027-01-15T08:01:00.500000": "x"})));
        facts.metadata = ended(&facts, Some((None, "y")), 1_800_000_100.0).into();
        assert_eq!(facts.metadata.get("cooldown_end"), Some(&value!({"2027-01-15T08:01:40": "y"})));
        let before = facts.metadata.clone();
        facts.metadata = started(&facts).into();
        assert_eq!(facts.metadata.get("scaling_in_progress"), Some(&true.into()));
        assert_eq!(Value::from(ended(&facts, None, 1_900_000_000.0)), before);
    }
}
