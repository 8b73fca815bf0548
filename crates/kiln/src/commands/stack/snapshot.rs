//! `kiln stack snapshot …`.

use clap::Args;
use kiln_client::{Client, Error};
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_console::progress::Target;
use kiln_value::Value;

use super::show::entries;
use super::{StackArg, WaitArgs, ended, of_stack};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// `stack snapshot …`.
    SnapshotCommand {
        Create(CreateArgs),
        List(ListArgs),
        Show(ShowArgs),
        Delete(DeleteArgs),
        Restore(RestoreArgs),
    }
}

/// A snapshot of a stack.
#[derive(Args, Debug)]
struct SnapshotArg {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// ID of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
}

impl SnapshotArg {
    async fn find(&self, client: &Client) -> Outcome<Value> {
        client.snapshot(&self.stack, &self.snapshot).await.map_err(|error| self.missing(error))
    }

    fn missing(&self, error: Error) -> Failure {
        let Self { stack, snapshot } = self;
        if !error.is_not_found() {
            return error.into();
        }
        Failure::new(format!("Snapshot not found: {snapshot} of stack {stack}"))
            .hint(format!("run 'kiln stack snapshot list {stack}' to list the snapshots"))
    }
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

/// List the snapshots of a stack
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    of: StackArg,
}

/// Show a snapshot
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    of: SnapshotArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// Delete a snapshot
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    of: SnapshotArg,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// Update a stack to its state at a snapshot
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    of: SnapshotArg,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

impl CreateArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let target = Target::existing(client, &self.stack, true).await.map_err(of_stack(&self.stack))?;
        let mut made =
            client.create_snapshot(&self.stack, self.name.as_deref()).await.map_err(of_stack(&self.stack))?;
        if self.wait.waits(connection) {
            let end = self.wait.follow(connection, target, false).await?;
            ended(&self.stack, &end, "SNAPSHOT")?;
            let snapshot = made.str_at("id").unwrap_or_default().to_owned();
            made = SnapshotArg { stack: self.stack, snapshot }.find(client).await?;
        }
        let columns = ["id", "name", "status", "status_reason", "data", "creation_time"];
        let cell = |name: &&str| ((*name).to_owned(), Cell::from(made.get(name).cloned().unwrap_or_default()));
        Ok(self.output.one(columns.iter().map(cell).collect(), Format::Table)?)
    }
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = self.of;
        let snapshots = connection.client.snapshots(&stack).await.map_err(of_stack(&stack))?;
        Ok(output.list(List::of(&snapshots, COLUMNS), Format::Table)?)
    }
}

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("Name", "name"),
    ("Status", "status"),
    ("Status Reason", "status_reason"),
    ("Creation Time", "creation_time"),
];

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        Ok(self.output.one(entries(self.of.find(&connection.client).await?), Format::Yaml)?)
    }
}

impl DeleteArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let (client, SnapshotArg { stack, snapshot }) = (&connection.client, &self.of);
        if self.confirm.is_needed() {
            self.confirm.confirm("Are you sure you want to delete this snapshot of this stack [Y/N]? ").await?;
        }
        client.delete_snapshot(stack, snapshot).await.map_err(|error| self.of.missing(error))?;
        // Without a service, this process deletes it.
        while connection.is_local() {
            match client.snapshot(stack, snapshot).await {
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
}

impl RestoreArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let (client, SnapshotArg { stack, snapshot }) = (&connection.client, &self.of);
        let question = format!(
            "Everything that stack {stack} has created since this snapshot is deleted. Restore the snapshot [y/N]? "
        );
        self.confirm.if_demanded(&question).await?;
        let target = Target::existing(client, stack, true).await.map_err(of_stack(stack))?;
        client.restore_snapshot(stack, snapshot).await.map_err(|error| self.of.missing(error))?;
        if self.wait.waits(connection) {
            let end = self.wait.follow(connection, target, false).await?;
            ended(stack, &end, "RESTORE")?;
        }
        Ok(())
    }
}
