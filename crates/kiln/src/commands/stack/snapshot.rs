//! `kiln stack snapshot …`.

use clap::{Args, Subcommand};
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_console::progress::Target;
use kiln_value::Value;

use super::show::entries;
use super::{StackArg, WaitArgs, ended, of_stack};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// `stack snapshot …`.
#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    Create(CreateArgs),
    /// List the snapshots of a stack
    #[command(add = Effect::Reads)]
    List(StackArg),
    Show(SnapshotArg),
    Delete(DeleteArgs),
    Restore(RestoreArgs),
}

/// Create a snapshot of a stack
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
pub(crate) struct CreateArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Name of the snapshot
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show a snapshot
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct SnapshotArg {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// ID of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Delete a snapshot
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct DeleteArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// ID of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// Update a stack to its state at a snapshot
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct RestoreArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// ID of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

impl SnapshotCommand {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        match self {
            Self::Create(args) => args.run(connection).await,
            Self::List(StackArg { stack, output }) => {
                let snapshots = client.snapshots(&stack).await.map_err(of_stack(&stack))?;
                Ok(output.list(table(&snapshots), Format::Table)?)
            }
            Self::Show(SnapshotArg { stack, snapshot, output }) => {
                let found = client.snapshot(&stack, &snapshot).await.map_err(missing(&stack, &snapshot))?;
                Ok(output.one(entries(found), Format::Yaml)?)
            }
            Self::Delete(DeleteArgs { stack, snapshot, confirm }) => {
                if confirm.is_needed() {
                    confirm.confirm("Are you sure you want to delete this snapshot of this stack [Y/N]? ").await?;
                }
                client.delete_snapshot(&stack, &snapshot).await.map_err(missing(&stack, &snapshot))?;
                // Without a service, this process deletes it.
                while connection.is_local() {
                    match client.snapshot(&stack, &snapshot).await {
                        Ok(found) if found.str_at("status") == Some("FAILED") => {
                            let reason = found.str_at("status_reason").unwrap_or_default();
                            return Err(Failure::of_stack(format!("Snapshot {snapshot} DELETE_FAILED: {reason}")));
                        }
                        Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                        Err(_) => break,
                    }
                }
                Ok(())
            }
            Self::Restore(args) => args.run(connection).await,
        }
    }
}

impl CreateArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let target = Target::existing(client, &self.stack, true).await.map_err(of_stack(&self.stack))?;
        let made = client.create_snapshot(&self.stack, self.name.as_deref()).await.map_err(of_stack(&self.stack))?;
        let id = made.str_at("id").unwrap_or_default().to_owned();
        let made = if self.wait.waits(connection) {
            let end = self.wait.follow(connection, target, false).await?;
            ended(&self.stack, &end, "SNAPSHOT")?;
            client.snapshot(&self.stack, &id).await.map_err(missing(&self.stack, &id))?
        } else {
            made
        };
        let columns = ["id", "name", "status", "status_reason", "data", "creation_time"];
        let cell = |name: &&str| ((*name).to_owned(), Cell::from(made.get(name).cloned().unwrap_or_default()));
        Ok(self.output.one(columns.iter().map(cell).collect(), Format::Table)?)
    }
}

impl RestoreArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let question = format!(
            "Everything that stack {} has created since this snapshot is deleted. Restore the snapshot [y/N]? ",
            self.stack
        );
        self.confirm.if_demanded(&question).await?;
        let target = Target::existing(client, &self.stack, true).await.map_err(of_stack(&self.stack))?;
        client.restore_snapshot(&self.stack, &self.snapshot).await.map_err(missing(&self.stack, &self.snapshot))?;
        if self.wait.waits(connection) {
            let end = self.wait.follow(connection, target, false).await?;
            ended(&self.stack, &end, "RESTORE")?;
        }
        Ok(())
    }
}

fn missing<'a>(stack: &'a str, snapshot: &'a str) -> impl Fn(kiln_client::Error) -> Failure + 'a {
    move |error| {
        if !error.is_not_found() {
            return error.into();
        }
        Failure::new(format!("Snapshot not found: {snapshot} of stack {stack}"))
            .hint(format!("run 'kiln stack snapshot list {stack}' to list the snapshots"))
    }
}

fn table(snapshots: &[Value]) -> List {
    let columns = [
        ("ID", "id"),
        ("Name", "name"),
        ("Status", "status"),
        ("Status Reason", "status_reason"),
        ("Creation Time", "creation_time"),
    ];
    let row = |snapshot: &Value| columns.iter().map(|(_, key)| Cell::from(snapshot.get(key).cloned())).collect();
    List {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: snapshots.iter().map(row).collect(),
    }
}
