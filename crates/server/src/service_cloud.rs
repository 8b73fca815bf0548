//! The cloud of a service: its Keystone, the services behind it, and the users for them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use kiln_cloud::{Connector, Credentials, Named, Scope};
use kiln_config::options::{clouds, stacks};
use kiln_config::{Account, Config};
use kiln_credentials::Signalling;
use kiln_identity::{Deferred, Identity, Keystone, KeystoneOptions, Policy};
use kiln_plan::ResourceTypes;

use crate::checks::OwnUser;
use crate::{clients, runtime, signatures};

/// What a configuration says of the cloud. Nothing is called yet.
pub struct ServiceCloud {
    /// Connects to the cloud.
    pub connector: Connector,
    /// The Keystone user of the service.
    pub own: OwnUser,
    /// Validates tokens and signatures, and makes trusts.
    pub identity: Arc<dyn Identity>,
    /// The domain of stack users, and the addresses for signals.
    pub signalling: Signalling,
}

impl ServiceCloud {
    /// The cloud of a configuration, for these resource types.
    pub fn of_config(config: &Config, types: &ResourceTypes, policy: Arc<Policy>) -> Result<Self> {
        let service = config.account("keystone_authtoken")?;
        let connector = clients::connector(config, &service)?.with_finders(types.types.finders());
        let service_credentials = credentials(&service, "keystone_authtoken", true)?;
        let trustee = match config.account("trustee")? {
            // Without a trustee section, the service user is also the trustee.
            account if !account.has_user() => credentials(&service, "keystone_authtoken", false)?,
            account => credentials(&account, "trustee", false)?,
        };
        let public =
            config.text(&clouds::WWW_AUTHENTICATE_URI).or_else(|| service.auth_url.clone()).unwrap_or_default();
        let mut options = KeystoneOptions::new(public, runtime::now);
        // Negative: validate the token of every request, so that a revoked token is rejected immediately.
        let remember = config.number::<i64>(&clouds::TOKEN_CACHE_TIME)?;
        options.remember = Duration::from_secs(u64::try_from(remember).unwrap_or_default());
        options.deferred = match config.choice(&stacks::DEFERRED_AUTH_METHOD)?.as_deref() {
            Some("password") => Deferred::Password,
            _ => Deferred::Trusts,
        };
        options.delegated_roles = config.list(&stacks::TRUSTS_DELEGATED_ROLES);
        options.service_roles = config.list(&clouds::SERVICE_TOKEN_ROLES);
        options.service_roles_required = config.flag(&clouds::SERVICE_TOKEN_ROLES_REQUIRED)?;
        let own = OwnUser {
            url: service.auth_url.clone().unwrap_or_default(),
            name: service.username.clone().or_else(|| service.user_id.clone()).unwrap_or_default(),
            session: connector.session(service_credentials.clone()),
        };
        let signatures = signatures::sessions(config, own.session.clone())?;
        let keystone = Keystone::new(connector.clone(), service_credentials, trustee, policy, options);
        let identity: Arc<dyn Identity> = Arc::new(keystone.with_signatures(signatures));
        let signalling = signalling(config, &service)?;
        Ok(Self { connector, own, identity, signalling })
    }
}

/// The credentials of a configured user; `section` is named in errors. `scoped`: to its project.
pub fn credentials(account: &Account, section: &str, scoped: bool) -> Result<Credentials> {
    let missing = |option: &str| anyhow!("[{section}] {option} is not set: Kiln needs a Keystone user");
    let of = |id: &Option<String>, name: &Option<String>, domain: &Named| match (id, name) {
        (Some(id), _) => Some(Named::id(id.clone())),
        (None, Some(name)) => Some(Named::Name { name: name.clone(), domain: Some(Box::new(domain.clone())) }),
        (None, None) => None,
    };
    let user = of(&account.user_id, &account.username, &account.user_domain);
    let project = of(&account.project_id, &account.project, &account.project_domain);
    Ok(Credentials::Password {
        user: user.ok_or_else(|| missing("username"))?,
        password: account.password.clone().ok_or_else(|| missing("password"))?,
        scope: match project.filter(|_| scoped) {
            Some(project) => Scope::Project(project),
            None if scoped => return Err(missing("project_name")),
            None => Scope::Unscoped,
        },
    })
}

/// The domain of stack users, and the addresses for signals.
pub fn signalling(config: &Config, service: &Account) -> Result<Signalling> {
    let domain = match (config.text(&stacks::STACK_USER_DOMAIN_ID), config.text(&stacks::STACK_USER_DOMAIN_NAME)) {
        (Some(id), _) => Some(Named::id(id)),
        (None, Some(name)) => Some(Named::Name { name, domain: None }),
        (None, None) => None,
    };
    let (admin, password) =
        (config.text(&stacks::STACK_DOMAIN_ADMIN), config.secret(&stacks::STACK_DOMAIN_ADMIN_PASSWORD));
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
    let public = config.text(&clouds::WWW_AUTHENTICATE_URI).or_else(|| service.auth_url.clone());
    Ok(Signalling {
        domain_admin,
        role: config.text(&stacks::HEAT_STACK_USER_ROLE).unwrap_or_default(),
        // Heat's option has the path of one of the two kinds of signals.
        cfn: config.text(&stacks::HEAT_WAITCONDITION_SERVER_URL).map(|url| url.replace("/waitcondition", "")),
        metadata: config.text(&stacks::HEAT_METADATA_SERVER_URL),
        heat: config.text(&clouds::HEAT_URL).map(|url| url.replace("/%(tenant_id)s", "")),
        keystone: public.map(|url| if url.contains("/v3") { url } else { format!("{}/v3", url.trim_end_matches('/')) }),
        region: config.text(&stacks::REGION_NAME_FOR_SERVICES).or_else(|| service.region.clone()),
    })
}
