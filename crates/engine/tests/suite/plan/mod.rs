//! Compares plans with the actual changes: generated templates and updates on the simulated cloud.
//!
//! Use `KILN_SEEDS=from..to cargo test -p kiln-engine --test suite plan::` for other seeds.

mod calls;
mod continued;
mod deletes;
mod generate;
mod guarded;
mod judge;
mod planned_objects;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use generate::{Dice, Template};
use jiff::Timestamp;
use judge::Verdict;
use kiln_cloud::{Connector, Transport};
use kiln_engine::{Engine, Options};
use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Blueprint, Nesting, ResourceTypes, Sources};
use kiln_resource::{Action, Cloud, Converge, Failure, PlanId, Registry, Resource, StackId, Status};
use kiln_stack::{Backends, Chance, Clock, Clouds, LoadedStack, load};
use kiln_store::{MemoryStore, NewStack, Planned, Stack, StackRequest};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_testcloud::{Action as Effect, Fault, Service, Testcloud, When};
use kiln_value::{Value, value};
use kiln_view::preview::{self, PlannedChange, Preview, Terms};
use tokio::time::Instant;
use world::World;

use crate::recorder::Recorder;

struct OneCloud(Arc<dyn Cloud>);

#[async_trait]
impl Clouds for OneCloud {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// Paused time.
struct PausedClock(Instant);

#[async_trait]
impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("a time") + self.0.elapsed()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// A cloud, an engine and a stack.
pub(crate) struct Bench {
    pub(crate) backends: Backends,
    pub(crate) cloud: Testcloud,
    pub(crate) recorder: Arc<Recorder>,
    world: World,
    pub(crate) engine: tokio::task::JoinHandle<()>,
}

impl Bench {
    pub(crate) async fn new(seed: u64, types: &Arc<ResourceTypes>) -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse().expect("a time");
        let cloud = Testcloud::builder().seed(seed).epoch(epoch).build_time(Duration::from_secs(1)).in_process();
        let mut options = kiln_cloud::Options::new(cloud.auth_url().parse().expect("a URL"));
        // One cloud for all requests.
        options.finder_ttl = Duration::ZERO;
        let recorder = Recorder::new(cloud.transport());
        let connector = Connector::new(Arc::clone(&recorder) as Arc<dyn Transport>, options);
        let world = World::new(&cloud, &connector).await;
        let clock = PausedClock(Instant::now());
        let start = clock.0;
        let backends = Backends {
            store: Arc::new(MemoryStore::new(Arc::new(move || PausedClock(start).now()))),
            resource_types: Arc::clone(types),
            clouds: Arc::new(OneCloud(Arc::clone(&world.demo) as Arc<dyn Cloud>)),
            clock: Arc::new(clock),
            // Nested stacks have other IDs than objects.
            chance: Arc::new(Chance::seeded(!seed)),
            caches: Arc::default(),
        };
        let engine = Engine::new(Options::default(), backends.clone());
        let engine = tokio::spawn(async move {
            let (_keep, stop) = tokio::sync::watch::channel(false);
            engine.run(stop).await.expect("the engine runs");
        });
        Self { backends, cloud, recorder, world, engine }
    }

    pub(crate) async fn settled(&self, id: StackId) -> Stack {
        loop {
            let stack = self.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() {
                return stack;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn create(&self, sources: &Sources) -> StackId {
        let id = StackId(self.backends.chance.uuid());
        let stack = NewStack {
            username: "demo".to_owned(),
            user_id: "demo".to_owned(),
            ..NewStack::new(id, "stack".to_owned(), "demo".to_owned(), load::texts(sources), self.backends.clock.now())
        };
        self.backends.store.create_stack(stack).await.expect("stored");
        id
    }

    async fn update(&self, id: StackId, sources: &Sources, converge: bool) -> Stack {
        self.update_planned(id, sources, converge, None).await
    }

    /// An update that keeps to a saved plan, if there is one.
    async fn update_planned(&self, id: StackId, sources: &Sources, converge: bool, plan: Option<PlanId>) -> Stack {
        let mut request = StackRequest::new(Action::Update, self.backends.clock.now());
        request.details.planned = plan.map(|plan| Planned { plan, path: String::new() });
        request.details.converge = converging(converge);
        request.desired = Some(load::texts(sources));
        request.disable_rollback = Some(true);
        self.backends.store.request(id, request).await.expect("stored");
        self.settled(id).await
    }

    async fn outputs(&self, id: StackId) -> Outputs {
        let view = LoadedStack::load(&self.backends, id).await.expect("read").expect("there");
        let outputs = view.outputs(None).await.into_iter();
        outputs.filter(|output| output.error.is_none()).map(|output| (output.key, output.value)).collect()
    }

    async fn preview(&self, id: StackId, template: &Template, converge: bool) -> Result<Preview, String> {
        let view = LoadedStack::load(&self.backends, id).await.expect("read").expect("there");
        let types = &self.backends.resource_types;
        let identity = load::identity(&view.stack);
        let blueprint = Blueprint::build(sources(template), types, identity, Nesting::default());
        let blueprint = blueprint.map_err(|error| error.to_string())?;
        Ok(self.preview_of(view, blueprint, Terms { converge: converging(converge), ..Terms::default() }).await)
    }

    async fn preview_of(&self, mut view: LoadedStack, blueprint: Blueprint, terms: Terms) -> Preview {
        preview::preview(&self.backends, &mut view, Arc::new(blueprint), terms, &mut HiddenValues::default())
            .await
            .expect("read")
    }

    async fn seen(&self, id: StackId) -> Seen {
        let rows = judge::rows(&*self.backends.store, id).await;
        let owners = calls::owners(&*self.backends.store, id).await;
        Seen { rows, owners, outputs: self.outputs(id).await, objects: self.world.objects().await }
    }

    /// Somebody changes or deletes an object of the stack; whether that was possible.
    async fn tamper(&self, id: StackId, dice: &mut Dice) -> bool {
        let rows = self.backends.store.resources(id).await.expect("read");
        let place = |row: &Resource| {
            let (service, path, key) = match row.resource_type.as_str() {
                "OS::Neutron::Net" => ("network", "/v2.0/networks", "network"),
                "OS::Neutron::Port" => ("network", "/v2.0/ports", "port"),
                "OS::Cinder::Volume" => ("volumev3", "/v3/volumes", "volume"),
                _ => return None,
            };
            Some((service, format!("{path}/{}", row.physical_id.as_ref()?), key))
        };
        let places: Vec<_> = rows.iter().filter_map(place).collect();
        let Some((service, path, key)) = places.get(dice.below(places.len())) else { return false };
        // A network that is in use cannot be deleted.
        let tampered = self.world.tamper(dice, service, path, key).await.is_ok();
        tokio::time::sleep(Duration::from_secs(5)).await;
        tampered
    }
}

/// A stack and its cloud at one time.
struct Seen {
    rows: judge::Rows,
    owners: calls::Owners,
    outputs: Outputs,
    objects: world::Objects,
}

/// The outputs of a stack that have values.
type Outputs = BTreeMap<String, Value>;

/// A template without files, with these parameters.
fn sources_of(template: &str, parameters: Value) -> Sources {
    let template = kiln_template::source::parse(template, "t.yaml", usize::MAX).expect("YAML").value;
    let environment = Environment::from_value(&value!({"parameters": parameters})).expect("an environment");
    Sources { template: Arc::new(template), environment: Arc::new(environment), files: Arc::new(Files::default()) }
}

fn sources(template: &Template) -> Sources {
    let files: BTreeMap<String, String> = generate::files();
    Sources {
        template: Arc::new(template.to_value()),
        environment: Arc::new(template.environment()),
        files: Arc::new(Files(files)),
    }
}

/// The totals of a run.
#[derive(Debug, Default)]
struct Tally {
    updates: usize,
    certain: usize,
    undecided: usize,
    /// Updates that keep to a saved plan.
    planned: usize,
    failed: usize,
    /// Requests that changed something.
    calls: usize,
    wrong: Vec<String>,
}

async fn run(seed: u64, types: &Arc<ResourceTypes>, tally: &mut Tally) {
    let mut dice = Dice(seed);
    let mut bench = Bench::new(seed, types).await;
    let mut template = Template::generate(&mut dice);
    // A port that a subnet of its network depends on causes a cycle.
    if Blueprint::build(sources(&template), types, None, Nesting::default()).is_err() {
        return;
    }
    let id = bench.create(&sources(&template)).await;
    let made = bench.settled(id).await;
    let mut sound = made.state.status == Status::Complete;
    let mut is_tampered = false;
    for number in 0..3 {
        let mut wrong = Vec::new();
        bench.world.change(&mut dice).await;
        if sound {
            match bench.preview(id, &template, false).await {
                Ok(plan) => wrong.extend(nothing("a name with another meaning changes", &template, &plan)),
                Err(error) => wrong.push(error),
            }
        }
        let mut converge = dice.one_in(4);
        if !converge && dice.one_in(4) {
            converge = bench.tamper(id, &mut dice).await;
            is_tampered |= converge;
        }
        let new = template.changed(&mut dice, &bench.world.meanings);
        let plan = match bench.preview(id, &new, converge).await {
            Ok(plan) => plan,
            Err(error) if error.contains("Circular Dependency") => break,
            Err(error) => {
                tally.wrong.push(format!("seed {seed}, update {number}: {error}"));
                break;
            }
        };
        let before = bench.seen(id).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.recorder.take();
        let saved = if Verdict::refused(&plan).is_empty() && seed % 4 != 3 {
            Some(crate::stack::save_plan(&bench.backends, &plan).await)
        } else {
            None
        };
        if dice.one_in(3) {
            bench.cloud.faults().add(refusal(&mut dice));
        }
        let stack = bench.update_planned(id, &sources(&new), converge, saved).await;
        bench.cloud.faults().clear();
        let calls = bench.recorder.take();
        tally.planned += usize::from(saved.is_some());
        if saved.is_some() && stack.reason.contains("plan") {
            wrong.push(format!("stopped: {}", stack.reason));
        }
        let after = bench.seen(id).await;
        template = new;
        let is_whole = stack.state.status == Status::Complete;
        let (errors, number) = calls::compare(&plan, &before, &after, &calls, is_whole);
        wrong.extend(errors);
        tally.calls += number;
        if !is_whole {
            tally.failed += 1;
            tally.wrong.extend(wrong.into_iter().map(|text| format!("seed {seed}, failed update {number}: {text}")));
            let foreseen = Verdict::refused(&plan);
            if std::env::var_os("KILN_SHOW").is_some() {
                println!("seed {seed}, update {number}: {} (foreseen: {foreseen:?})", stack.reason);
            }
            sound = false;
            continue;
        }
        tally.updates += 1;
        let verdict = Verdict::of(&plan, &before, &after, &bench.world.meanings, converge);
        tally.certain += verdict.certain;
        tally.undecided += verdict.undecided;
        wrong.extend(verdict.wrong);
        wrong.extend(judge::outputs(&plan, &before.outputs, &after.outputs));
        if !is_tampered {
            wrong.extend(judge::stale(&after));
        }
        if verdict.refuses && sound {
            wrong.push(format!("refused, and yet it went well: {:?}", Verdict::refused(&plan)));
        }
        match bench.preview(id, &template, converge).await {
            Ok(again) => wrong.extend(nothing("a second plan is not empty", &template, &again)),
            Err(error) => wrong.push(error),
        }
        let word = if converge { "converging update" } else { "update" };
        tally.wrong.extend(wrong.into_iter().map(|text| format!("seed {seed}, {word} {number}: {text}")));
        sound = true;
    }
    bench.engine.abort();
}

/// A request to the cloud that is refused: the update fails, if it sends such a one.
fn refusal(dice: &mut Dice) -> Fault {
    let service = [Service::Network, Service::Compute, Service::Volume][dice.below(3)];
    let method = ["POST", "PUT", "DELETE"][dice.below(3)];
    let nth = 1 + u64::from(dice.one_in(3));
    Fault::new(service, method, "", Effect::Status(400)).when(When::Nth(nth))
}

/// The error that a plan of the same template has changes. As in Heat, a group removes a member that its list names also if
/// the member was created later than the list. What reads the members is then known later.
fn nothing(error: &str, template: &Template, plan: &Preview) -> Option<String> {
    let changes = plan.entries.iter().filter(|entry| !entry.change.is_unchanged());
    let changes = changes.filter(|entry| !template.removes_members_of(&entry.name));
    let is_open =
        |change: &PlannedChange| matches!(change, PlannedChange::Undecided { at_least, .. } if at_least.is_unchanged());
    let changes = changes.filter(|entry| !(is_open(&entry.change) && template.removes_members()));
    let shown: Vec<_> = changes.map(|entry| (&entry.name, &entry.change)).collect();
    (!shown.is_empty()).then(|| format!("{error}: {shown:?}"))
}

fn seeds() -> std::ops::Range<u64> {
    let range = std::env::var("KILN_SEEDS").ok();
    let parsed = range
        .as_deref()
        .and_then(|range| range.split_once(".."))
        .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.unwrap_or(0..60)
}

/// The shipped types.
pub(crate) fn types() -> Arc<ResourceTypes> {
    let types = kiln_resource::shipped::types().expect("sound definitions");
    Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for)))
}

#[test]
fn what_is_planned_is_what_happens() {
    let types = types();
    let mut tally = Tally::default();
    for seed in seeds() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(run(seed, &types, &mut tally));
    }
    let Tally { updates, certain, undecided, planned, failed, calls, wrong } = &tally;
    println!("{updates} updates, {certain} resources certain, {undecided} undecided, {failed} updates failed");
    println!("{planned} updates by a saved plan; {calls} requests changed something");
    assert!(wrong.is_empty(), "{} wrong words:\n{}", wrong.len(), wrong[..wrong.len().min(30)].join("\n"));
    assert!(*updates > 0, "nothing was tried");
}

/// The cloud changes between a plan and its execution: the errors of the plan about the requests.
async fn run_moved(seed: u64, types: &Arc<ResourceTypes>, stopped: &mut usize) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut bench = Bench::new(seed, types).await;
    let template = Template::generate(&mut dice);
    if Blueprint::build(sources(&template), types, None, Nesting::default()).is_err() {
        return Vec::new();
    }
    let id = bench.create(&sources(&template)).await;
    if bench.settled(id).await.state.status != Status::Complete {
        return Vec::new();
    }
    let new = template.changed(&mut dice, &bench.world.meanings);
    let Ok(plan) = bench.preview(id, &new, true).await else { return Vec::new() };
    let saved = crate::stack::save_plan(&bench.backends, &plan).await;
    let before = bench.seen(id).await;
    bench.world.change(&mut dice).await;
    for _ in 0..3 {
        bench.tamper(id, &mut dice).await;
    }
    bench.recorder.take();
    let stack = bench.update_planned(id, &sources(&new), true, Some(saved)).await;
    let calls = bench.recorder.take();
    let after = bench.seen(id).await;
    bench.engine.abort();
    *stopped += usize::from(stack.reason.contains("outside of the plan"));
    let (wrong, _) = calls::compare(&plan, &before, &after, &calls, false);
    wrong.into_iter().map(|text| format!("seed {seed}: {text}")).collect()
}

#[test]
fn no_request_is_outside_of_the_plan_when_the_cloud_has_changed_since() {
    let types = types();
    let (mut wrong, mut stopped) = (Vec::new(), 0);
    for seed in seeds() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        wrong.extend(runtime.expect("a runtime").block_on(run_moved(seed, &types, &mut stopped)));
    }
    println!("{stopped} of {} updates were stopped", seeds().count());
    assert!(wrong.is_empty(), "{} wrong requests:\n{}", wrong.len(), wrong[..wrong.len().min(30)].join("\n"));
    assert!(stopped > 0, "the cloud never changed");
}

fn converging(converge: bool) -> Converge {
    if converge { Converge::all() } else { Converge::default() }
}
