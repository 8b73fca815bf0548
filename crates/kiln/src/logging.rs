//! Logs on standard error.

use tracing_subscriber::EnvFilter;

use crate::cli::{LogArgs, LogFormat};

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
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Reporting an error to a closed standard error would panic.
    let builder = builder.log_internal_errors(false);
    let format = args.log_format.unwrap_or(LogFormat::Text);
    // Keep a logger that a test has already set.
    _ = match format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => {
            let colour = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
            builder.with_target(args.verbose > 0).with_ansi(colour).try_init()
        }
    };
}
