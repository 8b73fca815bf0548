//! Differences of types that a definition cannot express.

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, PropertyChange, Sibling, Siblings};
use kiln_value::{Diagnostic, Map, Value};

/// Hooks into the [`RestDriver`](super::RestDriver); by default they have no effect.
#[async_trait]
pub(crate) trait Shape: Send + Sync {
    /// Completes the body of a create.
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let _ = (cx, body);
        Ok(())
    }

    /// Completes the body of an update.
    async fn update_body(&self, cx: &Context<'_>, change: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        let _ = (cx, change, body);
        Ok(())
    }

    /// Renames the keys of an update whose names differ from those of a create.
    fn name_for_update(&self, body: &mut Map) {
        let _ = body;
    }

    /// The state of an object, if it is no field of it.
    fn state(&self, object: &Value) -> Option<String> {
        let _ = object;
        None
    }

    /// Why an object has failed, if the reason is no field of it.
    fn reason(&self, facts: &Facts, object: &Value) -> Option<String> {
        let _ = (facts, object);
        None
    }

    /// Whether [`Shape::after_create`] sends requests.
    fn has_more(&self, facts: &Facts) -> bool {
        let _ = facts;
        false
    }

    /// What [`Shape::after_create`] needs to know about the object that was created, which is stored in between.
    fn note(&self, object: &Value) -> Value {
        let _ = object;
        Value::Null
    }

    /// Further requests after the create. Idempotent. `noted` is null for an object that another version has created.
    async fn after_create(&self, cx: &Context<'_>, id: &str, noted: &Value) -> Result<(), Failure> {
        let _ = (cx, id, noted);
        Ok(())
    }

    /// Entries of the resource data from the object in the response to the create.
    fn keep(&self, facts: &Facts, object: &Value) -> Map {
        let _ = (facts, object);
        Map::new()
    }

    /// Whether an ID in the body was chosen by the template, rather than a word for "any".
    fn is_own_id(&self, id: &str) -> bool {
        let _ = id;
        true
    }

    /// Whether an object with the ID from the template, which was unused before the create, can be the result of the
    /// create.
    fn is_ours(&self, facts: &Facts, object: &Value) -> bool {
        let _ = (facts, object);
        true
    }

    /// Whether the response to the create contains data that must be stored and cannot be read later.
    fn needs_response(&self, facts: &Facts) -> bool {
        let _ = facts;
        false
    }

    /// Query parameters of requests for one object.
    fn item_query<'a>(&self, facts: &'a Facts) -> Vec<(&'static str, &'a str)> {
        let _ = facts;
        Vec::new()
    }

    /// Query parameters of every list.
    fn list_query(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// The ID of an object in a response, if it is not under the key of the definition.
    fn id(&self, object: &Value) -> Option<String> {
        let _ = object;
        None
    }

    /// Further requests before the request of an update. Idempotent.
    async fn before_update(&self, cx: &Context<'_>, id: &str, change: &Edit<'_>) -> Result<(), Failure> {
        let _ = (cx, id, change);
        Ok(())
    }

    /// Requests before the delete. Idempotent.
    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let _ = (cx, id);
        Ok(())
    }

    /// The requests of a suspend. Idempotent.
    async fn suspend(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let _ = (cx, id);
        Ok(())
    }

    /// The requests of a resume. Idempotent.
    async fn resume(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let _ = (cx, id);
        Ok(())
    }

    /// An attribute that is not simply a field of the object; `None` for all others.
    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        let _ = (cx, object, name);
        Ok(None)
    }

    /// What `get_resource` returns; by default the ID.
    fn reference(&self, facts: &Facts) -> Option<Value> {
        let _ = facts;
        None
    }

    /// Completes the properties that were read from the object ([`kiln_resource::Driver::live`]): removes those that do
    /// not mean what the body of the create meant by them.
    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let _ = (cx, object, live);
        Ok(())
    }

    /// See [`kiln_resource::Driver::expected`].
    async fn expected(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let _ = cx;
        Ok(Map::new())
    }

    /// See [`kiln_resource::TypeRules::needs_replace`].
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        let _ = change;
        false
    }

    /// See [`kiln_resource::TypeRules::collisions`].
    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        let _ = (held, wanted);
        Vec::new()
    }

    /// See [`kiln_resource::Driver::release`].
    async fn release(&self, cx: &Context<'_>, id: &str, wanted: &Map) -> Result<(), Failure> {
        let _ = (cx, id, wanted);
        Ok(())
    }

    /// See [`kiln_resource::TypeRules::validate`].
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let _ = facts;
        Ok(())
    }

    /// See [`kiln_resource::TypeRules::validates_in_cloud`].
    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        let _ = facts;
        false
    }

    /// See [`kiln_resource::Driver::validate_in_cloud`].
    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        let _ = cx;
        Ok(())
    }

    /// See [`kiln_resource::TypeRules::dependencies`].
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let _ = (this, siblings);
        Vec::new()
    }
}

/// The changes of an update.
pub(crate) struct Edit<'a> {
    /// Properties before.
    pub(crate) before: &'a Map,
    /// Changed properties with their new values.
    pub(crate) changed: &'a Map,
    /// The body according to the definition only.
    pub(crate) body: &'a Map,
}

/// A type that its definition describes completely.
pub(crate) struct Plain;

impl Shape for Plain {}
