//! `OS::Heat::ScalingPolicy`: a signal changes the size of a scaling group (docs/heat-behaviour.md §15.3).

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Received, ScaleRequest, Step, TypeRules};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use super::signal_url::{SignedFor, native, signed};
use super::stack_user;

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

/// The entry of the data with the signed URL.
const SIGNED_URL: &str = "ec2_signed_url";

impl ScalingPolicy {
    /// The signed URL, which never expires.
    async fn alarm_url(cx: &Context<'_>) -> Result<String, Failure> {
        // Fails with a clear message if stack users are not configured.
        stack_user::domain_id(cx).await?;
        signed(cx.facts, &cx.cloud.signal_endpoints().await?, SignedFor::Signal, None)
    }

    /// The end of a create: the URL is what `get_resource` gives for a policy of CFN, if there is a CFN API.
    async fn created(&self, cx: &Context<'_>) -> Result<Step, Failure> {
        let step = Step::done();
        if self.0.group != CFN.group || cx.cloud.signal_endpoints().await?.cfn.is_none() {
            return Ok(step);
        }
        Ok(step.data(SIGNED_URL, Self::alarm_url(cx).await?))
    }
}

impl TypeRules for ScalingPolicy {
    fn reference(&self, facts: &Facts) -> Value {
        let id = if self.0.group == CFN.group { facts.data.get(SIGNED_URL).cloned() } else { None };
        let id = id.or_else(|| facts.physical_id.as_deref().map(Value::from)).filter(|_| facts.physical_id.is_some());
        id.unwrap_or_else(|| facts.name.as_str().into())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let Words { kind, min_step, percent, .. } = self.0;
        let is_percent = facts.property(kind).as_str().is_none_or(|kind| kind == percent);
        if is_percent || facts.property(min_step).is_null() {
            return Ok(());
        }
        let text = format!("{min_step} property should only be specified for {kind} with value {percent}.");
        Err(Diagnostic::new(Class::ResourcePropertyValueDependency, text))
    }
}

#[async_trait]
impl Driver for ScalingPolicy {
    /// Without a domain of stack users, a policy has no user and no signed URL; signals of the project's users reach
    /// it.
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create if cx.cloud.user_domain().await?.is_some() => stack_user::start(cx).await,
            Operation::Create => Ok(Step::done().id(&cx.facts.physical_name)),
            _ if stack_user::text(cx.facts, stack_user::PASSWORD).is_none() => Ok(Step::done()),
            Operation::Delete => stack_user::delete(cx).await.map(|()| Step::done()),
            Operation::Suspend => stack_user::enable(cx, false).await.map(|()| Step::done()),
            Operation::Resume => stack_user::enable(cx, true).await.map(|()| Step::done()),
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if *operation != Operation::Create {
            return Ok(Step::done());
        }
        match stack_user::poll(cx, state, true).await? {
            Some(step) => Ok(step),
            None => self.created(cx).await,
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        match cx.cloud.user_domain().await? {
            Some(_) => stack_user::find(cx).await,
            None => Ok(Found::NotMade),
        }
    }

    fn receives_with_cloud(&self) -> bool {
        false
    }

    /// Scales for an alarm in any state: which transitions of the alarm send signals is decided by the alarm.
    async fn receive(&self, cx: &Context<'_>, _: &Value) -> Result<Received, Failure> {
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

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let mut found = Map::new();
        for name in names.iter().filter(|_| cx.facts.physical_id.is_some()) {
            let value = match *name {
                "alarm_url" | "AlarmUrl" => Self::alarm_url(cx).await?,
                "signal_url" => native(cx.facts, &cx.cloud.signal_endpoints().await?, &cx.facts.stack.project_id)?,
                _ => continue,
            };
            found.insert((*name).to_owned(), value.into());
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_step_is_for_percentages() {
        let validate = |kind: &str, step: Value| {
            let properties = value!({"adjustment_type": kind, "min_adjustment_step": step});
            let facts = Facts { properties: properties.as_map().unwrap().clone(), ..Facts::default() };
            ScalingPolicy(HOT).validate(&facts).err().map(|error| error.text.clone())
        };
        assert_eq!(validate("percent_change_in_capacity", 2.into()), None);
        assert_eq!(validate("exact_capacity", Value::Null), None);
        let text = "min_adjustment_step property should only be specified for adjustment_type with value \
                    percent_change_in_capacity.";
        assert_eq!(validate("exact_capacity", 2.into()).as_deref(), Some(text));
    }
}
