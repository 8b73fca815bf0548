//! `kiln manage setup-domain`: the domain of stack users, as `heat-keystone-setup-domain` creates it.

use std::sync::Arc;

use clap::Args;
use kiln_cloud::StackCloud;
use kiln_console::output::print;
use kiln_resource::{Cloud as _, CloudRequest, Failure as CloudFailure, FailureKind, Method};
use kiln_value::{Class, Value, value};

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::commands::oslo_options::OsloArgs;
use crate::connect;
use crate::failure::{Failure, Outcome};

/// The role of the domain's administrator.
const ROLE: &str = "admin";

/// Create the domain of stack users and its administrator in Keystone
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
Creates a domain for the users and projects of stacks, and its administrator, with the credentials of
an administrator of the cloud (OS_* or --os-cloud). Prints the options for the configuration of the
service. What exists already is kept.

Example:
  HEAT_DOMAIN_PASSWORD=$(openssl rand -hex 16) kiln --os-cloud admin manage setup-domain")]
pub(crate) struct SetupDomainArgs {
    /// Name of the domain (HEAT_DOMAIN)
    #[arg(
        long = "stack-user-domain-name",
        value_name = "NAME",
        env = "HEAT_DOMAIN",
        default_value = "heat",
        hide_env = true
    )]
    domain: String,
    /// Name of the administrator of the domain (HEAT_DOMAIN_ADMIN)
    #[arg(
        long = "stack-domain-admin",
        value_name = "NAME",
        env = "HEAT_DOMAIN_ADMIN",
        default_value = "heat_stack_admin"
    )]
    #[arg(hide_env = true)]
    admin: String,
    /// Password of the administrator (HEAT_DOMAIN_PASSWORD)
    #[arg(long = "stack-domain-admin-password", value_name = "TEXT", env = "HEAT_DOMAIN_PASSWORD", hide_env = true)]
    password: Option<String>,
}

/// The command heat-keystone-setup-domain; without Heat's options it is 'manage setup-domain'
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
A program kiln that is called heat-keystone-setup-domain (by a link) is this command: kiln manage
setup-domain with the options of Heat's command.

Example:
  HEAT_DOMAIN_PASSWORD=$(openssl rand -hex 16) kiln --os-cloud admin heat-keystone-setup-domain")]
pub(crate) struct HeatKeystoneSetupDomainArgs {
    #[command(flatten)]
    oslo: OsloArgs,
    #[command(flatten)]
    setup: SetupDomainArgs,
    /// The inverse of --insecure
    #[arg(long, overrides_with = "insecure", hide_short_help = true)]
    noinsecure: bool,
}

impl HeatKeystoneSetupDomainArgs {
    pub(crate) async fn run(self, global: &Global) -> Outcome {
        const NAME: &str = "heat-keystone-setup-domain";
        if self.oslo.instead(NAME)? {
            return Ok(());
        }
        self.oslo.config(&global.log, NAME)?;
        self.setup.run(global).await
    }
}

impl SetupDomainArgs {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        let Some(password) = self.password.filter(|password| !password.is_empty()) else {
            return Err(Failure::new("the administrator of the domain needs a password")
                .hint("export HEAT_DOMAIN_PASSWORD or use --stack-domain-admin-password"));
        };
        let keystone = Keystone(connect::administered_cloud(&global.cloud).await?);
        let name = self.domain.as_str();
        let domain = value!({ "name": name, "description": "Contains users and projects created by heat" });
        let (domain, _) = keystone.create(("domain", name), domain, &[]).await?;
        let admin = self.admin.as_str();
        let user = value!({
            "name": admin, "password": (password.as_str()), "domain_id": (domain.as_str()),
            "description": "Heat domain admin",
        });
        let (user, is_new) = keystone.create(("user", admin), user, &[("domain_id", &domain)]).await?;
        if !is_new {
            eprintln!("warning: the password of user {admin} is not changed");
        }
        let role = keystone.find(("role", ROLE), &[]).await?;
        let path = format!("/v3/domains/{domain}/users/{user}/roles/{role}");
        keystone.call(CloudRequest::new("identity", Method::Put, path)).await?;
        Ok(print(&format!(
            "\nPlease update your heat.conf with the following in [DEFAULT]\n\n\
             stack_user_domain_id={domain}\nstack_domain_admin={admin}\nstack_domain_admin_password={password}\n"
        ))?)
    }
}

/// Keystone, with the credentials of an administrator.
struct Keystone(Arc<StackCloud>);

impl Keystone {
    async fn call(&self, request: CloudRequest) -> Outcome<Value> {
        Ok(self.0.call(request).await.map_err(|failure| failed(&failure))?.body)
    }

    /// The ID of an object, and whether it was created. One with this name is used as it is.
    async fn create(&self, (kind, name): (&str, &str), body: Value, query: &[(&str, &str)]) -> Outcome<(String, bool)> {
        let request = CloudRequest::new("identity", Method::Post, format!("/v3/{kind}s"));
        match self.0.call(request.body(value!({ (kind): body }))).await {
            Ok(made) => match made.body.get(kind).and_then(|made| made.str_at("id")) {
                Some(id) => Ok((id.to_owned(), true)),
                None => Err(Failure::new(format!("Keystone created the {kind} {name}, but did not return its ID"))),
            },
            Err(failure) if failure.kind == FailureKind::Conflict => {
                eprintln!("warning: the {kind} {name} already exists");
                Ok((self.find((kind, name), query).await?, false))
            }
            Err(failure) => Err(failed(&failure)),
        }
    }

    /// The ID of the object with a name.
    async fn find(&self, (kind, name): (&str, &str), query: &[(&str, &str)]) -> Outcome<String> {
        let mut request = CloudRequest::new("identity", Method::Get, format!("/v3/{kind}s")).query("name", name);
        for (key, value) in query {
            request = request.query(*key, *value);
        }
        let body = self.call(request).await?;
        let found = body.get(&format!("{kind}s")).and_then(Value::as_list).unwrap_or_default();
        // Keystone may ignore the filter.
        let found = found.iter().find(|one| one.str_at("name") == Some(name)).and_then(|one| one.str_at("id"));
        found.map(str::to_owned).ok_or_else(|| Failure::new(format!("Keystone has no {kind} {name}")))
    }
}

fn failed(failure: &CloudFailure) -> Failure {
    let text = Failure::new(format!("Keystone: {}", failure.message));
    if failure.class == Class::Forbidden {
        text.hint("use the credentials of an administrator of the cloud")
    } else {
        text
    }
}
