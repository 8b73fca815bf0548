//! Assembles the service. Only this module names concrete adapters.
//!
//! A [`Runtime`] holds the parts of a service: store, types, clouds, identity, engine and API. It is built from a
//! configuration ([`Runtime::of_service`]) or with the credentials of a user ([`Runtime::of_user`]).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kiln_api::{Api, Reporter};
use kiln_cfn::Cfn;
use kiln_cloud::{Connector, Credentials};
use kiln_config::option::ConfigOption;
use kiln_config::options::{clouds, kiln, server, stacks, webhooks};
use kiln_config::{Account, Config, heats_own, hostname};
use kiln_credentials::StoredClouds;
use kiln_dashboard::Dashboard;
use kiln_engine::{Engine, LifecyclePlugin, MessageBus, WebhookSender};
use kiln_identity::{Identity, Local};
use kiln_plan::ResourceTypes;
use kiln_plugin::Plugins;
use kiln_service::{DriftLimits, DriftWatch, Limits, QuotaChanges, Service, SharedCredentials, Webhooks};
use kiln_stack::{Backends, Chance, Clock as _, Clouds, NoCloud, StoreClock, SystemClock};
use kiln_store::quota::QuotaStore;
use kiln_store::{AnswerStore, DriftStore, OwnerStore, SqlStore, Store, WebhookStore, WorksheetStore};
use kiln_telemetry::logging;
use kiln_telemetry::traces;
use kiln_value::{Chain, Secret, Value, text};
use kiln_web::{Admission, ConnectionLimits, Cors, Proxies, Rate};

use crate::audit::{self, Audit};
use crate::checks::{self, OwnUser};
use crate::clients;
use crate::database;
use crate::encryption_key;
use crate::heartbeat_thread::HeartbeatThread;
use crate::language::Templates;
use crate::lifecycle_plugins;
use crate::listeners;
use crate::maintenance;
use crate::own_certificate;
use crate::plugins;
use crate::policy_files::PolicyFiles;
use crate::preflight::PlanChecks;
use crate::resource_types;
use crate::service_cloud::{ServiceCloud, credentials, signalling};
use crate::shutdown::{self, Stop};
use crate::signatures;
use crate::topology_types;
use crate::web_templates;
use crate::{heat_behind, heat_projects};

/// How long the cloud may continue to process a call after its timeout.
const CALL_AFTERMATH: Duration = Duration::from_secs(15);

/// The parts of a service.
pub struct Runtime {
    /// The database for the engine. Requests have less patience with it.
    store: Arc<dyn Store>,
    /// The settings that all processes share.
    settings: Option<Arc<SqlStore>>,
    /// The Keystone user of the service, if there is a Keystone.
    own: Option<OwnUser>,
    policy_files: Option<PolicyFiles>,
    service: Service,
    clock: Arc<StoreClock>,
    api: kiln_api::Options,
    cfn: kiln_cfn::Options,
    engine: kiln_engine::Options,
    /// Where users of the dashboard sign in, and the secret of their sessions; `None`: no dashboard.
    dashboard: Option<(Connector, Secret<String>)>,
    /// Writes audit events, if the service does.
    audit: Option<Audit>,
    /// Where notifications are sent.
    bus: Option<Arc<dyn MessageBus>>,
    /// What sends events to webhooks, if projects can have them.
    webhooks: Option<kiln_engine::Webhooks>,
    /// What runs before and after operations.
    plugins: Vec<Arc<dyn LifecyclePlugin>>,
    /// Whether an engine checks each create and update in the cloud.
    preflight_for_all: bool,
    /// The database of the heartbeat, if the heartbeat has its own thread.
    heartbeat: Option<kiln_store::Options>,
}

/// The cloud of the user, for [`Runtime::of_user`].
pub struct OwnCloud {
    /// Connects to the cloud.
    pub connector: Connector,
    /// The credentials of the user.
    pub credentials: Credentials,
    /// The project's id.
    pub project: String,
    /// The project's name.
    pub project_name: String,
    /// The user's name.
    pub username: String,
    /// The service catalog.
    pub catalog: kiln_cloud::Catalog,
}

impl Runtime {
    /// A service for all users of a cloud: Keystone validates tokens, and stacks use trusts.
    pub async fn of_service(config: &Config) -> Result<Self> {
        if let Some(error) = heats_own::refused(config).into_iter().next() {
            return Err(error);
        }
        encryption_key::make_if_missing(config)?;
        let database_options = database::options(config).await?;
        let database = database::open_as(config, database_options.clone()).await?;
        let heat_projects = if config.flag(&kiln::IGNORE_HEAT_TABLES)? {
            Arc::default()
        } else {
            heat_projects::followed(&database).await?
        };
        if let Err(error) = checks::stacks_of_heat(config, &database).await {
            tracing::error!("[database] connection: {}", Chain(&*error));
        }
        let of_requests = Arc::new(database.for_requests());
        // The data says more than the note, which may be missing.
        checks::key(&*of_requests).await?;
        if let Some(noted) = of_requests.note_key().await? {
            return Err(database::other_key(&noted));
        }
        let requests: Arc<dyn Store> = Arc::clone(&of_requests) as Arc<dyn Store>;
        let database = Arc::new(database);
        let store: Arc<dyn Store> = Arc::clone(&database) as Arc<dyn Store>;
        let policy_files = PolicyFiles::of(config)?;
        let policy = Arc::new(policy_files.read()?);
        let catalog = resource_types::of_service(config, plugins::of_config(config).await?)?;
        let ServiceCloud { connector, own, identity, signalling } =
            ServiceCloud::of_config(config, &catalog, Arc::clone(&policy))?;
        let dashboard =
            if config.flag(&kiln::DASHBOARD)? { Some((connector.clone(), database_options.key.clone())) } else { None };
        let clouds = StoredClouds::new(Arc::clone(&store), connector, Arc::clone(&identity));
        let clouds = Arc::new(clouds.with_signalling(signalling));
        let clock = clock(&*store).await?;
        let backends = backends(requests, Arc::clone(&clock), catalog, clouds);
        let engine = engine_options(config)?;
        let webhooks = webhooks_of(config, database, &engine.hostname)?;
        let audit = Audit::of_config(config)?;
        let (mut api, mut cfn) = (api_options(config)?, cfn_options(config)?);
        api.admission = admission(config)?;
        api.admission.maintenance.set(of_requests.maintenance().await?);
        cfn.admission = api.admission.clone();
        api.answers = Some(Arc::clone(&of_requests) as Arc<dyn AnswerStore>);
        cfn.answers.clone_from(&api.answers);
        cfn.worksheets = Some(Arc::clone(&of_requests) as Arc<dyn WorksheetStore>);
        if webhooks.is_some() {
            api.webhooks = Some(Webhooks {
                store: of_requests.clone(),
                backends: backends.clone(),
                most: config.number(&webhooks::MAX_PER_PROJECT)?,
                handshake_required: config.text(&webhooks::HANDSHAKE).is_some_and(|one| one == "required"),
            });
        }
        api.auditor = audit.as_ref().map(|audit| Arc::clone(&audit.auditor));
        cfn.auditor.clone_from(&api.auditor);
        let service = Service {
            options: service_options(config)?,
            backends,
            recent: Arc::default(),
            identity,
            policy,
            templates: web_templates::reader(config)?,
            shared: SharedCredentials::default(),
            heat_projects,
        };
        let in_use = service.options.quotas.clone();
        in_use.read(&*of_requests).await?;
        heat_behind::check(config)?;
        let owners = Arc::clone(&of_requests) as Arc<dyn OwnerStore>;
        api.heat = heat_behind::heat(config, &kiln::HEAT_API_URL, &owners, &api.connections)?;
        cfn.heat = heat_behind::heat(config, &kiln::HEAT_CFN_URL, &owners, &cfn.connections)?;
        api.quotas = Some(QuotaChanges { store: Arc::clone(&of_requests) as Arc<dyn QuotaStore>, in_use });
        api.drift = Some(DriftWatch {
            store: Arc::clone(&of_requests) as Arc<dyn DriftStore>,
            service: service.clone(),
            limits: drift_limits(config)?,
        });
        Ok(Self {
            store,
            settings: Some(of_requests),
            own: Some(own),
            policy_files: Some(policy_files),
            service,
            clock,
            api,
            dashboard,
            audit,
            cfn,
            bus: kiln_bus::of_config(config, &engine.hostname)?,
            webhooks,
            plugins: lifecycle_plugins::of_config(config)?,
            preflight_for_all: config.text(&kiln::PREFLIGHT).is_some_and(|what| what == "always"),
            engine,
            heartbeat: Some(database_options).filter(|options| !options.is_private()),
        })
    }

    /// An engine and an API for one user, without tokens. `key` encrypts the secrets in the database.
    pub async fn of_user(
        database: &str,
        key: Secret<String>,
        own: Option<OwnCloud>,
        catalog: ResourceTypes,
    ) -> Result<Self> {
        let no_cloud = own.is_none();
        let options = kiln_store::Options { encrypt_values: true, ..kiln_store::Options::new(database, key) };
        let store = SqlStore::open(options).await?;
        store.migrate().await?;
        store.encrypt_clear_values().await?;
        let store: Arc<dyn Store> = Arc::new(store);
        let (identity, clouds): (Arc<dyn Identity>, Arc<dyn Clouds>) = if let Some(mut own) = own {
            own.connector = own.connector.with_finders(catalog.types.finders());
            let exposed = Secret::new(text::json(&own.credentials.expose()));
            let local = Local::new(&own.username, &own.project, &own.project_name, exposed);
            let cloud = own.connector.cloud(&own.credentials).await;
            let identity: Arc<dyn Identity> = Arc::new(local.with_cloud(cloud, own.catalog));
            let clouds = StoredClouds::new(Arc::clone(&store), own.connector, Arc::clone(&identity));
            (identity, Arc::new(clouds))
        } else {
            let nobody = Secret::new(text::json(&Value::Null));
            (Arc::new(Local::new("local", LOCAL_PROJECT, LOCAL_PROJECT, nobody)), Arc::new(NoCloud))
        };
        let limits = Limits { stacks_per_project: None, resources_per_stack: None, ..Limits::default() };
        let options =
            kiln_service::Options { limits, no_cloud, adopt: true, abandon: true, ..kiln_service::Options::default() };
        let clock = clock(&*store).await?;
        let backends = backends(Arc::clone(&store), Arc::clone(&clock), catalog, clouds);
        let policy = Arc::new(kiln_api::policy(true));
        Ok(Self {
            store,
            settings: None,
            own: None,
            policy_files: None,
            service: Service {
                options,
                backends,
                recent: Arc::default(),
                identity,
                policy,
                templates: None,
                shared: SharedCredentials::default(),
                heat_projects: Arc::default(),
            },
            clock,
            api: kiln_api::Options::default(),
            dashboard: None,
            audit: None,
            cfn: kiln_cfn::Options::default(),
            // The process stops after its work. The next one must not wait long for the leases of a killed process.
            engine: kiln_engine::Options {
                lease: Duration::from_secs(5),
                drain: Duration::from_secs(10),
                resources_per_stack: None,
                ..kiln_engine::Options::default()
            },
            bus: None,
            webhooks: None,
            plugins: Vec::new(),
            preflight_for_all: false,
            heartbeat: None,
        })
    }

    /// Runs the startup checks: see [`checks`].
    pub async fn check(&self) -> Result<()> {
        if let Some(own) = &self.own {
            checks::keystone(own).await?;
        }
        Ok(())
    }

    /// The API, with the dashboard beside it if the service has one.
    pub fn api(&self) -> Api {
        let api = Api::new(kiln_api::Parts { options: self.api.clone(), service: self.service.clone() });
        let Some((connector, secret)) = self.dashboard.clone() else { return api };
        let parts = kiln_dashboard::Parts {
            regions: Vec::new(),
            lists: None,
            api: api.router(),
            connector: Some(connector),
            secret,
            proxy_headers: self.api.proxies.headers,
            owner: None,
            language: Arc::new(Templates {
                resource_types: Arc::clone(&self.service.backends.resource_types),
                topology_types: Arc::clone(&self.api.topology_types),
            }),
        };
        api.with_beside(Dashboard::new(parts).router())
    }

    /// The API answers `GET /report` with these reports.
    #[must_use]
    pub fn with_reports(mut self, reporter: Reporter) -> Self {
        self.api.reporter = Some(reporter);
        self
    }

    /// The CloudFormation API.
    pub fn cfn(&self) -> Cfn {
        Cfn::new(kiln_cfn::Parts { options: self.cfn.clone(), service: self.service.clone() })
    }

    /// What an API needs beside requests, until a stop is requested: follows the policy files, the clock of the database and
    /// whether there is maintenance, drops what clients read no more, and delivers audit events.
    pub async fn attend(&self, stop: Stop) {
        let policy = async {
            if let Some(files) = &self.policy_files {
                files.follow(&self.service.policy).await;
            }
        };
        let maintenance = async {
            if let Some(store) = &self.settings {
                maintenance::follow(store, &self.api.admission.maintenance).await;
            }
        };
        let quotas = async {
            if let Some(quotas) = &self.api.quotas {
                quotas.follow(&*self.service.backends.clock).await;
            }
        };
        let audit = async {
            if let Some(audit) = &self.audit {
                audit.deliver(stop.clone()).await;
            }
        };
        let reads = self.service.recent.expire(&*self.service.backends.clock);
        tokio::join!(
            shutdown::until(stop.clone(), policy),
            shutdown::until(stop.clone(), maintenance),
            shutdown::until(stop.clone(), quotas),
            shutdown::until(stop.clone(), reads),
            self.follow_clock(stop.clone()),
            audit,
        );
    }

    /// Follows the clock of the database, until a stop is requested.
    pub async fn follow_clock(&self, stop: Stop) {
        shutdown::until(stop, self.clock.follow(&*self.service.backends.store)).await;
    }

    /// The use cases.
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// The dependencies of the use cases.
    pub fn backends(&self) -> Backends {
        self.service.backends.clone()
    }

    /// Compares stacks with their objects as their schedules say, until a stop is requested.
    async fn watch_drift(&self, stop: Stop) -> Infallible {
        if let Some(watch) = &self.api.drift {
            shutdown::until(stop, watch.run()).await;
        }
        std::future::pending().await
    }

    /// Runs an engine until a stop is requested, then releases its leases.
    pub async fn engine(&self, stop: Stop) -> Result<()> {
        let backends = Backends { store: Arc::clone(&self.store), ..self.backends() };
        let mut engine = Engine::new(self.engine.clone(), backends);
        engine = engine.with_plugins(self.plugins.clone());
        let (service, is_for_all) = (self.service(), self.preflight_for_all);
        engine = engine.with_preflight(Arc::new(PlanChecks { service, is_for_all }));
        let heartbeat = match &self.heartbeat {
            Some(options) => Some(HeartbeatThread::start(options.clone()).await?),
            None => None,
        };
        if let Some(thread) = &heartbeat {
            engine = engine.with_heartbeat_on(thread.runtime(), thread.store());
        }
        if let Some(bus) = &self.bus {
            engine = engine.with_bus(Arc::clone(bus));
        }
        if let Some(webhooks) = &self.webhooks {
            engine = engine.with_webhooks(webhooks.clone());
        }
        tokio::select! {
            ran = engine.run(stop.clone()) => Ok(ran?),
            never = self.watch_drift(stop) => match never {},
        }
    }
}

/// Reads all options as [`Runtime::of_service`] does, but connects to nothing: all errors.
pub fn check_options(config: &Config) -> Vec<anyhow::Error> {
    let with_service = |service: &Account| -> Result<()> {
        let connector = clients::connector(config, service)?;
        let session = connector.session(credentials(service, "keystone_authtoken", true)?);
        signatures::sessions(config, session)?;
        signalling(config, service).map(drop)
    };
    let checks = [
        database::check(config).map(drop),
        PolicyFiles::of(config).and_then(|files| files.read()).map(drop),
        config.account("keystone_authtoken").and_then(|service| with_service(&service)),
        config.account("trustee").and_then(|trustee| {
            if trustee.has_user() { credentials(&trustee, "trustee", false).map(drop) } else { Ok(()) }
        }),
        config.choice(&stacks::DEFERRED_AUTH_METHOD).map(drop),
        config.number::<i64>(&clouds::TOKEN_CACHE_TIME).map(drop),
        resource_types::of_service(config, Plugins::default()).map(drop),
        plugins::programs(config).map(drop),
        config.seconds(&kiln::PLUGIN_TIMEOUT).map(drop),
        engine_options(config).map(drop),
        service_options(config).map(drop),
        api_options(config).map(drop),
        cfn_options(config).map(drop),
        web_templates::reader(config).map(drop),
        kiln_bus::of_config(config, "").map(drop),
        check_webhooks(config),
        drift_limits(config).map(drop),
        audit::check(config),
        config.choice(&kiln::MIGRATE).map(drop),
        admission(config).map(drop),
        heat_behind::check(config),
        lifecycle_plugins::of_config(config).map(drop),
        logging::Settings::of(config).map(drop),
        traces::Settings::of(config).map(drop),
        listeners::check(config),
        own_certificate::check(config),
    ];
    heats_own::refused(config).into_iter().chain(checks.into_iter().filter_map(Result::err)).collect()
}

/// The project of stacks without a cloud.
pub const LOCAL_PROJECT: &str = "local";

/// The time of the database.
async fn clock(store: &dyn Store) -> Result<Arc<StoreClock>> {
    let clock = StoreClock::new(Arc::new(SystemClock));
    clock.read(store).await.context("[database] connection")?;
    Ok(Arc::new(clock))
}

fn backends(
    store: Arc<dyn Store>,
    clock: Arc<StoreClock>,
    catalog: ResourceTypes,
    clouds: Arc<dyn Clouds>,
) -> Backends {
    let chance = Arc::new(Chance::from_os());
    Backends { store, resource_types: Arc::new(catalog), clouds, clock, chance, caches: Arc::default() }
}

/// The system time.
pub fn now() -> jiff::Timestamp {
    SystemClock.now()
}

/// What sends events to webhooks; `None`: projects have none.
fn webhooks_of(config: &Config, store: Arc<SqlStore>, hostname: &str) -> Result<Option<kiln_engine::Webhooks>> {
    if !kiln_webhook::is_on(config)? {
        return Ok(None);
    }
    let sender: Arc<dyn WebhookSender> = Arc::new(kiln_webhook::of_config(config, hostname)?);
    Ok(Some(kiln_engine::Webhooks { store: store as Arc<dyn WebhookStore>, sender }))
}

fn drift_limits(config: &Config) -> Result<DriftLimits> {
    Ok(DriftLimits {
        usual: Some(config.seconds_or(&kiln::DRIFT_INTERVAL, Duration::ZERO)?).filter(|usual| !usual.is_zero()),
        shortest: config.seconds(&kiln::DRIFT_MIN_INTERVAL)?,
        resources_per_second: config.number(&kiln::DRIFT_RESOURCES_PER_SECOND)?,
    })
}

fn check_webhooks(config: &Config) -> Result<()> {
    kiln_webhook::is_on(config)?;
    kiln_webhook::of_config(config, "")?;
    config.choice(&webhooks::HANDSHAKE)?;
    config.number::<usize>(&webhooks::MAX_PER_PROJECT).map(drop)
}

pub(crate) fn service_options(config: &Config) -> Result<kiln_service::Options> {
    let resources = config.limit(&stacks::MAX_RESOURCES_PER_STACK)?;
    let limits = Limits {
        template: config.number(&stacks::MAX_TEMPLATE_SIZE)?,
        container: config.number(&stacks::MAX_JSON_BODY_SIZE)?,
        stacks_per_project: config.limit(&stacks::MAX_STACKS_PER_TENANT)?,
        snapshots_per_stack: config.limit(&stacks::MAX_SNAPSHOTS_PER_STACK)?,
        configs_per_project: config.limit(&stacks::MAX_SOFTWARE_CONFIGS_PER_TENANT)?,
        deployments_per_project: config.limit(&stacks::MAX_SOFTWARE_DEPLOYMENTS_PER_TENANT)?,
        plans_per_project: config.limit(&kiln::MAX_PLANS_PER_PROJECT)?,
        operations_per_project: config.limit(&kiln::MAX_OPERATIONS_PER_PROJECT)?,
        streams_per_project: Some(connection_limits(config, false)?.most_streams_of_project() as u64),
        request_steps: config.number(&kiln::MAX_REQUEST_STEPS)?,
        resources_per_stack: resources.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        nested_depth: config.number(&stacks::MAX_NESTED_STACK_DEPTH)?,
    };
    let mut options = kiln_service::Options { limits, ..kiln_service::Options::default() };
    options.observe_on_update = config.flag(&stacks::OBSERVE_ON_UPDATE)?;
    options.adopt = config.flag(&stacks::ENABLE_STACK_ADOPT)?;
    options.abandon = config.flag(&stacks::ENABLE_STACK_ABANDON)?;
    options.jurisdiction = jurisdiction(config)?;
    options.plans_required = config.text(&kiln::PLANS).is_some_and(|plans| plans == "required");
    options.plan_approvals = config.number(&kiln::PLAN_APPROVALS)?;
    options.preflight = config.text(&kiln::PREFLIGHT).is_none_or(|what| what != "never");
    options.plan_lifetime = config.seconds(&kiln::PLAN_LIFETIME)?;
    if let Some(role) = config.text(&stacks::HEAT_STACK_USER_ROLE) {
        options.stack_user_role = role;
    }
    Ok(options)
}

/// The country of the region: `[kiln] jurisdiction`.
fn jurisdiction(config: &Config) -> Result<Option<String>> {
    let Some(code) = config.text(&kiln::JURISDICTION).map(|code| code.to_ascii_uppercase()) else { return Ok(None) };
    if code.len() != 2 || !code.bytes().all(|b| b.is_ascii_uppercase()) {
        bail!("[kiln] jurisdiction: {code} is not a country code of ISO 3166, such as DE");
    }
    Ok(Some(code))
}

pub(crate) fn api_options(config: &Config) -> Result<kiln_api::Options> {
    let mut options = kiln_api::Options::default();
    options.max_body = config.number(&stacks::MAX_JSON_BODY_SIZE)?;
    options.root = config.text(&clouds::HEAT_URL).map(|url| url.replace("/%(tenant_id)s", ""));
    options.proxies = proxies(config)?;
    options.hidden_stack_tags = config.list(&stacks::HIDDEN_STACK_TAGS);
    options.cors = cors(config)?;
    options.connections = connection_limits(config, options.proxies.headers)?;
    options.topology_types = topology_types::of_service(config)?;
    if let Some(revision) = config.text(&stacks::HEAT_REVISION) {
        options.revision = revision;
    }
    Ok(options)
}

fn cfn_options(config: &Config) -> Result<kiln_cfn::Options> {
    let mut options = kiln_cfn::Options::default();
    options.max_body = config.number(&stacks::MAX_JSON_BODY_SIZE)?;
    options.proxies = proxies(config)?;
    options.page = config.number(&kiln::CFN_PAGE_SIZE)?;
    options.hidden_stack_tags = config.list(&stacks::HIDDEN_STACK_TAGS);
    options.cors = cors(config)?;
    options.connections = connection_limits(config, options.proxies.headers)?;
    Ok(options)
}

/// The budgets of requests.
fn admission(config: &Config) -> Result<Admission> {
    let rate = |per_second: &'static ConfigOption, burst: &'static ConfigOption| {
        let (per_second, burst) = (config.number::<f64>(per_second)?, config.number::<f64>(burst)?);
        Ok::<_, anyhow::Error>((per_second > 0.0).then(|| Rate { per_second, burst: burst.max(1.0) }))
    };
    Ok(Admission::new(
        rate(&kiln::REQUEST_RATE_PER_ADDRESS, &kiln::REQUEST_BURST_PER_ADDRESS)?,
        rate(&kiln::REQUEST_RATE_PER_PROJECT, &kiln::REQUEST_BURST_PER_PROJECT)?,
    ))
}

/// The proxies before the service: `enable_proxy_headers_parsing` and `trusted_proxies`.
fn proxies(config: &Config) -> Result<Proxies> {
    let trusted = kiln_cloud::networks(&config.list(&kiln::TRUSTED_PROXIES)).context("[kiln] trusted_proxies")?;
    Ok(Proxies { headers: config.flag(&server::ENABLE_PROXY_HEADERS_PARSING)?, trusted })
}

/// Requests of pages of other origins, with the options of oslo.middleware.
fn cors(config: &Config) -> Result<Cors> {
    let usual = Cors::default();
    let list = |option: &'static ConfigOption, usual: Vec<String>| {
        let given = config.list(option);
        if given.is_empty() { usual } else { given }
    };
    Ok(Cors {
        origins: list(&server::ALLOWED_ORIGIN, usual.origins),
        credentials: config.flag(&server::ALLOW_CREDENTIALS)?,
        exposed: list(&server::EXPOSE_HEADERS, usual.exposed),
        max_age: config.number(&server::MAX_AGE)?,
        methods: list(&server::ALLOW_METHODS, usual.methods),
        headers: list(&server::ALLOW_HEADERS, usual.headers),
    })
}

/// Limits of connections, from the options in 'kiln serve --help'. Behind a proxy all clients share one address.
fn connection_limits(config: &Config, behind_proxy: bool) -> Result<ConnectionLimits> {
    let usual = ConnectionLimits::default();
    let per_address = if behind_proxy { 0 } else { usual.per_address.unwrap_or_default() };
    Ok(ConnectionLimits {
        total: config.number(&kiln::MAX_CONNECTIONS)?,
        per_address: Some(config.given_number(&kiln::MAX_CONNECTIONS_PER_ADDRESS)?.unwrap_or(per_address))
            .filter(|limit| *limit > 0),
        streams: config.given_number(&kiln::MAX_EVENT_STREAMS)?,
        streams_per_project: config.given_number(&kiln::MAX_EVENT_STREAMS_PER_PROJECT)?,
        header: config.seconds(&kiln::HEADER_TIMEOUT)?,
        body: config.seconds(&kiln::BODY_TIMEOUT)?,
        send: config.seconds(&kiln::SEND_TIMEOUT)?,
    })
}

/// The timeout of a call to a cloud service, from option `[kiln] call_timeout`.
pub fn call_timeout(config: &Config) -> Result<Duration> {
    config.seconds(&kiln::CALL_TIMEOUT)
}

fn engine_options(config: &Config) -> Result<kiln_engine::Options> {
    let usual = kiln_engine::Options::default();
    let seconds = config.number(&stacks::STACK_ACTION_TIMEOUT)?;
    let calls = call_timeout(config)? + CALL_AFTERMATH;
    // After a call of a plug-in that is late, the process gets as long again for the others, then it is killed.
    let has_plugins = !config.list(&kiln::PLUGINS).is_empty();
    let of_plugins = if has_plugins { config.seconds(&kiln::PLUGIN_TIMEOUT)? } else { Duration::ZERO };
    Ok(kiln_engine::Options {
        hostname: config.text(&stacks::HOST).unwrap_or_else(hostname),
        action_timeout: Duration::from_secs(seconds),
        action_retries: config.number(&stacks::ACTION_RETRY_LIMIT)?,
        call_retries: config.number(&stacks::CLIENT_RETRY_LIMIT)?,
        nested_depth: config.number(&stacks::MAX_NESTED_STACK_DEPTH)?,
        resources_per_stack: config.limit(&stacks::MAX_RESOURCES_PER_STACK)?,
        max_events: config.number(&stacks::MAX_EVENTS_PER_STACK)?,
        kept_operations: config.number(&kiln::MAX_OPERATIONS_PER_STACK)?,
        keep_deleted: Duration::from_hours(24 * config.number::<u64>(&kiln::KEEP_DELETED)?),
        scheduler_hints: config.flag(&stacks::STACK_SCHEDULER_HINTS)?,
        // The options in 'kiln engine --help'.
        lease: config.seconds(&kiln::LEASE)?,
        call_limit: config.seconds_or(&kiln::CALL_LIMIT, calls.max(2 * of_plugins + CALL_AFTERMATH))?,
        list_delay: config.seconds(&kiln::LIST_DELAY)?,
        drain: config.seconds_or(&kiln::DRAIN, calls.max(of_plugins + CALL_AFTERMATH))?,
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_ini::DEFAULT;

    #[test]
    fn the_defaults_of_the_table_are_those_of_the_crates() {
        let config = Config::parse("").unwrap();
        let limits = kiln_service::Limits::default();
        assert_eq!(config.number::<usize>(&stacks::MAX_TEMPLATE_SIZE).unwrap(), limits.template);
        assert_eq!(config.number::<usize>(&stacks::MAX_JSON_BODY_SIZE).unwrap(), limits.container);
        assert_eq!(config.limit(&stacks::MAX_STACKS_PER_TENANT).unwrap(), limits.stacks_per_project);
        assert_eq!(config.limit(&stacks::MAX_SNAPSHOTS_PER_STACK).unwrap(), limits.snapshots_per_stack);
        assert_eq!(config.limit(&kiln::MAX_PLANS_PER_PROJECT).unwrap(), limits.plans_per_project);
        assert_eq!(config.limit(&kiln::MAX_OPERATIONS_PER_PROJECT).unwrap(), limits.operations_per_project);
        let lifetime = kiln_service::Options::default().plan_lifetime;
        assert_eq!(config.seconds(&kiln::PLAN_LIFETIME).unwrap(), lifetime);
        let engine = kiln_engine::Options::default();
        assert_eq!(config.number::<u32>(&stacks::ACTION_RETRY_LIMIT).unwrap(), engine.action_retries);
        assert_eq!(config.number::<u32>(&stacks::CLIENT_RETRY_LIMIT).unwrap(), engine.call_retries);
        assert_eq!(config.number::<u64>(&stacks::MAX_EVENTS_PER_STACK).unwrap(), engine.max_events);
        assert_eq!(config.number::<u64>(&kiln::MAX_OPERATIONS_PER_STACK).unwrap(), engine.kept_operations);
        assert_eq!(config.number::<u32>(&stacks::MAX_NESTED_STACK_DEPTH).unwrap(), engine.nested_depth);
        assert_eq!(config.number::<u64>(&stacks::STACK_ACTION_TIMEOUT).unwrap(), engine.action_timeout.as_secs());
        assert_eq!(config.seconds(&kiln::LEASE).unwrap(), engine.lease);
        assert_eq!(config.seconds(&kiln::LIST_DELAY).unwrap(), engine.list_delay);
        let web = kiln_web::ConnectionLimits::default();
        assert_eq!(config.number::<usize>(&kiln::MAX_CONNECTIONS).unwrap(), web.total);
        assert_eq!(config.seconds(&kiln::HEADER_TIMEOUT).unwrap(), web.header);
        assert_eq!(config.seconds(&kiln::BODY_TIMEOUT).unwrap(), web.body);
        assert_eq!(config.seconds(&kiln::SEND_TIMEOUT).unwrap(), web.send);
        assert_eq!(config.list(&stacks::HIDDEN_STACK_TAGS), kiln_api::Options::default().hidden_stack_tags);
        assert_eq!(config.number::<u64>(&kiln::CFN_PAGE_SIZE).unwrap(), kiln_cfn::Options::default().page);
        let store = kiln_store::Options::new("sqlite::memory:", Secret::new(String::new()));
        assert_eq!(config.number::<u32>(&server::MAX_POOL_SIZE).unwrap(), store.max_connections);
    }

    #[test]
    fn retries_of_calls_can_be_set() {
        let retries =
            |options: &[(&str, &str, String)]| engine_options(&Config::of_options(options)).unwrap().call_retries;
        assert_eq!(retries(&[]), kiln_engine::Options::default().call_retries);
        assert_eq!(retries(&[(DEFAULT, "client_retry_limit", "2".to_owned())]), 2);
    }

    #[test]
    fn what_is_lost_is_not_believed_absent_while_the_call_may_go_on() {
        let limits = |options: &[(&str, &str, String)]| {
            let options = engine_options(&Config::of_options(options)).unwrap();
            (options.call_limit.as_secs(), options.drain.as_secs())
        };
        let usual = kiln_engine::Options::default();
        assert_eq!(limits(&[]), (usual.call_limit.as_secs(), usual.drain.as_secs()));
        let slow = ("kiln", "plugin_timeout", "100".to_owned());
        assert_eq!(limits(std::slice::from_ref(&slow)), (75, 75));
        assert_eq!(limits(&[("kiln", "plugins", "/bin/true".to_owned()), slow]), (215, 115));
        let timeout = ("kiln", "call_timeout", "300".to_owned());
        assert_eq!(limits(std::slice::from_ref(&timeout)), (315, 315));
        assert_eq!(limits(&[timeout, ("kiln", "drain", "20".to_owned())]), (315, 20));
    }
}
