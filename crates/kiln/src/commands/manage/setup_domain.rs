//! `kiln manage setup-domain`: the domain of stack users, as `heat-keystone-setup-domain` creates it.

use clap::Args;
use kiln_console::output::print;
use kiln_resource::Failure as CloudFailure;
use kiln_server::stack_user_domain;
use kiln_value::Class;

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::commands::oslo_options::OsloArgs;
use crate::connect;
use crate::failure::{Failure, Outcome};

/// Create the domain of stack users and its administrator in Keystone
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
Creates a domain for the users and projects of stacks, and its administrator, with the credentials of \
an administrator of the cloud (OS_* or --os-cloud). Prints the options for the configuration of the \
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
A program kiln that is called heat-keystone-setup-domain (by a link) is this command: kiln manage \
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
        let cloud = connect::administered_cloud(&global.cloud).await?;
        let admin = self.admin;
        let made = stack_user_domain::create(&*cloud, &self.domain, &admin, &password).await;
        let made = made.map_err(|failure| failed(&failure))?;
        for warning in &made.warnings {
            eprintln!("warning: {warning}");
        }
        let domain = made.id;
        Ok(print(&format!(
            "\nPlease update your heat.conf with the following in [DEFAULT]\n\n\
             stack_user_domain_id={domain}\nstack_domain_admin={admin}\nstack_domain_admin_password={password}\n"
        ))?)
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
