//! Logs on standard error, and the collector of metrics.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Result;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, reload};

use crate::cli::{LogArgs, LogFormat};
use crate::config::Config;
use crate::config::options::server;
use crate::metrics::{self, Collector};
use crate::runtime;

/// The levels of a service.
const USUAL: &str = "info,sqlx=warn";
/// The levels with `debug`: libraries tell too much.
const DEBUG: &str = "debug,sqlx=warn,hyper=info,hyper_util=info,rustls=info,h2=info,sea_orm=info";

/// Replaces the levels, unless the command line or `RUST_LOG` sets them.
static LEVELS: OnceLock<Box<dyn Fn(&'static str) + Send + Sync>> = OnceLock::new();

/// How many errors and warnings are kept for a report.
const RECENT: usize = 50;
/// The longest line of them, in characters.
const LONGEST: usize = 500;

static LAST: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Keeps the last errors and warnings.
struct Recent;

impl<S: Subscriber> tracing_subscriber::Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let mut line = Line(format!("{} {}", runtime::now(), event.metadata().level()));
        event.record(&mut line);
        let text: String = line.0.chars().take(LONGEST).collect();
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == RECENT {
            last.pop_front();
        }
        last.push_back(text);
    }
}

/// An event as one line.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

/// The last errors and warnings, oldest first.
pub(crate) fn last_problems() -> Vec<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// The options of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `debug`.
    is_debug: bool,
    /// `use_json`.
    is_json: bool,
}

impl Settings {
    /// Reads the options.
    pub(crate) fn of(config: &Config) -> Result<Self> {
        Ok(Self { is_debug: config.flag(&server::DEBUG)?, is_json: config.flag(&server::USE_JSON)? })
    }

    fn levels(self) -> &'static str {
        if self.is_debug { DEBUG } else { USUAL }
    }

    /// Changes the levels of a running service. The form of the log stays.
    pub(crate) fn apply(self) {
        if let Some(set) = LEVELS.get() {
            set(self.levels());
        }
    }
}

/// Starts the log of a service.
pub(crate) fn of_service(args: &LogArgs, config: &Config) -> Result<()> {
    let settings = Settings::of(config)?;
    start(args, settings.levels(), settings.is_json);
    Ok(())
}

/// Starts the log of a command, which tells only errors.
pub(crate) fn of_command(args: &LogArgs) {
    start(args, "error", false);
}

fn start(args: &LogArgs, usual: &'static str, json: bool) {
    let chosen = match (args.quiet, args.verbose) {
        (true, _) => Some("error"),
        (_, 0) => None,
        (_, 1) => Some(DEBUG),
        _ => Some("trace"),
    };
    let environment = EnvFilter::try_from_default_env().ok();
    let is_fixed = chosen.is_some() || environment.is_some();
    let filter = environment.unwrap_or_else(|| EnvFilter::new(chosen.unwrap_or(usual)));
    let (filter, handle) = reload::Layer::new(filter);
    // Reporting an error to a closed standard error would panic.
    let log = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let log = match args.log_format.unwrap_or(if json { LogFormat::Json } else { LogFormat::Text }) {
        LogFormat::Json => log.json().boxed(),
        LogFormat::Text => {
            let colour = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
            log.with_target(args.verbose > 0).with_ansi(colour).boxed()
        }
    };
    let collector = Collector.with_filter(filter_fn(metrics::is_collected));
    // Keep a logger that a test has already set.
    let recent = Recent.with_filter(LevelFilter::WARN);
    let layers = tracing_subscriber::registry().with(log.with_filter(filter)).with(collector).with(recent);
    let started = layers.try_init();
    if started.is_ok() && !is_fixed {
        // It fails only if the log has ended.
        _ = LEVELS.set(Box::new(move |levels| _ = handle.reload(EnvFilter::new(levels))));
    }
}
