//! The generic driver.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::rest::Ready;
use kiln_resource::{
    CloudRequest, CloudResponse, Context, Driver, Facts, Failure, FailureKind, Found, Method, Operation,
    PropertyChange, ResourceType, Rest, Sibling, Siblings, Step, TypeRules, Unmarked, Wire,
};
use kiln_value::{Diagnostic, Map, Value, value};

use super::adopt::{CLAIM, Sign};
use super::body;
use super::shape::{Edit, Plain, Shape};
use crate::{call, path, queue, validation};

/// Implements a type whose objects are created by POST to a collection, as specified in the `rest` section of its
/// definition (docs/resource-types.md).
pub(crate) struct RestDriver {
    pub(super) resource_type: ResourceType,
    pub(super) rest: Rest,
    pub(super) shape: Box<dyn Shape>,
    /// Whether the attribute `show` is the object; otherwise it is null.
    shows: bool,
}

/// The property of objects that all projects can use.
const SHARED: &str = "shared";

/// Whether an object is ready.
enum Awaited {
    /// It is; with the object, if it was read.
    Ready(Option<Value>),
    /// It is not: what it waits for.
    Waits(String),
}

/// Stages of an operation, as stored in its state.
const MORE: &str = "more";
const READY: &str = "ready";
const GONE: &str = "gone";

impl RestDriver {
    /// The driver of a definition; `None` if it has no `rest` section.
    pub(crate) fn new(resource_type: &ResourceType) -> Option<Self> {
        Self::shaped(resource_type, Plain)
    }

    /// The driver of a definition, with the differences of a type.
    pub(crate) fn shaped(resource_type: &ResourceType, shape: impl Shape + 'static) -> Option<Self> {
        let rest = resource_type.rest.clone()?;
        Some(Self { resource_type: resource_type.clone(), rest, shape: Box::new(shape), shows: true })
    }

    /// The driver of a type that Heat does not know as an object: `show` is null, so that lists of its attributes have
    /// those of the type.
    pub(crate) fn unshown(self) -> Self {
        Self { shows: false, ..self }
    }

    pub(super) fn service(&self) -> &str {
        self.resource_type.service.first().map_or("", String::as_str)
    }

    pub(super) fn request(&self, method: Method, path: String) -> CloudRequest {
        let mut request = CloudRequest::new(self.service(), method, path);
        request.microversion.clone_from(&self.rest.microversion);
        request
    }

    /// A request for one object.
    pub(super) fn item_request(&self, facts: &Facts, method: Method, path: String) -> CloudRequest {
        let query = self.shape.item_query(facts);
        query.into_iter().fold(self.request(method, path), |request, (key, value)| request.query(key, value))
    }

    /// A path of the definition with its variables replaced.
    pub(super) async fn path(&self, cx: &Context<'_>, template: &str, id: Option<&str>) -> Result<String, Failure> {
        let mut out = String::with_capacity(template.len() + 40);
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            out.push_str(before);
            let value = match name {
                "id" => path::last_segment(id.unwrap_or_default()).to_owned(),
                "project" => cx.cloud.project_id().await?,
                property => match property.split_once(':') {
                    None => kiln_value::text::str(cx.facts.property(property)),
                    Some((property, finder)) => {
                        let named = kiln_value::text::str(cx.facts.property(property));
                        cx.cloud.find(finder, &named).await?
                    }
                },
            };
            out.push_str(&path::segment(&value));
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Sends a request that changes an object. A conflict that ends by itself is [`FailureKind::Busy`].
    pub(super) async fn send(&self, cx: &Context<'_>, request: CloudRequest) -> Result<CloudResponse, Failure> {
        let sent = cx.cloud.call(request).await;
        sent.map_err(|failure| {
            let ends = |text: &String| failure.message.contains(text.as_str());
            match failure.kind {
                FailureKind::Conflict if self.rest.busy.iter().any(ends) => {
                    Failure { kind: FailureKind::Busy, ..failure }
                }
                _ => failure,
            }
        })
    }

    pub(super) fn wrap(&self, body: Map) -> Value {
        match &self.rest.member {
            Some(member) if !self.rest.bare => Value::from_iter([(member.clone(), Value::Map(body))]),
            _ => Value::Map(body),
        }
    }

    /// The body of an update.
    pub(super) fn change(&self, body: Map) -> Value {
        if !self.rest.update.as_ref().is_some_and(|update| update.json_patch) {
            return self.wrap(body);
        }
        let replace = |(key, value): (String, Value)| {
            let path = format!("/{key}");
            value!({"op": "replace", "path": path, "value": value})
        };
        body.into_iter().map(replace).collect()
    }

    fn unwrap<'a>(&self, body: &'a Value) -> &'a Value {
        self.rest.member.as_ref().and_then(|member| body.get(member)).unwrap_or(body)
    }

    /// The current object.
    pub(crate) async fn show(&self, cx: &Context<'_>, id: &str) -> Result<Value, Failure> {
        let path = self.path(cx, &self.rest.item, Some(id)).await?;
        let response = cx.cloud.call(self.item_request(cx.facts, Method::Get, path)).await?;
        Ok(self.unwrap(&response.body).clone())
    }

    /// The current object; `None` if it does not exist.
    pub(super) async fn seek(&self, cx: &Context<'_>, id: &str) -> Result<Option<Value>, Failure> {
        match self.show(cx, id).await {
            Ok(object) => Ok(Some(object)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The physical name, if the type has one and the template does not specify a name.
    fn physical_name<'a>(&'a self, facts: &'a Facts) -> Option<(&'a str, &'a str)> {
        let property = self.rest.name.as_deref()?;
        facts.property(property).is_null().then_some((property, facts.physical_name.as_str()))
    }

    pub(super) fn wire_name<'a>(&'a self, property: &'a str) -> &'a str {
        match self.resource_type.properties.get(property).map(|schema| &schema.wire) {
            Some(Wire::As(name)) => name,
            _ => property,
        }
    }

    /// The body of a create according to the definition only.
    pub(super) fn plain_body(&self, facts: &Facts) -> Map {
        let create = &self.rest.create;
        let skip = |name: &str| create.omit.iter().any(|o| o == name) || self.rest.parts.contains_key(name);
        let mut body = body::create(&self.resource_type, &facts.properties, &skip);
        if let Some((property, name)) = self.physical_name(facts) {
            body.entry(self.wire_name(property).to_owned()).or_insert_with(|| name.into());
        }
        body.extend(create.add.clone());
        body
    }

    /// The body of an update according to the definition only.
    fn plain_change(&self, facts: &Facts, before: &Map, changed: &Map) -> Map {
        let Some(update) = &self.rest.update else { return Map::new() };
        let skip = |name: &str| update.omit.iter().any(|o| o == name) || self.rest.parts.contains_key(name);
        if update.whole {
            body::create(&self.resource_type, &facts.properties, &skip)
        } else {
            body::update(&self.resource_type, before, changed, &skip)
        }
    }

    pub(super) async fn create_body(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let mut body = self.plain_body(cx.facts);
        self.shape.create_body(cx, &mut body).await?;
        Ok(body)
    }

    async fn create(&self, cx: &Context<'_>) -> Result<Step, Failure> {
        let body = self.create_body(cx).await?;
        match self.sign(cx.facts, &body) {
            Sign::ChosenId(id) => self.claim(cx, id, body).await,
            _ => self.post(cx, body).await,
        }
    }

    /// The request that creates the object.
    pub(super) async fn post(&self, cx: &Context<'_>, mut body: Map) -> Result<Step, Failure> {
        self.put_sign(cx.facts, &mut body);
        let path = self.path(cx, &self.rest.create.path, None).await?;
        let request = self.request(self.rest.create.method, path).body(self.wrap(body));
        let request = with_query(request, &self.rest.create.query);
        let response = self.send(cx, request).await?;
        self.made(cx, self.unwrap(&response.body))
    }

    /// The step after the object is created.
    pub(super) fn made(&self, cx: &Context<'_>, object: &Value) -> Result<Step, Failure> {
        let id = object.get(&self.rest.id).filter(|id| !id.is_null()).map(kiln_value::text::str);
        let id = id.or_else(|| self.shape.id(object));
        let id = call::made_id(id.as_deref(), &cx.facts.name)?;
        let has_parts = self.rest.parts.keys().any(|name| has_value(cx.facts.property(name)));
        let step = if has_parts || self.shape.has_more(cx.facts) || self.displaced(cx.facts).is_some() {
            self.more(object)
        } else if self.rest.ready.as_ref().is_none_or(|ready| self.is_done(ready, object, &Operation::Create)) {
            Step::done().answer(object.clone())
        } else {
            self.wait_ready()
        };
        let mut step = step.id(id);
        step.data = self.shape.keep(cx.facts, object);
        Ok(step)
    }

    fn more(&self, object: &Value) -> Step {
        let state = match self.shape.note(object) {
            Value::Null => value!({ "stage": MORE }),
            noted => value!({"stage": MORE, "noted": noted}),
        };
        Step::wait(state, Duration::ZERO)
    }

    fn wait_ready(&self) -> Step {
        Step::wait(value!({"stage": READY}), self.every())
    }

    /// The initial polling interval.
    fn every(&self) -> Duration {
        self.rest.ready.as_ref().map_or(Duration::from_secs(1), |ready| ready.every)
    }

    /// Continues to wait at the same stage, at first with the interval of the definition, then longer.
    fn again(&self, cx: &Context<'_>, state: &Value) -> Step {
        Step::wait(state.clone(), self.every().max(queue::pace(cx.polls.saturating_add(1))))
    }

    async fn send_part(&self, cx: &Context<'_>, id: &str, name: &str, value: &Value) -> Result<(), Failure> {
        let Some(part) = self.rest.parts.get(name) else { return Ok(()) };
        let schema = self.resource_type.properties.get(name);
        let value = schema.map_or_else(|| value.clone(), |schema| body::encode(schema, value));
        let is_list = schema.is_some_and(|s| s.items().is_some());
        let value = if value.is_null() && is_list { Value::List(Vec::new()) } else { value };
        let path = self.path(cx, &part.path, Some(id)).await?;
        let body = Value::from_iter([(part.wire.clone(), value)]);
        self.send(cx, self.request(part.method, path).body(body)).await.map(|_| ())
    }

    /// What the object is waiting for, or the object if it is ready; an error if the create has failed.
    async fn awaited(&self, cx: &Context<'_>, id: &str, operation: &Operation) -> Result<Awaited, Failure> {
        let Some(ready) = &self.rest.ready else { return Ok(Awaited::Ready(None)) };
        let object = self.show(cx, id).await?;
        if let Some(failure) = self.failed(cx.facts, &ready.failed, &object) {
            return Err(failure);
        }
        let (is_done, state) = (self.is_done(ready, &object, operation), self.state(ready, &object));
        let is_waiting = ready.waiting.is_empty() || ready.waiting.iter().any(|s| s.eq_ignore_ascii_case(&state));
        if is_done {
            return Ok(Awaited::Ready(Some(object)));
        }
        if is_waiting {
            return Ok(Awaited::Waits(format!("the status {}, not {state}", ready.done.join(" or "))));
        }
        let what = format!("{} creation failed", self.resource_type.class);
        Err(Failure::unknown_status(&what, &state, "Unknown"))
    }

    /// Checks whether the object is ready, and starts to wait if it is not. `answer`: the object as the last request has
    /// shown it.
    async fn look(
        &self,
        cx: &Context<'_>,
        id: &str,
        operation: &Operation,
        answer: Option<Value>,
    ) -> Result<Step, Failure> {
        Ok(match self.awaited(cx, id, operation).await? {
            Awaited::Ready(object) => Step { answer: object.or(answer), ..Step::done() },
            Awaited::Waits(_) => self.wait_ready(),
        })
    }

    async fn update(&self, cx: &Context<'_>, id: &str, before: &Map, changed: &Map) -> Result<Step, Failure> {
        let plain = self.plain_change(cx.facts, before, changed);
        let edit = Edit { before, changed, body: &plain };
        self.shape.before_update(cx, id, &edit).await?;
        for (name, value) in changed.iter().filter(|(name, _)| self.rest.parts.contains_key(*name)) {
            self.send_part(cx, id, name, value).await?;
        }
        let mut answer = None;
        if let Some(update) = &self.rest.update {
            let mut body = plain.clone();
            if let Some((property, name)) = self.physical_name(cx.facts) {
                let wire = self.wire_name(property);
                // A name that is removed from the template is replaced by the physical name.
                if update.whole || body.contains_key(wire) {
                    body.insert(wire.to_owned(), name.into());
                }
            }
            self.shape.update_body(cx, &edit, &mut body).await?;
            self.shape.name_for_update(&mut body);
            // The object keeps the state that it had.
            if body.is_empty() && self.rest.ready.as_ref().is_some_and(|ready| !ready.updated.is_empty()) {
                return Ok(Step::done());
            }
            if !body.is_empty() {
                let path = self.path(cx, &update.path, Some(id)).await?;
                let response = self.send(cx, self.request(update.method, path).body(self.change(body))).await?;
                let object = self.unwrap(&response.body);
                // Some services answer with a part of the object only.
                let is_whole = object.get(&self.rest.id).is_some_and(|it| kiln_value::text::str(it) == id);
                answer = is_whole.then(|| object.clone());
            }
        }
        self.look(cx, id, &Operation::Update { before: Map::new(), changed: Map::new() }, answer).await
    }

    async fn delete(&self, cx: &Context<'_>) -> Result<Step, Failure> {
        let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(Step::done()) };
        self.shape.before_delete(cx, id).await?;
        let path = self.path(cx, &self.rest.delete.path, Some(id)).await?;
        let request = self.item_request(cx.facts, Method::Delete, path);
        match self.send(cx, with_query(request, &self.rest.delete.query)).await {
            Ok(_) if self.rest.delete.wait => Ok(self.wait_gone()),
            Ok(_) => Ok(Step::done()),
            Err(failure) if failure.is_not_found() => Ok(Step::done()),
            Err(failure) => Err(failure),
        }
    }

    fn state(&self, ready: &Ready, object: &Value) -> String {
        self.shape.state(object).unwrap_or_else(|| kiln_value::text::str(at(object, &ready.at)))
    }

    /// Whether an object is ready after an operation.
    fn is_done(&self, ready: &Ready, object: &Value, operation: &Operation) -> bool {
        let state = self.state(ready, object);
        let is_updated = matches!(operation, Operation::Update { .. }) && !ready.updated.is_empty();
        let done = if is_updated { &ready.updated } else { &ready.done };
        done.iter().any(|s| s.eq_ignore_ascii_case(&state))
    }

    /// The failure of an object in one of these states.
    fn failed(&self, facts: &Facts, states: &[String], object: &Value) -> Option<Failure> {
        let ready = self.rest.ready.as_ref()?;
        let state = self.state(ready, object);
        if !states.iter().any(|s| s.eq_ignore_ascii_case(&state)) {
            return None;
        }
        let reason = || ready.reason.as_ref().and_then(|path| at(object, path).as_str()).map(str::to_owned);
        let reason = self.shape.reason(facts, object).or_else(reason);
        Some(Failure::in_error(&state, reason.as_deref().unwrap_or("Unknown")))
    }

    /// The failure of an object that is not ready.
    pub(crate) fn broken(&self, facts: &Facts, object: &Value) -> Option<Failure> {
        self.rest.ready.as_ref().and_then(|ready| self.failed(facts, &ready.failed, object))
    }

    fn wait_gone(&self) -> Step {
        Step::wait(value!({"stage": GONE}), self.every())
    }

    /// The objects of the collection that match a query.
    pub(super) async fn list(&self, cx: &Context<'_>, query: &[(&str, &str)]) -> Result<Vec<Value>, Failure> {
        let path = self.path(cx, &self.rest.collection, None).await?;
        let mut request = self.request(Method::Get, path);
        for (key, value) in query.iter().copied().chain(self.shape.list_query()) {
            request = request.query(key, value);
        }
        let response = cx.cloud.call(request).await?;
        call::items(response.body, &self.rest.list)
    }

    /// Additional entries must not replace properties or specify the owner of the object.
    fn check_merged(&self, facts: &Facts) -> Result<(), Diagnostic> {
        let properties = &self.resource_type.properties;
        for (name, _) in properties.iter().filter(|(_, schema)| schema.wire == Wire::Merged) {
            let keys = facts.property(name).as_map().into_iter().flat_map(Map::keys).map(String::as_str);
            let is_banned = |key: &&str| properties.contains_key(*key) || matches!(*key, "shared" | "tenant_id");
            let banned: Vec<&str> = keys.filter(is_banned).collect();
            if !banned.is_empty() {
                return Err(validation::failed(format!("{} not allowed in {name}", banned.join(", "))));
            }
        }
        Ok(())
    }
}

/// The properties in a path: `{pool}`, `{policy:neutron.qos_policy}`.
fn variables(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(inner, _)| inner));
    inner
        .map(|inner| inner.split_once(':').map_or(inner, |(name, _)| name))
        .filter(|name| !matches!(*name, "id" | "project"))
}

/// A request with the query parameters of the definition.
fn with_query(request: CloudRequest, query: &Map) -> CloudRequest {
    query.iter().fold(request, |request, (key, value)| request.query(key, kiln_value::text::str(value)))
}

fn has_value(value: &Value) -> bool {
    !matches!(value, Value::Null) && value.as_list().is_none_or(|items| !items.is_empty())
}

fn at<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    const NULL: &Value = &Value::Null;
    path.iter().try_fold(object, |value, key| value.get(key)).unwrap_or(NULL)
}

impl TypeRules for RestDriver {
    fn unmarked(&self, facts: &Facts) -> Option<Unmarked> {
        self.without_mark(facts)
    }

    fn reference(&self, facts: &Facts) -> Value {
        let id = || facts.physical_id.as_deref().unwrap_or(&facts.name).into();
        self.shape.reference(facts).unwrap_or_else(id)
    }

    fn needs_replace(&self, change: &PropertyChange) -> bool {
        self.shape.needs_replace(change)
    }

    fn collisions(&self, held: &Map, wanted: &Map) -> Vec<&'static str> {
        self.shape.collisions(held, wanted)
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        self.check_merged(facts)?;
        self.shape.validate(facts)
    }

    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        self.shape.validates_in_cloud(facts)
    }

    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        self.shape.dependencies(this, siblings)
    }
}

#[async_trait]
impl Driver for RestDriver {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => self.create(cx).await,
            Operation::Update { before, changed } => self.update(cx, cx.facts.require_id()?, before, changed).await,
            Operation::Delete => self.delete(cx).await,
            Operation::Check => {
                let object = self.show(cx, cx.facts.require_id()?).await?;
                self.broken(cx.facts, &object).map_or_else(|| Ok(Step::done()), Err)
            }
            Operation::Suspend => self.shape.suspend(cx, cx.facts.require_id()?).await.map(|()| Step::done()),
            Operation::Resume => self.shape.resume(cx, cx.facts.require_id()?).await.map(|()| Step::done()),
            Operation::Adopt | Operation::Snapshot => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if let Some(failure) = queue::given_up(state) {
            return Err(failure);
        }
        let id = cx.facts.require_id()?;
        match state.str_at("stage") {
            Some(CLAIM) => self.create_claimed(cx, state).await,
            // A failed object would be busy forever.
            Some(MORE) => {
                if !self.rest.busy.is_empty()
                    && let Awaited::Waits(what) = self.awaited(cx, id, operation).await?
                {
                    return Ok(self.again(cx, state).waits_for(what));
                }
                self.give_back(cx, id).await?;
                for name in self.rest.parts.keys() {
                    let value = cx.facts.property(name);
                    if has_value(value) {
                        self.send_part(cx, id, name, value).await?;
                    }
                }
                self.shape.after_create(cx, id, state.get("noted").unwrap_or(&Value::Null)).await?;
                self.look(cx, id, operation, None).await
            }
            Some(GONE) => match self.seek(cx, id).await? {
                None => Ok(Step::done()),
                Some(object) => match self.failed(cx.facts, &self.rest.delete.failed, &object) {
                    Some(failure) => Err(failure),
                    None => Ok(self.again(cx, state).waits_for("the end of the delete")),
                },
            },
            _ => match self.awaited(cx, id, operation).await? {
                Awaited::Ready(answer) => Ok(Step { answer, ..Step::done() }),
                Awaited::Waits(what) => Ok(self.again(cx, state).waits_for(what)),
            },
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        self.find_made(cx).await
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let nothing = || names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
        let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(nothing()) };
        let Some(object) = self.seek(cx, id).await? else { return Ok(nothing()) };
        let mut values = Map::new();
        for name in names {
            let value = match self.shape.attribute(cx, &object, name).await? {
                Some(value) => value,
                None if *name == "show" && !self.shows => Value::Null,
                None if *name == "show" => object.clone(),
                None => match self.resource_type.attributes.get(*name) {
                    Some(schema) if !schema.wire.is_empty() => at(&object, &schema.wire).clone(),
                    _ => object.get(name).cloned().unwrap_or_default(),
                },
            };
            values.insert((*name).to_owned(), value);
        }
        Ok(values)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let object = self.show(cx, cx.facts.require_id()?).await?;
        let mut live = self.live_in(cx, &object).await?;
        // The object was found below these.
        for name in variables(&self.rest.item) {
            if let Some(value) = cx.facts.properties.get(name).filter(|value| !value.is_null()) {
                live.entry(name.to_owned()).or_insert_with(|| value.clone());
            }
        }
        Ok(live)
    }

    async fn live_in(&self, cx: &Context<'_>, object: &Value) -> Result<Map, Failure> {
        let mut live = body::read(&self.resource_type, &self.rest.parts, &cx.facts.properties, object);
        // An RBAC policy shares an object too, perhaps one of the same stack.
        if !cx.facts.given.iter().any(|name| name == SHARED) {
            live.shift_remove(SHARED);
        }
        self.shape.live(cx, object, &mut live).await?;
        Ok(live)
    }

    async fn expected(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        self.shape.expected(cx).await
    }

    async fn release(&self, cx: &Context<'_>, wanted: &Map) -> Result<Option<Duration>, Failure> {
        if let Some(id) = cx.facts.physical_id.as_deref() {
            self.shape.release(cx, id, wanted).await?;
        }
        Ok(None)
    }

    /// Only a missing object or one in a failed state is replaced.
    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(true) };
        Ok(self.seek(cx, id).await?.is_none_or(|object| self.broken(cx.facts, &object).is_some()))
    }

    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        self.shape.validate_in_cloud(cx).await
    }
}
