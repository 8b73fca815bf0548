//! `kiln testcloud`: a simulated OpenStack cloud for trying templates, `--local` and CI.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use kiln_cloud::{Connector, Credentials, SharedClient, TlsOptions, Transport};
use kiln_console::output::print;
use kiln_resource::{CloudRequest, Method};
use kiln_server::shutdown;
use kiln_server::whole_file;
use kiln_stack::Chance;
use kiln_testcloud::{Account, Fault, Testcloud};
use kiln_value::value;
use url::Url;

use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// Run a simulated OpenStack cloud, to try templates and --local
#[derive(Args, Debug)]
#[command(add = Effect::Changes("a cloud of its own"))]
#[command(after_help = "\
Serves Keystone, Nova, Neutron, Cinder and Glance on one port until Ctrl-C. The users are demo, \
alt_demo, admin and heat, each with the password 'password'. All data is lost when it stops, \
unless --state names a file: it is written when the cloud stops and read when it starts.

Examples:
  kiln testcloud
  kiln testcloud --exports cloud.sh        then, in another terminal: . ./cloud.sh
  kiln testcloud --latency 0.2 --build-time 10
  kiln testcloud --state cloud.json
  kiln testcloud --fault '{\"service\": \"compute\", \"method\": \"POST\", \"path\": \"/servers\",
                           \"when\": {\"nth\": 2}, \"action\": {\"status\": 503}}'

After the variables are set, --local uses this cloud:
  kiln --local stack create -t web.yaml web

A fault applies to calls that match service, method and path (all optional). \
When: always, nth, count, probability. \
Action: status, status_after, lost_reply, hang, stall, delay, fail_build, slow_build, \
endless_build, lag.")]
pub(crate) struct TestcloudArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Port to listen on; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = 15000)]
    port: u16,
    /// Response time in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    latency: f64,
    /// Build time of servers, volumes and images in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    build_time: f64,
    /// Seed for IDs, addresses and random faults: the same calls get the same IDs. By default, each start has other IDs
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Fault to inject, as JSON; may be repeated
    #[arg(long, value_name = "JSON", value_parser = fault)]
    fault: Vec<Fault>,
    /// Also write the variables to this file
    #[arg(long, value_name = "FILE")]
    exports: Option<PathBuf>,
    /// Keep the objects of the cloud in this file
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// URL of an orchestration service ('kiln serve') to add to the catalog
    #[arg(long, value_name = "URL")]
    orchestration: Option<Url>,
}

fn fault(text: &str) -> Result<Fault, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl TestcloudArgs {
    /// Serves until a stop is requested.
    pub(crate) async fn run(self) -> Outcome {
        let address = SocketAddr::from((self.address, self.port));
        let mut cloud = Testcloud::builder()
            .address(address)
            .latency(Duration::try_from_secs_f64(self.latency).context("--latency")?)
            .build_time(Duration::try_from_secs_f64(self.build_time).context("--build-time")?)
            .seed(self.seed.unwrap_or_else(|| Chance::from_os().uuid().as_u64_pair().0));
        if let Some(file) = &self.state
            && let Some(saved) = read(file)?
        {
            cloud = cloud.state(&saved).with_context(|| file.display().to_string())?;
        }
        let cloud = cloud.start().await.map_err(|error| {
            Failure::new(format!("cannot listen on {address}: {error}")).hint("use --port to select another port")
        })?;
        if let Some(url) = &self.orchestration {
            register(&cloud, url.as_str().trim_end_matches('/')).await?;
        }
        // Faults do not apply to the setup.
        self.fault.iter().for_each(|fault| cloud.faults().add(fault.clone()));
        let exports = exports(&cloud);
        if let Some(file) = &self.exports {
            whole_file::replace(file, exports.as_bytes()).with_context(|| file.display().to_string())?;
        }
        print(&exports)?;
        eprintln!("The simulated cloud is running at {}. Press Ctrl-C to stop it.", cloud.auth_url());
        let (_sender, stop) = shutdown::on_signal();
        shutdown::stopped(stop).await;
        if let Some(file) = &self.state {
            whole_file::replace(file, cloud.save().as_bytes()).with_context(|| file.display().to_string())?;
        }
        cloud.stop().await;
        Ok(())
    }
}

/// The content of a file; `None` if there is no such file.
fn read(file: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

/// The environment variables of the demo user, as shell commands.
pub(super) fn exports(cloud: &Testcloud) -> String {
    let Account { user, password, project } = cloud.users().demo;
    format!(
        "export OS_AUTH_URL={auth_url} OS_IDENTITY_API_VERSION=3 OS_REGION_NAME={region}\n\
         export OS_USERNAME={user} OS_PASSWORD={password} OS_PROJECT_NAME={project}\n\
         export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default\n",
        auth_url = cloud.auth_url(),
        region = cloud.region(),
    )
}

/// The credentials of an account.
pub(super) fn credentials(account: Account) -> Credentials {
    Credentials::password(account.user, account.password, account.project, "Default")
}

/// Transport and connector to the cloud.
pub(super) fn connector(cloud: &Testcloud) -> Result<(Arc<dyn Transport>, Connector)> {
    let transport: Arc<dyn Transport> = Arc::new(SharedClient::new(&TlsOptions::default())?);
    let mut options = kiln_cloud::Options::new(Url::parse(&cloud.auth_url())?);
    options.region = Some(cloud.region().to_owned());
    Ok((Arc::clone(&transport), Connector::new(transport, options)))
}

/// Adds Kiln to the service catalog of the cloud.
pub(super) async fn register(cloud: &Testcloud, url: &str) -> Result<()> {
    let session = connector(cloud)?.1.session(credentials(cloud.users().admin));
    let service = value!({"service": {"type": "orchestration", "name": "kiln", "enabled": true}});
    let made = session.call(&CloudRequest::new("identity", Method::Post, "/v3/services").body(service)).await?;
    let id = made.body.get("service").and_then(|service| service.str_at("id")).unwrap_or_default().to_owned();
    for interface in ["public", "internal", "admin"] {
        let endpoint = value!({"endpoint": {
            "service_id": id.as_str(),
            "interface": interface,
            "region_id": (cloud.region()),
            "url": (format!("{url}/v1/%(tenant_id)s")),
        }});
        session.call(&CloudRequest::new("identity", Method::Post, "/v3/endpoints").body(endpoint)).await?;
    }
    Ok(())
}
