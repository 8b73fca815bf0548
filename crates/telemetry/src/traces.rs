//! Traces for OpenTelemetry: spans are sent to a collector by OTLP over HTTP, in JSON.
//!
//! Off unless there is an endpoint. Work never waits for it: spans that end are put into a queue of limited length, and a
//! task sends them. The variables are those of the specification of OpenTelemetry.

mod otlp;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use kiln_cloud::{HttpRequest, SharedClient, TlsOptions, Transport};
use kiln_config::options::kiln;
use kiln_config::{Config, hostname};
use kiln_value::Chain;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use url::Url;

use crate::spans::SpanData;

/// Most spans that wait.
const QUEUE: usize = 4096;
/// Most spans in a request.
const BATCH: usize = 512;
/// How long spans are collected.
const COLLECT: Duration = Duration::from_secs(1);
/// The time for a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a batch is sent.
const ATTEMPTS: u32 = 3;
/// The time to send what is left when the service ends.
const LAST: Duration = Duration::from_secs(3);
/// How often lost spans are reported.
const REPORT: Duration = Duration::from_mins(1);

static ON: AtomicBool = AtomicBool::new(false);
static QUEUED: OnceLock<mpsc::Sender<Ended>> = OnceLock::new();
/// The part of new traces that is sent: a trace is if the lower half of its ID is below this number.
static SAMPLED: AtomicU64 = AtomicU64::new(u64::MAX);
/// Spans that found the queue full, or were not accepted.
static LOST: AtomicU64 = AtomicU64::new(0);

/// A span that has ended.
struct Ended {
    span: SpanData,
    end: Timestamp,
}

/// Where traces are sent.
#[derive(Clone, Debug)]
pub struct Settings {
    url: Url,
    headers: HeaderMap,
    /// Attributes of this process.
    resource: BTreeMap<String, String>,
    sampled: u64,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

impl Settings {
    /// From `[kiln] otlp_endpoint` or the variables of OpenTelemetry; none: traces are off.
    pub fn of(config: &Config) -> Result<Option<Self>> {
        Self::read(config, variable)
    }

    fn read(config: &Config, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        if variable("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let (base, name) = match config.text(&kiln::OTLP_ENDPOINT) {
            Some(base) => (Some(base), "[kiln] otlp_endpoint"),
            None => (variable("OTEL_EXPORTER_OTLP_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT"),
        };
        let full = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").filter(|_| !config.is_set(&kiln::OTLP_ENDPOINT));
        let (text, name) = match (full, base) {
            (Some(full), _) => (full, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
            (None, Some(base)) => (format!("{}/v1/traces", base.trim_end_matches('/')), name),
            (None, None) => return Ok(None),
        };
        let url = Url::parse(&text).with_context(|| format!("{name}: {text:?} is not a URL"))?;
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(protocol) = variable(name).filter(|protocol| protocol != "http/json") {
                bail!("{name}: {protocol} is not supported; use http/json, which collectors accept on port 4318");
            }
        }
        let mut headers = HeaderMap::new();
        for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
            for (key, value) in pairs(name, &variable(name).unwrap_or_default())? {
                let wrong = || anyhow!("{name}: {key} is not a valid header");
                let header = HeaderName::try_from(key.as_str()).map_err(|_| wrong())?;
                let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
                value.set_sensitive(true);
                headers.insert(header, value);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut resource = BTreeMap::from([
            ("service.name".to_owned(), "kiln".to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("host.name".to_owned(), hostname()),
            ("process.pid".to_owned(), std::process::id().to_string()),
        ]);
        let attributes = "OTEL_RESOURCE_ATTRIBUTES";
        resource.extend(pairs(attributes, &variable(attributes).unwrap_or_default())?);
        resource.extend(variable("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name)));
        Ok(Some(Self { url, headers, resource, sampled: sampled(&variable)? }))
    }
}

/// `name=value,name=value`, with percent signs as in URLs.
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let pair = |item: &str| {
        let (key, value) = item.split_once('=').with_context(|| format!("{name}: {item:?} is not NAME=VALUE"))?;
        let decoded = url::form_urlencoded::parse(format!("v={}", value.trim().replace('+', "%2B")).as_bytes())
            .next()
            .map(|(_, value)| value.into_owned());
        Ok((key.trim().to_owned(), decoded.unwrap_or_default()))
    };
    items.map(pair).collect()
}

/// The part of new traces that is sent.
fn sampled(variable: &impl Fn(&str) -> Option<String>) -> Result<u64> {
    const NAME: &str = "OTEL_TRACES_SAMPLER";
    let part = match variable(NAME).as_deref() {
        None | Some("parentbased_always_on") => return Ok(u64::MAX),
        Some("parentbased_always_off") => return Ok(0),
        Some("parentbased_traceidratio") => {
            variable("OTEL_TRACES_SAMPLER_ARG").map_or(Ok(1.0), |text| text.parse::<f64>())
        }
        Some(other) => bail!("{NAME}: {other} is not supported; use parentbased_always_on or parentbased_traceidratio"),
    };
    match part.ok().filter(|part| (0.0..=1.0).contains(part)) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the largest number")]
        #[expect(clippy::cast_precision_loss, reason = "a part of all traces need not be exact")]
        Some(part) => Ok((part * u64::MAX as f64) as u64),
        None => bail!("OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1"),
    }
}

/// Whether spans are kept for traces.
pub fn are_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether a new trace with this ID is sent.
pub fn samples(trace: u128) -> bool {
    is_within(trace, SAMPLED.load(Ordering::Relaxed))
}

/// Whether the lower half of a trace's ID is below a number; the largest number stands for all.
pub fn is_within(trace: u128, part: u64) -> bool {
    part == u64::MAX || (trace & u128::from(u64::MAX)) < u128::from(part)
}

/// A span has ended: it waits for the next request to the collector, or is lost.
pub(crate) fn ended(span: SpanData) {
    let Some(queue) = QUEUED.get() else { return };
    if queue.try_send(Ended { span, end: crate::now() }).is_err() {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// The sending of traces, until it is finished.
pub struct Traces {
    finish: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Traces {
    /// Starts to send traces, if there is an endpoint.
    pub fn start(config: &Config) -> Result<Option<Self>> {
        let Some(settings) = Settings::of(config)? else { return Ok(None) };
        let client = SharedClient::new(&TlsOptions::default())?;
        let (queue, queued) = mpsc::channel(QUEUE);
        if QUEUED.set(queue).is_err() {
            return Ok(None);
        }
        SAMPLED.store(settings.sampled, Ordering::Relaxed);
        ON.store(true, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
        tracing::info!(url = %settings.url, "sending traces");
        let (finish, finished) = oneshot::channel();
        let exporter = Exporter { settings, client, told: None };
        Ok(Some(Self { finish, task: tokio::spawn(exporter.run(queued, finished)) }))
    }

    /// Sends what is left, for a limited time.
    pub async fn finish(self) {
        ON.store(false, Ordering::Relaxed);
        // It fails only if the task has ended.
        _ = self.finish.send(());
        if tokio::time::timeout(LAST, self.task).await.is_err() {
            tracing::warn!("the last traces could not be sent");
        }
    }
}

struct Exporter {
    settings: Settings,
    client: SharedClient,
    /// When lost spans were reported.
    told: Option<Instant>,
}

impl Exporter {
    async fn run(mut self, mut queued: mpsc::Receiver<Ended>, mut finished: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut is_last = false;
        while !is_last {
            let deadline = tokio::time::sleep(COLLECT);
            tokio::pin!(deadline);
            while batch.len() < BATCH && !is_last {
                tokio::select! {
                    biased;
                    count = queued.recv_many(&mut batch, BATCH) => if count == 0 { is_last = true },
                    _ = &mut finished => is_last = true,
                    () = &mut deadline => break,
                }
            }
            while is_last && let Ok(ended) = queued.try_recv() {
                batch.push(ended);
            }
            if !batch.is_empty() {
                for part in batch.chunks(BATCH) {
                    if let Err(error) = self.send(part).await {
                        LOST.fetch_add(u64::try_from(part.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
                        self.tell(Some(&error));
                    }
                }
                batch.clear();
            }
            self.tell(None);
        }
    }

    /// Reports lost spans, not more often than once in a while.
    fn tell(&mut self, error: Option<&anyhow::Error>) {
        if self.told.is_some_and(|told| told.elapsed() < REPORT) {
            return;
        }
        let lost = LOST.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.told = Some(Instant::now());
            let error = error.map(|error| Chain(&**error).to_string());
            tracing::warn!(lost, error, "some spans of traces were not sent");
        }
    }

    /// Sends a batch, again if the collector is busy (OTLP, "Retryable Response Codes").
    async fn send(&self, spans: &[Ended]) -> Result<()> {
        let body: bytes::Bytes = otlp::request(&self.settings.resource, spans).into();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let request = HttpRequest {
                method: Method::POST,
                url: self.settings.url.clone(),
                headers: self.settings.headers.clone(),
                body: Some(body.clone()),
                timeout: PATIENCE,
            };
            let (error, may_repeat) = match self.client.send(request).await {
                Ok(response) if response.status.is_success() => return Ok(()),
                Ok(response) => {
                    let status = response.status.as_u16();
                    (anyhow!("{} answers {status}", self.settings.url), matches!(status, 429 | 502 | 503 | 504))
                }
                Err(error) => (anyhow::Error::new(error).context(self.settings.url.clone()), true),
            };
            if !may_repeat || attempt == ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(COLLECT * attempt).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str, variables: &[(&str, &str)]) -> Result<Option<Settings>> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Settings::read(&Config::parse(config).unwrap(), variable)
    }

    #[test]
    fn the_variables_of_opentelemetry_are_read() {
        assert!(read("", &[]).unwrap().is_none());
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        let settings = read("", &[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a+b, x=1")]);
        let settings = settings.unwrap().unwrap();
        assert_eq!(settings.url.as_str(), "http://collector:4318/v1/traces");
        assert_eq!(
            (&settings.headers["authorization"], &settings.headers["x"]),
            (&"Bearer a+b".parse().unwrap(), &"1".parse().unwrap())
        );
        assert_eq!(settings.resource["service.name"], "kiln");
        let full = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other/traces");
        assert_eq!(read("", &[endpoint, full]).unwrap().unwrap().url.as_str(), "http://other/traces");
        let own = "[kiln]\notlp_endpoint = http://own\n";
        assert_eq!(read(own, &[endpoint, full]).unwrap().unwrap().url.as_str(), "http://own/v1/traces");
        assert!(read(own, &[("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment=test");
        let named = read(own, &[attributes, ("OTEL_SERVICE_NAME", "b")]).unwrap().unwrap().resource;
        assert_eq!((named["service.name"].as_str(), named["deployment.environment"].as_str()), ("b", "test"));
        assert_eq!(read(own, &[attributes]).unwrap().unwrap().resource["service.name"], "a");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x"),
        ] {
            assert!(read(own, &[(name, value)]).unwrap_err().to_string().starts_with(name), "{name}");
        }
        let half = [("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0.5")];
        assert_eq!(read(own, &half).unwrap().unwrap().sampled, 1 << 63);
    }
}
