//! Metrics in the text formats of Prometheus and of `OpenMetrics`, on an address of their own, because they are not for users.
//!
//! Parts of Kiln report what happens as events of `tracing` with the target `kiln::metric`: `metric` is the name, `us` the
//! duration in microseconds if there is one, and other fields are labels. So no crate depends on metrics, and while nobody collects
//! them, they cost nothing.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use jiff::Timestamp;
use kiln_stack::Backends;
use kiln_store::DriftStatus;
use tokio::net::TcpListener;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use kiln_config::Config;
use kiln_config::options::kiln;

use crate::spans;

/// The target of the events.
const TARGET: &str = "kiln::metric";
/// Upper limits of durations, in microseconds.
const LIMITS: [u64; 12] =
    [1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000, 60_000_000];
/// Those of operations on stacks, which take longer.
const LONG: [u64; 12] = [
    1_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
    1_800_000_000,
    3_600_000_000,
    7_200_000_000,
    14_400_000_000,
];
/// How long a scrape waits for the database.
const PATIENCE: Duration = Duration::from_secs(3);
/// Most combinations of labels.
const SERIES: usize = 5_000;

static COLLECTED: AtomicBool = AtomicBool::new(false);
static TABLE: Mutex<Table> = Mutex::new(Table(BTreeMap::new()));

/// What the metrics are about.
const ABOUT: [(&str, &str); 14] = [
    ("requests", "Requests to the APIs, without those that wait for events."),
    ("waits", "Requests that wait for events."),
    (
        "operations",
        "Operations on stacks that ended in this engine, by action and status; the time is that since the request.",
    ),
    (
        "suspensions",
        "Services of the cloud to which calls were suspended because they failed; open: false: they answer again.",
    ),
    ("notifications_lost", "Events that could not be delivered for an hour and were given up."),
    (
        "webhook_attempts",
        "Events sent to receivers of webhooks; pending: they are sent again, failed: they are given up.",
    ),
    (
        "webhooks_disabled",
        "Webhooks that were disabled because nothing could be delivered, or because the receiver is gone.",
    ),
    (
        "drift_checks",
        "Stacks that this engine has compared with their objects because of a schedule, by what was found.",
    ),
    ("cloud_calls", "Calls to services of the cloud; the status is 0 without a response."),
    ("store", "Transactions and queries of the database, with their repetitions."),
    ("store_retries", "Transactions that were repeated."),
    ("doorbells", "Notifications of new work that this process received."),
    ("actors_started", "Stacks that this engine began to work on; taken_over: after a failure of another engine."),
    ("actors_ended", "Stacks on which this engine ended its work."),
];

/// All series by metric and labels.
struct Table(BTreeMap<(&'static str, String), Series>);

/// The numbers of one combination of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Series {
    count: u64,
    /// The durations, if the metric has any.
    durations: Option<Durations>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Durations {
    sum: u64,
    /// How many are up to each limit.
    within: [u64; LIMITS.len()],
    /// The last traced one above the limit before and up to each limit, and above all of them.
    exemplars: [Option<Exemplar>; LIMITS.len() + 1],
}

/// A duration, and the trace in which it was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exemplar {
    trace: u128,
    us: u64,
    time: Timestamp,
}

/// The form of the text. Only `OpenMetrics` has exemplars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Prometheus,
    OpenMetrics,
}

impl Form {
    /// The form that a client prefers, which is the first one in its header `Accept`.
    fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut types = accepted.split(',').filter_map(|one| one.split(';').next()).map(str::trim);
        match types.find(|one| ["text/plain", "application/openmetrics-text"].contains(one)) {
            Some("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Prometheus,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The lines before the series of a metric.
    fn head(self, text: &mut String, name: &str, kind: &str, about: &str) {
        let name = match self {
            Self::Prometheus => name,
            Self::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        _ = write!(text, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
    }
}

/// The limits of the durations of a metric.
fn limits_of(metric: &str) -> &'static [u64; 12] {
    if metric == "operations" { &LONG } else { &LIMITS }
}

impl Durations {
    fn count(&mut self, us: u64, trace: Option<u128>, limits: &[u64; 12]) {
        self.sum += us;
        let place = limits.partition_point(|limit| *limit < us);
        if let (Some(trace), Some(exemplar)) = (trace, self.exemplars.get_mut(place)) {
            *exemplar = Some(Exemplar { trace, us, time: crate::now() });
        }
        for (limit, count) in limits.iter().zip(&mut self.within) {
            *count += u64::from(us <= *limit);
        }
    }
}

impl Table {
    /// A counter that begins at 1 has no increase for Prometheus: what alerts count is there from the start.
    fn start(&mut self) {
        for flag in [false, true] {
            self.0.entry(("actors_started", format!("taken_over=\"{flag}\""))).or_default();
            self.0.entry(("store_retries", format!("lost=\"{flag}\""))).or_default();
        }
        for outcome in ["delivered", "pending", "failed"] {
            self.0.entry(("webhook_attempts", format!("outcome=\"{outcome}\""))).or_default();
        }
        for status in DriftStatus::ALL {
            self.0.entry(("drift_checks", format!("status=\"{}\"", status.as_str()))).or_default();
        }
        for metric in ["notifications_lost", "webhooks_disabled", "doorbells"] {
            self.0.entry((metric, String::new())).or_default();
        }
        for action in ["CREATE", "UPDATE", "DELETE"] {
            for status in ["COMPLETE", "FAILED"] {
                let labels = format!("action=\"{action}\",status=\"{status}\"");
                self.0.entry(("operations", labels)).or_default().durations.get_or_insert_default();
            }
        }
    }

    fn count(&mut self, sample: Sample) {
        let Some((metric, _)) = ABOUT.iter().find(|(metric, _)| *metric == sample.metric) else { return };
        let key = (*metric, sample.labels);
        if self.0.len() >= SERIES && !self.0.contains_key(&key) {
            return;
        }
        // What alerts count is there from the first call.
        if *metric == "cloud_calls"
            && let Some((service, _)) = key.1.split_once(",status=")
        {
            for open in [false, true] {
                self.0.entry(("suspensions", format!("{service},open=\"{open}\""))).or_default();
            }
        }
        let series = self.0.entry(key).or_default();
        series.count += 1;
        if let Some(us) = sample.us {
            series.durations.get_or_insert_default().count(us, sample.trace, limits_of(metric));
        }
    }

    fn write(&self, form: Form, text: &mut String) {
        for (metric, about) in ABOUT {
            let mut series = self.0.iter().filter(|((name, _), _)| *name == metric).peekable();
            let Some((_, first)) = series.peek() else { continue };
            let (name, kind) = match first.durations {
                Some(_) => (format!("kiln_{metric}_seconds"), "histogram"),
                None => (format!("kiln_{metric}_total"), "counter"),
            };
            form.head(text, &name, kind, about);
            for ((_, labels), series) in series {
                series.write(&name, labels, limits_of(metric), form, text);
            }
        }
    }
}

impl Series {
    fn write(&self, name: &str, labels: &str, limits: &[u64; 12], form: Form, text: &mut String) {
        let count = self.count;
        let Some(Durations { sum, within, exemplars }) = &self.durations else {
            _ = if labels.is_empty() {
                writeln!(text, "{name} {count}")
            } else {
                writeln!(text, "{name}{{{labels}}} {count}")
            };
            return;
        };
        let limits = limits.iter().map(|limit| Seconds(*limit).to_string()).chain(["+Inf".to_owned()]);
        for ((limit, within), exemplar) in limits.zip(within.iter().chain([&count])).zip(exemplars) {
            _ = write!(text, "{name}_bucket{{{labels},le=\"{limit}\"}} {within}");
            if let (Form::OpenMetrics, Some(Exemplar { trace, us, time })) = (form, exemplar) {
                let at = Seconds(u64::try_from(time.as_microsecond()).unwrap_or_default());
                _ = write!(text, " # {{trace_id=\"{trace:032x}\"}} {} {at}", Seconds(*us));
            }
            text.push('\n');
        }
        _ = writeln!(text, "{name}_sum{{{labels}}} {}", Seconds(*sum));
        _ = writeln!(text, "{name}_count{{{labels}}} {count}");
    }
}

/// Microseconds as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if rest == 0 {
            write!(f, "{whole}")
        } else {
            write!(f, "{}", format!("{whole}.{rest:06}").trim_end_matches('0'))
        }
    }
}

/// The fields of an event.
#[derive(Default)]
struct Sample {
    metric: String,
    labels: String,
    us: Option<u64>,
    trace: Option<u128>,
}

impl Sample {
    fn label(&mut self, name: &str, value: &str) {
        let comma = if self.labels.is_empty() { "" } else { "," };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        _ = write!(self.labels, "{comma}{name}=\"{value}\"");
    }
}

impl Visit for Sample {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.label(field.name(), &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "metric" => value.clone_into(&mut self.metric),
            name => self.label(name, value),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "us" => self.us = Some(value),
            name => self.label(name, &value.to_string()),
        }
    }
}

/// Collects the events.
pub struct Collector;

impl<S: Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut sample = Sample { trace: spans::trace(), ..Sample::default() };
        event.record(&mut sample);
        TABLE.lock().unwrap_or_else(PoisonError::into_inner).count(sample);
    }
}

/// Whether an event is for the [`Collector`].
pub fn is_collected(event: &Metadata<'_>) -> bool {
    event.target() == TARGET && COLLECTED.load(Ordering::Relaxed)
}

/// The listener of the metrics; none unless `[kiln] metrics_bind_port` is set. Starts to collect.
pub async fn listener(config: &Config) -> Result<Option<TcpListener>> {
    let host = config.text(&kiln::METRICS_BIND_HOST).unwrap_or_default();
    let Some(port) = config.given_number::<u16>(&kiln::METRICS_BIND_PORT)? else { return Ok(None) };
    let listener = TcpListener::bind((host.as_str(), port)).await;
    let listener = listener.with_context(|| {
        format!("cannot listen on {host} port {port} ([kiln] metrics_bind_host, metrics_bind_port)")
    })?;
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).start();
    COLLECTED.store(true, Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
    Ok(Some(listener))
}

/// `GET /metrics`, and `GET /livez`: 200 as long as the process works, for engines too.
pub fn router(backends: Backends) -> Router {
    let metrics = get(move |headers: HeaderMap| scrape(backends.clone(), Form::of(&headers)));
    Router::new().route("/metrics", metrics).route("/livez", get(|| async { kiln_web::alive() }))
}

/// What this process knows is told without a database too.
async fn scrape(backends: Backends, form: Form) -> Response {
    let mut text = String::new();
    // Before the calls of this request.
    let waited = backends.store.oldest_call();
    gauge(&mut text, "database_wait_seconds", "How long the oldest call to the database in progress has waited.");
    _ = writeln!(text, "kiln_database_wait_seconds {}", Seconds(micros(waited)));
    gauge(&mut text, "database_connections", "Connections to the database by use.");
    for (purpose, all, idle) in backends.store.connections() {
        let busy = (all as usize).saturating_sub(idle);
        _ = writeln!(text, "kiln_database_connections{{purpose=\"{purpose}\",state=\"busy\"}} {busy}");
        _ = writeln!(text, "kiln_database_connections{{purpose=\"{purpose}\",state=\"idle\"}} {idle}");
    }
    let read = tokio::time::timeout(PATIENCE, of_database(&backends)).await;
    let read = read.map_err(|_| "timeout".to_owned()).and_then(|read| read.map_err(|error| error.to_string()));
    gauge(&mut text, "database_up", "Whether the database has answered this scrape.");
    _ = writeln!(text, "kiln_database_up {}", u8::from(read.is_ok()));
    match read {
        Ok(read) => text.push_str(&read),
        Err(error) => tracing::error!(error, "metrics: the database is not available"),
    }
    gauge(&mut text, "build_info", "The version of this process.");
    _ = writeln!(text, "kiln_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    process(form, &mut text);
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).write(form, &mut text);
    if form == Form::OpenMetrics {
        text.push_str("# EOF\n");
    }
    ([(CONTENT_TYPE, form.content_type())], text).into_response()
}

fn gauge(text: &mut String, name: &str, about: &str) {
    _ = write!(text, "# HELP kiln_{name} {about}\n# TYPE kiln_{name} gauge\n");
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What is the same in all processes.
async fn of_database(backends: &Backends) -> Result<String, kiln_store::Error> {
    let (census, engines) = (backends.store.census().await?, backends.store.engines().await?);
    let now = backends.clock.now();
    let up = engines.iter().filter(|engine| engine.is_up(now)).count();
    let mut text = String::new();
    gauge(&mut text, "stacks", "Stacks that are not deleted, with nested ones, by state.");
    for (action, status, count) in &census.stacks {
        _ = writeln!(text, "kiln_stacks{{action=\"{action}\",status=\"{status}\"}} {count}");
    }
    gauge(&mut text, "stacks_pending", "Stacks whose request is not done.");
    _ = writeln!(text, "kiln_stacks_pending {}", census.pending);
    gauge(&mut text, "oldest_pending_seconds", "The age of the oldest of these requests.");
    _ = writeln!(text, "kiln_oldest_pending_seconds {}", Seconds(census.oldest.unwrap_or_default()));
    gauge(&mut text, "outbox_entries", "Events that are not delivered to event sinks and to the message bus.");
    _ = writeln!(text, "kiln_outbox_entries {}", census.outbox);
    gauge(&mut text, "outbox_oldest_seconds", "The age of the oldest of them.");
    _ = writeln!(text, "kiln_outbox_oldest_seconds {}", Seconds(census.outbox_oldest.unwrap_or_default()));
    gauge(&mut text, "webhook_entries", "Events that wait for the receivers of webhooks.");
    _ = writeln!(text, "kiln_webhook_entries {}", census.webhook_entries);
    gauge(&mut text, "drifted_stacks", "Stacks that are watched and of which others have changed or deleted objects.");
    _ = writeln!(text, "kiln_drifted_stacks {}", census.drifted);
    gauge(&mut text, "leases", "Stacks that an engine works on.");
    _ = writeln!(text, "kiln_leases {}", census.leases);
    gauge(&mut text, "engines", "Engines that are up, or have not reported for some time.");
    _ = writeln!(text, "kiln_engines{{status=\"up\"}} {up}\nkiln_engines{{status=\"down\"}} {}", engines.len() - up);
    // A stopped engine reports once more, that it will not report again.
    let running = engines.iter().filter(|engine| engine.interval > 0);
    let longest = running.map(|engine| now.duration_since(engine.seen).as_secs()).max().unwrap_or_default();
    gauge(
        &mut text,
        "engine_silence_seconds",
        "Time since the last heartbeat of the engine that is silent the longest; stopped ones are not silent.",
    );
    _ = writeln!(text, "kiln_engine_silence_seconds {}", longest.max(0));
    Ok(text)
}

/// Clock ticks per second, as the kernel tells them to programs.
const TICKS: f64 = 100.0;

/// Processor, memory and files of this process, with the usual names.
fn process(form: Form, text: &mut String) {
    // The name of the program, in brackets, may contain spaces.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut numbers = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut ticks = || numbers.next()?.parse::<f64>().ok();
    if let (Some(user), Some(system)) = (ticks(), ticks()) {
        form.head(text, "process_cpu_seconds_total", "counter", "Time of the processors.");
        _ = writeln!(text, "process_cpu_seconds_total {:.2}", (user + system) / TICKS);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    if let Some(kilobytes) = memory.and_then(|text| text.parse::<u64>().ok()) {
        text.push_str("# HELP process_resident_memory_bytes Memory in use.\n");
        _ = write!(
            text,
            "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes {}\n",
            kilobytes * 1024
        );
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        text.push_str("# HELP process_open_fds Open files and connections.\n# TYPE process_open_fds gauge\n");
        _ = writeln!(text, "process_open_fds {}", files.count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_cumulative() {
        let mut table = Table(BTreeMap::new());
        for ms in [1, 30, 99_999] {
            let us = ms * 1000 + u64::from(ms == 30);
            let mut sample = Sample { metric: "requests".to_owned(), us: Some(us), ..Sample::default() };
            sample.label("route", "/{tenant_id}/\"x\"");
            table.count(sample);
        }
        table.count(Sample { metric: "unknown".to_owned(), ..Sample::default() });
        let mut text = String::new();
        table.write(Form::Prometheus, &mut text);
        let label = "route=\"/{tenant_id}/\\\"x\\\"\"";
        for line in [
            "# TYPE kiln_requests_seconds histogram".to_owned(),
            format!("kiln_requests_seconds_bucket{{{label},le=\"0.001\"}} 1"),
            format!("kiln_requests_seconds_bucket{{{label},le=\"0.05\"}} 2"),
            format!("kiln_requests_seconds_bucket{{{label},le=\"60\"}} 2"),
            format!("kiln_requests_seconds_bucket{{{label},le=\"+Inf\"}} 3"),
            format!("kiln_requests_seconds_sum{{{label}}} 100.030001"),
            format!("kiln_requests_seconds_count{{{label}}} 3"),
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
        assert!(!text.contains("unknown"));
    }

    #[test]
    fn a_bucket_has_the_trace_of_its_last_duration() {
        let mut table = Table(BTreeMap::new());
        table.start();
        for (us, trace) in [(30_000, Some(1)), (40_000, Some(0xab)), (45_000, None), (70_000_000, Some(2))] {
            let mut sample = Sample { metric: "requests".to_owned(), us: Some(us), trace, ..Sample::default() };
            sample.label("route", "none");
            table.count(sample);
        }
        let text = |form| {
            let mut text = String::new();
            table.write(form, &mut text);
            text
        };
        let open = text(Form::OpenMetrics);
        let exemplars: Vec<&str> =
            open.lines().filter_map(|line| line.rsplit_once(' ')?.0.split_once(" # ")).map(|(_, one)| one).collect();
        let trace = |number: u128| format!("{{trace_id=\"{number:032x}\"}}");
        assert_eq!(exemplars, [format!("{} 0.04", trace(0xab)), format!("{} 70", trace(2))]);
        assert!(open.contains("le=\"0.05\"} 3 # {trace_id=") && open.contains("le=\"+Inf\"} 4 # {trace_id="));
        // The name of a counter has its ending in its series only.
        assert!(open.contains("# TYPE kiln_doorbells counter\nkiln_doorbells_total 0\n"));
        let plain = text(Form::Prometheus);
        assert!(plain.contains("# TYPE kiln_doorbells_total counter\nkiln_doorbells_total 0\n"));
        assert!(!plain.contains(" # "));
    }

    #[test]
    fn the_first_form_that_a_client_accepts_is_sent() {
        for (accept, form) in [
            ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Form::OpenMetrics),
            ("text/plain;version=0.0.4, application/openmetrics-text;q=0.1", Form::Prometheus),
            ("*/*", Form::Prometheus),
        ] {
            assert_eq!(Form::of(&HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())])), form, "{accept}");
        }
        assert_eq!(Form::of(&HeaderMap::new()), Form::Prometheus);
    }

    #[test]
    fn the_board_and_the_alerts_ask_for_metrics_that_exist() {
        let page = include_str!("../../../docs/monitoring/README.md");
        let source = include_str!("metrics.rs");
        let board: serde_json::Value =
            serde_json::from_str(include_str!("../../../docs/monitoring/grafana.json")).unwrap();
        let panels = board["panels"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let mut texts: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
        assert!(texts.len() > 10 && panels.iter().all(|panel| panel["gridPos"]["w"].is_u64()));
        texts.push(include_str!("../../../docs/monitoring/alerts.yaml"));
        let words = texts.iter().flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
        for name in words.filter(|word| word.starts_with("kiln_") || word.starts_with("process_")) {
            let base = ["_count", "_sum", "_bucket"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            let short = base.trim_start_matches("kiln_").trim_end_matches("_seconds").trim_end_matches("_total");
            let is_counted = ABOUT.iter().any(|(metric, _)| *metric == short);
            assert!(
                is_counted
                    || source.contains(&format!("\"{}\"", base.trim_start_matches("kiln_")))
                    || source.contains(base),
                "{name}"
            );
            assert!(page.contains(base), "{name} is not in docs/monitoring/README.md");
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = Table(BTreeMap::new());
        for number in 0..SERIES + 10 {
            let mut sample = Sample { metric: "cloud_calls".to_owned(), us: Some(1), ..Sample::default() };
            sample.label("service", &number.to_string());
            table.count(sample);
        }
        assert_eq!(table.0.len(), SERIES);
    }
}
