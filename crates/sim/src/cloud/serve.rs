//! Execution of requests.

use kiln_resource::{CloudRequest, Method};
use kiln_value::{Map, Value, value};

use super::{Object, Phase, SimCloud};
use crate::bases::BASE;
use crate::template_model::{Build, Plain};

/// A parsed request.
#[derive(Clone, Debug)]
pub(crate) struct CloudCall {
    /// The service.
    pub kind: Plain,
    /// The method.
    pub method: Method,
    /// The object.
    pub id: Option<String>,
    /// A part of the object.
    pub part: Option<String>,
    /// The mark to search for.
    pub mark: Option<String>,
    /// The word to search for.
    pub word: Option<String>,
    /// The body.
    pub body: Map,
    /// The stack of the sender, for the checks only.
    pub stack: String,
    /// The row of the sender, for the checks only.
    pub row: String,
    /// The resource of the sender, for the checks only.
    pub resource: String,
    /// The token of the sender, for the checks only.
    pub token: String,
}

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The message.
    pub text: String,
}

impl Refusal {
    /// An error response.
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

/// The result of a request, for the caller and for the checks.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The response.
    pub result: Result<Value, Refusal>,
    /// Another live object with the same token, if it was created twice.
    pub twin: Option<String>,
    /// Live objects that depend on the deleted one.
    pub dependants: Vec<Object>,
    /// Whether there were too many requests for the object.
    pub hammered: bool,
}

/// The speed of the services for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Duration of creates, updates and deletes that take time.
    pub build_ms: u64,
    /// Delay until a new object is listed.
    pub lag_ms: u64,
    /// Somebody else creates an object with the same word at the same time.
    pub has_twin: bool,
}

impl CloudCall {
    /// Parses a request; `None` if no service supports it.
    pub(crate) fn read(request: &CloudRequest) -> Option<Self> {
        let kind = Plain::of_service(&request.service)?;
        let mut parts = request.path.split('/').filter(|part| !part.is_empty());
        if parts.next() != Some(kind.service()) {
            return None;
        }
        let header = |name: &str| {
            let found = request.headers.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let query = |name: &str| request.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        Some(Self {
            kind,
            method: request.method,
            id: parts.next().map(str::to_owned),
            part: parts.next().map(str::to_owned),
            mark: query("token"),
            word: query("word"),
            body: request.body.as_ref().and_then(Value::as_map).cloned().unwrap_or_default(),
            stack: header("x-stack"),
            row: header("x-row"),
            resource: header("x-resource"),
            token: header("x-token"),
        })
    }

    /// Whether it is a write.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.method, Method::Get | Method::Head)
    }
}

impl SimCloud {
    /// Executes a request.
    pub(crate) fn serve(&mut self, call: &CloudCall, pace: Pace, now_ms: u64) -> Answer {
        self.pass_time(now_ms);
        self.served += 1;
        let mut answer = Answer { result: Ok(Value::Null), twin: None, dependants: Vec::new(), hammered: false };
        if let Some(what) = call.id.as_ref().or(call.mark.as_ref()) {
            answer.hammered = !self.paced(what, now_ms);
        }
        answer.result = match (call.method, &call.id, &call.part) {
            (Method::Post, None, None) => self.make(call, pace, now_ms, &mut answer),
            (Method::Get, None, None) => Ok(self.list(call, now_ms)),
            (Method::Delete, Some(id), None) => self.delete(call, id, pace, now_ms, &mut answer),
            (method, Some(id), part) => self.touch(method, id, part.as_deref(), call, pace, now_ms),
            _ => Err(Refusal::new(405, "no such method")),
        };
        answer
    }

    fn make(&mut self, call: &CloudCall, pace: Pace, now_ms: u64, answer: &mut Answer) -> Result<Value, Refusal> {
        let text = |key: &str| call.body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let holds = Some(text("holds")).filter(|name| !name.is_empty());
        if let Some(name) = &holds
            && self.objects.values().any(|other| other.holds.as_ref() == Some(name) && !other.keep)
        {
            return Err(Refusal::new(409, format!("{name} is taken")));
        }
        answer.twin = self.objects.values().find(|other| other.token == call.token).map(|other| other.id.clone());
        self.count += 1;
        let made = self.made.entry((call.stack.clone(), call.resource.clone())).or_default();
        *made += 1;
        let takes = if call.kind == Plain::Slow { pace.build_ms } else { 0 };
        let phase = match Build::from_word(&text("build")) {
            Build::Never => Phase::Building { until: None, fails: false },
            Build::Fails(count) => Phase::Building { until: Some(now_ms + takes), fails: *made <= count },
            Build::Takes(ms) => Phase::Building { until: Some(now_ms + ms), fails: false },
            Build::Sound | Build::Panics => Phase::Building { until: Some(now_ms + takes), fails: false },
        };
        let mut object = Object {
            id: format!("{}-{}", call.kind.service(), self.count),
            kind: call.kind,
            token: call.token.clone(),
            stack: call.stack.clone(),
            resource: call.resource.clone(),
            row: call.row.clone(),
            word: text("word"),
            created_ms: now_ms,
            size: call.body.get("size").and_then(Value::as_i64).unwrap_or_default(),
            needs: needs_of(&call.body),
            base: text(BASE),
            holds,
            keep: call.body.get("keep").is_some_and(Value::is_truthy),
            asleep: false,
            whole: false,
            phase,
            listed_ms: now_ms + pace.lag_ms,
        };
        // Objects that are not polled are ready immediately.
        if call.kind != Plain::Slow {
            object.phase = Phase::Active;
        }
        if pace.has_twin {
            self.add_twin(&object, object.size);
        }
        let view = object.view();
        self.objects.insert(object.id.clone(), object);
        Ok(view)
    }

    fn add_twin(&mut self, object: &Object, size: i64) {
        self.count += 1;
        let twin = object.twin(format!("{}-{}", object.kind.service(), self.count), size);
        self.objects.insert(twin.id.clone(), twin);
    }

    /// Somebody else creates another object with the same word, while the request gets lost.
    pub(crate) fn make_other(&mut self, call: &CloudCall, now_ms: u64) {
        let mut answer = Answer { result: Ok(Value::Null), twin: None, dependants: Vec::new(), hammered: false };
        let pace = Pace { build_ms: 0, lag_ms: 0, has_twin: false };
        let made = self.make(call, pace, now_ms, &mut answer).ok();
        let made = made.and_then(|made| self.objects.remove(made.str_at("id")?));
        if let Some(object) = made {
            self.add_twin(&object, object.size + 1);
        }
    }

    fn list(&self, call: &CloudCall, now_ms: u64) -> Value {
        let marked = |object: &&Object| {
            let seen = object.kind == call.kind && object.listed_ms <= now_ms;
            seen && call.mark.as_ref().is_none_or(|mark| *mark == object.token)
                && call.word.as_ref().is_none_or(|word| *word == object.word)
        };
        let list: Value = self.objects.values().filter(marked).map(Object::view).collect();
        value!({"objects": list})
    }

    fn delete(
        &mut self,
        call: &CloudCall,
        id: &str,
        pace: Pace,
        now_ms: u64,
        answer: &mut Answer,
    ) -> Result<Value, Refusal> {
        let gone = || Refusal::new(404, format!("{id} does not exist"));
        let object = self.objects.get(id).filter(|object| object.kind == call.kind).ok_or_else(gone)?;
        if object.whole && object.kind == Plain::Pair {
            return Err(Refusal::new(409, format!("{id} has a part")));
        }
        // Retained and unknown objects do not block a delete.
        let needs = |other: &&Object| other.needs.iter().any(|need| need == id) && !other.keep;
        answer.dependants = self.objects.values().filter(needs).cloned().collect();
        if answer.dependants.iter().any(|other| other.kind != Plain::Blind && other.stack == call.stack) {
            return Err(Refusal::new(409, format!("{id} is in use")));
        }
        let takes = if call.kind == Plain::Slow { pace.build_ms } else { 0 };
        if let Some(object) = self.objects.get_mut(id)
            && !matches!(object.phase, Phase::Deleting { .. })
        {
            object.phase = Phase::Deleting { until: now_ms + takes };
        }
        self.pass_time(now_ms);
        Ok(Value::Null)
    }

    fn touch(
        &mut self,
        method: Method,
        id: &str,
        part: Option<&str>,
        call: &CloudCall,
        pace: Pace,
        now_ms: u64,
    ) -> Result<Value, Refusal> {
        let gone = || Refusal::new(404, format!("{id} does not exist"));
        let object = self.objects.get_mut(id).filter(|object| object.kind == call.kind).ok_or_else(gone)?;
        if method != Method::Get && matches!(object.phase, Phase::Deleting { .. }) {
            return Err(gone());
        }
        match (method, part) {
            (Method::Get, None) => {}
            (Method::Put, None) => {
                if let Some(word) = call.body.get("word").and_then(Value::as_str) {
                    word.clone_into(&mut object.word);
                }
                if let Some(base) = call.body.get(BASE) {
                    base.as_str().unwrap_or_default().clone_into(&mut object.base);
                }
                if call.body.contains_key("needs") {
                    object.needs = needs_of(&call.body);
                }
                if call.kind == Plain::Slow && object.phase == Phase::Active {
                    object.phase = Phase::Building { until: Some(now_ms + pace.build_ms), fails: false };
                }
            }
            (Method::Put, Some("part")) => object.whole = true,
            (Method::Delete, Some("part")) => object.whole = false,
            (Method::Post, Some("sleep")) => object.asleep = true,
            (Method::Post, Some("wake")) => object.asleep = false,
            _ => return Err(Refusal::new(405, "no such method")),
        }
        Ok(object.view())
    }
}

fn needs_of(body: &Map) -> Vec<String> {
    let needs = body.get("needs").and_then(Value::as_list).unwrap_or_default();
    needs.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
