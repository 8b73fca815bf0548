//! Vectors of the kind `lifecycle`: requests to a stack, executed by an engine with a database in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use kiln_engine::{Backends, Chance, Engine, Options, SystemClock, View, load};
use kiln_plan::{Blueprint, Nesting, ResourceTypes, Rules, Sources};
use kiln_resource::{Action, Registry, StackId};
use kiln_store::{EventQuery, Message, MessageId, MessageKind, NewStack, Stack, StackRequest, Store};
use kiln_store::{Options as StoreOptions, SqlStore};
use kiln_template::Files;
use kiln_template::constraint::AcceptAll;
use kiln_template::environment::Environment;
use kiln_value::{Diagnostic, Map, Secret, StackIdentity, Value, value};

use crate::case::{Case, Outcome};
use crate::signals::{self, Users};

const TENANT: &str = "test_tenant_id";
const NAME: &str = "teststack";

static CATALOG: LazyLock<Arc<ResourceTypes>> = LazyLock::new(|| {
    let types = kiln_resource::shipped::types().expect("the definition files are sound");
    Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for)))
});

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let steps = case.input("steps").as_list().unwrap_or_default();
    // Vectors with unprocessed messages depend on the reference's implementation.
    if steps.iter().any(|step| step.get("run").is_some()) {
        return Outcome::NotRun;
    }
    // The API merges a PATCH.
    if steps.iter().any(|step| step.get("args").is_some_and(|args| args.get("existing").is_some())) {
        return Outcome::NotRun;
    }
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
        let mut bench = Bench::new().await;
        let wanted = case.expect.get("steps").and_then(Value::as_list).unwrap_or_default();
        let nested = case.input("nested").is_truthy();
        for (step, wanted) in steps.iter().zip(wanted) {
            let got = bench.step(step, nested, signals_during(step, wanted)).await;
            if let Some(diff) = difference(wanted, &got) {
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
}

impl Bench {
    async fn new() -> Self {
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(StoreOptions::new("sqlite::memory:", key)).await.expect("a database");
        store.migrate().await.expect("a schema");
        let backends = Backends {
            store: Arc::new(store),
            resource_types: Arc::clone(&CATALOG),
            clouds: Arc::new(Users::default()),
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
        Self { backends, stack: None, seen: 0, ids: HashMap::new(), counts: HashMap::new() }
    }

    fn now() -> jiff::Timestamp {
        use kiln_engine::Clock as _;
        SystemClock.now()
    }

    async fn step(&mut self, step: &Value, nested: bool, signals: Vec<String>) -> Value {
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
            "update" => self.update(step).await,
            "delete" => self.request(StackRequest::new(Action::Delete, Self::now())).await,
            "rollback" => self.request(StackRequest::new(Action::Rollback, Self::now())).await,
            "check" => self.request(StackRequest::new(Action::Check, Self::now())).await,
            "suspend" => self.request(StackRequest::new(Action::Suspend, Self::now())).await,
            _ => self.request(StackRequest::new(Action::Resume, Self::now())).await,
        };
        let mut got = value!({"op": op});
        let report = got.as_map_mut().expect("a map");
        report.extend(exported);
        if let Some(result) = result {
            report.insert("result".to_owned(), result);
        }
        if let Err(error) = asked {
            report.insert(
                "exception".to_owned(),
                value!({"class": (error.class.to_string()), "message": (error.message.clone())}),
            );
        }
        if let Some(id) = self.stack {
            self.signal_all(id, signals).await;
            let stack = self.settled(id).await;
            self.report(&stack, report, nested).await;
        }
        got
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
        let environment = step.get("env").cloned().unwrap_or_else(|| Value::Map(Map::new()));
        let mut environment = environment.as_map().cloned().unwrap_or_default();
        kiln_template::environment::fill(&mut environment);
        let files: BTreeMap<String, String> = step
            .get("files")
            .and_then(Value::as_map)
            .into_iter()
            .flatten()
            .map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()))
            .collect();
        let sources = Sources {
            template: Arc::new(step.get("template").cloned().unwrap_or_default()),
            environment: Arc::new(Environment::from_sections(&environment)?),
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
            id,
            name: NAME.to_owned(),
            project: TENANT.to_owned(),
            parent: None,
            root: id,
            depth: 0,
            action: Action::Create,
            desired: load::texts(&sources),
            disable_rollback,
            timeout_mins: None,
            tags: Vec::new(),
            username: "user".to_owned(),
            user_id: "user".to_owned(),
            credentials: None,
            user_project: None,
            adopt: None,
            now: Self::now(),
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

    async fn preview(&mut self, step: &Value) -> Result<Value, Diagnostic> {
        let sources = Self::blueprint(step)?;
        let id = self.stack.expect("a stack");
        let view = View::load(&self.backends, id).await.expect("read").expect("there");
        let identity = load::identity(&view.stack);
        let new = Blueprint::build(sources, &CATALOG, identity, Nesting::default())?;
        let preview = kiln_engine::preview(&self.backends, &view, Arc::new(new), false).await.expect("a preview");
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
        let data = kiln_engine::export(&self.backends, &stack).await.expect("exported");
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
            return Err(Diagnostic::new("ResourceNotFound", text));
        }
        let unhealthy = step.get("flag").is_none_or(Value::is_truthy);
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack,
            resource: Some(name.to_owned()),
            kind: MessageKind::MarkUnhealthy,
            body: value!({"mark_unhealthy": unhealthy, "reason": (step.get("reason").cloned())}),
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

    async fn settled(&self, id: StackId) -> Stack {
        let start = Instant::now();
        loop {
            let stack = self.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() || start.elapsed() > Duration::from_secs(10) {
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
        let Ok(view) = View::of(&self.backends, stack.clone()).await else { return };
        let mut rows: Vec<_> = view.resources().cloned().collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        let rows: Vec<Value> = if stack.deleted.is_some() {
            Vec::new()
        } else {
            rows.iter()
                .map(|row| {
                    value!({
                        "name": (row.name.as_str()),
                        "action": (row.state.action.as_str()),
                        "status": (row.state.status.as_str()),
                        "reason": (self.renumber(self.anonymous(&row.reason).into())),
                        "physical_id": (self.number(&row.name, row.physical_id.as_deref())),
                    })
                })
                .collect()
        };
        report.insert("resources".to_owned(), Value::List(rows));
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
            if nested {
                let mut all = Vec::new();
                self.nested("", stack.id, &mut all).await;
                report.insert("nested_resources".to_owned(), Value::List(all));
            }
        }
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

/// The differences between the reports of two steps.
fn difference(wanted: &Value, got: &Value) -> Option<String> {
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
    for part in ["result", "stack", "events", "resources", "outputs", "nested_resources"] {
        let Some(mine) = wanted.get(part) else { continue };
        let theirs = got.get(part).unwrap_or(&Value::Null);
        let (mine, theirs) = if part == "events" && unordered || part == "nested_resources" {
            (sorted(mine), sorted(theirs))
        } else {
            (mine.clone(), theirs.clone())
        };
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
