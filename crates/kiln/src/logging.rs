//! Logs on standard error, and the collector of metrics.

use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

use crate::cli::{LogArgs, LogFormat};
use crate::metrics::{self, Collector};

/// Starts logging. The default level is info for services and error for commands; `RUST_LOG` overrides both.
pub(crate) fn start(args: &LogArgs, service: bool) {
    let level = match (args.quiet, args.verbose) {
        (true, _) => "error",
        (_, 0) if service => "info,sqlx=warn",
        (_, 0) => "error",
        (_, 1) => "debug,sqlx=warn,hyper=info,hyper_util=info,rustls=info,h2=info,sea_orm=info",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    // Reporting an error to a closed standard error would panic.
    let log = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let log = match args.log_format.unwrap_or(LogFormat::Text) {
        LogFormat::Json => log.json().boxed(),
        LogFormat::Text => {
            let colour = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
            log.with_target(args.verbose > 0).with_ansi(colour).boxed()
        }
    };
    let collector = Collector.with_filter(filter_fn(metrics::is_collected));
    // Keep a logger that a test has already set.
    _ = tracing_subscriber::registry().with(log.with_filter(filter)).with(collector).try_init();
}
