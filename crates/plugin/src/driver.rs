//! The driver of a type that a plug-in implements.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    Context, Driver, Facts, Failure, FailureKind, Found, Operation, Progress, Received, Step, TypeRules,
};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use crate::access::call_with_access;
use crate::answer::{self, RESTORED, is_reserved};
use crate::call::CallError;
use crate::plugin::Plugin;

/// The methods of a type, each with whether every type needs it.
pub(crate) const METHODS: [(&str, bool); 15] = [
    ("create", true),
    ("delete", true),
    ("poll", false),
    ("find", false),
    ("update", false),
    ("attributes", false),
    ("check", false),
    ("suspend", false),
    ("resume", false),
    ("live", false),
    ("validate", false),
    ("needs_replace_failed", false),
    ("signal", false),
    ("snapshot", false),
    ("delete_snapshot", false),
];

/// Calls the methods of one type.
pub(crate) struct PluginDriver {
    plugin: Arc<Plugin>,
    type_name: String,
    methods: BTreeSet<String>,
}

impl PluginDriver {
    pub(crate) fn new(plugin: Arc<Plugin>, type_name: String, methods: BTreeSet<String>) -> Self {
        Self { plugin, type_name, methods }
    }

    fn has(&self, method: &str) -> bool {
        self.methods.contains(method)
    }

    /// Calls a method with the resource, the credentials and these parameters.
    async fn call(&self, cx: &Context<'_>, method: &str, more: Map) -> Result<Value, Failure> {
        let mut params = self.params(cx);
        params.extend(more);
        call_with_access(&self.plugin, &cx.facts.stack.project_id, cx.cloud, method, &params).await
    }

    fn params(&self, cx: &Context<'_>) -> Map {
        let facts = cx.facts;
        let id = facts.physical_id.as_deref().map_or(Value::Null, Value::from);
        let resource = value!({
            "id": id,
            "name": (facts.name.as_str()),
            "physical_name": (facts.physical_name.as_str()),
            "properties": (facts.properties.clone()),
            "given": (facts.given.iter().collect::<Value>()),
            "metadata": (&facts.metadata),
            "data": (own_data(&facts.data)),
        });
        entries(value!({
            "type": (self.type_name.as_str()),
            "mark": (facts.attempt.token.as_str()),
            "resource": resource,
            "stack": (stack_value(facts)),
        }))
    }

    /// Calls a method whose result is a step.
    async fn step(&self, cx: &Context<'_>, method: &str, operation: &Operation, more: Map) -> Result<Step, Failure> {
        let mut result = self.call(cx, method, more).await?;
        let restored = match operation {
            Operation::Snapshot => answer::take_restored(&mut result).map_err(|why| self.wrong(method, why))?,
            _ => None,
        };
        let mut step = answer::step(&result).map_err(|why| self.wrong(method, why))?;
        let is_done = step.progress == Progress::Done;
        if *operation == Operation::Create && is_done && step.physical_id.is_none() && cx.facts.physical_id.is_none() {
            return Err(self.wrong(method, "the object has no id at the end of its create".to_owned()));
        }
        if step.progress == Progress::Replace && !matches!(operation, Operation::Update { .. }) {
            return Err(self.wrong(method, "only an update can request a replacement".to_owned()));
        }
        if matches!(step.progress, Progress::Wait { .. }) && !self.has("poll") {
            return Err(self.wrong(method, "it asks to wait, but the type has no method poll".to_owned()));
        }
        match (operation, restored) {
            (Operation::Snapshot, Some(_)) if !is_done => {
                return Err(self.wrong(method, "restored: the snapshot is not complete".to_owned()));
            }
            // Null removes what an earlier snapshot has left.
            (Operation::Snapshot, restored) if is_done => {
                step.data.insert(RESTORED.to_owned(), restored.map_or(Value::Null, Value::from));
            }
            _ => {}
        }
        Ok(step)
    }

    /// The failure for a result of the wrong form. The method may have had an effect.
    fn wrong(&self, method: &str, why: String) -> Failure {
        CallError::Broken(why).failure(&self.plugin.name, method)
    }
}

/// The data of a resource without the entries of the engine.
fn own_data(data: &Map) -> Map {
    data.iter().filter(|(key, _)| !is_reserved(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The stack of a resource as a plug-in gets it.
pub(crate) fn stack_value(facts: &Facts) -> Value {
    let stack = &facts.stack;
    value!({
        "id": (stack.id.as_str()), "name": (stack.name.as_str()), "project_id": (stack.project_id.as_str()),
        "root_id": (stack.root_id.as_str()),
    })
}

pub(crate) fn entries(value: Value) -> Map {
    match value {
        Value::Map(entries) => entries,
        _ => Map::new(),
    }
}

fn update_entries(operation: &Operation) -> Map {
    match operation {
        Operation::Update { before, changed } => {
            entries(value!({"before": (before.clone()), "changed": (changed.clone())}))
        }
        _ => Map::new(),
    }
}

/// The name of an operation in requests.
fn name_of(operation: &Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update { .. } => "update",
        Operation::Delete => "delete",
        Operation::Check => "check",
        Operation::Suspend => "suspend",
        Operation::Resume => "resume",
        Operation::Adopt => "adopt",
        Operation::Snapshot => "snapshot",
    }
}

impl TypeRules for PluginDriver {
    fn restored(&self, data: &Map) -> Option<Map> {
        data.get(RESTORED)?.as_map().cloned()
    }

    fn validates_in_cloud(&self, _: &Facts) -> bool {
        self.has("validate")
    }
}

#[async_trait]
impl Driver for PluginDriver {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let method = name_of(operation);
        match operation {
            // As in Heat, an action without a handler succeeds.
            Operation::Check | Operation::Suspend | Operation::Resume | Operation::Snapshot if !self.has(method) => {
                Ok(Step::done())
            }
            Operation::Delete if cx.facts.physical_id.is_none() && own_data(&cx.facts.data).is_empty() => {
                Ok(Step::done())
            }
            Operation::Adopt | Operation::Update { .. } if !self.has(method) => {
                let text = format!("Plug-in {} has no method {method} for {}.", self.plugin.name, self.type_name);
                Err(Failure::other(Class::NotSupported, text))
            }
            _ => self.step(cx, method, operation, update_entries(operation)).await,
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let mut more = update_entries(operation);
        more.insert("operation".to_owned(), name_of(operation).into());
        more.insert("state".to_owned(), answer::state_of(state));
        self.step(cx, "poll", operation, more).await
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        if !self.has("find") {
            let text = format!("plug-in {} has no method find for {}", self.plugin.name, self.type_name);
            return Ok(Found::CannotTell(text));
        }
        let result = self.call(cx, "find", Map::new()).await?;
        answer::found(&result).map_err(|why| self.wrong("find", why))
    }

    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let result = self.call(cx, "signal", entries(value!({"signal": message}))).await?;
        answer::received(result).map_err(|why| self.wrong("signal", why))
    }

    fn snapshots(&self) -> bool {
        self.has("snapshot")
    }

    async fn delete_snapshot(&self, cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
        if !self.has("delete_snapshot") {
            return Ok(None);
        }
        let result = self.call(cx, "delete_snapshot", Map::new()).await?;
        answer::after(&result).map_err(|why| self.wrong("delete_snapshot", why))
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        if !self.has("attributes") {
            return Ok(Map::new());
        }
        let names: Value = names.iter().copied().collect();
        let result = self.call(cx, "attributes", entries(value!({"names": names}))).await?;
        answer::map(result).map_err(|why| self.wrong("attributes", why))
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        if !self.has("live") {
            self.start(cx, &Operation::Check).await?;
            return Ok(Map::new());
        }
        let result = self.call(cx, "live", Map::new()).await?;
        answer::map(result).map_err(|why| self.wrong("live", why))
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        if !self.has("needs_replace_failed") {
            return Ok(true);
        }
        match self.call(cx, "needs_replace_failed", Map::new()).await? {
            Value::Bool(needs) => Ok(needs),
            _ => Err(self.wrong("needs_replace_failed", "expected true or false".to_owned())),
        }
    }

    /// A plug-in that refuses the properties reports an error.
    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        match self.call(cx, "validate", Map::new()).await {
            Ok(_) => Ok(()),
            // As for the services of a cloud that are not reachable: the create reports it.
            Err(failure) if matches!(failure.kind, FailureKind::Unavailable | FailureKind::NotSent) => Ok(()),
            Err(failure) => Err(Diagnostic::invalid(failure.message)),
        }
    }
}
