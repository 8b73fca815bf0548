//! The command line of `kiln`.

#[cfg(test)]
mod page;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use kiln_client::Client;
use kiln_plan::ResourceTypes;
use kiln_server::plugins;
use kiln_server::resource_types;
use kiln_server::topology_types;
use kiln_telemetry::logging::LogArgs;
use kiln_topology::TypeFiles;

use crate::commands::effect::Effect;
use crate::commands::{
    completion, config, dashboard, demo, drift, guard, heat_manage, heat_status, import, lsp, man, manage, orphan,
    plan, quota, resource_type, serve, software, stack, template, testcloud, webhook,
};
use crate::exit_code;
use crate::failure::Outcome;

/// OpenStack Orchestration in a single binary, compatible with Heat.
///
/// Kiln reads Heat templates (HOT and CFN) and manages the OpenStack resources that they describe: servers, networks,
/// volumes and more. It runs as a service with the Heat API, for the `openstack` client and SDKs (`kiln serve`), or
/// without a service, with your own credentials (`--local`).
#[derive(Debug, Parser)]
#[command(name = "kiln", version, after_help = EXAMPLES, max_term_width = 110)]
#[command(infer_long_args = true, disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: Global,
}

const EXAMPLES: &str = "\
Examples:
  kiln demo                                       create a stack in a simulated cloud
  kiln stack create -t web.yaml --wait web        create a stack in your cloud
  kiln --local stack create -t web.yaml web       the same, without an orchestration service
  kiln template validate -t web.yaml --offline    check a template
  kiln serve --config-file /etc/kiln/kiln.conf    run the service: API and engine

With --help instead of -h, the help has more details, the options that select a cloud, and exit codes.";

/// The definition of the command line, with what the help shows.
pub(crate) fn command() -> clap::Command {
    exit_code::documented(Cli::command())
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create, update, show and delete stacks
    #[command(subcommand)]
    Stack(stack::StackCommand),
    /// List, show, reject and delete the plans that 'kiln stack plan' has saved
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// List, show and lift guards, which forbid changes of stacks; require plans
    #[command(subcommand)]
    Guard(guard::GuardCommand),
    /// Compare stacks with their objects regularly: set how often, list what was found
    #[command(subcommand)]
    Drift(drift::DriftCommand),
    /// Show how many stacks and resources a project may have; change it (admin)
    #[command(subcommand)]
    Quota(quota::QuotaCommand),
    /// Send events to URLs: create, test and change webhooks, look at their deliveries
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Bring objects that exist under Kiln: list them, write a template for them, take them over
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Validate, lint, format and upgrade templates
    #[command(subcommand)]
    Template(template::TemplateCommand),
    /// List and show resource types
    #[command(subcommand)]
    ResourceType(resource_type::ResourceTypeCommand),
    /// Create, list, show and delete software configs and deployments
    #[command(subcommand)]
    Software(software::SoftwareCommand),
    /// List the objects that are left because their resources were forgotten
    #[command(subcommand)]
    Orphan(orphan::OrphanCommand),
    Dashboard(dashboard::DashboardArgs),
    /// Run the service: the API and an engine in one process
    #[command(add = Effect::Changes("a service"))]
    Serve(serve::ServeArgs),
    /// Run only the API; engines run in other processes with the same database
    #[command(add = Effect::Changes("a service"))]
    Api(serve::ServeArgs),
    Engine(serve::EngineArgs),
    /// Manage the database of a service, its policies and the domain of stack users
    #[command(subcommand)]
    Manage(manage::ManageCommand),
    /// The commands of heat-manage, with its names, output and exit codes
    HeatManage(heat_manage::HeatManageArgs),
    /// The commands of heat-status
    HeatStatus(heat_status::HeatStatusArgs),
    #[command(hide = true)]
    HeatKeystoneSetupDomain(manage::setup_domain::HeatKeystoneSetupDomainArgs),
    /// Check and show the configuration of a service; print the reference of its options
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Demo(demo::DemoArgs),
    Testcloud(testcloud::TestcloudArgs),
    Lsp(lsp::LspArgs),
    Completion(completion::CompletionArgs),
    Man(man::ManArgs),
}

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Global {
    /// The cloud.
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    /// Running without a service.
    #[command(flatten)]
    pub(crate) local: LocalArgs,
    /// Logs.
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// Allow templates to refer to files on other hosts; files and URLs on the command line are always read
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) allow_remote: bool,
}

impl Global {
    /// Rejects options that do not apply to a service. `KILN_DATABASE` is ignored: it applies to other commands.
    pub(crate) fn refuse_for_service(&self) -> Result<()> {
        if self.local.local {
            bail!("--local cannot be used with a service");
        }
        let of_environment = std::env::var("KILN_DATABASE").ok();
        if self.local.database.is_some() && self.local.database != of_environment {
            bail!("--database is the database of --local; to configure a service, set [database] connection");
        }
        Ok(())
    }

    /// The options that select the stacks, to repeat in the commands of hints.
    pub(crate) fn repeated(&self) -> String {
        let mut options = Vec::new();
        if let Some(cloud) = &self.cloud.os_cloud {
            options.push(format!("--os-cloud {cloud}"));
        }
        if self.local.local {
            options.push("--local".to_owned());
            let of_environment = std::env::var("KILN_DATABASE").ok();
            if let Some(file) = self.local.database.as_ref().filter(|file| Some(*file) != of_environment.as_ref()) {
                options.push(format!("--database {file}"));
            }
        }
        options.join(" ")
    }
}

macro_rules! cloud_args {
    ($($(#[$doc:meta])* $name:ident => $variable:literal, $value:literal;)*) => {
        /// The cloud and the credentials. Each option replaces the variable of the same name.
        #[derive(Args, Clone, Debug, Default)]
        #[command(next_help_heading = "Cloud")]
        pub(crate) struct CloudArgs {
            /// Name of the cloud in clouds.yaml (OS_CLOUD)
            #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
            pub(crate) os_cloud: Option<String>,
            $(
                $(#[$doc])*
                #[arg(long, global = true, value_name = $value, hide_short_help = true)]
                $name: Option<String>,
            )*
            /// Do not verify TLS certificates
            #[arg(long, global = true, hide_short_help = true)]
            insecure: bool,
            /// Send the user name and the password to the service too (HEAT_INCLUDE_PASSWORD); a service with
            /// deferred_auth_method = password requires them
            #[arg(long, global = true, hide_short_help = true)]
            include_password: bool,
        }

        impl CloudArgs {
            /// The value of the option that replaces this environment variable.
            pub(crate) fn variable(&self, name: &str) -> Option<String> {
                match name {
                    $($variable => self.$name.clone(),)*
                    "OS_INSECURE" => self.insecure.then(|| "true".to_owned()),
                    "HEAT_INCLUDE_PASSWORD" => self.include_password.then(|| "true".to_owned()),
                    _ => None,
                }
            }

            /// Whether any other option than the name of the cloud is set.
            pub(crate) fn names_credentials(&self) -> bool {
                self.os_auth_url.is_some() || self.os_endpoint.is_some()
            }
        }
    };
}

cloud_args! {
    /// Keystone's URL (OS_AUTH_URL)
    os_auth_url => "OS_AUTH_URL", "URL";
    /// Authentication type: password, token, v3applicationcredential, none (OS_AUTH_TYPE)
    os_auth_type => "OS_AUTH_TYPE", "TYPE";
    /// User name (OS_USERNAME)
    os_username => "OS_USERNAME", "NAME";
    /// User ID (OS_USER_ID)
    os_user_id => "OS_USER_ID", "ID";
    /// Password (OS_PASSWORD); the variable or clouds.yaml is safer
    os_password => "OS_PASSWORD", "TEXT";
    /// Token (OS_TOKEN)
    os_token => "OS_TOKEN", "TOKEN";
    /// Project name (OS_PROJECT_NAME)
    os_project_name => "OS_PROJECT_NAME", "NAME";
    /// Project ID (OS_PROJECT_ID)
    os_project_id => "OS_PROJECT_ID", "ID";
    /// Domain name of the user (OS_USER_DOMAIN_NAME)
    os_user_domain_name => "OS_USER_DOMAIN_NAME", "NAME";
    /// Domain ID of the user (OS_USER_DOMAIN_ID)
    os_user_domain_id => "OS_USER_DOMAIN_ID", "ID";
    /// Domain name of the project (OS_PROJECT_DOMAIN_NAME)
    os_project_domain_name => "OS_PROJECT_DOMAIN_NAME", "NAME";
    /// Domain ID of the project (OS_PROJECT_DOMAIN_ID)
    os_project_domain_id => "OS_PROJECT_DOMAIN_ID", "ID";
    /// Application credential ID (OS_APPLICATION_CREDENTIAL_ID)
    os_application_credential_id => "OS_APPLICATION_CREDENTIAL_ID", "ID";
    /// Application credential secret (OS_APPLICATION_CREDENTIAL_SECRET)
    os_application_credential_secret => "OS_APPLICATION_CREDENTIAL_SECRET", "TEXT";
    /// Region (OS_REGION_NAME)
    os_region_name => "OS_REGION_NAME", "NAME";
    /// Endpoint interface: public, internal, admin (OS_INTERFACE)
    os_interface => "OS_INTERFACE", "NAME";
    /// File with CA certificates (OS_CACERT)
    os_cacert => "OS_CACERT", "FILE";
    /// File with the client certificate (OS_CERT)
    os_cert => "OS_CERT", "FILE";
    /// File with the key of the client certificate (OS_KEY)
    os_key => "OS_KEY", "FILE";
    /// Endpoint without Keystone, with --os-auth-type none (OS_ENDPOINT)
    os_endpoint => "OS_ENDPOINT", "URL";
    /// Orchestration endpoint, overrides the catalog (OS_ORCHESTRATION_ENDPOINT_OVERRIDE)
    os_orchestration_endpoint => "OS_ORCHESTRATION_ENDPOINT_OVERRIDE", "URL";
}

/// Running without a service.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Without a service")]
pub(crate) struct LocalArgs {
    /// Run the engine in this process with your own credentials; no orchestration service is required
    #[arg(long, global = true)]
    pub(crate) local: bool,
    /// Database of --local: a file or a database URL [default: kiln/stacks.db in your data directory]
    #[arg(long, global = true, value_name = "FILE", env = "KILN_DATABASE", hide_env_values = true)]
    pub(crate) database: Option<String>,
    /// Folder of definition files that add or replace resource types, for commands without a service
    #[arg(long, global = true, value_name = "FOLDER", env = "KILN_RESOURCE_TYPES_DIR", hide_short_help = true)]
    resource_types_dir: Option<PathBuf>,
    /// Folder of type files for blueprints, CAMP plans and TOSCA, which are converted to HOT by this command
    #[arg(
        long,
        global = true,
        value_name = "FOLDER",
        env = "KILN_TOPOLOGY_TYPES_DIR",
        hide_short_help = true,
        help_heading = "Blueprints and TOSCA"
    )]
    pub(crate) topology_types_dir: Option<PathBuf>,
    /// Program (absolute path, with arguments) that implements resource types, for commands without a service; may be
    /// repeated
    #[arg(
        long,
        global = true,
        value_name = "COMMAND",
        env = "KILN_PLUGINS",
        value_delimiter = ',',
        hide_short_help = true
    )]
    plugin: Vec<String>,
}

impl LocalArgs {
    /// The resource types for tools that need only the schemas. Prints a warning for each plug-in that does not tell its
    /// own.
    pub(crate) async fn catalog(&self) -> Result<ResourceTypes> {
        let (plugins, problems) = plugins::schemas_of_command_line(&self.plugin).await;
        for problem in problems {
            anstream::eprintln!("warning: {problem}");
        }
        resource_types::shipped_and_own(self.resource_types_dir.as_deref(), plugins)
    }

    /// The resource types for an engine in this process, with those of plug-ins, which must be sound.
    pub(crate) async fn catalog_with_plugins(&self) -> Result<ResourceTypes> {
        let plugins = plugins::of_command_line(&self.plugin).await?;
        resource_types::shipped_and_own(self.resource_types_dir.as_deref(), plugins)
    }

    /// The types of blueprints and TOSCA.
    pub(crate) fn topology_types(&self) -> Result<Arc<TypeFiles>> {
        topology_types::of_folder(self.topology_types_dir.as_deref()).context("--topology-types-dir")
    }

    /// The same with those of the operator of a service.
    pub(crate) async fn topology_types_with(&self, client: &Client) -> Outcome<Arc<TypeFiles>> {
        let others = client.topology_types().await?;
        Ok(topology_types::with_others(self.topology_types_dir.as_deref(), others).context("type files")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that are broken here are broken again on a narrow terminal.
    #[test]
    fn texts_are_wrapped_once() {
        fn check(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let is_broken = pair.iter().all(|line| is_prose(line));
                assert!(!is_broken, "{}: {:?} is a line of its own", command.get_name(), pair[1]);
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
