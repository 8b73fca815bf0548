//! The resource types of the simulated cloud and their drivers.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use kiln_plan::ResourceTypes;
use kiln_resource::{
    Alike, AttributeSchema, CloudRequest, Context, Driver, Facts, Failure, FailureKind, Found, Method, Operation,
    PropertySchema, Received, Registry, ResourceType, Step, TypeRules, Unmarked, shipped,
};
use kiln_template::constraint::DataType;
use kiln_value::{Class, Map, Value};

use crate::bases::{self, BASE};
use crate::cloud::SABOTAGE;
use crate::sabotage::Sabotage;
use crate::template_model::Plain;
use crate::waits::{WAIT, WaitDriver};

/// Polling interval.
const EVERY: Duration = Duration::from_secs(2);

/// The beginning of the text of a create whose object cannot be identified.
pub(crate) const CANNOT_TELL: &str = "It is unknown whether";

/// The text of a panic that is part of the scenario.
pub(crate) const ON_PURPOSE: &str = "on purpose: a defect of an engine or of a resource type";

/// All types of the simulation, created once.
pub(crate) fn resource_types() -> Arc<ResourceTypes> {
    static TYPES: LazyLock<Arc<ResourceTypes>> = LazyLock::new(|| Arc::new(ResourceTypes::new(registry())));
    Arc::clone(&TYPES)
}

fn registry() -> Registry {
    let mut registry = Registry::new();
    for kind in Plain::ALL {
        registry.insert(object_type(kind), Arc::new(ObjectDriver { kind }));
    }
    let mut value = ResourceType::new("Sim::Value");
    value.properties.insert("word".to_owned(), changing(DataType::String));
    value.attributes.insert("word".to_owned(), AttributeSchema::default());
    registry.insert(value, Arc::new(ValueDriver));
    let mut wait = ResourceType::new(WAIT);
    wait.properties.insert("inbox".to_owned(), PropertySchema::new(DataType::String));
    wait.properties.insert("count".to_owned(), changing(DataType::Integer));
    registry.insert(wait, Arc::new(WaitDriver));
    let groups = ["OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup", "OS::Heat::ScalingPolicy"];
    for group in shipped::types().into_iter().flatten().filter(|one| groups.contains(&one.name.as_str())) {
        if let Some(driver) = kiln_drivers::driver_for(&group) {
            registry.insert(group, driver);
        }
    }
    registry
}

fn changing(kind: DataType) -> PropertySchema {
    PropertySchema { update_allowed: true, ..PropertySchema::new(kind) }
}

fn object_type(kind: Plain) -> ResourceType {
    let mut made = ResourceType::new(kind.resource_type());
    made.signals = kind == Plain::Inbox;
    let properties = [
        ("word", changing(DataType::String)),
        ("size", PropertySchema::new(DataType::Integer)),
        ("needs", changing(DataType::List)),
        ("build", changing(DataType::String)),
        ("keep", changing(DataType::Boolean)),
        ("holds", PropertySchema::new(DataType::String)),
        (BASE, changing(DataType::String)),
    ];
    made.translation.push(bases::translation());
    made.properties.extend(properties.map(|(name, schema)| (name.to_owned(), schema)));
    made.attributes.insert("word".to_owned(), AttributeSchema::default());
    made
}

/// Whether the drivers should have a defect.
async fn has_defect(cx: &Context<'_>, sabotage: Sabotage) -> bool {
    cx.cloud.has_extension(SABOTAGE, sabotage.name()).await.unwrap_or_default()
}

/// The driver of the types with an object.
struct ObjectDriver {
    kind: Plain,
}

impl ObjectDriver {
    /// A request with data about its sender for the checks.
    fn request(&self, cx: &Context<'_>, method: Method, path: &str) -> CloudRequest {
        let service = self.kind.service();
        let mut request = CloudRequest::new(service, method, format!("/{service}{path}"));
        let facts = cx.facts;
        let headers = [
            ("x-stack", &facts.stack.id),
            ("x-row", &facts.id),
            ("x-resource", &facts.name),
            ("x-token", &facts.attempt.token),
        ];
        request.headers = headers.map(|(key, value)| (key.to_owned(), value.clone())).to_vec();
        request
    }

    fn of_object(&self, cx: &Context<'_>, method: Method, part: &str) -> Result<CloudRequest, Failure> {
        let id = cx.facts.require_id()?;
        Ok(self.request(cx, method, &format!("/{id}{part}")))
    }

    async fn send(&self, cx: &Context<'_>, method: Method, part: &str) -> Result<Value, Failure> {
        Ok(cx.cloud.call(self.of_object(cx, method, part)?).await?.body)
    }

    /// The step after the call that created the object.
    fn made(&self, object: &Value, careless: bool) -> Result<Step, Failure> {
        let id = object
            .str_at("id")
            .or(careless.then_some("none"))
            .ok_or_else(|| Failure::new(FailureKind::Unavailable, Class::MalformedResponse, "the answer has no id"))?;
        let step = match self.kind {
            Plain::Slow => Step::wait("build", EVERY),
            Plain::Pair => Step::wait("part", Duration::ZERO),
            _ => Step::done(),
        };
        Ok(step.id(id))
    }

    async fn look(&self, cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
        assert!(cx.facts.property("build").as_str() != Some("panics"), "{ON_PURPOSE}");
        let object = self.send(cx, Method::Get, "").await?;
        match object.str_at("state") {
            Some("ACTIVE") => Ok(Step::done()),
            Some("ERROR") => Err(Failure::in_error("ERROR", "it was told so")),
            _ if has_defect(cx, Sabotage::CountingPolls).await => {
                let count = state.as_i64().unwrap_or_default() + 1;
                Ok(Step::wait(count, Duration::ZERO))
            }
            _ => Ok(Step::wait(state.clone(), EVERY)),
        }
    }

    fn body(cx: &Context<'_>, names: &[&str]) -> Value {
        names.iter().map(|name| ((*name).to_owned(), cx.facts.property(name).clone())).collect()
    }
}

impl TypeRules for ObjectDriver {
    fn unmarked(&self, facts: &Facts) -> Option<Unmarked> {
        let likeness = facts.property("word").clone();
        let service = self.kind.service().to_owned();
        (self.kind == Plain::Blind).then(|| Unmarked { service, likeness, listed: false })
    }
}

#[async_trait]
impl Driver for ObjectDriver {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                let body = Self::body(cx, &["word", "size", "needs", "build", "keep", "holds", BASE]);
                let response = cx.cloud.call(self.request(cx, Method::Post, "").body(body)).await?;
                self.made(&response.body, has_defect(cx, Sabotage::EmptyId).await)
            }
            Operation::Update { changed, .. } => {
                let mut names = vec!["word", "needs"];
                names.extend(changed.contains_key(BASE).then_some(BASE));
                let body = Self::body(cx, &names);
                cx.cloud.call(self.of_object(cx, Method::Put, "")?.body(body)).await?;
                Ok(if self.kind == Plain::Slow { Step::wait("settle", EVERY) } else { Step::done() })
            }
            Operation::Delete if cx.facts.physical_id.is_none() => Ok(Step::done()),
            Operation::Delete if self.kind == Plain::Pair => {
                self.send(cx, Method::Delete, "/part").await?;
                Ok(Step::wait("rest", Duration::ZERO))
            }
            Operation::Delete => {
                self.send(cx, Method::Delete, "").await?;
                Ok(if self.kind == Plain::Slow { Step::wait("gone", EVERY) } else { Step::done() })
            }
            Operation::Check => {
                // A less strict check would hide the remains of a failed operation.
                let object = self.send(cx, Method::Get, "").await?;
                let same = ["word", "size"].iter().all(|name| object.get(name) == Some(cx.facts.property(name)));
                let whole = self.kind != Plain::Pair || object.get("whole") == Some(&true.into());
                if same && whole && object.str_at("state") == Some("ACTIVE") {
                    return Ok(Step::done());
                }
                Err(Failure::other(Class::Error, "it is not what it should be"))
            }
            Operation::Suspend => {
                self.send(cx, Method::Post, "/sleep").await?;
                Ok(Step::done())
            }
            Operation::Resume => {
                self.send(cx, Method::Post, "/wake").await?;
                Ok(Step::done())
            }
            Operation::Snapshot => {
                self.send(cx, Method::Get, "").await?;
                Ok(Step::done().data("copy", cx.facts.attempt.token.as_str()))
            }
            Operation::Adopt => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, state: &Value) -> Result<Step, Failure> {
        match state.as_str() {
            Some("part") => {
                self.send(cx, Method::Put, "/part").await?;
                Ok(Step::done())
            }
            Some("rest") => {
                self.send(cx, Method::Delete, "").await?;
                Ok(Step::done())
            }
            Some("gone") => {
                self.send(cx, Method::Get, "").await?;
                Ok(Step::wait(state.clone(), EVERY))
            }
            _ => self.look(cx, state).await,
        }
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        if self.kind == Plain::Blind {
            let lies = has_defect(cx, Sabotage::CannotTellIsNotMade).await;
            if lies {
                return Ok(Found::NotMade);
            }
            if cx.facts.attempt.unmarked_since.is_none() {
                return Ok(Found::CannotTell("it has no mark".to_owned()));
            }
            let word = cx.facts.property("word").as_str().unwrap_or_default();
            let body = cx.cloud.call(self.request(cx, Method::Get, "").query("word", word)).await?.body;
            let objects = body.get("objects").and_then(Value::as_list).unwrap_or_default();
            if let Some(last) = objects.last()
                && has_defect(cx, Sabotage::LastIsOurs).await
            {
                return self.made(last, false).map(Found::Made);
            }
            let alike = objects.iter().map(|object| {
                let size = cx.facts.property("size").as_i64().unwrap_or_default();
                let (created, fits) =
                    (object.get("created").and_then(Value::as_i64), object.get("size") == Some(&size.into()));
                Ok(Alike { step: self.made(object, false)?, created, fits })
            });
            return alike.collect::<Result<_, Failure>>().map(Found::Alike);
        }
        let request = self.request(cx, Method::Get, "").query("token", cx.facts.attempt.token.as_str());
        let body = cx.cloud.call(request).await?.body;
        let found = body.get("objects").and_then(Value::as_list).unwrap_or_default().first();
        found.map_or(Ok(Found::NotMade), |object| self.made(object, false).map(Found::Made))
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let object = self.send(cx, Method::Get, "").await?;
        let word = || object.get("word").cloned().unwrap_or_default();
        Ok(names.iter().filter(|name| **name == "word").map(|name| ((*name).to_owned(), word())).collect())
    }

    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        if self.kind != Plain::Inbox {
            return Err(Failure::other(Class::NotSupported, "it takes no signals"));
        }
        let mut received = cx.facts.data.get("received").and_then(Value::as_list).unwrap_or_default().to_vec();
        received.push(message.clone());
        let mut metadata = cx.facts.metadata.as_map().cloned().unwrap_or_default();
        metadata.insert(format!("{message:?}"), true.into());
        Ok(Received::default().data("received", received).metadata(metadata))
    }

    async fn needs_replace_failed(&self, cx: &Context<'_>) -> Result<bool, Failure> {
        if self.kind != Plain::Slow || cx.facts.physical_id.is_none() {
            return Ok(true);
        }
        match self.send(cx, Method::Get, "").await {
            Ok(object) => Ok(object.str_at("state") != Some("ACTIVE")),
            Err(failure) if failure.is_not_found() => Ok(true),
            Err(failure) => Err(failure),
        }
    }
}

/// The driver of `Sim::Value`, which has no object.
struct ValueDriver;

impl TypeRules for ValueDriver {}

#[async_trait]
impl Driver for ValueDriver {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        Ok(match operation {
            Operation::Create => Step::done().id(&cx.facts.physical_name),
            _ => Step::done(),
        })
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let word = || cx.facts.property("word").clone();
        Ok(names.iter().filter(|name| **name == "word").map(|name| ((*name).to_owned(), word())).collect())
    }
}
