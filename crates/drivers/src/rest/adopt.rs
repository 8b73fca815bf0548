//! Identifies the object of a create, to recover from a lost response.

use kiln_resource::rest::{Filter, RestUpdate};
use kiln_resource::{Alike, Context, Facts, Failure, FailureKind, Found, Method, Step, Unmarked};
use kiln_value::{Map, Value};

use super::driver::RestDriver;
use crate::call::NEUTRON;
use crate::{alike, call, queue};

/// Stage of a create with an ID from the template.
pub(super) const CLAIM: &str = "claim";

/// What identifies an object.
pub(super) enum Sign<'a> {
    /// Its ID from the template, which another object may have.
    ChosenId(String),
    /// Its ID, which is the token of the attempt.
    TokenId,
    /// A unique value of this key of the body. `given` is the final value of the key.
    Value { key: &'a str, value: &'a str, given: Option<Value> },
    /// What it is and when it was created, as far as the service shows it, in place of a value of this key that would
    /// have to be removed.
    Unmarked { key: &'a str, created: Option<&'a str> },
    /// These keys: the service does not allow two objects with the same values.
    Key(Vec<&'a str>),
    /// No identification is possible.
    Nothing,
}

impl RestDriver {
    /// The identification of the object that a body creates.
    pub(super) fn sign<'a>(&'a self, facts: &'a Facts, body: &Map) -> Sign<'a> {
        let created = self.rest.adopt.created.as_deref();
        match self.mark(facts, body) {
            Sign::Value { key, given: Some(_), .. } if facts.attempt.unmarked_since.is_some() => {
                Sign::Unmarked { key, created }
            }
            sign => sign,
        }
    }

    /// What would make the create need no mark: see [`kiln_resource::TypeRules::unmarked`].
    pub(super) fn without_mark(&self, facts: &Facts) -> Option<Unmarked> {
        let adopt = &self.rest.adopt;
        if adopt.created.is_none() && !adopt.listed {
            return None;
        }
        let body = self.plain_body(facts);
        let Sign::Value { given: Some(_), .. } = self.mark(facts, &body) else { return None };
        let name = self.rest.name.as_deref().and_then(|name| body.get(self.wire_name(name))).cloned();
        let (service, likeness) = (self.service().to_owned(), name.unwrap_or(Value::Map(body)));
        Some(Unmarked { service, likeness, listed: adopt.created.is_none() })
    }

    /// The identification of a create that may have a mark.
    fn mark<'a>(&'a self, facts: &'a Facts, body: &Map) -> Sign<'a> {
        let adopt = &self.rest.adopt;
        let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if adopt.id {
            let chosen = text(&self.rest.id).filter(|id| self.shape.is_own_id(id));
            return chosen.map_or(Sign::TokenId, |id| Sign::ChosenId(id.to_owned()));
        }
        let name = self.rest.name.as_deref().filter(|_| adopt.name).map(|property| self.wire_name(property));
        let physical = facts.physical_name.as_str();
        if let Some(key) = name.filter(|key| text(key) == Some(physical)) {
            return Sign::Value { key, value: physical, given: None };
        }
        let given = |key: &str| body.get(key).filter(|value| value.is_truthy()).cloned();
        // A value that an update cannot set must be sent with the create.
        let can_set = |key: &str| {
            let is_omitted = |update: &RestUpdate| update.omit.iter().any(|name| self.wire_name(name) == key);
            self.rest.update.as_ref().is_some_and(|update| !is_omitted(update))
        };
        let can_give = |key: &str, given: &Option<Value>| given.is_none() || can_set(key);
        if let Some(key) = adopt.mark.as_deref().map(|property| self.wire_name(property))
            && let given = given(key)
            && can_give(key, &given)
        {
            // The sign is temporary, because users would see it forever. It remains in objects that cannot be updated.
            let given = given.or_else(|| self.rest.update.is_some().then(|| "".into()));
            return Sign::Value { key, value: &facts.attempt.token, given };
        }
        if !adopt.key.is_empty() {
            return Sign::Key(adopt.key.iter().map(|property| self.wire_name(property)).collect());
        }
        match name.map(|key| (key, given(key))) {
            Some((key, given)) if can_give(key, &given) => Sign::Value { key, value: physical, given },
            _ => Sign::Nothing,
        }
    }

    /// Adds the sign to the body of a create.
    pub(super) fn put_sign(&self, facts: &Facts, body: &mut Map) {
        match self.sign(facts, body) {
            Sign::TokenId => drop(body.insert(self.rest.id.clone(), facts.attempt.token.as_str().into())),
            Sign::Value { key, value, .. } => drop(body.insert(key.to_owned(), value.into())),
            Sign::ChosenId(_) | Sign::Unmarked { .. } | Sign::Key(_) | Sign::Nothing => {}
        }
    }

    /// The value that the sign replaces in the create.
    pub(super) fn displaced<'a>(&'a self, facts: &'a Facts) -> Option<(&'a str, Value)> {
        match self.sign(facts, &self.plain_body(facts)) {
            Sign::Value { key, given: Some(given), .. } => Some((key, given)),
            _ => None,
        }
    }

    /// Sets the value that the sign has replaced. Idempotent.
    pub(super) async fn give_back(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let (Some((key, given)), Some(update)) = (self.displaced(cx.facts), &self.rest.update) else { return Ok(()) };
        let path = self.path(cx, &update.path, Some(id)).await?;
        let mut body = Map::from([(key.to_owned(), given)]);
        self.shape.name_for_update(&mut body);
        let body = self.change(body);
        self.send(cx, self.request(update.method, path).body(body)).await.map(|_| ())
    }

    /// Looks for the object of a lost create.
    pub(super) async fn find_made(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let body = self.create_body(cx).await?;
        let object = match self.sign(cx.facts, &body) {
            // Nothing is created before the claim is stored, and only one object can have an ID.
            Sign::ChosenId(_) => None,
            Sign::TokenId => self.seek(cx, &cx.facts.attempt.token).await?,
            Sign::Value { key, value, .. } => {
                let found = self.list(cx, &self.query(key, value, &body)).await?;
                found.into_iter().find(|object| object.str_at(key) == Some(value))
            }
            Sign::Unmarked { key, created } => return self.find_alike(cx, key, created, &body).await,
            Sign::Key(keys) => self.find_by_key(cx, &keys, &body).await?,
            Sign::Nothing => return Ok(Found::CannotTell(self.unknown(cx.facts))),
        };
        object.map_or(Ok(Found::NotMade), |object| self.made(cx, &object).map(Found::Made))
    }

    /// The objects with the name of the one that a body creates without a mark in `mark`.
    async fn find_alike(
        &self,
        cx: &Context<'_>,
        mark: &str,
        created: Option<&str>,
        body: &Map,
    ) -> Result<Found, Failure> {
        let name = self.rest.name.as_deref().map(|property| self.wire_name(property));
        let name = name.and_then(|key| Some((key, body.get(key)?.as_str()?)));
        let query = self.select(name.into_iter().collect());
        let mut sent = body.clone();
        sent.entry(mark.to_owned()).or_insert_with(|| "".into());
        if !sent.contains_key("tenant_id") && !sent.contains_key("project_id") {
            sent.insert("project_id".to_owned(), cx.cloud.project_id().await?.into());
        }
        let found = self.list(cx, &query).await?;
        let same_name = |object: &&Value| name.is_none_or(|(key, name)| object.str_at(key) == Some(name));
        let looks_alike = |object: &Value| {
            Ok(Alike {
                step: self.made(cx, object)?,
                created: created.and_then(|key| object.str_at(key)).and_then(alike::seconds),
                fits: sent.iter().all(|(key, sent)| alike::shows(object, key, sent)),
            })
        };
        found.iter().filter(same_name).map(looks_alike).collect::<Result<_, Failure>>().map(Found::Alike)
    }

    /// A query that selects few objects, including the one with this value of this key. All services can filter by
    /// name; only Neutron can filter by other keys.
    fn query<'a>(&'a self, key: &'a str, value: &'a str, body: &'a Map) -> Vec<(&'a str, &'a str)> {
        let name = self.rest.name.as_deref().map(|property| self.wire_name(property));
        if name == Some(key) || self.service() == NEUTRON.0 {
            return self.select(vec![(key, value)]);
        }
        self.select(name.and_then(|key| Some((key, body.get(key)?.as_str()?))).into_iter().collect())
    }

    /// The query parameters with which the service filters a list by these values.
    fn select<'a>(&self, values: Vec<(&'a str, &'a str)>) -> Vec<(&'a str, &'a str)> {
        match self.rest.filter {
            Filter::Values => values,
            Filter::Query => {
                let first = values.into_iter().next();
                first.map(|(key, value)| vec![("q.field", key), ("q.op", "eq"), ("q.value", value)]).unwrap_or_default()
            }
            Filter::Nothing => Vec::new(),
        }
    }

    async fn find_by_key(&self, cx: &Context<'_>, keys: &[&str], body: &Map) -> Result<Option<Value>, Failure> {
        let query: Vec<_> = keys.iter().filter_map(|k| Some((*k, body.get(*k)?.as_str()?))).collect();
        // Few objects belong to a parent object, and not every service can filter them.
        let is_below = self.rest.collection.contains('{');
        let query = if is_below { Vec::new() } else { self.select(query) };
        let found = self.list(cx, &query).await?;
        let is_same = |object: &Value| {
            keys.iter().all(|k| object.get(k).unwrap_or(&Value::Null) == body.get(*k).unwrap_or(&Value::Null))
        };
        Ok(found.into_iter().find(is_same))
    }

    fn unknown(&self, facts: &Facts) -> String {
        format!(
            "an object created for {} cannot be distinguished from others of the {} service",
            facts.name,
            self.service()
        )
    }

    /// The first step of a create with an ID from the template: records that the ID is unused. An object that has it
    /// after this step was created by the create.
    pub(super) async fn claim(&self, cx: &Context<'_>, id: String, body: Map) -> Result<Step, Failure> {
        if self.seek(cx, &id).await?.is_some() {
            // The service refuses with its own message.
            return self.post(cx, body).await;
        }
        Ok(queue::now(CLAIM).id(id))
    }

    /// The create itself, after the claim. Idempotent.
    pub(super) async fn create_claimed(&self, cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
        let body = self.create_body(cx).await?;
        let failure = match self.post(cx, body).await {
            Ok(step) => return Ok(step),
            Err(failure) if failure.is_passing() => return Err(failure),
            Err(failure) => failure,
        };
        let id = cx.facts.physical_id.as_deref().unwrap_or_default();
        let object = if failure.kind == FailureKind::Conflict { self.seek(cx, id).await? } else { None };
        match object.filter(|object| self.shape.is_ours(cx.facts, object)) {
            Some(_) if self.shape.needs_response(cx.facts) => {
                // The complete response was lost, and nobody has used the object yet.
                call::absent_is_fine(self.remove(cx, id).await)?;
                Ok(queue::again(cx, state, "the end of the delete of an earlier attempt"))
            }
            Some(object) => self.made(cx, &object),
            None => Ok(queue::give_up(&failure)),
        }
    }

    async fn remove(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let path = self.path(cx, &self.rest.delete.path, Some(id)).await?;
        self.send(cx, self.item_request(cx.facts, Method::Delete, path)).await.map(|_| ())
    }
}
