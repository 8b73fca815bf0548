//! Holds an engine where a vector stops the workers of the reference, until the next request.
//!
//! The reference's worker takes messages: one lets it decide about a resource and process it. So after some messages, the
//! others are as they were. The gate holds the decisions about these: the property `value` of `OS::Heat::TestResource`
//! gets a look-up, which does not end. A decision that comes with the next request is a new one.
//!
//! Kiln has no such moment in the middle of a replacement, and none between the last update and the first delete: what
//! comes next is begun in the same commit. There the gate holds the last call instead, so that the next request comes
//! while it is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kiln_plan::ResourceTypes;
use kiln_resource::translation::{Rule, Translation};
use kiln_resource::{
    Action, Cloud, CloudRequest, CloudResponse, Context, Driver, Failure, Found, Operation, PropertyChange, Registry,
    Step, TypeRules,
};
use kiln_stack::{Clouds, NoCloud};
use kiln_store::Stack;
use kiln_value::{Map, Value};
use tokio::sync::Notify;

const TYPE: &str = "OS::Heat::TestResource";
const FINDER: &str = "vectors.gate";

/// What is held.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hold {
    /// The property `value` of the resources about which nothing is decided.
    pub(crate) undecided: BTreeMap<String, Value>,
    /// The call that does not return.
    pub(crate) call: Option<(String, Action)>,
}

impl Hold {
    /// Where a step of a vector stopped; `None` if it was complete.
    pub(crate) fn of(step: &Value, wanted: &Value) -> Option<Self> {
        let stack = wanted.get("stack")?;
        if step.get("run").is_none() || stack.str_at("status") != Some("IN_PROGRESS") {
            return None;
        }
        let events = wanted.get("events").and_then(Value::as_list).unwrap_or_default();
        let rows = wanted.get("resources").and_then(Value::as_list).unwrap_or_default();
        let is_decided = |name: &str| events.iter().any(|event| event.str_at("resource") == Some(name));
        let definitions = step.get("template").and_then(|template| template.get("resources")).and_then(Value::as_map);
        let undecided: BTreeMap<String, Value> = definitions
            .into_iter()
            .flatten()
            .filter(|(name, _)| !is_decided(name))
            .map(|(name, given)| {
                let value = given.get("properties").and_then(|properties| properties.get("value"));
                (name.clone(), value.cloned().unwrap_or_default())
            })
            .collect();
        let is_half_replaced = |row: &&Value| {
            row.str_at("name").is_some_and(is_decided) && row.get("physical_id").is_none_or(Value::is_null)
        };
        let call = if let Some(row) = rows.iter().find(is_half_replaced) {
            row.str_at("name").map(|name| (name.to_owned(), Action::Create))
        } else if undecided.is_empty() {
            let is_update = |event: &&Value| {
                event.str_at("action") == Some("UPDATE") && event.str_at("reason") == Some("state changed")
            };
            let updated = events.iter().rev().find(is_update).and_then(|event| event.str_at("resource"));
            updated.map(|name| (name.to_owned(), Action::Update))
        } else {
            None
        };
        Some(Self { undecided, call })
    }

    /// The undecided resource with this value, which may be the object of another one.
    fn with_value(&self, value: &str) -> Option<&str> {
        let found = self.undecided.iter().find(|(_, held)| match held.str_at("get_resource") {
            Some(name) => value.contains(&format!("-{name}-")),
            None => held.as_str() == Some(value),
        });
        found.map(|(name, _)| name.as_str())
    }

    /// The resources that a decision is asked for: the others wait for these, or for the call.
    fn asked(&self) -> impl Iterator<Item = &str> {
        let waits = |value: &Value| {
            value.str_at("get_resource").is_some_and(|name| {
                self.undecided.contains_key(name) || self.call.as_ref().is_some_and(|(called, _)| called == name)
            })
        };
        self.undecided.iter().filter(move |(_, value)| !waits(value)).map(|(name, _)| name.as_str())
    }
}

/// The gate: also the cloud of the stacks, which does the look-ups.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    returns: Notify,
}

#[derive(Default)]
struct State {
    hold: Hold,
    /// The resources whose decisions are held.
    asked: BTreeSet<String>,
    /// The call is being made.
    called: bool,
    /// The held call returns as soon as the engine works on the request after it.
    waits_for_work: bool,
}

impl Gate {
    /// From now on, this is held.
    pub(crate) fn close(&self, hold: Hold) {
        *self.state.lock().expect("whole") = State { hold, ..State::default() };
    }

    /// Whether the engine can do nothing more.
    pub(crate) fn is_reached(&self) -> bool {
        let state = self.state.lock().expect("whole");
        (state.called || state.hold.call.is_none()) && state.hold.asked().all(|name| state.asked.contains(name))
    }

    /// Before the next request: nothing more is held. `when_working`: the call returns when the engine works on the request,
    /// otherwise with [`Gate::end_call`].
    pub(crate) fn open(&self, when_working: bool) {
        let mut state = self.state.lock().expect("whole");
        (state.hold, state.waits_for_work) = (Hold::default(), when_working);
    }

    /// The call returns.
    pub(crate) fn end_call(&self) {
        self.returns.notify_waiters();
    }

    /// The engine works.
    fn seen(&self) {
        if std::mem::take(&mut self.state.lock().expect("whole").waits_for_work) {
            self.end_call();
        }
    }

    async fn call(&self, resource: &str, action: Action) {
        self.seen();
        let returns = self.returns.notified();
        {
            let mut state = self.state.lock().expect("whole");
            if state.hold.call.as_ref().is_none_or(|(held, of)| held != resource || *of != action) {
                return;
            }
            state.called = true;
        }
        returns.await;
    }
}

/// The shipped types, with a look-up of the value of test resources and with their calls behind the gate.
pub(crate) fn types(gate: &Arc<Gate>) -> ResourceTypes {
    let shipped = kiln_resource::shipped::types().expect("the definition files are sound").into_iter();
    let types = shipped.map(|mut kind| {
        if kind.name == TYPE {
            let rule = Rule::Find(FINDER.to_owned());
            kind.translation.push(Translation { path: vec!["value".to_owned()], rule, when: None });
        }
        kind
    });
    ResourceTypes::new(Registry::build(types, |kind| {
        let driver = kiln_drivers::driver_for(kind)?;
        let gated = || Arc::new(Gated { driver: Arc::clone(&driver), gate: Arc::clone(gate) }) as Arc<dyn Driver>;
        Some(if kind.name == TYPE { gated() } else { driver })
    }))
}

/// The clouds of all stacks are behind the gate.
pub(crate) struct GatedClouds(pub(crate) Arc<Gate>);

#[async_trait]
impl Clouds for GatedClouds {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::new(GatedCloud(Arc::clone(&self.0))))
    }
}

struct GatedCloud(Arc<Gate>);

#[async_trait]
impl Cloud for GatedCloud {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        NoCloud.call(request).await
    }

    async fn find(&self, _: &str, value: &str) -> Result<String, Failure> {
        self.0.seen();
        let is_held = {
            let mut state = self.0.state.lock().expect("whole");
            let asked = state.hold.with_value(value).map(str::to_owned);
            let is_held = asked.is_some();
            state.asked.extend(asked);
            is_held
        };
        if is_held {
            std::future::pending::<()>().await;
        }
        Ok(value.to_owned())
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        NoCloud.project_id().await
    }
}

/// A driver whose calls are behind the gate.
struct Gated {
    driver: Arc<dyn Driver>,
    gate: Arc<Gate>,
}

impl TypeRules for Gated {
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        self.driver.needs_replace(change)
    }
}

#[async_trait]
impl Driver for Gated {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        self.gate.call(&cx.facts.name, operation.action()).await;
        self.driver.start(cx, operation).await
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        self.driver.poll(cx, operation, state).await
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        self.driver.find(cx).await
    }

    /// For the look-up.
    fn needs_cloud(&self) -> bool {
        true
    }

    fn is_repeatable(&self) -> bool {
        self.driver.is_repeatable()
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        self.driver.attributes(cx, names).await
    }
}
