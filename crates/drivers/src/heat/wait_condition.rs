//! `OS::Heat::WaitCondition` and `AWS::CloudFormation::WaitCondition`: wait until a handle has received enough signals.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Observed, Operation, Received, Step, TypeRules};
use kiln_template::StackIdentity;
use kiln_value::{Class, Map, Value, number, text};

use super::signal_place::{self, Left};
use super::wait_handle::{FAILURE, Keys, SUCCESS, WaitHandle};
use crate::queue;

/// Maximum time between two looks at the signals, which end a wait when they arrive.
const LOOK: Duration = Duration::from_mins(1);

/// The entry of the data with the IDs of the signals at the place of the handle that are recorded.
const RECORDED: &str = "recorded";

/// The drivers of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitCondition {
    /// `OS::Heat::WaitCondition`.
    Heat,
    /// `AWS::CloudFormation::WaitCondition`.
    Cfn,
}

impl WaitCondition {
    /// The value of a property, which both types spell differently.
    fn property<'a>(self, facts: &'a Facts, heat: &str, cfn: &str) -> &'a Value {
        facts.property(if self == Self::Heat { heat } else { cfn })
    }

    fn count(self, facts: &Facts) -> usize {
        let count = self.property(facts, "count", "Count").as_i64();
        count.and_then(|count| usize::try_from(count).ok()).unwrap_or(1)
    }

    fn timeout(self, facts: &Facts) -> f64 {
        number::to_f64(self.property(facts, "timeout", "Timeout")).unwrap_or(0.0)
    }

    /// The handle of CFN names the stack that it belongs to.
    fn check_handle(self, facts: &Facts) -> Result<(), Failure> {
        if self == Self::Heat {
            return Ok(());
        }
        let url = text::str(self.property(facts, "handle", "Handle"));
        let handle = StackIdentity::from_arn_url(&url)
            .map_err(|error| Failure::other(error.class.clone(), error.to_string()))?;
        let invalid =
            |what: &str| Err(Failure::other(Class::ValueError, format!("WaitCondition invalid Handle {what}")));
        if handle.tenant != facts.stack.project_id {
            return invalid(&format!("tenant {}", handle.tenant));
        }
        if handle.stack_name != facts.stack.name {
            return invalid(&format!("stack {}", handle.stack_name));
        }
        if handle.stack_id != facts.stack.id {
            return invalid(&format!("stack {}", handle.stack_id));
        }
        Ok(())
    }

    /// The failure if what the handle names is none: the ID, or the resource of the stack that has it.
    fn no_handle(self, facts: &Facts) -> Failure {
        let given = text::str(self.property(facts, "handle", "Handle"));
        let text = match self {
            Self::Heat => {
                let name = facts.observed.first().map_or(&given, |other| &other.name);
                format!("{name} is not a valid wait condition handle.")
            }
            Self::Cfn => {
                let identity = StackIdentity::from_arn_url(&given).ok();
                let name = identity.as_ref().and_then(StackIdentity::resource_name).unwrap_or(&given);
                format!("WaitCondition invalid Handle {name}")
            }
        };
        Failure::other(Class::ValueError, text)
    }

    /// Whether the handle has received enough signals. `until`: seconds since 1970. New signals are recorded first.
    async fn look(self, cx: &Context<'_>, until: f64) -> Result<Step, Failure> {
        if let Some(step) = self.record(cx, until).await? {
            return Ok(step);
        }
        let signals = Signals::of(cx.facts).ok_or_else(|| self.no_handle(cx.facts))?;
        if signals.statuses().any(|status| status != Some(SUCCESS)) {
            return Err(Failure::other(Class::WaitConditionFailure, signals.reasons(FAILURE).join(";")));
        }
        let count = self.count(cx.facts);
        if signals.statuses().count() >= count {
            return Ok(Step::done());
        }
        match Duration::try_from_secs_f64(until - cx.now) {
            // The clock may be corrected while it waits.
            Ok(left) if !left.is_zero() => {
                let is_placed = placed(cx.facts).is_some();
                let after = if is_placed { queue::pace(cx.polls.saturating_add(1)) } else { LOOK };
                Ok(Step::wait(Value::Float(until), after.min(left)))
            }
            _ => {
                let reasons = signals.reasons(SUCCESS);
                let mut text = format!("{} of {count} received", reasons.len());
                if !reasons.is_empty() {
                    text = format!("{text} - {}", reasons.join(";"));
                }
                Err(Failure::other(Class::WaitConditionTimeout, text))
            }
        }
    }
}

impl WaitCondition {
    /// Records the signals that are left at the place of the handle, and those of a handle that needs none; `None`: there
    /// are no new ones. Metadata and IDs are stored together, so that no signal counts twice.
    async fn record(self, cx: &Context<'_>, until: f64) -> Result<Option<Step>, Failure> {
        let Some((handle, kind)) = handle(cx.facts) else { return Ok(None) };
        let mut metadata = handle.metadata.as_map().cloned().unwrap_or_default();
        if let Some(place) = placed(cx.facts) {
            let recorded = cx.facts.data.get(RECORDED).and_then(Value::as_list).unwrap_or_default();
            let known: HashSet<&str> = recorded.iter().filter_map(Value::as_str).collect();
            let signals = signal_place::signals(&Context { facts: &place, ..*cx }, &known).await?;
            if signals.is_empty() {
                return Ok(None);
            }
            let (mut step, mut recorded) = (Step::wait(Value::Float(until), Duration::ZERO), recorded.to_vec());
            let mut results = Vec::new();
            for Left { id, details } in signals {
                recorded.push(id.into());
                if let Some((with, result)) = kind.record(&metadata, &details.into())? {
                    results.push(Received::default().result(result));
                    metadata = with;
                }
            }
            // All are stored in one commit: only the last one needs the metadata.
            if let Some(last) = results.pop() {
                results.push(last.metadata(metadata));
            }
            for result in results {
                step = step.received(handle, result);
            }
            return Ok(Some(step.data(RECORDED, recorded)));
        }
        let properties = Facts { properties: handle.properties.clone(), ..Facts::default() };
        if kind.transport(&properties) != "NO_SIGNAL" || metadata.len() >= self.count(cx.facts) {
            return Ok(None);
        }
        // One at a time, as in Heat.
        let Some((metadata, result)) = kind.record(&metadata, &Value::Null)? else { return Ok(None) };
        let after = if metadata.len() < self.count(cx.facts) { queue::pace(0) } else { Duration::ZERO };
        let signal = Received::default().metadata(metadata).result(result);
        Ok(Some(Step::wait(Value::Float(until), after).received(handle, signal)))
    }

    /// A later condition with this handle waits for new signals.
    async fn forget(cx: &Context<'_>) -> Result<Step, Failure> {
        if let Some(place) = placed(cx.facts)
            && !signal_place::forget(&Context { facts: &place, ..*cx }).await?
        {
            return Ok(Step::wait(Value::Null, Duration::ZERO));
        }
        Ok(match handle(cx.facts) {
            Some((handle, _)) => Step::done().received(handle, Received::nothing().metadata(Map::new())),
            None => Step::done(),
        })
    }
}

/// The handle, if its signals are left at a place: what the functions of [`signal_place`] read.
fn placed(facts: &Facts) -> Option<Facts> {
    let (handle, _) = handle(facts)?;
    let (properties, data) = (handle.properties.clone(), handle.data.clone());
    let place = Facts { properties, data, stack: facts.stack.clone(), ..Facts::default() };
    signal_place::is_used(&place).then_some(place)
}

/// The signals that a handle has received.
struct Signals<'a> {
    keys: &'static Keys,
    metadata: Option<&'a Map>,
}

impl<'a> Signals<'a> {
    fn of(facts: &'a Facts) -> Option<Self> {
        let (handle, kind) = handle(facts)?;
        Some(Self { keys: kind.keys(), metadata: handle.metadata.as_map() })
    }

    fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.metadata.into_iter().flatten()
    }

    fn statuses(&self) -> impl Iterator<Item = Option<&'a str>> {
        let key = self.keys.status;
        self.entries().map(move |(_, entry)| entry.str_at(key))
    }

    fn reasons(&self, status: &str) -> Vec<String> {
        let given = self.entries().filter(|(_, entry)| entry.str_at(self.keys.status) == Some(status));
        given.map(|(_, entry)| text::str(entry.get(self.keys.reason).unwrap_or(&Value::Null))).collect()
    }
}

fn handle(facts: &Facts) -> Option<(&Observed, WaitHandle)> {
    facts.observed.iter().find_map(|sibling| Some((sibling, WaitHandle::of_type(&sibling.resource_type)?)))
}

impl TypeRules for WaitCondition {
    fn observes(&self, facts: &Facts) -> Vec<Value> {
        vec![self.property(facts, "handle", "Handle").clone()]
    }
}

#[async_trait]
impl Driver for WaitCondition {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                self.check_handle(cx.facts)?;
                self.look(cx, cx.now + self.timeout(cx.facts)).await
            }
            Operation::Update { .. } => self.look(cx, cx.now + self.timeout(cx.facts)).await,
            Operation::Delete => Self::forget(cx).await,
            _ => Ok(Step::done()),
        }
    }

    /// `state` is the time until which it waits.
    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if *operation == Operation::Delete {
            return Self::forget(cx).await;
        }
        self.look(cx, number::to_f64(state).unwrap_or(0.0)).await
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    /// For the places of handles.
    fn needs_cloud(&self) -> bool {
        *self == Self::Heat
    }

    fn has_object(&self) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let name = if *self == Self::Heat { "data" } else { "Data" };
        if !names.contains(&name) {
            return Ok(Map::new());
        }
        let data = match Signals::of(cx.facts) {
            Some(signals) => {
                let data = signals.keys.data;
                let entry = |(id, entry): (&String, &Value)| (id.clone(), entry.get(data).cloned().unwrap_or_default());
                text::json(&signals.entries().map(entry).collect::<Map>().into())
            }
            None => String::new(),
        };
        Ok(Map::from([(name.to_owned(), data.into())]))
    }
}
