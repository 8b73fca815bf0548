//! `kiln demo`: runs Kiln and a simulated cloud on one machine.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use kiln_client::CloudAccess;
use kiln_client::{Bundle, Client, Source, StackRequest};
use kiln_config::Config;
use kiln_console::output::print;
use kiln_console::progress::{self, Mode, Screen, Target};
use kiln_server::local_database::LocalDatabase;
use kiln_server::owner_only;
use kiln_server::runtime::Runtime;
use kiln_server::shutdown;
use kiln_stack::Chance;
use kiln_testcloud::{Account, Testcloud};
use kiln_value::{Value, text};
use tokio::net::TcpListener;

use super::serve::{self, Role};
use super::testcloud::{connector, credentials, exports, register};
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};
use crate::mistakes::Sent;

/// The template of the demo.
const TEMPLATE: &str = include_str!("../../../../examples/three-tier.yaml");
/// The default port of Heat.
const PORT: u16 = 8004;
/// The port of the simulated cloud if it is free, the same as of 'kiln testcloud'.
const CLOUD_PORT: u16 = 15000;

/// Create a stack in a simulated cloud
#[derive(Args, Debug)]
#[command(add = Effect::Changes("a cloud and a database of its own"))]
#[command(after_help = "\
Starts a simulated OpenStack (Keystone, Nova, Neutron, Cinder, Glance) and Kiln's API and engine on \
the loopback interface, creates a stack from examples/three-tier.yaml, shows its progress and prints \
the outputs. The services keep running for a browser, the openstack client or curl. Press Ctrl-C to stop; all \
data is deleted unless --keep is set.

Examples:
  kiln demo
  kiln demo --template my.yaml        use your own template
  kiln demo --template my.yaml --parameter size=3
  kiln demo --exit                    exit after printing the outputs")]
pub(crate) struct DemoArgs {
    /// Exit after printing the outputs
    #[arg(long)]
    exit: bool,
    /// SQLite file to use and keep, with its key in a second file; the simulated cloud always starts empty
    /// [default: a temporary file]
    #[arg(long = "keep", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Port of the API [default: 8004, or a free port if 8004 is in use]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Template to use instead of the example: path or URL
    #[arg(short, long, value_name = "TEMPLATE")]
    template: Option<String>,
    /// Environment for the template: path or URL; may be repeated
    #[arg(short, long, value_name = "ENVIRONMENT", requires = "template")]
    environment: Vec<String>,
    /// Parameter value for the template; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "template")]
    parameter: Vec<String>,
    /// Name of the stack
    #[arg(long, value_name = "STACK", default_value = "three-tier")]
    name: String,
    /// Build time of servers and volumes in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    build_time: f64,
    /// How to show the progress
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    progress: Mode,
}

/// The SQLite file of the demo; a temporary file is deleted on drop.
struct Database {
    path: PathBuf,
    temporary: bool,
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.temporary {
            // A file that cannot be deleted stays in the directory for temporary files.
            _ = self.path.parent().map(std::fs::remove_dir_all);
        }
    }
}

impl DemoArgs {
    /// Runs the command.
    pub(crate) async fn run(self) -> Outcome {
        let build_time = Duration::try_from_secs_f64(self.build_time).context("--build-time")?;
        let cloud = Testcloud::builder().latency(Duration::from_millis(20)).build_time(build_time);
        let fixed = cloud.clone().address(SocketAddr::from((Ipv4Addr::LOCALHOST, CLOUD_PORT)));
        let cloud = match fixed.start().await {
            Ok(cloud) => cloud,
            Err(_) => cloud.start().await.context("cannot start the simulated cloud")?,
        };
        let database = self.database()?;
        let config = Config::of_options(&options(&cloud, LocalDatabase::in_file(&database.path)?));
        // Boxed: otherwise the nested future exceeds the recursion limit of the compiler.
        let runtime = Box::pin(Runtime::of_service(&config)).await?;
        let listener = self.listener().await?;
        let url = format!("http://{}", listener.local_addr().context("cannot determine the port")?);
        register(&cloud, &url).await?;
        eprintln!("Simulated OpenStack at {}, Kiln at {url}\n", cloud.auth_url());

        let (end, stop) = shutdown::on_signal();
        let serving = serve::serve(&runtime, listener.into(), Role::Both, stop.clone());
        let work = async {
            let made = tokio::select! {
                made = self.make(&cloud) => made,
                () = shutdown::stopped(stop.clone()) => Err(Failure::interrupted()),
            };
            if made.is_ok() && !self.exit {
                print(&instructions(&cloud, &url, &self.name).await?)?;
                shutdown::stopped(stop).await;
            }
            made
        };
        tokio::pin!(serving, work);
        tokio::select! {
            outcome = &mut work => {
                end.send_replace(true);
                serving.await?;
                outcome
            }
            ended = &mut serving => {
                ended?;
                work.await
            }
        }
    }

    fn database(&self) -> Result<Database> {
        if let Some(file) = &self.file {
            return Ok(Database { path: std::path::absolute(file)?, temporary: false });
        }
        let folder = std::env::temp_dir().join(format!("kiln-demo-{}", Chance::from_os().uuid().simple()));
        owner_only::folder(&folder).with_context(|| folder.display().to_string())?;
        Ok(Database { path: folder.join("kiln.db"), temporary: true })
    }

    async fn listener(&self) -> Result<TcpListener> {
        let on = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        match self.port {
            Some(port) => on(port).await.with_context(|| format!("cannot listen on port {port}")),
            None => match on(PORT).await {
                Ok(listener) => Ok(listener),
                Err(_) => on(0).await.context("no port is free"),
            },
        }
    }

    /// Creates the stack as the demo user and prints its outputs.
    async fn make(&self, cloud: &Testcloud) -> Outcome {
        let demo = cloud.users().demo;
        let (transport, connector) = connector(cloud)?;
        let access = CloudAccess::new(connector, credentials(demo));
        let client = Client::new(Arc::clone(&transport), Arc::new(access));
        let bundle = match &self.template {
            Some(template) => {
                Bundle::read(&Source::with_web(transport, false), Some(template), &self.environment).await?
            }
            None => Bundle { template: Some(shipped()?), ..Bundle::default() },
        };
        let parameters = kiln_client::parameters(&self.parameter)?;
        let request = StackRequest { bundle, parameters, disable_rollback: Some(true), ..StackRequest::default() };
        let id = client.create_stack(&self.name, &request).await;
        if self.file.is_some() && id.as_ref().is_err_and(|error| error.status() == Some(409)) {
            eprintln!(
                "The stack {} exists from an earlier demo, but its resources in the simulated cloud do not.",
                self.name
            );
            return Ok(());
        }
        let id = id.map_err(|error| {
            let sent = Sent { bundle: &request.bundle, given: &request.parameters, catalog: None };
            Failure::from(error).in_files(sent)
        })?;
        let (target, screen) = (Target::created(&self.name, &id), Screen::new(self.progress));
        let end = progress::follow(&client, target, &screen, Duration::from_millis(50), false).await?;
        super::stack::ended(&self.name, &end, "CREATE")?;
        let mut told = String::from("\nOutputs:\n");
        let stack = client.stack(&id, true).await?;
        let name = |output: &Value| output.str_at("output_key").unwrap_or_default().to_owned();
        let width = stack.outputs().iter().map(|output| name(output).chars().count()).max().unwrap_or_default();
        for output in stack.outputs() {
            let shown = output.get("output_value").map(text::str).unwrap_or_default();
            _ = writeln!(told, "  {:width$}  {shown}", name(output));
        }
        Ok(print(&told)?)
    }
}

fn shipped() -> Result<Value> {
    Ok(kiln_yaml::parse(TEMPLATE).map_err(|error| anyhow::anyhow!("{error}"))?.value)
}

/// The configuration options of the service.
fn options(cloud: &Testcloud, database: LocalDatabase) -> Vec<(&'static str, &'static str, String)> {
    let Account { user, password, project } = cloud.users().heat;
    vec![
        ("database", "connection", database.url),
        ("DEFAULT", "auth_encryption_key", database.key.expose().clone()),
        ("DEFAULT", "encrypt_parameters_and_properties", "true".to_owned()),
        ("kiln", "dashboard", "true".to_owned()),
        ("keystone_authtoken", "auth_url", cloud.auth_url()),
        ("keystone_authtoken", "username", user.to_owned()),
        ("keystone_authtoken", "password", password.to_owned()),
        ("keystone_authtoken", "project_name", project.to_owned()),
        ("keystone_authtoken", "region_name", cloud.region().to_owned()),
    ]
}

/// The commands to continue with.
async fn instructions(cloud: &Testcloud, url: &str, stack: &str) -> Result<String> {
    let demo = cloud.users().demo;
    let token = connector(cloud)?.1.session(credentials(demo)).token().await?;
    let project = token.info.project.as_ref().map(|project| project.id.as_str()).unwrap_or_default();
    let variables = format!("  {}\n", exports(cloud).trim_end().replace('\n', "\n  "));
    Ok(format!(
        "
Kiln is still running. In a browser, user {user}, password {password}:

  {url}/dashboard/

In another terminal:

{variables}  kiln stack show {stack}
  kiln stack resource list {stack}

or use the openstack client, which also shows the other services of the simulated cloud:

  openstack stack show {stack}
  openstack server list

or use curl:

  curl -s {url}/v1/{project}/stacks -H 'X-Auth-Token: {token}'

Press Ctrl-C to stop.
",
        user = demo.user,
        password = demo.password,
        token = token.secret.expose(),
    ))
}
