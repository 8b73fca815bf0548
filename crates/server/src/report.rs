//! Reports of a service, as oslo.reports writes them ("guru meditation"): on SIGUSR2, when a file changes, or to an
//! administrator who asks the API.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use kiln_api::Reporter;
use kiln_config::Config;
use kiln_config::ConfigArgs;
use kiln_config::options::server;
use kiln_resource::{Phase, Resource, Status};
use kiln_service::Service;
use kiln_store::{EngineId, SqlStore, Stack, StackId, Store as _};
use kiln_telemetry::logging;
use kiln_value::Chain;
use tokio::signal::unix::Signal;

use crate::{database, runtime, shown_options};

/// Leases in a report.
const LEASES: u64 = 1_000;
/// The time for the database. A report is also written when it does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where reports are written, and what else asks for them.
pub struct Settings {
    folder: Option<PathBuf>,
    file: Option<PathBuf>,
    interval: Duration,
}

impl Settings {
    /// Reads `[oslo_reports]`.
    pub fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            folder: config.text(&server::REPORTS_LOG_DIR).map(PathBuf::from),
            file: config.text(&server::REPORTS_FILE_EVENT_HANDLER).map(PathBuf::from),
            interval: Duration::from_secs(config.number(&server::REPORTS_FILE_EVENT_HANDLER_INTERVAL)?),
        })
    }
}

/// Writes a report at each SIGUSR2 and each change of the file, for ever.
pub async fn follow(mut signals: Signal, settings: Settings, args: ConfigArgs, service: Service) {
    let state = |file: &PathBuf| std::fs::metadata(file).and_then(|about| about.modified()).ok();
    let mut seen = settings.file.as_ref().and_then(state);
    loop {
        tokio::select! {
            received = signals.recv() => if received.is_none() { return },
            () = tokio::time::sleep(settings.interval), if settings.file.is_some() => {
                let now = settings.file.as_ref().and_then(state);
                if now == seen {
                    continue;
                }
                seen = now;
            }
        }
        write(&settings, &now(&args, &service).await);
    }
}

/// What the API answers to administrators: the same report.
pub fn reporter(args: ConfigArgs, service: Service) -> Reporter {
    Reporter::new(move || {
        let (args, service) = (args.clone(), service.clone());
        Box::pin(async move { now(&args, &service).await })
    })
}

/// A report with the present configuration, as it is after a reload.
async fn now(args: &ConfigArgs, service: &Service) -> String {
    match Config::load(args) {
        Ok(config) => of_process(&config, service).await,
        Err(error) => format!("{}\n", Chain(&*error)),
    }
}

fn write(settings: &Settings, text: &str) {
    let Some(folder) = &settings.folder else {
        eprint!("{text}");
        return;
    };
    // The name that oslo.reports gives.
    let name = format!("kiln_gurumeditation_{}", runtime::now().strftime("%Y%m%d_%H%M%S"));
    let file = folder.join(name);
    match std::fs::write(&file, text) {
        Ok(()) => tracing::info!(file = %file.display(), "report written"),
        Err(error) => {
            tracing::error!(file = %file.display(), %error, "the report cannot be written");
            eprint!("{text}");
        }
    }
}

fn heading(text: &mut String, title: &str) {
    let rule = "=".repeat(72);
    _ = write!(text, "{rule}\n===={title:^64}====\n{rule}\n");
}

/// The report of this process.
async fn of_process(config: &Config, service: &Service) -> String {
    let mut text = String::new();
    heading(&mut text, "Guru Meditation");
    heading(&mut text, "Package");
    _ = write!(text, "product = Kiln\nversion = {}\ntime = {}\n", env!("CARGO_PKG_VERSION"), runtime::now());
    heading(&mut text, "Process");
    process(&mut text);
    heading(&mut text, "Tasks");
    tasks(&mut text);
    heading(&mut text, "Pools and caches");
    pools(service, &mut text);
    text.push_str(&Box::pin(of_database(config, &ReportedStacks::default())).await);
    heading(&mut text, "Last errors and warnings");
    let last = logging::last_problems();
    text.push_str(&if last.is_empty() { "none\n".to_owned() } else { last.join("\n") + "\n" });
    heading(&mut text, "Configuration");
    for line in shown_options::set(config) {
        _ = writeln!(text, "{line}");
    }
    text
}

/// What the kernel knows about this process.
fn process(text: &mut String) {
    _ = writeln!(text, "pid = {}", std::process::id());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for name in ["VmRSS", "VmHWM", "Threads", "voluntary_ctxt_switches"] {
        if let Some(value) = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')) {
            _ = writeln!(text, "{name} = {}", value.trim());
        }
    }
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    _ = writeln!(text, "open files = {files}");
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads {
        let read = |name: &str| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default().trim().to_owned();
        let waits = read("wchan");
        let waits = if waits.is_empty() || waits == "0" { String::new() } else { format!(" in {waits}") };
        let state = read("stat").rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
        let state = state.unwrap_or_default();
        _ = writeln!(text, "thread {} {}: {state}{waits}", thread.file_name().to_string_lossy(), read("comm"));
    }
}

fn tasks(text: &mut String) {
    let metrics = tokio::runtime::Handle::current().metrics();
    _ = write!(
        text,
        "workers = {}\nalive tasks = {}\nqueued tasks = {}\n",
        metrics.num_workers(),
        metrics.num_alive_tasks(),
        metrics.global_queue_depth()
    );
}

fn pools(service: &Service, text: &mut String) {
    for (purpose, all, idle) in service.backends.store.connections() {
        _ = writeln!(text, "connections to the database for {purpose} = {all}, {idle} idle");
    }
    let (texts, bytes) = service.backends.caches.sources.size();
    _ = writeln!(text, "parsed templates, environments and files = {texts}, {bytes} bytes of text");
    let (stacks, bytes) = service.recent.size();
    _ = writeln!(text, "stacks in memory = {stacks}, about {bytes} bytes");
    let (lists, bytes) = service.recent.lists.size();
    _ = writeln!(text, "lists of resources and events = {lists}, about {bytes} bytes");
}

/// Which stacks a report of the database has; by default all.
#[derive(Clone, Debug, Default)]
pub struct ReportedStacks {
    /// Only those of the project with this ID.
    pub project: Option<String>,
    /// Only the one with this name or ID, and its nested stacks.
    pub stack: Option<String>,
}

impl ReportedStacks {
    /// Whether the report has a stack, whose root stack is `root`.
    fn has(&self, stack: &Stack, root: &Stack) -> bool {
        let is_named =
            |named: &String| *named == root.name || *named == root.id.to_string() || *named == stack.id.to_string();
        self.project.as_ref().is_none_or(|project| *project == stack.project)
            && self.stack.as_ref().is_none_or(is_named)
    }
}

/// What the database says: engines, leases and running operations.
pub async fn of_database(config: &Config, of: &ReportedStacks) -> String {
    let mut text = String::new();
    heading(&mut text, "Engines");
    let read = async {
        let store = Box::pin(database::open_unchanged(config)).await?;
        let mut rest = String::new();
        Box::pin(engines(&store, of, &mut rest)).await?;
        Ok::<_, anyhow::Error>(rest)
    };
    match tokio::time::timeout(PATIENCE, read).await {
        Ok(Ok(rest)) => text.push_str(&rest),
        Ok(Err(error)) => _ = writeln!(text, "the database cannot be read: {}", Chain(&*error)),
        Err(_) => _ = writeln!(text, "the database does not answer within {} s", PATIENCE.as_secs()),
    }
    text
}

async fn engines(store: &SqlStore, of: &ReportedStacks, text: &mut String) -> Result<()> {
    let (now, engines) = (store.now().await?, store.engines().await?);
    let mut held: HashMap<EngineId, Vec<(StackId, i64)>> = HashMap::new();
    for (stack, engine, seconds) in Box::pin(store.leases(LEASES)).await? {
        held.entry(engine).or_default().push((stack, seconds));
    }
    for engine in &engines {
        let status = if engine.is_up(now) { "up" } else { "down" };
        let leases = held.get(&engine.id).map_or(0, Vec::len);
        let (host, pid) = (&engine.hostname, engine.pid);
        _ = writeln!(text, "{} on {host}, process {pid}: {status}, seen {}, {leases} leases", engine.id, engine.seen);
    }
    let census = store.census().await?;
    _ = writeln!(text, "stacks with a request that is not done = {}", census.pending);
    heading(text, "Stacks and running operations");
    let mut all: Vec<(EngineId, StackId, i64)> = held
        .into_iter()
        .flat_map(|(engine, stacks)| stacks.into_iter().map(move |(id, left)| (engine, id, left)))
        .collect();
    all.sort();
    for (engine, id, left) in all {
        let Some(stack) = store.stack(id).await? else { continue };
        let root = if stack.root == id { None } else { store.stack(stack.root).await? };
        if !of.has(&stack, root.as_ref().unwrap_or(&stack)) {
            continue;
        }
        _ = writeln!(text, "{id} {} {}: engine {engine}, lease ends in {left} s", stack.name, stack.state);
        for row in store.resources(id).await? {
            if row.state.status == Status::InProgress || row.running().is_some() {
                _ = writeln!(text, "    {} {} {}: {}", row.name, row.resource_type, row.state, waits(&row));
            }
        }
    }
    Ok(())
}

/// What a resource in progress waits for. The state of the driver is not shown: it may contain secrets.
fn waits(row: &Resource) -> String {
    let Some(running) = row.running() else {
        return match row.child {
            Some(child) => format!("waits for nested stack {child}"),
            None => "waits for its turn".to_owned(),
        };
    };
    let what = match &running.phase {
        Phase::Intent => "a call to the cloud".to_owned(),
        Phase::Lost(_) => "the object that a failed engine may have created".to_owned(),
        Phase::Wait(_) => match (&row.child, &row.physical_id) {
            (Some(child), _) => format!("nested stack {child}"),
            (None, Some(id)) => format!("object {id}"),
            (None, None) => "the cloud".to_owned(),
        },
        Phase::Undo(_) => "the deletion of the remains of a failed create".to_owned(),
        Phase::Snapshot(_) => "the snapshot before the delete".to_owned(),
        Phase::Read => "its attributes".to_owned(),
    };
    format!("waits for {what}, {} failed attempts, changed {}", running.attempt, row.updated)
}
