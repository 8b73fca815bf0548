//! `kiln demo`: everything at once, on one machine, with a simulated cloud.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use kiln_client::{Bundle, Client, Source, StackRequest};
use kiln_engine::Chance;
use kiln_testcloud::{Account, Testcloud};
use kiln_value::{Value, text};
use tokio::net::TcpListener;

use super::serve::{self, Role};
use super::testcloud::{connector, credentials, exports, register};
use crate::config::Config;
use crate::connect::{self, CloudAccess};
use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::progress::{self, Mode, Screen, Target};
use crate::runtime::Runtime;
use crate::shutdown;

/// The template of the demo.
const TEMPLATE: &str = include_str!("../../../../examples/three-tier.yaml");
/// Heat's port.
const PORT: u16 = 8004;
/// The simulated cloud's port, that of 'kiln testcloud', if it is free.
const CLOUD_PORT: u16 = 15000;

/// `demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
It starts a simulated OpenStack (Keystone, Nova, Neutron, Cinder, Glance) and Kiln's API and engine on the loopback
interface, makes the stack of examples/three-tier.yaml there, shows how far it is, prints the outputs, and goes on
serving, so that the openstack client or curl can ask it. Ctrl-C ends it, and nothing is left behind.

Examples:
  kiln demo
  kiln demo --template my.yaml        your own template, in the simulated cloud
  kiln demo --template my.yaml --parameter size=3
  kiln demo --exit                    end after the outputs")]
pub(crate) struct DemoArgs {
    /// End when the outputs are printed
    #[arg(long)]
    exit: bool,
    /// SQLite file to use and to keep, with its key beside it; the simulated cloud is new each time
    /// [default: a temporary one]
    #[arg(long = "keep", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Port of the API [default: 8004, or another one if that is taken]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Template to use instead: path or URL
    #[arg(short, long, value_name = "TEMPLATE")]
    template: Option<String>,
    /// Environment for that template: path or URL; may be repeated
    #[arg(short, long, value_name = "ENVIRONMENT", requires = "template")]
    environment: Vec<String>,
    /// Value of a parameter of that template; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "template")]
    parameter: Vec<String>,
    /// Name of the stack
    #[arg(long, value_name = "STACK", default_value = "three-tier")]
    name: String,
    /// Seconds that a server or volume takes to build
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    build_time: f64,
    /// How to show how far it is
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    progress: Mode,
}

/// A SQLite file that goes with the demo.
struct Database {
    path: PathBuf,
    temporary: bool,
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed lies in the folder for such files.
            _ = self.path.parent().map(std::fs::remove_dir_all);
        }
    }
}

impl DemoArgs {
    /// Runs it.
    pub(crate) async fn run(self) -> Outcome {
        let build_time = Duration::try_from_secs_f64(self.build_time).context("--build-time")?;
        let cloud = Testcloud::builder().latency(Duration::from_millis(20)).build_time(build_time);
        let fixed = cloud.clone().address(SocketAddr::from((Ipv4Addr::LOCALHOST, CLOUD_PORT)));
        let cloud = match fixed.start().await {
            Ok(cloud) => cloud,
            Err(_) => cloud.start().await.context("the simulated cloud cannot start")?,
        };
        let database = self.database()?;
        let is_new = std::fs::metadata(&database.path).map_or(true, |file| file.len() == 0);
        let key = connect::key_of(&database.path, is_new)?;
        let config = Config::of_options(&options(&cloud, &database, key.expose()));
        // Boxed: laid out in one piece with the rest it is deeper than the compiler looks.
        let runtime = Box::pin(Runtime::of_service(&config)).await?;
        let listener = self.listener().await?;
        let url = format!("http://{}", listener.local_addr().context("the port is gone")?);
        register(&cloud, &url).await?;
        eprintln!("Simulated OpenStack at {}, Kiln at {url}\n", cloud.auth_url());

        let (end, stop) = shutdown::on_signal();
        let serving = serve::serve(&runtime, listener, Role::Both, stop.clone());
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
        std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
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

    /// Makes the stack as its user would, and prints its outputs.
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
                "The stack {} is there from an earlier demo; what it had in the simulated cloud is gone.",
                self.name
            );
            return Ok(());
        }
        let id = id.map_err(|error| Failure::from(error).in_template(&request.bundle))?;
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

/// What an operator would write into the configuration file.
fn options(cloud: &Testcloud, database: &Database, key: &str) -> Vec<(&'static str, &'static str, String)> {
    let Account { user, password, project } = cloud.users().heat;
    let path = kiln_value::identity::quote(&database.path.to_string_lossy(), "/");
    vec![
        ("database", "connection", format!("sqlite://{path}?mode=rwc")),
        ("DEFAULT", "auth_encryption_key", key.to_owned()),
        ("keystone_authtoken", "auth_url", cloud.auth_url()),
        ("keystone_authtoken", "username", user.to_owned()),
        ("keystone_authtoken", "password", password.to_owned()),
        ("keystone_authtoken", "project_name", project.to_owned()),
        ("keystone_authtoken", "region_name", cloud.region().to_owned()),
    ]
}

/// How to go on.
async fn instructions(cloud: &Testcloud, url: &str, stack: &str) -> Result<String> {
    let demo = cloud.users().demo;
    let token = connector(cloud)?.1.session(credentials(demo)).token().await?;
    let project = token.info.project.as_ref().map(|project| project.id.as_str()).unwrap_or_default();
    let variables = format!("  {}\n", exports(cloud).trim_end().replace('\n', "\n  "));
    Ok(format!(
        "
Kiln goes on serving. In another terminal, with the openstack client (or with kiln in its place):

{variables}  openstack stack show {stack}
  openstack stack resource list {stack}
  openstack server list

or with curl:

  curl -s {url}/v1/{project}/stacks -H 'X-Auth-Token: {token}'

Ctrl-C ends it.
",
        token = token.secret.expose(),
    ))
}
