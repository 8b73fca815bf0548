//! `OS::Heat::ScalingPolicy`: a signal changes the size of a scaling group (docs/heat-behaviour.md §15.3).

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Received, ScaleRequest, Step};
use kiln_value::{Diagnostic, Map, Value, value};

/// The words of a type for the same properties.
#[derive(Clone, Copy)]
pub(super) struct Words {
    group: &'static str,
    adjustment: &'static str,
    kind: &'static str,
    percent: &'static str,
    min_step: &'static str,
    cooldown: &'static str,
}

/// Those of `OS::Heat::ScalingPolicy`.
pub(super) const HOT: Words = Words {
    group: "auto_scaling_group_id",
    adjustment: "scaling_adjustment",
    kind: "adjustment_type",
    percent: "percent_change_in_capacity",
    min_step: "min_adjustment_step",
    cooldown: "cooldown",
};

/// Those of `AWS::AutoScaling::ScalingPolicy`.
pub(super) const CFN: Words = Words {
    group: "AutoScalingGroupName",
    adjustment: "ScalingAdjustment",
    kind: "AdjustmentType",
    percent: "PercentChangeInCapacity",
    min_step: "MinAdjustmentStep",
    cooldown: "Cooldown",
};

/// The driver of a type with these words.
pub(super) struct ScalingPolicy(pub(super) Words);

/// Whether a signal is about an alarm that has gone off; one without a state is.
fn is_alarm(message: &Value) -> bool {
    let state = message.get("current").or_else(|| message.get("state"));
    state.is_none_or(|state| state.as_str().is_some_and(|state| state.eq_ignore_ascii_case("alarm")))
}

#[async_trait]
impl Driver for ScalingPolicy {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        Ok(match operation {
            Operation::Create => Step::done().id(&cx.facts.physical_name),
            _ => Step::done(),
        })
    }

    /// Nothing is made outside.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        if !is_alarm(message) {
            return Ok(Received::nothing());
        }
        let (facts, words) = (cx.facts, self.0);
        let adjustment = value!({
            "by": (facts.property(words.adjustment).clone()),
            "kind": (facts.property(words.kind).clone()),
            "min_step": (facts.property(words.min_step).clone()),
            "cooldown": (facts.property(words.cooldown).clone())
        });
        let group = facts.property(words.group).clone();
        Ok(Received { scale: Some(ScaleRequest { group, adjustment }), ..Received::default() })
    }

    async fn attributes(&self, _: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        // They need stack users, whose keys sign the URL.
        match names.iter().find(|name| matches!(**name, "alarm_url" | "signal_url" | "AlarmUrl")) {
            Some(name) => {
                Err(Failure::other("NotSupported", format!("Attribute {name} is not implemented by Kiln yet.")))
            }
            None => Ok(Map::new()),
        }
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let Words { kind, min_step, percent, .. } = self.0;
        let is_percent = facts.property(kind).as_str().is_none_or(|kind| kind == percent);
        if is_percent || facts.property(min_step).is_null() {
            return Ok(());
        }
        let text = format!("{min_step} property should only be specified for {kind} with value {percent}.");
        Err(Diagnostic::new("ResourcePropertyValueDependency", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_alarms_scale() {
        for (message, alarm) in [
            (Value::Null, true),
            (value!({}), true),
            (value!({"current": "ALARM"}), true),
            (value!({"current": "ok", "state": "alarm"}), false),
            (value!({"state": "insufficient data"}), false),
        ] {
            assert_eq!(is_alarm(&message), alarm, "{message:?}");
        }
    }

    #[test]
    fn a_minimum_step_is_for_percentages() {
        let validate = |kind: &str, step: Value| {
            let properties = value!({"adjustment_type": kind, "min_adjustment_step": step});
            let facts = Facts { properties: properties.as_map().unwrap().clone(), ..Facts::default() };
            ScalingPolicy(HOT).validate(&facts).err().map(|error| error.message.clone())
        };
        assert_eq!(validate("percent_change_in_capacity", 2.into()), None);
        assert_eq!(validate("exact_capacity", Value::Null), None);
        let text = "min_adjustment_step property should only be specified for adjustment_type with value \
                    percent_change_in_capacity.";
        assert_eq!(validate("exact_capacity", 2.into()).as_deref(), Some(text));
    }
}
