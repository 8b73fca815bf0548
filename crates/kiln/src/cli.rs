//! The command line: what `kiln` understands.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use kiln_plan::ResourceTypes;

use crate::commands::{completion, demo, lsp, manage, resource_type, serve, stack, template, testcloud};
use crate::resource_types;

/// OpenStack Orchestration in one binary: templates in, running clouds out.
///
/// Kiln reads Heat templates (HOT and CFN) and makes what they describe in an OpenStack cloud: servers, networks,
/// volumes and all the rest, in the right order, and takes it away again. It runs as a service beside Keystone, with
/// Heat's API for the `openstack` client (`kiln serve`), or by itself on your machine with your own credentials
/// (`--local`).
#[derive(Debug, Parser)]
#[command(name = "kiln", version, after_help = EXAMPLES, after_long_help = LONG_EXAMPLES, max_term_width = 110)]
#[command(infer_long_args = true, disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: Global,
}

macro_rules! examples {
    () => {
        "\
Examples:
  kiln demo                                       watch a stack come up in a simulated cloud
  kiln stack create -t web.yaml --wait web        a stack in your cloud
  kiln --local stack create -t web.yaml web       the same with no orchestration service
  kiln template validate -t web.yaml --offline    is the template right?
  kiln serve --config-file /etc/kiln/kiln.conf    the service: API and engine

"
    };
}

const EXAMPLES: &str = concat!(examples!(), "--help says more than -h.");

const LONG_EXAMPLES: &str = concat!(
    examples!(),
    "\
Which cloud: --os-cloud names one of clouds.yaml; else the OS_* variables count, as for the openstack client.
Every command takes each of these variables as an option too, which counts more than the variable:
  --os-auth-url, --os-auth-type, --os-username, --os-user-id, --os-password, --os-token,
  --os-project-name, --os-project-id, --os-user-domain-name, --os-user-domain-id,
  --os-project-domain-name, --os-project-domain-id, --os-application-credential-id,
  --os-application-credential-secret, --os-region-name, --os-interface, --os-cacert,
  --os-endpoint (with --os-auth-type none), --os-orchestration-endpoint

Exit codes:
  0  done
  1  refused or failed; the reason is on standard error
  2  the command line is wrong
  3  the stack that was waited for ended in FAILED
  4  the service or the cloud cannot be reached
  130  interrupted"
);

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make, change, look at and delete stacks
    #[command(subcommand)]
    Stack(stack::StackCommand),
    /// Check templates, and what they may say
    #[command(subcommand)]
    Template(template::TemplateCommand),
    /// What a template can be made of
    #[command(subcommand)]
    ResourceType(resource_type::ResourceTypeCommand),
    /// Run the service: the API and an engine in one process
    Serve(serve::ServeArgs),
    /// Run the API only; engines run elsewhere on the same database
    Api(serve::ServeArgs),
    /// Run an engine only; any number of them may share a database
    Engine(serve::EngineArgs),
    /// Look after the database of a service
    #[command(subcommand)]
    Manage(manage::ManageCommand),
    /// Watch a stack come up in a simulated cloud
    Demo(demo::DemoArgs),
    /// Run a simulated cloud, to try templates and --local without a real one
    Testcloud(testcloud::TestcloudArgs),
    /// Help an editor with templates: a language server
    Lsp(lsp::LspArgs),
    /// Print the completion script of a shell
    Completion(completion::CompletionArgs),
}

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Global {
    /// The cloud.
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    /// No service.
    #[command(flatten)]
    pub(crate) local: LocalArgs,
    /// Logs.
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// Read what templates name on other hosts of the network; files and URLs that you name are read anyway
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) allow_remote: bool,
}

impl Global {
    /// Refuses options that a service has no use for; `KILN_DATABASE` is for other commands.
    pub(crate) fn refuse_for_service(&self) -> Result<()> {
        if self.local.local {
            bail!("--local is for commands that need no service, and this is the service");
        }
        let of_environment = std::env::var("KILN_DATABASE").ok();
        if self.local.database.is_some() && self.local.database != of_environment {
            bail!("--database is where --local remembers its stacks; a service has option connection of [database]");
        }
        Ok(())
    }

    /// The options that say where the stacks are, to be typed again for the next command.
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
        /// Which cloud, and who we are there. Each is the same as the variable of its name.
        #[derive(Args, Clone, Debug, Default)]
        #[command(next_help_heading = "Cloud")]
        pub(crate) struct CloudArgs {
            /// Name of a cloud in clouds.yaml (OS_CLOUD)
            #[arg(long, global = true, value_name = "NAME")]
            pub(crate) os_cloud: Option<String>,
            $(
                $(#[$doc])*
                // Shown by `kiln --help` alone: they would bury each command's own options.
                #[arg(long, global = true, value_name = $value, hide = true)]
                $name: Option<String>,
            )*
            /// Do not check the certificates of servers
            #[arg(long, global = true, hide_short_help = true)]
            insecure: bool,
        }

        impl CloudArgs {
            /// The value that stands in for a variable of the environment.
            pub(crate) fn variable(&self, name: &str) -> Option<String> {
                match name {
                    $($variable => self.$name.clone(),)*
                    "OS_INSECURE" => self.insecure.then(|| "true".to_owned()),
                    _ => None,
                }
            }

            /// Whether any of the options is given besides the cloud's name.
            pub(crate) fn names_credentials(&self) -> bool {
                self.os_auth_url.is_some() || self.os_endpoint.is_some()
            }
        }
    };
}

cloud_args! {
    /// Keystone's URL (OS_AUTH_URL)
    os_auth_url => "OS_AUTH_URL", "URL";
    /// How to authenticate: password, token, v3applicationcredential, none (OS_AUTH_TYPE)
    os_auth_type => "OS_AUTH_TYPE", "TYPE";
    /// User (OS_USERNAME)
    os_username => "OS_USERNAME", "NAME";
    /// User by id (OS_USER_ID)
    os_user_id => "OS_USER_ID", "ID";
    /// Password (OS_PASSWORD); better in the variable or in clouds.yaml
    os_password => "OS_PASSWORD", "TEXT";
    /// Token (OS_TOKEN)
    os_token => "OS_TOKEN", "TOKEN";
    /// Project (OS_PROJECT_NAME)
    os_project_name => "OS_PROJECT_NAME", "NAME";
    /// Project by id (OS_PROJECT_ID)
    os_project_id => "OS_PROJECT_ID", "ID";
    /// Domain of the user (OS_USER_DOMAIN_NAME)
    os_user_domain_name => "OS_USER_DOMAIN_NAME", "NAME";
    /// Domain of the user by id (OS_USER_DOMAIN_ID)
    os_user_domain_id => "OS_USER_DOMAIN_ID", "ID";
    /// Domain of the project (OS_PROJECT_DOMAIN_NAME)
    os_project_domain_name => "OS_PROJECT_DOMAIN_NAME", "NAME";
    /// Domain of the project by id (OS_PROJECT_DOMAIN_ID)
    os_project_domain_id => "OS_PROJECT_DOMAIN_ID", "ID";
    /// Application credential by id (OS_APPLICATION_CREDENTIAL_ID)
    os_application_credential_id => "OS_APPLICATION_CREDENTIAL_ID", "ID";
    /// Secret of the application credential (OS_APPLICATION_CREDENTIAL_SECRET)
    os_application_credential_secret => "OS_APPLICATION_CREDENTIAL_SECRET", "TEXT";
    /// Region (OS_REGION_NAME)
    os_region_name => "OS_REGION_NAME", "NAME";
    /// Endpoints to use: public, internal, admin (OS_INTERFACE)
    os_interface => "OS_INTERFACE", "NAME";
    /// File of certificate authorities (OS_CACERT)
    os_cacert => "OS_CACERT", "FILE";
    /// Endpoint to use without Keystone, with --os-auth-type none (OS_ENDPOINT)
    os_endpoint => "OS_ENDPOINT", "URL";
    /// Orchestration endpoint to use instead of the catalog's (OS_ORCHESTRATION_ENDPOINT_OVERRIDE)
    os_orchestration_endpoint => "OS_ORCHESTRATION_ENDPOINT_OVERRIDE", "URL";
}

/// Running without a service.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Without a service")]
pub(crate) struct LocalArgs {
    /// Do the work in this process, with your own credentials; no orchestration service is needed
    #[arg(long, global = true)]
    pub(crate) local: bool,
    /// Where --local remembers its stacks: a file, or a database URL [default: kiln/stacks.db in your data folder]
    #[arg(long, global = true, value_name = "FILE", env = "KILN_DATABASE", hide_env_values = true)]
    pub(crate) database: Option<String>,
    /// Folder of definition files: resource types of your own, or in place of Kiln's, for whatever asks no service
    #[arg(long, global = true, value_name = "FOLDER", env = "KILN_RESOURCE_TYPES_DIR", hide_short_help = true)]
    resource_types_dir: Option<PathBuf>,
}

impl LocalArgs {
    /// The resource types, where no service is asked.
    pub(crate) fn catalog(&self) -> Result<ResourceTypes> {
        resource_types::shipped_and_own(self.resource_types_dir.as_deref()).context("--resource-types-dir")
    }
}

/// Logs, on standard error.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// Say more; twice: everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Say only what went wrong
    #[arg(short, long, global = true, conflicts_with = "verbose", hide_short_help = true)]
    pub(crate) quiet: bool,
    /// How logs are written; RUST_LOG chooses which
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) log_format: Option<LogFormat>,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The configuration of a service.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// INI file with Heat's option names; may be repeated, later ones count more [default: ~/.kiln/kiln.conf,
    /// ~/kiln.conf, /etc/kiln/kiln.conf, /etc/kiln.conf]
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Vec<PathBuf>,
    /// Folder whose *.conf files are read behind the others; may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub(crate) config_dir: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_help_names_every_option_of_the_cloud() {
        let command = Cli::command();
        let options: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
        let of_cloud: Vec<&&str> = options.iter().filter(|name| name.starts_with("os-")).collect();
        assert!(of_cloud.len() > 15);
        for name in of_cloud {
            assert!(LONG_EXAMPLES.contains(&format!("--{name}")), "{name}");
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
