//! Assembles the service. Only this module names concrete adapters.
//!
//! A [`Runtime`] holds the parts of a service: store, types, clouds, identity, engine and API. It is built from a
//! configuration ([`Runtime::of_service`]) or with the credentials of a user ([`Runtime::of_user`]).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use kiln_api::Api;
use kiln_cfn::Cfn;
use kiln_cloud::{Connector, Credentials, Named, Scope};
use kiln_engine::{Backends, Chance, Clock as _, Clouds, Engine, LifecyclePlugin, MessageBus, NoCloud, SystemClock};
use kiln_identity::{Identity, Keystone, KeystoneOptions, Local, Policy};
use kiln_plan::ResourceTypes;
use kiln_service::{Limits, Service};
use kiln_store::{SqlStore, Store};
use kiln_value::{Secret, Value, text};
use kiln_web::{ConnectionLimits, Cors};

use crate::checks::{self, OwnUser};
use crate::clients;
use crate::clouds::{Signalling, StoredClouds};
use crate::config::{Account, Config};
use crate::database;
use crate::heartbeat_thread::HeartbeatThread;
use crate::ini::DEFAULT;
use crate::lifecycle_plugins;
use crate::message_bus;
use crate::policy_files::PolicyFiles;
use crate::resource_types;
use crate::shutdown::{self, Stop};
use crate::signatures;
use crate::web_templates;

/// The default timeout of a call to a cloud service.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// How long the cloud may continue to process a call after its timeout.
const CALL_AFTERMATH: Duration = Duration::from_secs(15);

/// The parts of a service.
pub(crate) struct Runtime {
    /// The Keystone user of the service, if there is a Keystone.
    own: Option<OwnUser>,
    policy_files: Option<PolicyFiles>,
    service: Service,
    api: kiln_api::Options,
    cfn: kiln_cfn::Options,
    engine: kiln_engine::Options,
    /// Where notifications are sent.
    bus: Option<Arc<dyn MessageBus>>,
    /// What runs before and after operations.
    plugins: Vec<Arc<dyn LifecyclePlugin>>,
    /// The database of the heartbeat, if the heartbeat has its own thread.
    heartbeat: Option<kiln_store::Options>,
}

/// The cloud of the user, for [`Runtime::of_user`].
pub(crate) struct OwnCloud {
    /// Connects to the cloud.
    pub(crate) connector: Connector,
    /// The credentials of the user.
    pub(crate) credentials: Credentials,
    /// The project's id.
    pub(crate) project: String,
    /// The project's name.
    pub(crate) project_name: String,
    /// The user's name.
    pub(crate) username: String,
    /// The service catalog.
    pub(crate) catalog: kiln_cloud::Catalog,
}

impl Runtime {
    /// A service for all users of a cloud: Keystone validates tokens, and stacks use trusts.
    pub(crate) async fn of_service(config: &Config) -> Result<Self> {
        let store = database::open(config).await?;
        let policy_files = PolicyFiles::of(config)?;
        let policy = Arc::new(policy_files.read()?);
        let service = config.account("keystone_authtoken")?;
        let connector = clients::connector(config, &service)?;
        let service_credentials = credentials(&service, "keystone_authtoken", true)?;
        let trustee = match config.account("trustee")? {
            // Without a trustee section, the service user is also the trustee.
            account if account.username.is_none() => credentials(&service, "keystone_authtoken", false)?,
            account => credentials(&account, "trustee", false)?,
        };
        let public = config.text("keystone_authtoken", "www_authenticate_uri");
        let public = public.or_else(|| service.auth_url.clone()).unwrap_or_default();
        let mut options = KeystoneOptions::new(public, now);
        // Negative: validate the token of every request, so that a revoked token is rejected immediately.
        let remember = config.number("keystone_authtoken", "token_cache_time", 300_i64)?;
        options.remember = Duration::from_secs(u64::try_from(remember).unwrap_or_default());
        options.delegated_roles = config.list(DEFAULT, "trusts_delegated_roles");
        let service_roles = config.list("keystone_authtoken", "service_token_roles");
        if !service_roles.is_empty() {
            options.service_roles = service_roles;
        }
        options.service_roles_required =
            config.flag("keystone_authtoken", "service_token_roles_required", options.service_roles_required)?;
        if let Some(method) = config.default("deferred_auth_method").filter(|method| method != "trusts") {
            bail!("[DEFAULT] deferred_auth_method: Kiln supports only trusts, not {method:?}");
        }
        let own = OwnUser {
            url: service.auth_url.clone().unwrap_or_default(),
            name: service.username.clone().unwrap_or_default(),
            session: connector.session(service_credentials.clone()),
        };
        let signatures = signatures::sessions(config, own.session.clone())?;
        let keystone = Keystone::new(connector.clone(), service_credentials, trustee, Arc::clone(&policy), options);
        let identity: Arc<dyn Identity> = Arc::new(keystone.with_signatures(signatures));
        let clouds = StoredClouds::new(Arc::clone(&store), connector, Arc::clone(&identity));
        let clouds = Arc::new(clouds.with_signalling(signalling(config, &service)?));
        let catalog = resource_types::of_service(config)?;
        let backends = backends(store, catalog, clouds);
        let engine = engine_options(config)?;
        Ok(Self {
            own: Some(own),
            policy_files: Some(policy_files),
            service: Service {
                options: service_options(config)?,
                backends,
                identity,
                policy,
                templates: web_templates::reader(config)?,
            },
            api: api_options(config)?,
            cfn: cfn_options(config)?,
            bus: message_bus::of_config(config, &engine.hostname)?,
            plugins: lifecycle_plugins::of_config(config)?,
            engine,
            heartbeat: Some(database::options(config)?).filter(|options| !options.is_private()),
        })
    }

    /// An engine and an API for one user, without tokens. `key` encrypts the secrets in the database.
    pub(crate) async fn of_user(
        database: &str,
        key: Secret<String>,
        own: Option<OwnCloud>,
        catalog: ResourceTypes,
    ) -> Result<Self> {
        let no_cloud = own.is_none();
        let store: Arc<dyn Store> = Arc::new(SqlStore::open(kiln_store::Options::new(database, key)).await?);
        store.migrate().await?;
        let (identity, clouds): (Arc<dyn Identity>, Arc<dyn Clouds>) = if let Some(own) = own {
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
        let (backends, policy) = (backends(store, catalog, clouds), Arc::new(Policy::default()));
        Ok(Self {
            own: None,
            policy_files: None,
            service: Service { options, backends, identity, policy, templates: None },
            api: kiln_api::Options::default(),
            cfn: kiln_cfn::Options::default(),
            // The process stops after its work. The next one must not wait long for the leases of a killed process.
            engine: kiln_engine::Options {
                lease: Duration::from_secs(5),
                drain: Duration::from_secs(10),
                resources_per_stack: None,
                ..kiln_engine::Options::default()
            },
            bus: None,
            plugins: Vec::new(),
            heartbeat: None,
        })
    }

    /// Runs the startup checks: see [`checks`].
    pub(crate) async fn check(&self) -> Result<()> {
        if let Some(own) = &self.own {
            checks::keystone(own).await?;
        }
        checks::key(&*self.service.backends.store).await
    }

    /// The API.
    pub(crate) fn api(&self) -> Api {
        Api::new(kiln_api::Parts { options: self.api.clone(), service: self.service.clone() })
    }

    /// The CloudFormation API.
    pub(crate) fn cfn(&self) -> Cfn {
        Cfn::new(kiln_cfn::Parts { options: self.cfn.clone(), service: self.service.clone() })
    }

    /// Reads the policy again when its files change, until a stop is requested.
    pub(crate) async fn follow_policy(&self, stop: Stop) {
        let Some(files) = &self.policy_files else { return };
        tokio::select! {
            () = files.follow(&self.service.policy) => {}
            () = shutdown::stopped(stop) => {}
        }
    }

    /// The dependencies of the use cases.
    pub(crate) fn backends(&self) -> Backends {
        self.service.backends.clone()
    }

    /// Runs an engine until a stop is requested, then releases its leases.
    pub(crate) async fn engine(&self, stop: Stop) -> Result<()> {
        let mut engine = Engine::new(self.engine.clone(), self.service.backends.clone());
        engine = engine.with_plugins(self.plugins.clone());
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
        Ok(engine.run(stop).await?)
    }
}

/// The project of stacks without a cloud.
pub(crate) const LOCAL_PROJECT: &str = "local";

fn backends(store: Arc<dyn Store>, catalog: ResourceTypes, clouds: Arc<dyn Clouds>) -> Backends {
    let (clock, chance) = (Arc::new(SystemClock), Arc::new(Chance::from_os()));
    Backends { store, resource_types: Arc::new(catalog), clouds, clock, chance, sources: Arc::default() }
}

/// The system time.
pub(crate) fn now() -> jiff::Timestamp {
    SystemClock.now()
}

pub(crate) fn credentials(account: &Account, section: &str, scoped: bool) -> Result<Credentials> {
    let missing = |option: &str| anyhow!("[{section}] {option} is not set: Kiln needs a Keystone user");
    let project = account.project.as_deref();
    Ok(Credentials::Password {
        user: Named::in_domain(account.username.as_deref().ok_or_else(|| missing("username"))?, &account.user_domain),
        password: account.password.clone().ok_or_else(|| missing("password"))?,
        scope: match project.filter(|_| scoped) {
            Some(project) => Scope::Project(Named::in_domain(project, &account.project_domain)),
            None if scoped => return Err(missing("project_name")),
            None => Scope::Unscoped,
        },
    })
}

/// The domain of stack users, and the addresses for signals.
fn signalling(config: &Config, service: &Account) -> Result<Signalling> {
    let domain = match (config.default("stack_user_domain_id"), config.default("stack_user_domain_name")) {
        (Some(id), _) => Some(Named::id(id)),
        (None, Some(name)) => Some(Named::Name { name, domain: None }),
        (None, None) => None,
    };
    let (admin, password) =
        (config.default("stack_domain_admin"), config.secret(DEFAULT, "stack_domain_admin_password"));
    let domain_admin = match (domain, admin, password) {
        (Some(domain), Some(name), Some(password)) => Some(Credentials::Password {
            user: Named::Name { name, domain: Some(Box::new(domain.clone())) },
            password,
            scope: Scope::Domain(domain),
        }),
        (None, _, _) => None,
        (Some(_), admin, _) => {
            let missing = if admin.is_none() { "stack_domain_admin" } else { "stack_domain_admin_password" };
            bail!("[DEFAULT] {missing} is not set, but the domain of stack users is");
        }
    };
    let public = config.text("keystone_authtoken", "www_authenticate_uri").or_else(|| service.auth_url.clone());
    Ok(Signalling {
        domain_admin,
        role: config.default("heat_stack_user_role").unwrap_or_else(|| "heat_stack_user".to_owned()),
        // Heat's option has the path of one of the two kinds of signals.
        cfn: config.default("heat_waitcondition_server_url").map(|url| url.replace("/waitcondition", "")),
        heat: config.text("clients_heat", "url").map(|url| url.replace("/%(tenant_id)s", "")),
        keystone: public.map(|url| if url.contains("/v3") { url } else { format!("{}/v3", url.trim_end_matches('/')) }),
        region: config.default("region_name_for_services").or_else(|| service.region.clone()),
    })
}

fn service_options(config: &Config) -> Result<kiln_service::Options> {
    let usual = Limits::default();
    let stacks = usual.stacks_per_project.unwrap_or_default();
    let resources = config.limit(DEFAULT, "max_resources_per_stack", 1000)?;
    let limits = Limits {
        template: config.number(DEFAULT, "max_template_size", usual.template)?,
        container: config.number(DEFAULT, "max_json_body_size", usual.container)?,
        stacks_per_project: config.limit(DEFAULT, "max_stacks_per_tenant", stacks)?,
        snapshots_per_stack: config.limit(DEFAULT, "max_snapshots_per_stack", 32)?,
        configs_per_project: config.limit(DEFAULT, "max_software_configs_per_tenant", 4096)?,
        deployments_per_project: config.limit(DEFAULT, "max_software_deployments_per_tenant", 4096)?,
        resources_per_stack: resources.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        nested_depth: config.number(DEFAULT, "max_nested_stack_depth", usual.nested_depth)?,
    };
    let mut options = kiln_service::Options { limits, ..kiln_service::Options::default() };
    options.observe_on_update = config.flag(DEFAULT, "observe_on_update", false)?;
    options.adopt = config.flag(DEFAULT, "enable_stack_adopt", false)?;
    options.abandon = config.flag(DEFAULT, "enable_stack_abandon", false)?;
    if let Some(role) = config.default("heat_stack_user_role") {
        options.stack_user_role = role;
    }
    Ok(options)
}

fn api_options(config: &Config) -> Result<kiln_api::Options> {
    let mut options = kiln_api::Options::default();
    options.max_body = config.number(DEFAULT, "max_json_body_size", options.max_body)?;
    options.root = config.text("clients_heat", "url").map(|url| url.replace("/%(tenant_id)s", ""));
    options.proxy_headers = config.flag("oslo_middleware", "enable_proxy_headers_parsing", false)?;
    hide(config, &mut options.hidden_stack_tags);
    options.cors = cors(config)?;
    options.connections = connection_limits(config, options.proxy_headers)?;
    if let Some(revision) = config.text("revision", "heat_revision") {
        options.revision = revision;
    }
    Ok(options)
}

fn cfn_options(config: &Config) -> Result<kiln_cfn::Options> {
    let mut options = kiln_cfn::Options::default();
    options.max_body = config.number(DEFAULT, "max_json_body_size", options.max_body)?;
    options.proxy_headers = config.flag("oslo_middleware", "enable_proxy_headers_parsing", false)?;
    options.page = config.number("kiln", "cfn_page_size", options.page)?.max(1);
    hide(config, &mut options.hidden_stack_tags);
    options.cors = cors(config)?;
    options.connections = connection_limits(config, options.proxy_headers)?;
    Ok(options)
}

/// Replaces the tags of hidden stacks with those that are set.
fn hide(config: &Config, tags: &mut Vec<String>) {
    let hidden = config.list(DEFAULT, "hidden_stack_tags");
    if !hidden.is_empty() {
        *tags = hidden;
    }
}

/// Requests of pages of other origins, with the options of oslo.middleware.
fn cors(config: &Config) -> Result<Cors> {
    let usual = Cors::default();
    let list = |option, usual: Vec<String>| {
        let given = config.list("cors", option);
        if given.is_empty() { usual } else { given }
    };
    Ok(Cors {
        origins: list("allowed_origin", usual.origins),
        credentials: config.flag("cors", "allow_credentials", usual.credentials)?,
        exposed: list("expose_headers", usual.exposed),
        max_age: config.number("cors", "max_age", usual.max_age)?,
        methods: list("allow_methods", usual.methods),
        headers: list("allow_headers", usual.headers),
    })
}

/// Limits of connections, from the options in 'kiln serve --help'. Behind a proxy all clients share one address.
fn connection_limits(config: &Config, behind_proxy: bool) -> Result<ConnectionLimits> {
    let usual = ConnectionLimits::default();
    let per_address = if behind_proxy { 0 } else { usual.per_address.unwrap_or_default() };
    Ok(ConnectionLimits {
        total: config.number("kiln", "max_connections", usual.total)?,
        per_address: Some(config.number("kiln", "max_connections_per_address", per_address)?)
            .filter(|limit| *limit > 0),
        header: config.seconds("kiln", "header_timeout", usual.header)?,
        body: config.seconds("kiln", "body_timeout", usual.body)?,
        send: config.seconds("kiln", "send_timeout", usual.send)?,
    })
}

/// The timeout of a call to a cloud service, from option `[kiln] call_timeout`.
pub(crate) fn call_timeout(config: &Config) -> Result<Duration> {
    config.seconds("kiln", "call_timeout", CALL_TIMEOUT)
}

fn engine_options(config: &Config) -> Result<kiln_engine::Options> {
    let usual = kiln_engine::Options::default();
    let seconds = config.number(DEFAULT, "stack_action_timeout", usual.action_timeout.as_secs())?;
    let calls = call_timeout(config)? + CALL_AFTERMATH;
    Ok(kiln_engine::Options {
        hostname: config.default("host").unwrap_or_else(hostname),
        action_timeout: Duration::from_secs(seconds),
        action_retries: config.number(DEFAULT, "action_retry_limit", usual.action_retries)?,
        call_retries: config.number(DEFAULT, "client_retry_limit", usual.call_retries)?,
        nested_depth: config.number(DEFAULT, "max_nested_stack_depth", usual.nested_depth)?,
        resources_per_stack: config.limit(DEFAULT, "max_resources_per_stack", 1000)?,
        max_events: config.number(DEFAULT, "max_events_per_stack", usual.max_events)?,
        // The options in 'kiln engine --help'.
        lease: config.seconds("kiln", "lease", usual.lease)?,
        call_limit: config.seconds("kiln", "call_limit", calls)?,
        list_delay: config.seconds("kiln", "list_delay", usual.list_delay)?,
        drain: config.seconds("kiln", "drain", calls)?,
        ..usual
    })
}

/// The host name of this machine.
fn hostname() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    named.ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let timeout = ("kiln", "call_timeout", "300".to_owned());
        assert_eq!(limits(std::slice::from_ref(&timeout)), (315, 315));
        assert_eq!(limits(&[timeout, ("kiln", "drain", "20".to_owned())]), (315, 20));
    }
}
