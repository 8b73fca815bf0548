//! An API and engines on a database, with a simulated cloud.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kiln_client::{Access, Client, Error};
use kiln_cloud::{Connector, Credentials, Options, Session, SharedClient, TlsOptions};
use kiln_stack::Chance;
use kiln_testcloud::{Account, Testcloud};
use kiln_value::Secret;
use sea_orm::{ConnectionTrait as _, Database};
use url::Url;

use crate::processes::process::Process;

const API_LOG: &str = "api.log";

/// Time limits for a simulated cloud.
pub(crate) struct Limits {
    pub(crate) lease: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) call_limit: Duration,
    pub(crate) list_delay: Duration,
    pub(crate) drain: Duration,
}

impl Default for Limits {
    /// For tests that disturb nothing.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            call_timeout: Duration::from_secs(10),
            call_limit: Duration::from_secs(15),
            list_delay: Duration::from_millis(100),
            drain: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// For tests in which engines fail or lose their database.
    pub(crate) fn short() -> Self {
        Self {
            lease: Duration::from_secs(3),
            call_timeout: Duration::from_secs(4),
            call_limit: Duration::from_secs(6),
            list_delay: Duration::from_millis(500),
            drain: Duration::from_secs(6),
        }
    }
}

/// A running service.
pub(crate) struct Cluster {
    pub(crate) cloud: Testcloud,
    pub(crate) engines: Vec<Process>,
    pub(crate) limits: Limits,
    api: Process,
    port: u16,
    folder: PathBuf,
    /// The server's URL and the name of the database on it.
    database: Option<(String, String)>,
}

impl Cluster {
    /// Starts an API and engines. `database`: `sqlite`, or the URL of a server, or those of the nodes of a Galera cluster
    /// with commas in between: the API uses the first node, engine 0 the second one, and so on in turns.
    pub(crate) async fn start(cloud: Testcloud, database: &str, engines: usize, limits: Limits) -> Self {
        Self::start_with(cloud, database, engines, limits, "").await
    }

    /// Starts `kiln serve` on SQLite: an engine in the process of the API hears of each request at once.
    pub(crate) async fn in_one_process(cloud: Testcloud, limits: Limits) -> Self {
        Self::launch("serve", cloud, "sqlite", 0, limits, "", &[]).await
    }

    /// The same with more lines of configuration.
    pub(crate) async fn start_with(
        cloud: Testcloud,
        database: &str,
        engines: usize,
        limits: Limits,
        options: &str,
    ) -> Self {
        Self::start_with_variables(cloud, database, engines, limits, options, &[]).await
    }

    /// The same with more environment variables.
    pub(crate) async fn start_with_variables(
        cloud: Testcloud,
        database: &str,
        engines: usize,
        limits: Limits,
        options: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        Self::launch("api", cloud, database, engines, limits, options, variables).await
    }

    async fn launch(
        role: &'static str,
        cloud: Testcloud,
        database: &str,
        engines: usize,
        limits: Limits,
        options: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let (urls, database) = match database {
            "sqlite" => (vec![format!("sqlite://{}", folder.join("kiln.db").display())], None),
            nodes => {
                let nodes: Vec<&str> = nodes.split(',').collect();
                let name = create_database(nodes[0]).await;
                let urls: Vec<String> = nodes.iter().map(|node| on_server(node, &name)).collect();
                // A node of a cluster applies it some time later.
                for url in &urls {
                    let is_there = async {
                        while Box::pin(Database::connect(url)).await.is_err() {
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                    };
                    tokio::time::timeout(Duration::from_mins(1), is_there).await.expect("the database on each node");
                }
                (urls, Some((nodes[0].to_owned(), name)))
            }
        };
        let port = free_port();
        let heat = cloud.users().heat;
        let seconds = |time: Duration| time.as_secs_f64();
        // Only a cluster gets what one server does not need.
        let wait = if urls.len() > 1 { "mysql_wsrep_sync_wait = 1\n" } else { "" };
        let text = |url: &str| {
            format!(
                "[DEFAULT]\nauth_encryption_key = 0123456789abcdef0123456789abcdef\nmax_stacks_per_tenant = -1\n\
                 stack_user_domain_name = heat\nstack_domain_admin = heat_domain_admin\nstack_domain_admin_password = password\n\
                 [database]\nconnection = {url}\n{wait}\
                 [heat_api]\nbind_host = 127.0.0.1\nbind_port = {port}\n[heat_api_cfn]\nbind_port = 0\n\
                 [kiln]\nlease = {}\ncall_timeout = {}\ncall_limit = {}\nlist_delay = {}\ndrain = {}\ndrift_min_interval = 1\n\
                 [keystone_authtoken]\nauth_url = {}\nusername = {}\npassword = {}\nproject_name = {}\n\
                 user_domain_name = Default\nproject_domain_name = Default\n{options}",
                seconds(limits.lease),
                seconds(limits.call_timeout),
                seconds(limits.call_limit),
                seconds(limits.list_delay),
                seconds(limits.drain),
                cloud.auth_url(),
                heat.user,
                heat.password,
                heat.project,
            )
        };
        let configs: Vec<PathBuf> = urls
            .iter()
            .enumerate()
            .map(|(node, url)| {
                let config = folder.join(format!("kiln-{node}.conf"));
                std::fs::write(&config, text(url)).expect("written");
                config
            })
            .collect();
        let start = |role, node: usize, log: &str| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Process::start(role, &configs[node % configs.len()], log, variables.collect())
        };
        let api = start(role, 0, API_LOG);
        let engines = (0..engines).map(|n| start("engine", n + 1, &log_of(n))).collect();
        let mut cluster = Self { cloud, engines, limits, api, port, folder, database };
        cluster.await_api().await;
        cluster
    }

    /// The configuration file of the API.
    pub(crate) fn config(&self) -> String {
        self.folder.join("kiln-0.conf").display().to_string()
    }

    async fn await_api(&mut self) {
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(!self.api.is_gone(), "the API ended: {}", self.folder.display());
            assert!(start.elapsed() < Duration::from_secs(30), "the API does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Replaces an engine that has ended.
    pub(crate) fn restart(&mut self, engine: usize) {
        self.engines[engine].start_again(&log_of(engine));
    }

    /// Kills the API, with the engine in its process, and starts it again.
    pub(crate) async fn restart_api(&mut self) {
        self.api.kill();
        self.api.start_again(API_LOG);
        self.await_api().await;
    }

    /// A client for a user.
    pub(crate) fn client(&self, user: Account) -> Client {
        let transport = Arc::new(SharedClient::new(&TlsOptions::default()).expect("a client"));
        Client::new(transport.clone(), Arc::new(self.user(transport, user)))
    }

    /// The URL of the API for a user, and a token.
    pub(crate) async fn access(&self, user: Account) -> (Url, String) {
        let transport = Arc::new(SharedClient::new(&TlsOptions::default()).expect("a client"));
        let user = self.user(transport, user);
        let token = user.token(false).await.expect("a token").expect("a token");
        (user.endpoint().await.expect("a URL"), token.expose().clone())
    }

    fn user(&self, transport: Arc<SharedClient>, user: Account) -> User {
        let options = Options::new(self.cloud.auth_url().parse().expect("a URL"));
        let credentials = Credentials::password(user.user, user.password, user.project, "Default");
        User { session: Connector::new(transport, options).session(credentials), port: self.port }
    }

    /// The URL of the database on its server, or on the first node.
    pub(crate) fn database_url(&self) -> String {
        let (server, name) = self.database.as_ref().expect("a server");
        on_server(server, name)
    }

    /// The port of the API.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the API with `%(project_id)s` in place of the project.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1/%(project_id)s", self.port)
    }

    /// The time of processors that the API has used.
    pub(crate) fn processor_time(&self) -> Duration {
        self.api.processor_time()
    }

    /// The folder of the configuration and the logs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops everything and deletes its files, except the logs of a failed test.
    pub(crate) async fn end(mut self) {
        self.engines.clear();
        self.api.kill();
        if let Some((server, name)) = &self.database {
            let db = Box::pin(Database::connect(server)).await.expect("the server");
            let force = if server.starts_with("postgres") { " WITH (FORCE)" } else { "" };
            db.execute_unprepared(&format!("DROP DATABASE {name}{force}")).await.expect("dropped");
        }
        match std::env::var_os("KILN_TEST_LOG") {
            Some(_) => println!("logs: {}", self.folder.display()),
            None => std::fs::remove_dir_all(&self.folder).expect("removed"),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("logs: {}", self.folder.display());
        }
    }
}

/// A port that no other test of this process gets. It is below the ports that Linux assigns by itself, so that nobody else
/// gets it before the API listens on it.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Other processes that run tests begin elsewhere.
    let first = std::process::id().wrapping_mul(97);
    let ports =
        std::iter::repeat_with(|| 12_000 + (first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000) as u16);
    ports.take(1_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

pub(crate) fn log_of(engine: usize) -> String {
    format!("engine-{engine}.log")
}

/// The URL of a database on the server of another one.
fn on_server(url: &str, name: &str) -> String {
    format!("{}/{name}", url.rsplit_once('/').expect("a URL with a database").0)
}

async fn create_database(server: &str) -> String {
    let name = format!("kiln_{}", Chance::from_os().uuid().simple());
    let db = Box::pin(Database::connect(server)).await.expect("the server");
    db.execute_unprepared(&format!("CREATE DATABASE {name}")).await.expect("a database");
    db.close().await.expect("closed");
    name
}

/// A user of the API with its URL.
struct User {
    session: Session,
    port: u16,
}

#[async_trait]
impl Access for User {
    async fn endpoint(&self) -> Result<Url, Error> {
        let token = self.session.token().await.map_err(|error| Error::Access(error.to_string()))?;
        let project = token.info.project.as_ref().map(|project| project.id.clone()).unwrap_or_default();
        let url = format!("http://127.0.0.1:{}/v1/{project}", self.port);
        Url::parse(&url).map_err(|error| Error::Access(error.to_string()))
    }

    async fn token(&self, _renew: bool) -> Result<Option<Secret<String>>, Error> {
        let token = self.session.token().await.map_err(|error| Error::Access(error.to_string()))?;
        Ok(Some(token.secret.clone()))
    }
}

/// The status and reason at the end of an operation of a stack: `_IN_PROGRESS` if it takes longer than `limit`, and
/// `DELETE_COMPLETE` if there is no stack.
pub(crate) async fn end_of(client: &Client, stack: &str, limit: Duration) -> (String, String) {
    let start = Instant::now();
    loop {
        let (status, reason) = match client.stack(stack, false).await {
            Ok(stack) => (stack.status().to_owned(), stack.reason().to_owned()),
            Err(error) if error.is_not_found() => ("DELETE_COMPLETE".to_owned(), String::new()),
            Err(error) => panic!("{stack}: {error}"),
        };
        if !status.ends_with("_IN_PROGRESS") || start.elapsed() > limit {
            return (status, reason);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
