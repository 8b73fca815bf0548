//! Connects a command to the orchestration service of the cloud, or to a service in this process (`--local`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use kiln_client::{Client, CloudAccess, Fixed, Source, no_token, segment};
use kiln_cloud::{
    CloudConfig, ConfigError, Connector, Credentials, HttpRequest, Session, SharedClient, StackCloud, TlsOptions,
    Token, Transport,
};
use kiln_dashboard::{OwnerAccess, Region, Router, remote};
use kiln_server::in_process::{HOST, InProcess};
use kiln_server::local_database::LocalDatabase;
use kiln_server::runtime::{LOCAL_PROJECT, OwnCloud, Runtime};
use kiln_server::shutdown;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

use crate::cli::{CloudArgs, Global, LocalArgs};
use crate::failure::{Failure, Outcome, nearest};

/// A client and the engine in this process, if there is one.
pub(crate) struct Connection {
    /// The client.
    pub(crate) client: Client,
    /// Reads templates and the files that they refer to.
    pub(crate) source: Source,
    /// Where the types of blueprints and TOSCA are from.
    pub(crate) settings: LocalArgs,
    cloud: Option<(Connector, Credentials)>,
    service: Service,
    local: Option<Engine>,
}

/// What answers requests.
enum Service {
    /// A running service.
    Remote(SharedClient),
    /// The API in this process, with the project of its stacks.
    Here(Router, String),
}

/// The database of `--local` that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// An existing database with stacks.
    Stacks,
    /// An existing or new database.
    Any,
    /// An existing database, to read names in it. No engine and no plug-in is started.
    Names,
    /// None: it is in memory, so that no stack is continued, and a plug-in that does not describe itself is no error.
    Nothing,
}

/// Where a service is asked.
#[derive(Debug)]
pub(crate) enum Place {
    /// The endpoint of the catalog, or of the environment.
    Catalog,
    /// A URL; `%(project_id)s` in it is the project.
    Url(Url),
    /// A socket of the file system.
    Socket(PathBuf),
}

impl Place {
    /// Reads `http://host:8004`, with or without `/v1/<project>`, or `unix:/path/of/api.sock`.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            // unix:/run/api.sock and unix:///run/api.sock are the same path.
            return Ok(Self::Socket(PathBuf::from(path.strip_prefix("//").unwrap_or(path))));
        }
        let wrong = |reason: String| {
            Failure::new(format!("{text}: {reason}")).hint("use http://HOST:PORT, https://HOST:PORT or unix:/PATH")
        };
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("not a URL of HTTP".to_owned()));
        }
        let path = url.path().trim_end_matches('/');
        let whole = if path.split('/').any(|part| part == "v1") {
            text.to_owned()
        } else {
            format!("{}/v1/{PROJECT}", text.trim_end_matches('/'))
        };
        Url::parse(&whole).map(Self::Url).map_err(|error| wrong(error.to_string()))
    }
}

/// What stands for the project in an endpoint.
const PROJECT: &str = "%(project_id)s";

/// The engine of `--local`.
struct Engine {
    stop: watch::Sender<bool>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Connection {
    /// Connects as the options specify. `need` applies to the database of `--local`.
    pub(crate) async fn open(global: &Global, need: Need) -> Outcome<Self> {
        if global.local.local { Box::pin(Self::local(global, need)).await } else { Self::remote(global) }
    }

    /// Only the source of templates, for commands that need no service.
    pub(crate) fn source(global: &Global) -> Outcome<Source> {
        Ok(Source::with_web(transport(&TlsOptions::default())?, global.allow_remote))
    }

    /// Whether the engine runs in this process and stops with it.
    pub(crate) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Stops the engine, if one was started.
    pub(crate) async fn close(self) -> Outcome {
        let Some(Engine { stop, task }) = self.local else { return Ok(()) };
        stop.send_replace(true);
        match task.await {
            Ok(ended) => Ok(ended?),
            Err(error) => Err(Failure::new(format!("the engine failed: {error}"))),
        }
    }

    /// The cloud of the user.
    pub(crate) async fn cloud(&self) -> Outcome<Arc<StackCloud>> {
        match &self.cloud {
            Some((connector, credentials)) => Ok(connector.cloud(credentials).await),
            None => Err(no_cloud(&ConfigError::Nothing)),
        }
    }

    /// The address of the dashboard of the service; `None`: it has none.
    pub(crate) async fn dashboard(&self) -> Outcome<Option<Url>> {
        let Service::Remote(client) = &self.service else { return Ok(None) };
        let mut url = above_version(self.client.endpoint().await?);
        // A service at a socket has no address for a browser.
        if url.host_str() == Some(HOST) {
            return Ok(None);
        }
        url.set_path(&format!("{}/dashboard/", url.path().trim_end_matches('/')));
        let (headers, timeout) = (HeaderMap::new(), Duration::from_secs(10));
        let request = HttpRequest { method: Method::GET, url: url.clone(), headers, body: None, timeout };
        let is_there = client.send(request).await.is_ok_and(|answer| answer.status == StatusCode::OK);
        Ok(is_there.then_some(url))
    }

    /// The page of a stack, below the address of a dashboard.
    pub(crate) async fn page_of(&self, stack: &str) -> Outcome<String> {
        let found = self.client.stack(stack, false).await?;
        Ok(format!("#/stacks/{}/{}", segment(found.name()), found.id()))
    }

    /// What a dashboard needs of it.
    pub(crate) async fn page(&self) -> Outcome<PageParts> {
        let client = match &self.service {
            Service::Here(router, project) => {
                let access = OwnerAccess::Local { project: project.clone() };
                let lists = self.cloud.as_ref().map(|(connector, own)| connector.session(own.clone()));
                return Ok(PageParts { api: router.clone(), access, connector: None, regions: Vec::new(), lists });
            }
            Service::Remote(client) => client.clone(),
        };
        let Some((connector, credentials)) = &self.cloud else { return Err(no_cloud(&ConfigError::Nothing)) };
        let api = remote(client.clone(), above_version(self.client.endpoint().await?));
        let token = connector.session(credentials.clone()).token().await;
        let token = token.map_err(|error| Failure::from(no_token(error, connector.options())))?;
        let regions = regions(connector, &client, &token);
        Ok(PageParts {
            api,
            access: OwnerAccess::Token(token),
            connector: Some(connector.clone()),
            regions,
            lists: None,
        })
    }

    fn remote(global: &Global) -> Outcome<Self> {
        Self::of_service(global, Place::Catalog)
    }

    /// Connects to a running service.
    pub(crate) fn of_service(global: &Global, place: Place) -> Outcome<Self> {
        let config = cloud_config(&global.cloud).map_err(|error| no_cloud(&error))?;
        let shared = shared(&config.tls)?;
        let transport: Arc<dyn Transport> = Arc::new(shared.clone());
        let mut options = config.options().map_err(|error| no_cloud(&error))?;
        let source = Source::with_web(Arc::clone(&transport), global.allow_remote);
        let mut to_service = shared;
        match place {
            Place::Catalog => {}
            Place::Url(url) => _ = options.endpoint_overrides.insert("orchestration".to_owned(), url),
            Place::Socket(path) => {
                to_service = SharedClient::to_socket(&path).map_err(|error| Failure::new(error.to_string()))?;
                let endpoint = Url::parse(&format!("http://{HOST}/v1/{PROJECT}"));
                let endpoint = endpoint.map_err(|error| Failure::new(error.to_string()))?;
                options.endpoint_overrides.insert("orchestration".to_owned(), endpoint);
            }
        }
        let connector = Connector::new(transport, options);
        let sends_password = variable(&global.cloud, "HEAT_INCLUDE_PASSWORD").is_some_and(|word| !word.is_empty());
        let access = CloudAccess::new(connector.clone(), config.credentials.clone()).with_password(sends_password);
        let cloud = Some((connector, config.credentials));
        Ok(Self {
            client: Client::new(Arc::new(to_service.clone()), Arc::new(access)),
            source,
            settings: global.local.clone(),
            cloud,
            service: Service::Remote(to_service),
            local: None,
        })
    }

    async fn local(global: &Global, need: Need) -> Outcome<Self> {
        let given = global.local.database.as_deref();
        let LocalDatabase { url, key } = match need {
            Need::Nothing => LocalDatabase::in_memory(),
            Need::Names => LocalDatabase::of_user(given, true)?,
            Need::Stacks => LocalDatabase::of_user(given, given.is_some())?,
            Need::Any => LocalDatabase::of_user(given, false)?,
        };
        let own = own_cloud(&global.cloud).await?;
        let cloud = own.as_ref().map(|own| (own.connector.clone(), own.credentials.clone()));
        let project = own.as_ref().map_or(LOCAL_PROJECT, |own| &own.project).to_owned();
        let web = transport(&TlsOptions::default())?;
        let catalog = match need {
            Need::Names => LocalArgs::default().catalog().await?,
            Need::Nothing => global.local.catalog().await?,
            Need::Any | Need::Stacks => global.local.catalog_with_plugins().await?,
        };
        let runtime = Runtime::of_user(&url, key, own, catalog).await?;
        let router = runtime.api().router();
        let engine = (need != Need::Names).then(|| {
            let (stop, stopping) = shutdown::channel();
            Engine { stop, task: tokio::spawn(async move { runtime.engine(stopping).await }) }
        });
        let endpoint = Url::parse(&format!("http://{HOST}/v1/{project}"));
        let endpoint = endpoint.map_err(|error| Failure::new(format!("project {project}: {error}")))?;
        let access = Arc::new(Fixed { endpoint, token: None });
        Ok(Self {
            client: Client::new(Arc::new(InProcess::new(router.clone())), access),
            source: Source::with_web(web, global.allow_remote),
            settings: global.local.clone(),
            cloud,
            service: Service::Here(router, project),
            local: engine,
        })
    }
}

/// What a dashboard needs of a connection.
pub(crate) struct PageParts {
    /// The API.
    pub(crate) api: Router,
    /// The rights of the user.
    pub(crate) access: OwnerAccess,
    /// The Keystone where the user signs in again.
    pub(crate) connector: Option<Connector>,
    /// The regions with a service, that of the options first; empty if there are not several.
    pub(crate) regions: Vec<Region>,
    /// The cloud of `--local`, for lists.
    pub(crate) lists: Option<Session>,
}

/// The root of the service with an endpoint such as `https://cloud:8004/v1/PROJECT`.
fn above_version(mut endpoint: Url) -> Url {
    let path = endpoint.path().to_owned();
    endpoint.set_path(path.split_once("/v1").map_or(path.as_str(), |(above, _)| above));
    endpoint
}

fn regions(connector: &Connector, client: &SharedClient, token: &Token) -> Vec<Region> {
    let (options, catalog) = (connector.options(), &token.info.catalog);
    if options.endpoint_overrides.contains_key("orchestration") {
        return Vec::new();
    }
    let mut names = catalog.regions("orchestration", options.interface);
    if names.len() < 2 {
        return Vec::new();
    }
    names.sort_by_key(|name| options.region.as_deref() != Some(name));
    let region = |name: &str| {
        let url = catalog.endpoint("orchestration", options.interface, Some(name))?;
        let api = remote(client.clone(), above_version(Url::parse(url).ok()?));
        Some(Region { name: name.to_owned(), api, connector: connector.in_region(name) })
    };
    names.into_iter().filter_map(region).collect()
}

/// The cloud that options, variables and `clouds.yaml` select, for a command that needs no orchestration service.
pub(crate) async fn administered_cloud(args: &CloudArgs) -> Outcome<Arc<StackCloud>> {
    let config = cloud_config(args).map_err(|error| no_cloud(&error))?;
    let connector = config.connector().map_err(|error| no_cloud(&error))?;
    let token = connector.session(config.credentials.clone()).token().await;
    token.map_err(|error| Failure::from(no_token(error, connector.options())))?;
    Ok(connector.cloud(&config.credentials).await)
}

/// The option of this environment variable, or the variable itself.
fn variable(args: &CloudArgs, name: &str) -> Option<String> {
    args.variable(name).or_else(|| std::env::var(name).ok())
}

/// The cloud that options, variables and `clouds.yaml` select.
fn cloud_config(args: &CloudArgs) -> Result<CloudConfig, ConfigError> {
    let env = |name: &str| variable(args, name);
    // A URL on the command line takes precedence over OS_CLOUD.
    let cloud = args.os_cloud.as_deref().or_else(|| args.names_credentials().then_some("envvars"));
    CloudConfig::load(cloud, &env)
}

fn no_cloud(error: &ConfigError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ConfigError::UnknownCloud { name, known } => match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None if known.is_empty() => {
                failure.hint("no clouds.yaml found in the current directory, ~/.config/openstack or /etc/openstack")
            }
            None => failure.hint(format!("clouds.yaml contains {}", known.join(", "))),
        },
        ConfigError::Nothing => failure.hint("to try Kiln without a cloud, run 'kiln demo'"),
        _ => failure,
    }
}

fn transport(tls: &TlsOptions) -> Outcome<Arc<dyn Transport>> {
    Ok(Arc::new(shared(tls)?))
}

fn shared(tls: &TlsOptions) -> Outcome<SharedClient> {
    SharedClient::new(tls).map_err(|error| Failure::new(format!("certificates: {error}")))
}

/// The cloud for stacks of `--local`, or `None` if none is configured: `OS::Heat::` types need no cloud.
async fn own_cloud(args: &CloudArgs) -> Outcome<Option<OwnCloud>> {
    let config = match cloud_config(args) {
        Ok(config) => config,
        Err(ConfigError::Nothing) => return Ok(None),
        Err(error) => return Err(no_cloud(&error)),
    };
    let connector = config.connector().map_err(|error| no_cloud(&error))?;
    let credentials = config.credentials;
    let token = connector.session(credentials.clone()).token().await;
    let token = token.map_err(|error| Failure::from(no_token(error, connector.options())))?;
    let project = token.info.project.clone().ok_or_else(|| {
        Failure::new("the credentials are not scoped to a project")
            .hint("set OS_PROJECT_NAME, or project_name in clouds.yaml")
    })?;
    let (username, catalog) = (token.info.user.name.clone(), token.info.catalog.clone());
    Ok(Some(OwnCloud { connector, credentials, project: project.id, project_name: project.name, username, catalog }))
}
