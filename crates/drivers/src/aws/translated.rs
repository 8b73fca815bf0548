//! A type that is another type with other names of properties.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, PropertyChange, Step, TypeRules, Unmarked};
use kiln_value::{Diagnostic, Map, Value};

/// How the properties of a type become those of another type.
#[async_trait]
pub(super) trait Translation: Send + Sync {
    /// The properties of the other type.
    fn properties(&self, properties: &Map) -> Map;

    /// An attribute; `None` for those of the other type.
    async fn attribute(&self, cx: &Context<'_>, name: &str) -> Result<Option<Value>, Failure> {
        let _ = (cx, name);
        Ok(None)
    }

    /// The properties in an object ([`Driver::live`]) from those of the other type in it.
    fn live(&self, properties: &Map, live: &Map) -> Map {
        let _ = (properties, live);
        Map::new()
    }

    /// See [`TypeRules::validate`], with the properties of the type itself.
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let _ = facts;
        Ok(())
    }
}

/// The driver of the other type, called with translated properties.
pub(super) struct Translated<D, T> {
    inner: D,
    translation: T,
}

impl<D: Driver, T: Translation> Translated<D, T> {
    pub(super) fn new(inner: D, translation: T) -> Self {
        Self { inner, translation }
    }

    /// The facts for the other driver.
    fn facts(&self, facts: &Facts) -> Facts {
        Facts { properties: self.translation.properties(&facts.properties), ..facts.clone() }
    }

    fn operation(&self, operation: &Operation, after: &Map) -> Operation {
        let Operation::Update { before, .. } = operation else { return operation.clone() };
        let before = self.translation.properties(before);
        let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
        let changed = changed.map(|(key, value)| (key.clone(), value.clone())).collect();
        Operation::Update { before, changed }
    }
}

fn with<'a>(cx: &Context<'a>, facts: &'a Facts) -> Context<'a> {
    Context { facts, ..*cx }
}

impl<D: Driver, T: Translation> TypeRules for Translated<D, T> {
    fn scheduler_hints(&self, facts: &Facts) -> Option<Map> {
        self.inner.scheduler_hints(&self.facts(facts))
    }

    fn unmarked(&self, facts: &Facts) -> Option<Unmarked> {
        self.inner.unmarked(&self.facts(facts))
    }

    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        self.inner.collisions(&self.translation.properties(held), &self.translation.properties(wanted))
    }

    fn needs_replace(&self, change: &PropertyChange) -> bool {
        let (before, after) = (self.translation.properties(&change.before), self.translation.properties(&change.after));
        let changed = after.keys().filter(|key| after.get(*key) != before.get(*key)).cloned().collect();
        self.inner.needs_replace(&PropertyChange { before, after, changed })
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        self.translation.validate(facts)
    }

    fn refreshes_metadata(&self) -> bool {
        self.inner.refreshes_metadata()
    }
}

#[async_trait]
impl<D: Driver, T: Translation> Driver for Translated<D, T> {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let facts = self.facts(cx.facts);
        let operation = self.operation(operation, &facts.properties);
        self.inner.start(&with(cx, &facts), &operation).await
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        let facts = self.facts(cx.facts);
        let operation = self.operation(operation, &facts.properties);
        self.inner.poll(&with(cx, &facts), &operation, state).await
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let facts = self.facts(cx.facts);
        self.inner.find(&with(cx, &facts)).await
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let mut values = Map::new();
        for name in names {
            let value = match self.translation.attribute(cx, name).await? {
                Some(value) => value,
                // The whole object is no attribute of these types.
                None if *name == "show" => Value::Null,
                None => self.inner.attributes(cx, &[name]).await?.shift_remove(*name).unwrap_or_default(),
            };
            values.insert((*name).to_owned(), value);
        }
        Ok(values)
    }

    async fn release(&self, cx: &Context<'_>, wanted: &Map) -> Result<Option<Duration>, Failure> {
        let facts = self.facts(cx.facts);
        self.inner.release(&with(cx, &facts), &self.translation.properties(wanted)).await
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        let facts = self.facts(cx.facts);
        self.inner.needs_replace_failed(&with(cx, &facts)).await
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let facts = self.facts(cx.facts);
        let live = self.inner.live(&with(cx, &facts)).await?;
        Ok(self.translation.live(&cx.facts.properties, &live))
    }

    async fn live_in(&self, cx: &Context<'_>, object: &Value) -> Result<Map, Failure> {
        let facts = self.facts(cx.facts);
        let live = self.inner.live_in(&with(cx, &facts), object).await?;
        Ok(self.translation.live(&cx.facts.properties, &live))
    }

    fn snapshots(&self) -> bool {
        self.inner.snapshots()
    }

    async fn delete_snapshot(&self, cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
        self.inner.delete_snapshot(cx).await
    }
}
