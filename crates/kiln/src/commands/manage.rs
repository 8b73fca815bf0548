//! `kiln manage …`: the commands of `heat-manage` and `heat-keystone-setup-domain`.

mod archive;
mod doctor;
mod failures;
mod maintenance;
mod report;
pub(crate) mod setup_domain;
mod take_over;
mod who_uses;

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use kiln_config::options::kiln;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::{Cell, Format, List, OutputArgs, print};
use kiln_server::{database, policy_files};
use kiln_store::{Retention, Store as _};
use kiln_value::Value;

use self::archive::Archive;
use crate::cli::Global;
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for operators of a service.
    ManageCommand with Global {
        /// Manage the database schema
        #[command(subcommand)]
        Db(DbCommand),
        /// Show the engines
        #[command(subcommand)]
        Service(ServiceCommand),
        /// Check policy files
        #[command(subcommand)]
        Policy(PolicyCommand),
        /// Take over the stacks of a Heat
        #[command(subcommand)]
        TakeOver(take_over::TakeOverCommand),
        /// Let requests read but not change anything
        #[command(subcommand)]
        Maintenance(maintenance::MaintenanceCommand),
        Doctor(doctor::DoctorArgs),
        Report(report::ReportArgs),
        Failures(failures::FailuresArgs),
        WhoUses(who_uses::WhoUsesArgs),
        PurgeDeleted(PurgeArgs),
        #[command(visible_alias = "rotate-keys")]
        UpdateParams(UpdateParamsArgs),
        SetupDomain(setup_domain::SetupDomainArgs),
    }
}

group! {
    /// `manage db …`.
    DbCommand with Global {
        Sync(SyncArgs),
    }
}

group! {
    /// `manage service …`.
    ServiceCommand with Global {
        List(ListArgs),
    }
}

group! {
    /// `manage policy …`.
    PolicyCommand with Global {
        Check(PolicyCheckArgs) now,
        Sample(PolicySampleArgs) now,
    }
}

/// Upgrade the schema; services also do this at startup
#[derive(Args, Debug)]
#[command(add = Effect::Changes("the schema only grows"))]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

impl SyncArgs {
    async fn run(self, _: &Global) -> Outcome {
        database::open_with(database::options(&Config::load(&self.config)?).await?).await?;
        Ok(print("The database schema is up to date.\n")?)
    }
}

/// Report rules that are not valid, not used or not defined
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Prints all problems, and exits with 1 if there are any. Running services read changed policy files \
within seconds; if a file is not valid, the former rules stay in use.

Example:
  kiln manage policy check policy.yaml")]
pub(crate) struct PolicyCheckArgs {
    /// The policy file, in YAML or JSON
    #[arg(value_name = "FILE")]
    file: std::path::PathBuf,
}

impl PolicyCheckArgs {
    fn run(&self) -> Outcome {
        let (rules, problems) = policy_files::check(&self.file)?;
        for problem in &problems {
            print(&format!("{problem}\n"))?;
        }
        if problems.is_empty() {
            return Ok(print(&format!("{rules} rules, no problems.\n"))?);
        }
        Err(Failure::new(format!("{}: {} problems in {rules} rules", self.file.display(), problems.len())))
    }
}

/// Print a policy file with all rules and their defaults
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
As oslopolicy-sample-generator: in YAML, each rule is a comment with the requests that it decides about; \
remove the # of those to change.

Example:
  kiln manage policy sample > policy.yaml")]
pub(crate) struct PolicySampleArgs {
    /// Format of the file
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value = "yaml")]
    format: SampleFormat,
}

/// The format of a policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SampleFormat {
    Yaml,
    Json,
}

impl PolicySampleArgs {
    fn run(&self) -> Outcome {
        Ok(print(&policy_files::sample(self.format == SampleFormat::Json))?)
    }
}

/// List the engines and their status
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Purge stacks that were deleted long ago; engines also do this automatically
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
Examples:
  kiln manage purge-deleted --days 30
  kiln manage purge-deleted --days 30 --archive purged.jsonl
  kiln manage purge-deleted --days 0        purge all deleted stacks")]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Purge stacks that were deleted more than this many days ago; engines purge after [kiln] keep_deleted by
    /// themselves
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    days: u32,
    /// Write the stacks with their resources, operations and events to a file first, one JSON object a line; lines are
    /// added to those in the file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    archive: Option<PathBuf>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// Encrypt or decrypt the stored data, for example with a new key
#[derive(Args, Debug)]
#[command(add = Effect::Changes("stores the same in another form"))]
#[command(after_help = "\
Credentials are always encrypted. Parameters, properties, attributes, metadata, templates and files \
are encrypted if encrypt_parameters_and_properties is set. A change of this option applies to data \
that is written later; this command applies it to all data.

To change the key while services are running:
  1. Set [DEFAULT] auth_encryption_key to the new key and [kiln] older_encryption_keys to the old
     one, and restart the services.
  2. Run kiln manage update-params.
  3. Remove older_encryption_keys.

Examples:
  kiln manage update-params             apply the configuration and the current key to all data
  kiln manage update-params encrypt     encrypt all data
  kiln manage update-params decrypt     decrypt all data except credentials; first set
                                        encrypt_parameters_and_properties = false")]
pub(crate) struct UpdateParamsArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Whether to encrypt data other than credentials [default: encrypt_parameters_and_properties]
    values: Option<Values>,
}

/// What to do with data other than credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Values {
    Encrypt,
    Decrypt,
}

impl UpdateParamsArgs {
    async fn run(self, _: &Global) -> Outcome {
        let mut options = database::options(&Config::load(&self.config)?).await?;
        if let Some(values) = self.values {
            options.encrypt_values = values == Values::Encrypt;
        }
        let store = database::open_with(options).await?;
        let rows = Box::pin(store.reencrypt()).await.map_err(|error| Failure::new(error.to_string()))?;
        Ok(print(&format!("{rows} rows updated.\n"))?)
    }
}

impl ListArgs {
    async fn run(self, _: &Global) -> Outcome {
        let store = database::open(&Config::load(&self.config)?).await?;
        let engines = store.engines().await.map_err(|error| Failure::new(error.to_string()))?;
        let now = store.now().await.map_err(|error| Failure::new(error.to_string()))?;
        let row = |engine: &kiln_store::EngineInfo| -> Vec<Cell> {
            let status = if engine.is_up(now) { "up" } else { "down" };
            vec![
                engine.hostname.as_str().into(),
                engine.id.to_string().into(),
                Value::from(engine.pid).into(),
                engine.started.to_string().into(),
                engine.seen.to_string().into(),
                status.into(),
            ]
        };
        let columns =
            ["Hostname", "Engine Id", "Process", "Started At", "Seen At", "Status"].map(str::to_owned).to_vec();
        let rows = engines.iter().map(row).collect();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}

impl PurgeArgs {
    async fn run(self, _: &Global) -> Outcome {
        let question = format!("Purge stacks that were deleted more than {} days ago [y/N]? ", self.days);
        self.confirm.if_demanded(&question).await?;
        let config = Config::load(&self.config)?;
        let store = database::open_as(&config, database::options(&config).await?).await?;
        let age = std::time::Duration::from_secs(u64::from(self.days) * 86_400);
        let now = store.now().await.map_err(|error| Failure::new(error.to_string()))?;
        let retention = Retention { deleted_before: now - age, operations: 0 };
        let mut total = 0;
        if let Some(file) = &self.archive {
            let (stacks, rows) = Box::pin(Archive::open(file)?.purge(&store, retention.deleted_before)).await?;
            total += rows;
            print(&format!("Archived {stacks} stacks.\n"))?;
        }
        loop {
            let rows = store.forget(&retention).await.map_err(|error| Failure::new(error.to_string()))?;
            total += rows;
            if rows == 0 {
                break;
            }
        }
        let kept = config.number::<u32>(&kiln::KEEP_DELETED)?;
        if total == 0 && kept < self.days {
            eprintln!("Engines have purged stacks that were deleted more than {kept} days ago ([kiln] keep_deleted).");
        }
        Ok(print(&format!("Purged {total} rows.\n"))?)
    }
}
