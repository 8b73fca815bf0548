//! `kiln serve`, `kiln api`, `kiln engine`: the service.

use anyhow::{Context as _, Result};
use clap::Args;
use tokio::net::TcpListener;

use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::failure::Outcome;
use crate::runtime::Runtime;
use crate::shutdown::{self, Stop};

/// Heat's port.
const PORT: u16 = 8004;

/// What a process does.
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
  OS_DATABASE__CONNECTION=sqlite:///tmp/kiln.db kiln serve      any option as OS_<GROUP>__<OPTION>

A configuration that is enough (Heat's own file works too):
  [database]
  connection = sqlite:///var/lib/kiln/kiln.db?mode=rwc
  [DEFAULT]
  # Your own 32 characters: openssl rand -hex 16
  auth_encryption_key = 0123456789abcdef0123456789abcdef
  [keystone_authtoken]
  auth_url = http://keystone:5000/v3
  username = heat
  password = secret
  project_name = service

Options of Kiln's own in section kiln, besides those of 'kiln engine --help':
  max_connections = 2048             connections of clients at a time; fewer where the limit of file
                                     descriptors is low, of which the engine keeps 256
  max_connections_per_address = 256  the same for one client address; 0: no limit, which is the default
                                     behind a proxy ([oslo_middleware] enable_proxy_headers_parsing)
  header_timeout = 60                seconds for the head of a request; idle connections end with it
  body_timeout = 60                  seconds for the body of a request
  send_timeout = 60                  seconds that a client may leave an answer unread

It stops with SIGTERM or Ctrl-C: requests under way are answered, and the work that an engine has
under way is handed over to the others at once.")]
pub(crate) struct ServeArgs {
    /// Configuration.
    #[command(flatten)]
    config: ConfigArgs,
    /// Address or host name to listen on (option bind_host of section heat_api; 0.0.0.0)
    #[arg(long, value_name = "ADDRESS")]
    bind_host: Option<String>,
    /// Port to listen on (option bind_port of section heat_api; 8004)
    #[arg(long, value_name = "PORT")]
    bind_port: Option<u16>,
}

impl ServeArgs {
    /// Serves until told to stop.
    pub(crate) async fn run(self, role: Role) -> Outcome {
        let config = Config::load(&self.config)?;
        let runtime = started(&config).await?;
        let listener = self.listener(&config).await?;
        config.tell();
        let (_sender, stop) = shutdown::on_signal();
        Ok(serve(&runtime, listener, role, stop).await?)
    }

    async fn listener(&self, config: &Config) -> Result<TcpListener> {
        let host = config.text("heat_api", "bind_host").unwrap_or_else(|| "0.0.0.0".to_owned());
        let host = self.bind_host.clone().unwrap_or(host);
        let port = self.bind_port.map_or_else(|| config.number("heat_api", "bind_port", PORT), Ok)?;
        let listener = TcpListener::bind((host.as_str(), port)).await;
        listener.with_context(|| format!("cannot listen on {host} port {port} ([heat_api] bind_host, bind_port)"))
    }
}

/// The service of a configuration, checked.
async fn started(config: &Config) -> Outcome<Runtime> {
    let runtime = Runtime::of_service(config).await;
    let runtime = runtime.map_err(|error| config.refused(error).hint("'kiln serve --help' shows a configuration"))?;
    runtime.check().await.map_err(|error| config.refused(error))?;
    Ok(runtime)
}

/// Serves the API, with an engine beside it, until told to stop.
pub(crate) async fn serve(runtime: &Runtime, listener: TcpListener, role: Role, stop: Stop) -> Result<()> {
    let address = listener.local_addr()?;
    tracing::info!(%address, engine = role == Role::Both, "serving");
    let api = async {
        let ended = runtime.api().serve(listener, shutdown::stopped(stop.clone())).await;
        ended.context("the API ended")
    };
    let engine = async {
        match role {
            Role::Both => runtime.engine(stop.clone()).await.context("the engine ended"),
            Role::Api => Ok(()),
        }
    };
    tokio::try_join!(api, engine)?;
    tracing::info!("stopped");
    Ok(())
}

/// `engine`.
#[derive(Args, Debug)]
#[command(after_help = "\
Engines are equal: any number of them, on any hosts, share the work of one database. Those that
stop hand their work over at once; that of one that dies is taken over within seconds.

Options of Kiln's own in section kiln, in seconds:
  lease = 15         how long an engine may be silent until its stacks are taken over
  call_timeout = 60  the longest time that a call to a service of the cloud may take
  call_limit = 75    the longest time that what a lost call creates may stay unseen: it is not
                     created again before; call_timeout + 15 if not set
  list_delay = 10    the longest time that a service may not list what it has created
  drain = 75         how long an engine that stops waits for calls under way; call_timeout + 15
                     if not set

Example:
  kiln engine --config-file /etc/kiln/kiln.conf")]
pub(crate) struct EngineArgs {
    /// Configuration.
    #[command(flatten)]
    config: ConfigArgs,
}

impl EngineArgs {
    /// Works until told to stop.
    pub(crate) async fn run(self) -> Outcome {
        let config = Config::load(&self.config)?;
        let runtime = started(&config).await?;
        config.tell();
        let (_sender, stop) = shutdown::on_signal();
        Ok(runtime.engine(stop).await?)
    }
}
