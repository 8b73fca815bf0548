//! Vectors of the kind `lifecycle`: requests to a stack, executed by an engine with a database in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use kiln_engine::{Engine, Options};
use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Blueprint, Nesting, ResourceTypes, Rules, Sources};
use kiln_resource::{Action, Registry, Resource, StackId};
use kiln_service::{StackContent, TemplateText, UpdateStack};
use kiln_stack::{Backends, Chance, Clouds, LoadedStack, SystemClock, load};
use kiln_store::{EventQuery, HealthMark, Message, MessageBody, MessageId, NewStack, Stack, StackRequest, Store};
use kiln_store::{Options as StoreOptions, SqlStore};
use kiln_template::Files;
use kiln_template::StackIdentity;
use kiln_template::constraint::AcceptAll;
use kiln_template::environment::{self, Environment};
use kiln_value::{Class, Diagnostic, Map, Secret, Value, value};
use tokio::time::Instant;

use crate::case::{Case, Outcome};
use crate::gate::{self, Gate, GatedClouds, Hold};
use crate::signals::{self, Users};

const TENANT: &str = "test_tenant_id";
const NAME: &str = "teststack";
/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(10);

static CATALOG: LazyLock<Arc<ResourceTypes>> = LazyLock::new(|| {
    let types = kiln_resource::shipped::types().expect("the definition files are sound");
    Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for)))
});

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let steps = case.input("steps").as_list().unwrap_or_default();
    let known = [
        "create",
        "update",
        "delete",
        "rollback",
        "check",
        "suspend",
        "resume",
        "preview_update",
        "export",
        "mark_unhealthy",
        "signal",
    ];
    if !steps.iter().all(|step| known.contains(&step.str_at("op").unwrap_or_default())) {
        return Outcome::NotRun;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let wanted = case.expect.get("steps").and_then(Value::as_list).unwrap_or_default();
        let mut bench =
            Bench::new(steps.iter().zip(wanted).any(|(step, wanted)| Hold::of(step, wanted).is_some())).await;
        let nested = case.input("nested").is_truthy();
        for (step, wanted) in steps.iter().zip(wanted) {
            let found = if let Some(hold) = Hold::of(step, wanted) {
                bench.step_until(step, wanted, hold).await
            } else {
                let got = bench.step(step, nested, signals_during(step, wanted)).await;
                bench.difference(wanted, &got)
            };
            if let Some(diff) = found {
                return Outcome::Failed(format!("{}: {diff}", step.str_at("op").unwrap_or_default()));
            }
        }
        Outcome::Passed
    })
}

struct Bench {
    backends: Backends,
    stack: Option<StackId>,
    /// Events seen before this step.
    seen: usize,
    /// Physical IDs in the order of their first appearance.
    ids: HashMap<(String, String), String>,
    counts: HashMap<String, usize>,
    gate: Arc<Gate>,
    /// The call that is held, and the events of the reference until then.
    held: Option<(Action, Vec<Value>)>,
    /// Objects have other numbers than in the reference.
    renumbered: bool,
}

impl Bench {
    /// `gated`: the engine can be held.
    async fn new(gated: bool) -> Self {
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(StoreOptions::new("sqlite::memory:", key)).await.expect("a database");
        store.migrate().await.expect("a schema");
        let gate = Arc::new(Gate::default());
        let (resource_types, clouds): (_, Arc<dyn Clouds>) = if gated {
            (Arc::new(gate::types(&gate)), Arc::new(GatedClouds(Arc::clone(&gate))))
        } else {
            (Arc::clone(&CATALOG), Arc::new(Users::default()))
        };
        let backends = Backends {
            store: Arc::new(store),
            resource_types,
            clouds,
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::from_os()),
            caches: Arc::default(),
        };
        let engine = Engine::new(Options { poll: Duration::from_millis(100), ..Options::default() }, backends.clone());
        let (keep, stop) = tokio::sync::watch::channel(false);
        tokio::spawn(async move {
            let _keep = keep;
            engine.run(stop).await
        });
        Self {
            backends,
            stack: None,
            seen: 0,
            ids: HashMap::new(),
            counts: HashMap::new(),
            gate,
            held: None,
            renumbered: false,
        }
    }

    fn now() -> jiff::Timestamp {
        use kiln_stack::Clock as _;
        SystemClock.now()
    }

    /// A step up to where the reference stopped: the difference, if that is never reached.
    async fn step_until(&mut self, step: &Value, wanted: &Value, hold: Hold) -> Option<String> {
        let mut wanted = wanted.clone();
        let call = hold.call.as_ref().map(|(_, action)| *action);
        self.gate.close(hold);
        let mut at_once = Map::new();
        self.ask(step, &mut at_once).await;
        let Some(id) = self.stack.filter(|_| at_once.is_empty()) else { return Some(format!("refused: {at_once:?}")) };
        let (start, seen) = (Instant::now(), self.seen);
        let events = if call.is_some() {
            // While the call is under way, the resource and its events are not yet as the reference left them. The events
            // are compared with those of the next step.
            let parts = wanted.as_map_mut().expect("a map");
            parts.shift_remove("resources");
            let events = parts.shift_remove("events").expect("events");
            Some(events.as_list().unwrap_or_default().to_vec())
        } else {
            None
        };
        loop {
            let mut got = value!({});
            let stack = self.backends.store.stack(id).await.expect("read").expect("there");
            let report = got.as_map_mut().expect("a map");
            self.report(&stack, report, false).await;
            // The reference stores what it is going to create; Kiln shows it.
            let view = LoadedStack::load(&self.backends, id).await.expect("read").expect("the stack");
            report.insert("resources".to_owned(), self.rows(kiln_view::listed(&view)));
            let found = if self.gate.is_reached() {
                difference(&wanted, &got, &Compared::All)
            } else {
                Some("the engine does not come to where the reference stopped".to_owned())
            };
            if found.is_none() || start.elapsed() > PATIENCE {
                if call.is_some() {
                    self.seen = seen;
                }
                self.held = call.zip(events);
                return found;
            }
            self.seen = seen;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn step(&mut self, step: &Value, nested: bool, signals: Vec<String>) -> Value {
        let mut got = value!({});
        let report = got.as_map_mut().expect("a map");
        let held = self.held.as_ref().map(|(action, _)| *action);
        self.gate.open(held == Some(Action::Update));
        self.ask(step, report).await;
        if held == Some(Action::Create) {
            self.gate.end_call();
        }
        // Names that are given as before are not looked up, so that the gate may see no work on the request.
        let gate = Arc::clone(&self.gate);
        let late = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            gate.end_call();
        });
        if let Some(id) = self.stack {
            self.signal_all(id, signals).await;
            let stack = self.settled(id).await;
            self.report(&stack, report, nested).await;
        }
        late.abort();
        got
    }

    /// Sends the request of a step, and reports what is known at once.
    async fn ask(&mut self, step: &Value, report: &mut Map) {
        let op = step.str_at("op").unwrap_or_default();
        let mut result = None;
        let mut exported = Map::new();
        let asked = match op {
            "preview_update" => match self.preview(step).await {
                Ok(changes) => {
                    result = Some(changes);
                    Ok(())
                }
                Err(error) => Err(error),
            },
            "export" => {
                exported = self.export().await;
                Ok(())
            }
            "mark_unhealthy" => self.mark_unhealthy(step).await,
            "create" => self.create(step).await,
            "signal" => signals::send(&self.backends, self.stack.expect("a stack"), step).await,
            "update" if step.get("args").is_some_and(|args| args.get("existing").is_some()) => self.patch(step).await,
            "update" => self.update(step).await,
            "delete" => self.request(StackRequest::new(Action::Delete, Self::now())).await,
            "rollback" => self.request(StackRequest::new(Action::Rollback, Self::now())).await,
            "check" => self.request(StackRequest::new(Action::Check, Self::now())).await,
            "suspend" => self.request(StackRequest::new(Action::Suspend, Self::now())).await,
            _ => self.request(StackRequest::new(Action::Resume, Self::now())).await,
        };
        report.extend(exported);
        if let Some(result) = result {
            report.insert("result".to_owned(), result);
        }
        if let Err(error) = asked {
            report.insert(
                "exception".to_owned(),
                value!({"class": (error.class.to_string()), "message": (error.to_string())}),
            );
        }
    }

    /// Signals resources while another one waits for them.
    async fn signal_all(&self, id: StackId, resources: Vec<String>) {
        let is_waiting =
            |row: &kiln_resource::Resource| row.resource_type == "OS::Heat::WaitCondition" && row.running().is_some();
        while !resources.is_empty() && !self.backends.store.resources(id).await.expect("read").iter().any(is_waiting) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for resource in resources {
            let step = value!({ "resource": resource });
            signals::send(&self.backends, id, &step).await.expect("a signal");
        }
    }

    fn blueprint(step: &Value) -> Result<Sources, Diagnostic> {
        let mut sections = step.get("env").and_then(Value::as_map).cloned().unwrap_or_default();
        environment::fill(&mut sections);
        let files: BTreeMap<String, String> = step
            .get("files")
            .and_then(Value::as_map)
            .into_iter()
            .flatten()
            .map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()))
            .collect();
        let sources = Sources {
            template: Arc::new(step.get("template").cloned().unwrap_or_default()),
            environment: Arc::new(Environment::from_sections(&sections)?),
            files: Arc::new(Files(files)),
        };
        let identity = StackIdentity::new(TENANT, NAME, "11111111-2222-4333-8444-555555555555")?;
        let blueprint = Blueprint::build(sources.clone(), &CATALOG, Some(identity), Nesting::default())?;
        let rules = Rules {
            catalog: &CATALOG,
            custom: &AcceptAll,
            answers: &HashMap::new(),
            unavailable: &|_, _| None,
            strict: true,
            values: true,
            max_depth: 5,
            unbuilt: false,
        };
        match blueprint.validate(&rules).into_iter().next() {
            Some(error) => Err(error),
            None => Ok(sources),
        }
    }

    async fn create(&mut self, step: &Value) -> Result<(), Diagnostic> {
        let sources = Self::blueprint(step)?;
        let id = StackId(self.backends.chance.uuid());
        let disable_rollback =
            step.get("args").and_then(|args| args.get("disable_rollback")).is_none_or(Value::is_truthy);
        let new = NewStack {
            disable_rollback,
            username: "user".to_owned(),
            user_id: "user".to_owned(),
            ..NewStack::new(id, NAME.to_owned(), TENANT.to_owned(), load::texts(&sources), Self::now())
        };
        self.backends.store.create_stack(new).await.expect("stored");
        self.stack = Some(id);
        Ok(())
    }

    async fn update(&mut self, step: &Value) -> Result<(), Diagnostic> {
        let sources = Self::blueprint(step)?;
        let mut request = StackRequest::new(Action::Update, Self::now());
        request.desired = Some(load::texts(&sources));
        request.disable_rollback = step.get("args").and_then(|args| args.get("disable_rollback")).map(Value::is_truthy);
        self.request(request).await
    }

    /// An update that keeps what it does not give.
    async fn patch(&mut self, step: &Value) -> Result<(), Diagnostic> {
        let service = signals::service(&self.backends);
        let limits = &service.options.limits;
        let template = step.get("template").and_then(Value::as_map).cloned();
        let template = template.map(|template| TemplateText::of_map(template, limits)).transpose();
        let cleared = step.get("args").and_then(|args| args.get("clear_parameters")).and_then(Value::as_list);
        let sections = environment::from_request(step.get("env"), &Map::new())?;
        let update = UpdateStack {
            template: template.map_err(|error| refused(&error))?,
            content: StackContent { sections, ..StackContent::default() },
            existing: true,
            clear_parameters: cleared.into_iter().flatten().map(kiln_value::text::str).collect(),
            ..UpdateStack::default()
        };
        let caller = service.identity.authenticate(&http::HeaderMap::new()).await.expect("the owner");
        let stack = self.backends.store.stack(self.stack.expect("a stack")).await.expect("read").expect("there");
        service.update_stack(&caller, &stack, update).await.map(drop).map_err(|error| refused(&error))
    }

    async fn preview(&mut self, step: &Value) -> Result<Value, Diagnostic> {
        let sources = Self::blueprint(step)?;
        let id = self.stack.expect("a stack");
        let mut view = LoadedStack::load(&self.backends, id).await.expect("read").expect("there");
        let identity = load::identity(&view.stack);
        let new = Blueprint::build(sources, &CATALOG, identity, Nesting::default())?;
        let preview = kiln_view::preview(
            &self.backends,
            &mut view,
            Arc::new(new),
            kiln_view::Terms::default(),
            &mut HiddenValues::default(),
        )
        .await
        .expect("a preview");
        let mut lists: BTreeMap<&str, Vec<String>> =
            ["unchanged", "updated", "replaced", "added", "deleted"].map(|list| (list, Vec::new())).into();
        for entry in preview.entries {
            lists.entry(entry.list()).or_default().push(entry.name);
        }
        Ok(lists
            .into_iter()
            .map(|(list, mut names)| {
                names.sort();
                (list, Value::from(names))
            })
            .collect())
    }

    /// The keys of the exported data.
    async fn export(&self) -> Map {
        let stack = self.backends.store.stack(self.stack.expect("a stack")).await.expect("read").expect("there");
        let data = kiln_stack::export(&self.backends, &stack).await.expect("exported");
        let keys = |value: &Value| {
            let mut keys: Vec<String> = value.as_map().into_iter().flatten().map(|(key, _)| key.clone()).collect();
            keys.sort();
            Value::from(keys)
        };
        let resources = data.get("resources").and_then(Value::as_map).into_iter().flatten();
        let of_resources: Value = resources.map(|(name, data)| (name.clone(), keys(data))).collect();
        let entries = [("result_keys", keys(&data)), ("resource_keys", of_resources)];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    async fn mark_unhealthy(&self, step: &Value) -> Result<(), Diagnostic> {
        let stack = self.stack.expect("a stack");
        let name = step.str_at("resource").unwrap_or_default();
        if !self.backends.store.resources(stack).await.expect("read").iter().any(|row| row.name == name) {
            let text = format!("The Resource ({name}) could not be found in Stack <stack-name>.");
            return Err(Diagnostic::new(Class::ResourceNotFound, text));
        }
        let unhealthy = step.get("flag").is_none_or(Value::is_truthy);
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack,
            resource: Some(name.to_owned()),
            body: MessageBody::MarkUnhealthy(HealthMark {
                unhealthy,
                reason: step.str_at("reason").map(str::to_owned),
            }),
            due: Self::now(),
            sent: Self::now(),
        };
        self.backends.store.send(&message).await.expect("stored");
        while !self.backends.store.inbox(stack, Self::now()).await.expect("read").is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    async fn request(&mut self, request: StackRequest) -> Result<(), Diagnostic> {
        if let Some(id) = self.stack {
            self.backends.store.request(id, request).await.expect("stored");
        }
        Ok(())
    }

    /// The difference of a step from the reference.
    fn difference(&mut self, wanted: &Value, got: &Value) -> Option<String> {
        let compared = match self.held.take() {
            None if self.renumbered => Compared::Unnumbered,
            None => Compared::All,
            Some((Action::Create, before)) => {
                self.renumbered = true;
                Compared::End(before)
            }
            Some((_, before)) => Compared::ByResource(before),
        };
        difference(wanted, got, &compared)
    }

    async fn settled(&self, id: StackId) -> Stack {
        let start = Instant::now();
        loop {
            let stack = self.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() || start.elapsed() > PATIENCE {
                return stack;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn report(&mut self, stack: &Stack, report: &mut Map, nested: bool) {
        report.insert(
            "stack".to_owned(),
            value!({
                "action": (stack.state.action.as_str()),
                "status": (stack.state.status.as_str()),
                "reason": (stack.reason.as_str()),
                "deleted": (stack.deleted.is_some()),
            }),
        );
        let query = EventQuery { stacks: vec![stack.id], ..EventQuery::default() };
        let events = self.backends.store.events(&query).await.expect("read");
        let new: Vec<Value> = events
            .iter()
            .skip(self.seen)
            .map(|event| {
                let of_stack = event.is_of_stack();
                let physical = if of_stack {
                    Value::Null
                } else {
                    self.number(&event.resource_name, event.physical_id.as_deref())
                };
                value!({
                    "resource": (if of_stack { "<stack>" } else { event.resource_name.as_str() }),
                    "action": (event.action.as_str()),
                    "status": (event.status.as_str()),
                    "reason": (self.renumber(self.anonymous(&event.reason).into())),
                    "physical_id": physical,
                })
            })
            .collect();
        self.seen = events.len();
        report.insert("events".to_owned(), Value::List(new));
        let Ok(Some(view)) = LoadedStack::load(&self.backends, stack.id).await else { return };
        let rows = if stack.deleted.is_some() { Vec::new() } else { view.resources().cloned().collect() };
        report.insert("resources".to_owned(), self.rows(rows));
        if stack.deleted.is_none() {
            self.number_all(stack.id).await;
            let mut outputs = view.outputs(None).await;
            outputs.sort_by(|a, b| a.key.cmp(&b.key));
            let outputs: Vec<Value> = outputs
                .into_iter()
                .map(|output| {
                    let mut entry = value!({
                        "output_key": (output.key),
                        "description": (output.description),
                        "output_value": (self.renumber(output.value)),
                    });
                    if let (Some(error), Some(map)) = (output.error, entry.as_map_mut()) {
                        map.insert("output_error".to_owned(), error.into());
                    }
                    entry
                })
                .collect();
            report.insert("outputs".to_owned(), Value::List(outputs));
            let parameters = view.blueprint.parameters();
            let own = parameters.iter().filter(|parameter| parameters.schemata().contains_key(parameter.name()));
            let texts: Value = own.map(|parameter| (parameter.name(), parameter.text().ok())).collect();
            report.insert("parameters".to_owned(), texts);
            if nested {
                let mut all = Vec::new();
                self.nested("", stack.id, &mut all).await;
                report.insert("nested_resources".to_owned(), Value::List(all));
            }
        }
    }

    fn rows(&mut self, mut rows: Vec<Resource>) -> Value {
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        let shown = rows.iter().map(|row| {
            value!({
                "name": (row.name.as_str()),
                "action": (row.state.action.as_str()),
                "status": (row.state.status.as_str()),
                "reason": (self.renumber(self.anonymous(&row.reason).into())),
                "physical_id": (self.number(&row.name, row.physical_id.as_deref())),
            })
        });
        Value::List(shown.collect())
    }

    fn nested<'a>(
        &'a self,
        parent: &'a str,
        id: StackId,
        all: &'a mut Vec<Value>,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async move {
            let mut rows = self.backends.store.resources(id).await.expect("read");
            rows.sort_by(|a, b| a.name.cmp(&b.name));
            for row in &rows {
                all.push(value!([
                    parent,
                    (row.name.as_str()),
                    (row.resource_type.as_str()),
                    (row.state.to_string()),
                    (row.reason.as_str())
                ]));
            }
            for row in &rows {
                if let Some(child) = row.child {
                    self.nested(&row.name, child, all).await;
                }
            }
        })
    }

    /// A text without names that are specific to this run.
    fn anonymous(&self, text: &str) -> String {
        let id = self.stack.map(|id| id.to_string()).unwrap_or_default();
        text.replace(&id, "<stack-id>").replace(&format!("\"{NAME}\""), "\"<stack-name>\"")
    }

    /// Numbers the objects in nested stacks, for outputs.
    async fn number_all(&mut self, id: StackId) {
        let mut stacks = vec![id];
        while let Some(id) = stacks.pop() {
            let rows = self.backends.store.resources(id).await.expect("read");
            for row in &rows {
                self.number(&row.name, row.physical_id.as_deref());
            }
            stacks.extend(rows.iter().filter_map(|row| row.child));
        }
    }

    fn number(&mut self, resource: &str, physical: Option<&str>) -> Value {
        let Some(physical) = physical else { return Value::Null };
        let key = (resource.to_owned(), physical.to_owned());
        if let Some(known) = self.ids.get(&key) {
            return known.as_str().into();
        }
        let count = self.counts.entry(resource.to_owned()).or_default();
        *count += 1;
        let name = format!("{resource}#{count}");
        self.ids.insert(key, name.clone());
        name.into()
    }

    fn renumber(&self, value: Value) -> Value {
        match value {
            Value::Str(mut text) => {
                // The longest first: the name of a nested stack is a prefix of the names in it.
                let mut ids: Vec<_> = self.ids.iter().collect();
                ids.sort_by_key(|((_, physical), _)| std::cmp::Reverse(physical.len()));
                for ((_, physical), name) in ids {
                    text = text.replace(physical, name);
                }

                text.into()
            }
            Value::List(items) => Value::List(items.into_iter().map(|item| self.renumber(item)).collect()),
            Value::Map(map) => Value::Map(map.into_iter().map(|(k, v)| (k, self.renumber(v))).collect()),
            other => other,
        }
    }
}

/// The resources that the reference signalled during another request, by its events.
fn signals_during(step: &Value, wanted: &Value) -> Vec<String> {
    let events = wanted.get("events").and_then(Value::as_list).unwrap_or_default();
    let signals = events.iter().filter(|event| event.str_at("action") == Some("SIGNAL"));
    // A handle without signals gives its own to the condition that waits.
    let resource = |name: &str| step.get("template")?.get("resources")?.get(name)?.get("properties");
    let gets_some =
        |name: &&str| resource(name).and_then(|given| given.str_at("signal_transport")) != Some("NO_SIGNAL");
    let names = signals.filter_map(|event| event.str_at("resource")).filter(gets_some).map(str::to_owned);
    if step.str_at("op") == Some("signal") { Vec::new() } else { names.collect() }
}

/// What is compared of a step.
enum Compared {
    /// Everything.
    All,
    /// Everything except the numbers of objects: the reference has created fewer before.
    Unnumbered,
    /// A call was under way when the request came; in the reference it was complete. So its end comes after the event of
    /// the request: only the order of the events of each resource is compared, with those before the request.
    ByResource(Vec<Value>),
    /// The reference stopped when the old object was marked and its replacement not begun, and another request reuses
    /// this row. Kiln commits both together, and has called for the replacement. So it creates and deletes one object
    /// more, and as in the reference after its call, replaces it. Compared are the events of the stack, with those before
    /// the request, the last one of each resource, and all other parts, without the numbers of objects.
    End(Vec<Value>),
}

impl Compared {
    /// The parts of the events that are compared.
    fn events(&self, wanted: &Value, got: &Value, unordered: bool) -> (Value, Value) {
        let with = |before: &[Value]| Value::List([before, wanted.as_list().unwrap_or_default()].concat());
        match self {
            Self::All | Self::Unnumbered if unordered => (sorted(wanted), sorted(got)),
            Self::All | Self::Unnumbered if is_only_earlier(wanted, got) => (wanted.clone(), wanted.clone()),
            Self::All | Self::Unnumbered => (wanted.clone(), got.clone()),
            Self::ByResource(before) => (by_resource(&with(before), unordered), by_resource(got, unordered)),
            Self::End(before) => (last_of_each(&with(before), unordered), last_of_each(got, unordered)),
        }
    }

    fn has_numbers(&self) -> bool {
        matches!(self, Self::All | Self::ByResource(_))
    }
}

/// The differences between the reports of two steps.
fn difference(wanted: &Value, got: &Value, compared: &Compared) -> Option<String> {
    if let Some(exception) = wanted.get("exception") {
        let given = got.get("exception");
        let class = given.and_then(|given| given.str_at("class"));
        let message = given.and_then(|given| given.str_at("message"));
        let advisory = exception.get("advisory_message").is_some_and(Value::is_truthy);
        let same_message =
            advisory || exception.get("message").is_none_or(Value::is_null) || exception.str_at("message") == message;
        if exception.str_at("class") != class || !same_message {
            return Some(format!("exception: wanted {exception:?}, got {given:?}"));
        }
    } else if let Some(given) = got.get("exception") {
        return Some(format!("refused: {given:?}"));
    }
    let unordered = wanted.get("event_order_varies").is_some_and(Value::is_truthy);
    for part in ["result", "stack", "events", "resources", "outputs", "parameters", "nested_resources"] {
        let Some(mine) = wanted.get(part) else { continue };
        let theirs = got.get(part).unwrap_or(&Value::Null);
        let (mut mine, mut theirs) = match part {
            "events" => compared.events(mine, theirs, unordered),
            "nested_resources" => (sorted(mine), sorted(theirs)),
            _ => (mine.clone(), theirs.clone()),
        };
        if !compared.has_numbers() {
            (mine, theirs) = (unnumbered(mine), unnumbered(theirs));
        }
        if mine != theirs {
            return Some(format!(
                "{part}:\n  wanted {}\n  got    {}",
                kiln_value::text::json(&mine),
                kiln_value::text::json(&theirs)
            ));
        }
    }
    None
}

fn sorted(list: &Value) -> Value {
    let mut items = list.as_list().unwrap_or_default().to_vec();
    items.sort_by_key(kiln_value::text::json);
    Value::List(items)
}

/// Whether events differ only in that the deletes of objects end earlier: Heat's test plug-in takes a second pass for each.
fn is_only_earlier(wanted: &Value, got: &Value) -> bool {
    let is_end = |event: &Value| event.str_at("action") == Some("DELETE") && event.str_at("status") == Some("COMPLETE");
    let is_begin = |event: &Value| event.str_at("action") == Some("DELETE") && !is_end(event);
    let of_resource = |event: &Value| event.str_at("resource") != Some("<stack>");
    let split = |events: &Value| {
        let (mut others, mut ends) = (Vec::new(), Vec::new());
        for event in events.as_list().unwrap_or_default() {
            if of_resource(event) && is_end(event) {
                ends.push((event.clone(), others.len()));
            } else {
                others.push(event.clone());
            }
        }
        (others, ends)
    };
    let ((mine, my_ends), (theirs, their_ends)) = (split(wanted), split(got));
    let begin = |object: &Value| {
        theirs.iter().position(|event| is_begin(event) && event.get("physical_id") == object.get("physical_id"))
    };
    mine == theirs
        && my_ends.len() == their_ends.len()
        && their_ends.iter().all(|(end, place)| {
            let theirs = my_ends.iter().find(|(other, _)| other == end);
            theirs.is_some_and(|(_, last)| place <= last) && begin(end).is_some_and(|begin| begin < *place)
        })
}

/// The events of each resource in their order.
fn by_resource(events: &Value, unordered: bool) -> Value {
    let mut events = if unordered { sorted(events) } else { events.clone() };
    if let Value::List(events) = &mut events {
        events.sort_by_key(|event| event.str_at("resource").unwrap_or_default().to_owned());
    }
    events
}

/// The events of the stack, and the last one of each resource. Events without order: those of the stack, and the names of
/// the resources.
fn last_of_each(events: &Value, unordered: bool) -> Value {
    let events = by_resource(events, unordered);
    let events = events.as_list().unwrap_or_default();
    let name = |event: &Value| event.str_at("resource").unwrap_or_default().to_owned();
    let is_last = |(i, event): &(usize, &Value)| {
        name(event) == "<stack>" || events.get(i + 1).is_none_or(|next| name(next) != name(event))
    };
    let last = events.iter().enumerate().filter(is_last);
    let shown =
        last.map(|(_, event)| if unordered && name(event) != "<stack>" { name(event).into() } else { event.clone() });
    Value::List(shown.collect())
}

/// Events or resources without the numbers of objects.
fn unnumbered(mut list: Value) -> Value {
    if let Value::List(items) = &mut list {
        items.iter_mut().filter_map(Value::as_map_mut).for_each(|item| drop(item.shift_remove("physical_id")));
    }
    list
}

fn refused(error: &kiln_service::Error) -> Diagnostic {
    Diagnostic::new(error.class().unwrap_or_else(|| Class::of("")), error.to_string())
}
