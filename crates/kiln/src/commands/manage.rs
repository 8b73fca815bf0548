//! `kiln manage …`: the commands of `heat-manage`.

use clap::{Args, Subcommand};
use kiln_store::Retention;
use kiln_value::Value;

use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Format, List, OutputArgs, print};
use crate::runtime;

/// Commands for the database of a service.
#[derive(Debug, Subcommand)]
pub(crate) enum ManageCommand {
    /// Manage the database schema
    #[command(subcommand)]
    Db(DbCommand),
    /// Show the engines
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Purge stacks that were deleted long ago; engines also do this automatically
    PurgeDeleted(PurgeArgs),
}

/// `manage db …`.
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Upgrade the schema; services also do this at startup
    Sync(ConfigArgs),
}

/// `manage service …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// List the engines and their status
    List(ListArgs),
}

/// `manage service list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// `manage purge-deleted`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln manage purge-deleted --days 30
  kiln manage purge-deleted --days 0        purge all deleted stacks")]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Purge stacks that were deleted more than this many days ago
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    days: u32,
}

impl ManageCommand {
    /// Runs the command.
    pub(crate) async fn run(self) -> Outcome {
        match self {
            Self::Db(DbCommand::Sync(args)) => {
                let config = Config::load(&args)?;
                runtime::open(&config).await?;
                Ok(print("The database schema is up to date.\n")?)
            }
            Self::Service(ServiceCommand::List(args)) => args.run().await,
            Self::PurgeDeleted(args) => args.run().await,
        }
    }
}

impl ListArgs {
    async fn run(self) -> Outcome {
        let store = runtime::open(&Config::load(&self.config)?).await?;
        let engines = store.engines().await.map_err(|error| Failure::new(error.to_string()))?;
        let now = runtime::now();
        let row = |engine: &kiln_store::EngineInfo| -> Vec<Cell> {
            let status = if kiln_api::is_up(engine, now) { "up" } else { "down" };
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
    async fn run(self) -> Outcome {
        let store = runtime::open(&Config::load(&self.config)?).await?;
        let age = std::time::Duration::from_secs(u64::from(self.days) * 86_400);
        let retention = Retention { deleted_before: runtime::now() - age, events_per_stack: 0 };
        let mut total = 0;
        loop {
            let rows = store.forget(&retention).await.map_err(|error| Failure::new(error.to_string()))?;
            total += rows;
            if rows == 0 {
                break;
            }
        }
        Ok(print(&format!("Purged {total} rows.\n"))?)
    }
}
