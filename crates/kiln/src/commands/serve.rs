//! `kiln serve`, `kiln api`, `kiln engine`: the service.

use anyhow::{Context as _, Result};
use clap::Args;
use kiln_config::{Config, ConfigArgs};
use kiln_server::listeners::Listeners;
use kiln_server::runtime::Runtime;
use kiln_server::shutdown::{self, Stop};
use kiln_server::{reload, report, systemd};
use kiln_telemetry::logging::LogArgs;
use kiln_telemetry::traces::Traces;
use kiln_telemetry::{logging, metrics};
use kiln_web::ConnectionLimits;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// Maximum number of connections to the metrics.
const METRICS_CONNECTIONS: usize = 16;

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// API and engine.
    Both,
    /// API only.
    Api,
}

/// `serve` and `api`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln serve --config-file /etc/kiln/kiln.conf
  OS_DATABASE__CONNECTION=sqlite:///tmp/kiln.db kiln serve    # OS_<GROUP>__<OPTION> sets an option

Minimal configuration (Heat's configuration file also works):
  [database]
  connection = sqlite:///var/lib/kiln/kiln.db?mode=rwc
  [DEFAULT]
  # Generate your own key of 32 characters: openssl rand -hex 16
  auth_encryption_key = 0123456789abcdef0123456789abcdef
  [keystone_authtoken]
  auth_url = http://keystone:5000/v3
  username = heat
  password = secret
  project_name = service

Options in section [kiln], in addition to those in 'kiln engine --help':
  max_connections = 2048             maximum number of client connections; lower if the limit of
                                     file descriptors is low (256 are reserved for the engine)
  max_connections_per_address = 256  maximum per client address; 0: no limit, the default behind a
                                     proxy ([oslo_middleware] enable_proxy_headers_parsing)
  max_event_streams                  maximum number of requests that wait for events; default: half
                                     of max_connections, a quarter of them for one project
                                     (max_event_streams_per_project)
  header_timeout = 60                seconds to receive request headers, also for idle connections
  body_timeout = 60                  seconds to receive a request body
  send_timeout = 60                  seconds that a client may take to read a response
  cfn_api = true                     serve the CloudFormation API too: [heat_api_cfn] bind_host,
                                     bind_port (8000; a free port if REST has one); Keystone
                                     user for signatures: [ec2authtoken], [keystone_authtoken]
  cfn_page_size = 1000               maximum number of entries in a list of the CloudFormation API
  dashboard = false                  serve the dashboard below /dashboard on the listener of the REST API
  api_socket, cfn_socket             also listen on these Unix sockets (paths), for an HTTP server on
                                     this host; socket_mode = 660: their permissions
  tcp = true                         false: listen on these sockets only
  metrics_bind_port =                serve /metrics for Prometheus on this port; off by default
  metrics_bind_host = 127.0.0.1      address for that; there is no authentication
  template_urls = false              read templates from URLs in requests (template_url, TemplateURL);
                                     only from public addresses, in template_fetch_timeout seconds
  template_url_networks =            other networks for that, comma-separated: 10.1.0.0/16
  older_encryption_keys              previous values of auth_encryption_key for decryption,
                                     comma-separated; see 'kiln manage update-params --help'

HTTPS by Kiln itself: cert_file and key_file in [heat_api] and [heat_api_cfn]. The files are read \
again when they change; connections are not ended.

Logs: [kiln] log_format = text, json or oslo; [DEFAULT] log_file, log_dir, watch_log_file, \
use_journal, use_stderr, use_json, debug. Traces for OpenTelemetry: [kiln] otlp_endpoint.

Notifications as oslo.messaging sends them, to RabbitMQ, with the options of heat.conf:
  [oslo_messaging_notifications]
  driver = messagingv2               or messaging, log, noop; off by default
  transport_url = rabbit://USER:PASSWORD@HOST:5672,USER:PASSWORD@HOST2:5672/VHOST
                                     default: [DEFAULT] transport_url
  topics = notifications             routing keys are TOPIC.info and TOPIC.error
  [oslo_messaging_rabbit]
  ssl, ssl_ca_file, ssl_cert_file, ssl_key_file, amqp_durable_queues, amqp_auto_delete,
  rabbit_quorum_queue, heartbeat_timeout_threshold
  [DEFAULT]
  control_exchange = heat, default_notification_level = INFO, default_publisher_id, host
A notification is kept for an hour while RabbitMQ does not answer.

Signals: SIGTERM or Ctrl-C stops the service. It completes the running requests, and other engines take \
over its stacks immediately. SIGHUP reads the configuration again, SIGUSR2 writes a report \
([oslo_reports]). All options: 'kiln config reference'.")]
pub(crate) struct ServeArgs {
    /// Configuration.
    #[command(flatten)]
    config: ConfigArgs,
    /// Address or host name to listen on (option bind_host of section heat_api) [default: 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    bind_host: Option<String>,
    /// Port to listen on (option bind_port of section heat_api) [default: 8004]
    #[arg(long, value_name = "PORT")]
    bind_port: Option<u16>,
}

impl ServeArgs {
    /// Serves until a stop is requested.
    pub(crate) async fn run(self, role: Role, log: &LogArgs) -> Outcome {
        let config = Config::load(&self.config)?;
        let name = if role == Role::Both { "kiln" } else { "kiln-api" };
        logging::of_service(log, &config, name).map_err(|error| Failure::of_config(&config, error))?;
        let traces = Traces::start(&config).map_err(|error| Failure::of_config(&config, error))?;
        let signals = Signals::listen()?;
        let runtime = started(&config).await?;
        let reporter = report::reporter(self.config.clone(), runtime.service());
        let runtime = runtime.with_reports(reporter);
        let mut listeners = Listeners::of(&config, self.bind_host.as_deref(), self.bind_port).await?;
        listeners.metrics = metrics::listener(&config).await?;
        config.tell();
        let (_sender, stop) = shutdown::on_signal();
        signals.follow(self.config, config, &runtime, &stop)?;
        tokio::spawn(systemd::follow(stop.clone()));
        let served = serve(&runtime, listeners, role, stop).await;
        if let Some(traces) = traces {
            traces.finish().await;
        }
        Ok(served?)
    }
}

/// The signals that a service answers. From [`Signals::listen`] on none of them ends the process: one that arrives
/// during the start is answered after it.
struct Signals {
    hangups: Signal,
    reports: Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        let listen = |kind, name| signal(kind).with_context(|| format!("{name} cannot be received"));
        Ok(Self {
            hangups: listen(SignalKind::hangup(), "SIGHUP")?,
            reports: listen(SignalKind::user_defined2(), "SIGUSR2")?,
        })
    }

    /// Answers them from now on.
    fn follow(self, args: ConfigArgs, config: Config, runtime: &Runtime, stop: &Stop) -> Result<()> {
        let settings = report::Settings::of(&config)?;
        tokio::spawn(report::follow(self.reports, settings, args.clone(), runtime.service()));
        tokio::spawn(reload::follow(self.hangups, args, config, stop.clone()));
        Ok(())
    }
}

/// Creates the service from its configuration and checks it.
async fn started(config: &Config) -> Outcome<Runtime> {
    let runtime = Runtime::of_service(config).await;
    let runtime = runtime.map_err(|error| {
        Failure::of_config(config, error).hint("see 'kiln serve --help' for an example configuration")
    })?;
    runtime.check().await.map_err(|error| Failure::of_config(config, error))?;
    Ok(runtime)
}

/// Serves the APIs, and runs an engine if the role includes one, until a stop is requested.
pub(crate) async fn serve(runtime: &Runtime, mut listeners: Listeners, role: Role, stop: Stop) -> Result<()> {
    let _files = listeners.take_files();
    let (address, cfn) = (&listeners.api, &listeners.cfn);
    tracing::info!(%address, cfn = cfn.as_ref().map(tracing::field::display), engine = role == Role::Both, "serving");
    let api = async {
        let ended = runtime.api().serve(listeners.api, shutdown::stopped(stop.clone())).await;
        ended.context("the API failed")
    };
    let cfn = async {
        match listeners.cfn {
            Some(listener) => {
                let ended = runtime.cfn().serve(listener, shutdown::stopped(stop.clone())).await;
                ended.context("the CloudFormation API failed")
            }
            None => Ok(()),
        }
    };
    let metrics = serve_metrics(runtime, listeners.metrics, stop.clone());
    let engine = async {
        match role {
            Role::Both => runtime.engine(stop.clone()).await.context("the engine failed"),
            Role::Api => Ok(()),
        }
    };
    let attended = async {
        Box::pin(runtime.attend(stop.clone())).await;
        Ok(())
    };
    tokio::try_join!(api, cfn, metrics, attended, engine)?;
    tracing::info!("stopped");
    Ok(())
}

/// Serves the metrics until a stop is requested; ends at once without a listener.
async fn serve_metrics(runtime: &Runtime, listener: Option<TcpListener>, stop: Stop) -> Result<()> {
    let Some(listener) = listener else { return Ok(()) };
    tracing::info!(address = %listener.local_addr()?, "serving metrics");
    let limits = ConnectionLimits { total: METRICS_CONNECTIONS, ..ConnectionLimits::default() };
    let router = metrics::router(runtime.backends());
    kiln_web::serve(listener, router, limits, shutdown::stopped(stop)).await.context("the metrics failed")
}

/// Run only an engine; several engines can share a database
#[derive(Args, Debug)]
#[command(add = Effect::Changes("a service"))]
#[command(after_help = "\
Any number of engines, on any hosts, can share one database. When an engine stops, others take over \
its stacks immediately; when it fails, within seconds.

Options in section [kiln], in seconds:
  lease = 15         time without a heartbeat after which other engines take over the stacks
  call_timeout = 60  timeout of a call to a cloud service
  call_limit = 75    time until the result of a create call without a response is visible in the cloud;
                     the call is not repeated before; default: call_timeout + 15, with
                     plugins at least 2 plugin_timeout + 15
  list_delay = 10    maximum time until a service lists an object that it created
  metrics_bind_port  as in 'kiln serve --help'
  drain = 75         time that a stopping engine waits for calls; default: call_timeout + 15,
                     with plugins at least plugin_timeout + 15
  lifecycle_plugins  programs (absolute paths, comma-separated) that run in this order before and
                     after each operation of a stack, also of nested stacks; off by default. They
                     read a JSON document: phase (before, after), action, operation (an ID), stack
                     (id, name, parent_id, root_id, project_id, user_id, username, tags, status,
                     reason), and after it also failed. If one fails before an operation (its exit
                     status is not 0), the operation fails with what it wrote to standard error; those
                     that ran before it are told that it failed. After an operation, errors are only
                     logged. After a failure of an engine a run may be repeated, with the same
                     operation. A request that replaces a running one ends that one without a run
  lifecycle_timeout = 60  maximum seconds of such a run
  plugins            programs (absolute paths with arguments, comma-separated) that implement resource
                     types and custom constraints, and change scheduler hints: docs/plugins.md
  plugin_timeout = 60  maximum seconds of a call of such a program

Example:
  kiln engine --config-file /etc/kiln/kiln.conf")]
pub(crate) struct EngineArgs {
    /// Configuration.
    #[command(flatten)]
    config: ConfigArgs,
}

impl EngineArgs {
    /// Runs the engine until a stop is requested.
    pub(crate) async fn run(self, log: &LogArgs) -> Outcome {
        let config = Config::load(&self.config)?;
        logging::of_service(log, &config, "kiln-engine").map_err(|error| Failure::of_config(&config, error))?;
        let traces = Traces::start(&config).map_err(|error| Failure::of_config(&config, error))?;
        let signals = Signals::listen()?;
        let runtime = started(&config).await?;
        let metrics = metrics::listener(&config).await?;
        config.tell();
        let (_sender, stop) = shutdown::on_signal();
        signals.follow(self.config, config, &runtime, &stop)?;
        tokio::spawn(systemd::follow(stop.clone()));
        let clock = async {
            runtime.follow_clock(stop.clone()).await;
            Ok(())
        };
        let metrics = serve_metrics(&runtime, metrics, stop.clone());
        let ended = tokio::try_join!(runtime.engine(stop.clone()), metrics, clock);
        if let Some(traces) = traces {
            traces.finish().await;
        }
        ended?;
        Ok(())
    }
}
