//! Logs: on standard error, in a file, in systemd's journal. The collectors of metrics and spans.

mod flood;
mod journal;
mod line;
mod sink;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use kiln_config::Config;
use kiln_config::options::{kiln, server};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, reload};

use self::flood::{Flood, Lines};
use self::journal::Journal;
use self::line::Record;
use self::sink::{LogFile, Sink};
use crate::metrics::{self, Collector};
use crate::spans::{self, Spans};

/// Logs, written to standard error.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// Print more log messages; repeat for all
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print only errors
    #[arg(short, long, global = true, conflicts_with = "verbose", hide_short_help = true)]
    pub quiet: bool,
    /// Log format; RUST_LOG sets the filter
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_short_help = true)]
    pub log_format: Option<LogFormat>,
}

/// Log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
    /// Lines as oslo.log writes them.
    Oslo,
}

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
        let mut line = Line(format!("{} {}", crate::now(), event.metadata().level()));
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
pub fn last_problems() -> Vec<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// The options of logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    is_debug: bool,
    format: LogFormat,
    /// Folder and file; of either, one may be missing.
    file: Option<(Option<PathBuf>, Option<PathBuf>)>,
    is_watched: bool,
    journal: Option<PathBuf>,
    on_stderr: bool,
    flood: Flood,
}

impl Settings {
    /// Reads the options.
    pub fn of(config: &Config) -> Result<Self> {
        let format = match config.choice(&kiln::LOG_FORMAT)?.as_deref() {
            _ if config.flag(&server::USE_JSON)? => LogFormat::Json,
            Some("json") => LogFormat::Json,
            Some("oslo") => LogFormat::Oslo,
            _ => LogFormat::Text,
        };
        let path = |option| config.text(option).map(PathBuf::from);
        let (folder, file) = (path(&server::LOG_DIR), path(&server::LOG_FILE));
        let has_file = folder.is_some() || file.is_some();
        let journal = config.flag(&server::USE_JOURNAL)?.then(|| path(&kiln::JOURNAL_SOCKET).unwrap_or_default());
        Ok(Self {
            is_debug: config.flag(&server::DEBUG)?,
            format,
            file: has_file.then_some((folder, file)),
            is_watched: config.flag(&server::WATCH_LOG_FILE)?,
            on_stderr: config.flag(&server::USE_STDERR)? || (!has_file && journal.is_none()),
            journal,
            flood: Flood::of(config)?,
        })
    }

    fn levels(&self) -> &'static str {
        if self.is_debug { DEBUG } else { USUAL }
    }

    /// Changes the levels of a running service, and opens its log file again. The form of the log stays.
    pub fn apply(&self) {
        if let Some(set) = LEVELS.get() {
            set(self.levels());
        }
        if let Some(file) = FILE.get() {
            file.reopen();
        }
    }

    /// Where lines go, and whether they should go to a journal that is missing. `name` is that of the file in a folder.
    fn sinks(&self, name: &str) -> Result<(Vec<Sink>, bool)> {
        let mut sinks = Vec::new();
        if let Some((folder, file)) = &self.file {
            let file = file.clone().unwrap_or_else(|| format!("{name}.log").into());
            let path = folder.as_deref().unwrap_or(Path::new("")).join(file);
            let option = if folder.is_some() { "log_dir" } else { "log_file" };
            let file = LogFile::open(path.clone(), self.is_watched);
            let file = Arc::new(file.with_context(|| format!("[DEFAULT] {option}: cannot open {}", path.display()))?);
            // The first one stays: a process has one log.
            _ = FILE.set(Arc::clone(&file));
            sinks.push(Sink::File(file));
        }
        let journal = self.journal.as_deref().map(Journal::open);
        let has_no_journal = matches!(journal, Some(Err(_)));
        if let Some(Ok(journal)) = journal {
            sinks.push(Sink::Journal(journal));
        }
        if self.on_stderr || has_no_journal {
            sinks.push(Sink::stderr());
        }
        Ok((sinks, has_no_journal))
    }
}

/// The log file, if there is one.
static FILE: OnceLock<Arc<LogFile>> = OnceLock::new();

/// Starts the log of a service: `kiln`, `kiln-api` or `kiln-engine`.
pub fn of_service(args: &LogArgs, config: &Config, name: &str) -> Result<()> {
    let settings = Settings::of(config)?;
    kiln_trace::set_source(|| Some(spans::origin()?).filter(|origin| *origin != kiln_trace::Origin::default()));
    let (sinks, has_no_journal) = settings.sinks(name)?;
    start(args, settings.levels(), settings.format, sinks, settings.flood);
    if let (true, Some(socket)) = (has_no_journal, &settings.journal) {
        let socket = socket.display();
        tracing::warn!("[DEFAULT] use_journal: cannot send to {socket}, the log goes to standard error");
    }
    Ok(())
}

/// Starts the log of a command, which tells only errors.
pub fn of_command(args: &LogArgs) {
    start(args, "error", LogFormat::Text, vec![Sink::stderr()], Flood::default());
}

/// Writes events to the sinks.
struct Log {
    format: LogFormat,
    with_target: bool,
    sinks: Vec<Sink>,
    lines: Lines,
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let Some(left_out) = self.lines.admit(event.metadata()) else { return };
        let record = Record::of(event, left_out);
        let mut line = None;
        for sink in &self.sinks {
            sink.write(&record, |has_colour| match &line {
                Some(line) if !has_colour => String::clone(line),
                _ => {
                    let text = match self.format {
                        LogFormat::Text => record.text(has_colour, self.with_target),
                        LogFormat::Json => record.json(),
                        LogFormat::Oslo => record.oslo(),
                    };
                    if !has_colour {
                        line = Some(text.clone());
                    }
                    text
                }
            });
        }
    }
}

fn start(args: &LogArgs, usual: &'static str, format: LogFormat, sinks: Vec<Sink>, flood: Flood) {
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
    let log = Log {
        format: args.log_format.unwrap_or(format),
        with_target: args.verbose > 0,
        sinks,
        lines: Lines::new(flood),
    };
    let collector = Collector.with_filter(filter_fn(metrics::is_collected));
    let recent = Recent.with_filter(LevelFilter::WARN);
    let spans = Spans.with_filter(filter_fn(spans::is_kept));
    let layers = tracing_subscriber::registry().with(spans).with(log.with_filter(filter)).with(collector).with(recent);
    // Keep a logger that a test has already set.
    let started = layers.try_init();
    if started.is_ok() && !is_fixed {
        // It fails only if the log has ended.
        _ = LEVELS.set(Box::new(move |levels| _ = handle.reload(EnvFilter::new(levels))));
    }
}
