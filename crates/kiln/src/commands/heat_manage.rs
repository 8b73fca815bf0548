//! `heat-manage`: the console command of Heat, with its arguments, output and exit codes (reference `cli.json`).

use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

use clap::{Args, ValueEnum};
use kiln_config::Config;
use kiln_console::output::print;
use kiln_resource::{ResourceId, StackId};
use kiln_server::database;
use kiln_stack::Chance;
use kiln_store::{EngineId, EngineInfo, SqlStore, Store as _};
use kiln_telemetry::logging::LogArgs;
use kiln_value::text;

use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::commands::oslo_options::{OsloArgs, no_command};
use crate::failure::{Failure, Outcome};

/// `heat-manage`.
#[derive(Args, Debug)]
#[command(after_help = "\
A program kiln that is called heat-manage (by a link) is this command. Without --config-file it reads the \
configuration of Kiln, or else /etc/heat/heat.conf. Engines do all of this by themselves.

Examples:
  kiln heat-manage --config-file kiln.conf db_sync
  kiln heat-manage --config-file kiln.conf service list")]
pub(crate) struct HeatManageArgs {
    #[command(flatten)]
    oslo: OsloArgs,
    #[command(subcommand)]
    command: Option<HeatManageCommand>,
}

group! {
    /// The commands of `heat-manage`.
    #[command(rename_all = "snake_case")]
    HeatManageCommand with Config {
        DbVersion(DbVersionArgs),
        DbSync(DbSyncArgs),
        /// List the engines, or remove those that are down
        #[command(subcommand)]
        Service(ServiceCommand),
        ResourceDataList(ResourceDataListArgs),
        ResetStackStatus(ResetStackStatusArgs),
        #[command(name = "migrate_convergence_1")]
        MigrateConvergence(MigrateConvergenceArgs),
        PurgeDeleted(PurgeDeletedArgs),
        UpdateParams(UpdateParamsArgs),
        MigratePropertiesData(MigratePropertiesDataArgs) now,
    }
}

group! {
    /// `heat-manage service …`.
    ServiceCommand with Config {
        List(ServiceListArgs),
        Clean(ServiceCleanArgs),
    }
}

impl HeatManageArgs {
    pub(crate) async fn run(self, log: &LogArgs) -> Outcome {
        if self.oslo.instead("heat-manage")? {
            return Ok(());
        }
        let Some(command) = self.command else { return Err(no_command("heat-manage")) };
        command.run(&self.oslo.config(log, "heat-manage")?).await
    }
}

async fn store(config: &Config) -> Outcome<SqlStore> {
    Ok(Box::pin(database::open_with(database::options(config).await?)).await?)
}

fn failing<T>(result: Result<T, kiln_store::Error>) -> Outcome<T> {
    result.map_err(|error| Failure::new(error.to_string()))
}

/// Print the version of the database schema
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct DbVersionArgs;

impl DbVersionArgs {
    async fn run(self, config: &Config) -> Outcome {
        let store = database::open_unchanged(config).await?;
        let done = failing(store.schema_versions().await)?.done;
        Ok(print(&if done == 0 { "None\n".to_owned() } else { format!("{done}\n") })?)
    }
}

/// Upgrade the database schema
#[derive(Args, Debug)]
#[command(add = Effect::Changes("the schema only grows"))]
pub(crate) struct DbSyncArgs {
    /// Only the newest version is possible
    version: Option<String>,
}

impl DbSyncArgs {
    async fn run(self, config: &Config) -> Outcome {
        if let Some(version) = self.version {
            return Err(Failure::new(if version.bytes().all(|byte| byte.is_ascii_digit()) && !version.is_empty() {
                "You requested an sqlalchemy-migrate database version; this is no longer supported".to_owned()
            } else {
                format!("Can't locate revision identified by '{version}'")
            }));
        }
        store(config).await.map(drop)
    }
}

/// List the engines
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ServiceListArgs;

impl ServiceListArgs {
    async fn run(self, config: &Config) -> Outcome {
        let store = store(config).await?;
        let engines = failing(store.engines().await)?;
        Ok(print(&listed(&engines, failing(store.now().await)?))?)
    }
}

/// Remove the engines that are down
#[derive(Args, Debug)]
#[command(add = Effect::Changes("removes the entries of engines that have ended"))]
pub(crate) struct ServiceCleanArgs;

impl ServiceCleanArgs {
    async fn run(self, config: &Config) -> Outcome {
        failing(store(config).await?.remove_silent_engines().await)?;
        Ok(print("Dead engines are removed.\n")?)
    }
}

/// Print the data that the driver of a resource stores, decrypted
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ResourceDataListArgs {
    /// ID of the resource, as in its row of the database
    resource_id: String,
}

impl ResourceDataListArgs {
    async fn run(self, config: &Config) -> Outcome {
        let missing = || Failure::new("no resource data found");
        let id: ResourceId = self.resource_id.parse().map_err(|_| missing())?;
        let store = store(config).await?;
        let stack = failing(store.stack_of(id).await)?.ok_or_else(missing)?;
        let rows = failing(store.resources(stack).await)?;
        let row = rows.iter().find(|row| row.id == id).filter(|row| !row.data.is_empty()).ok_or_else(missing)?;
        for (key, value) in &row.data {
            let value = value.as_str().map_or_else(|| text::json(value), str::to_owned);
            print(&format!("{key:<16} {value:<64}\n"))?;
        }
        Ok(())
    }
}

/// End the operations of a stack: resources in progress become FAILED
#[derive(Args, Debug)]
#[command(add = Effect::Changes("always asks, as in Heat"))]
pub(crate) struct ResetStackStatusArgs {
    /// ID of the stack
    stack_id: String,
}

impl ResetStackStatusArgs {
    async fn run(self, config: &Config) -> Outcome {
        print(
            "Warning: this command is potentially destructive and only intended to recover from specific crashes.\n\
             It is advised to shutdown all Heat engines beforehand.\nContinue ? [y/N]\n",
        )?;
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::new(error.to_string()))?;
        if read == 0 && !std::io::stdin().is_terminal() {
            return Err(Failure::new("EOF when reading a line"));
        }
        if !answer.to_lowercase().starts_with('y') {
            return Ok(());
        }
        let missing = || Failure::new(format!("Stack with id {} not found", self.stack_id));
        let id: StackId = self.stack_id.parse().map_err(|_| missing())?;
        let store = store(config).await?;
        failing(store.stack(id).await)?.ok_or_else(missing)?;
        failing(store.reset(id, EngineId(Chance::from_os().uuid())).await)
    }
}

/// Has no effect: all stacks of Kiln use convergence
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct MigrateConvergenceArgs {
    /// ID of the stack
    stack_id: String,
}

impl MigrateConvergenceArgs {
    async fn run(self, config: &Config) -> Outcome {
        let id = self.stack_id;
        let missing = || Failure::new(format!("Stack with id {id} can not be found."));
        let stack = failing(store(config).await?.stack(id.parse().map_err(|_| missing())?).await)?;
        match stack.filter(|stack| stack.deleted.is_none()).ok_or_else(missing)?.parent {
            Some(_) => Err(Failure::new(format!("Migration of nested stack {id} is not supported."))),
            None => Ok(()),
        }
    }
}

/// Purge stacks that were deleted long ago
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct PurgeDeletedArgs {
    /// How long deleted stacks are kept
    #[arg(default_value = "90")]
    age: String,
    /// Unit of the age
    #[arg(short, long, value_enum, default_value = "days")]
    granularity: Granularity,
    /// Purge only stacks of this project
    #[arg(short, long = "project-id")]
    project_id: Option<String>,
    /// Number of stacks in one transaction
    #[arg(short, long = "batch_size", default_value = "20")]
    batch_size: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

impl PurgeDeletedArgs {
    async fn run(self, config: &Config) -> Outcome {
        self.confirm.if_demanded("Purge stacks that were deleted long ago [y/N]? ").await?;
        let age = number(&self.age, "age")?.saturating_mul(self.granularity.seconds());
        let batch = number(&self.batch_size, "batch_size")?;
        let store = store(config).await?;
        let before = failing(store.now().await)?
            .checked_sub(Duration::from_secs(age))
            .map_err(|error| Failure::new(error.to_string()))?;
        failing(store.purge_deleted(before, self.project_id.as_deref(), batch).await)?;
        Ok(())
    }
}

/// Encrypt or decrypt the stored data
#[derive(Args, Debug)]
#[command(add = Effect::Changes("stores the same in another form"))]
pub(crate) struct UpdateParamsArgs {
    /// What to do
    crypt_operation: CryptOperation,
    /// Former key, with which the data is encrypted [default: the key of the configuration]
    previous_encryption_key: Option<String>,
    /// Print the number of changed rows
    #[arg(long = "verbose-update-params")]
    verbose_update_params: bool,
}

impl UpdateParamsArgs {
    async fn run(self, config: &Config) -> Outcome {
        let mut options = database::options(config).await?;
        options.encrypt_values = self.crypt_operation == CryptOperation::Encrypt;
        options.older_keys.extend(self.previous_encryption_key.map(kiln_value::Secret::new));
        let rows = failing(database::open_with(options).await?.reencrypt().await)?;
        if self.verbose_update_params {
            eprintln!("{rows} rows updated");
        }
        Ok(())
    }
}

/// Has no effect: the data is already in the newest format
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct MigratePropertiesDataArgs;

impl MigratePropertiesDataArgs {
    #[expect(clippy::unused_self, reason = "as the other commands of the group")]
    fn run(self) -> Outcome {
        let told = "This command has been deprecated and is now a no-op. It will be removed in a future release.\n";
        Ok(print(told)?)
    }
}

/// The unit of an age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Granularity {
    /// 86,400 seconds.
    Days,
    /// 3,600 seconds.
    Hours,
    /// 60 seconds.
    Minutes,
    /// One second.
    Seconds,
}

impl Granularity {
    fn seconds(self) -> u64 {
        match self {
            Self::Days => 86_400,
            Self::Hours => 3_600,
            Self::Minutes => 60,
            Self::Seconds => 1,
        }
    }
}

/// What to do with stored data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CryptOperation {
    /// Encrypt it.
    Encrypt,
    /// Decrypt it.
    Decrypt,
}

fn number(text: &str, name: &str) -> Outcome<u64> {
    match text.trim().parse::<i64>() {
        Ok(number) => u64::try_from(number).map_err(|_| Failure::new(format!("{name} should be a positive integer"))),
        Err(_) => Err(Failure::new(format!("{name} should be an integer"))),
    }
}

/// The engines in the columns of Heat.
fn listed(engines: &[EngineInfo], now: jiff::Timestamp) -> String {
    let line = |cells: [&str; 7]| {
        let [hostname, binary, id, host, topic, status, updated] = cells;
        format!("{hostname:<16} {binary:<16} {id:<36} {host:<10} {topic:<10} {status:<10} {updated:<10}\n")
    };
    let heading = line(["Hostname", "Binary", "Engine_Id", "Host", "Topic", "Status", "Updated At"]);
    let rows = engines.iter().map(|engine| {
        let status = if engine.is_up(now) { "up" } else { "down" };
        let seen = engine.seen.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let id = engine.id.to_string();
        line([&engine.hostname, "heat-engine", &id, &engine.hostname, "engine", status, &seen])
    });
    std::iter::once(heading).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_listed_in_columns() {
        let seen: jiff::Timestamp = "2026-01-02T03:04:05.6Z".parse().unwrap();
        let id: EngineId = "b8f6d5a4-1111-4222-8333-444455556666".parse().unwrap();
        let engine = EngineInfo {
            id,
            hostname: "node".to_owned(),
            pid: 7,
            started: seen,
            seen,
            interval: 15,
            schema: kiln_store::SCHEMA,
        };
        // As printed by heat-manage of Heat 27 with such a row.
        let expected = "\
Hostname         Binary           Engine_Id                            Host       Topic      Status     Updated At
node             heat-engine      b8f6d5a4-1111-4222-8333-444455556666 node       engine     up         2026-01-02 03:04:05
";
        assert_eq!(listed(&[engine], seen), expected);
    }

    #[test]
    fn ages_are_checked_as_in_heat() {
        let told = |text| number(text, "age").map_err(|failure| format!("{failure:?}"));
        assert_eq!(told("30").unwrap(), 30);
        assert!(told("x").unwrap_err().contains("age should be an integer"));
        assert!(told("-1").unwrap_err().contains("age should be a positive integer"));
    }
}
