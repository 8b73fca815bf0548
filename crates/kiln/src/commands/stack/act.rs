//! `kiln stack delete`, `cancel`, `check`, `suspend`, `resume` and `wait`.

use clap::Args;
use kiln_client::{Bundle, Changes, Client, Error, Stack, StackAction, StackRequest};
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_console::progress::Target;
use kiln_value::{Map, value};

use super::{HowArgs, WaitArgs, ended, of_stack};
use crate::commands::confirm::ConfirmArgs;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use kiln_console::plan::{Canvas, Plan};

/// `stack delete`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln stack delete --wait web
  kiln stack delete --yes web db cache")]
pub(crate) struct DeleteArgs {
    /// Names or IDs of the stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

impl DeleteArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        if self.confirm.is_needed() {
            for stack in &self.stacks {
                eprint!("{}", deleted(&connection.client, stack).await);
            }
            self.confirm.confirm("Are you sure you want to delete this stack(s) [y/N]? ").await?;
        }
        let mut failures: Vec<Failure> = Vec::new();
        let mut watched = Vec::new();
        for stack in &self.stacks {
            match self.ask(connection, stack).await {
                Ok(target) => watched.extend(target.map(|target| (stack, target))),
                Err(error) => failures.push(refused(stack, error)),
            }
        }
        for (stack, target) in watched {
            let end = self.wait.follow(connection, target, false).await?;
            failures.extend(ended(stack, &end, "DELETE").err());
        }
        match failures.as_slice() {
            [] => Ok(()),
            _ if self.stacks.len() == 1 => Err(failures.remove(0)),
            _ => {
                for failure in &failures {
                    failure.report();
                }
                let (count, total) = (failures.len(), self.stacks.len());
                Err(Failure::new(format!("Unable to delete {count} of the {total} stacks.")))
            }
        }
    }

    async fn ask(&self, connection: &Connection, stack: &str) -> Result<Option<Target>, Error> {
        let client = &connection.client;
        if !self.wait.waits(connection) {
            return client.delete_stack(stack).await.map(|()| None);
        }
        let target = Target::existing(client, stack, false).await?;
        client.delete_stack(target.identity()).await?;
        Ok(Some(target))
    }
}

/// What the delete of a stack deletes: the plan of an update to a template without resources.
async fn deleted(client: &Client, stack: &str) -> String {
    let template = value!({ "heat_template_version": "2018-08-31" });
    let bundle = Bundle { template: Some(template), ..Bundle::default() };
    let request = StackRequest { bundle, ..StackRequest::default() };
    match client.preview_update(stack, &request, true).await {
        Ok(changes) => Plan::of(&Changes { outputs: Map::new(), ..changes }).drawn(stack, Canvas::of_stderr()),
        // The delete reports an error of its own.
        Err(_) => format!("{stack}: its resources cannot be listed\n"),
    }
}

fn refused(stack: &str, error: Error) -> Failure {
    match error.status() {
        Some(404) => of_stack(stack)(error),
        Some(403) => Failure::new(format!("Forbidden: {stack}")),
        _ => error.into(),
    }
}

/// `stack check`, `suspend`, `resume`.
#[derive(Args, Debug)]
pub(crate) struct ActArgs {
    /// Names or IDs of the stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ActArgs {
    pub(super) async fn run(self, connection: &Connection, action: StackAction) -> Outcome {
        let wanted = match action {
            StackAction::Suspend => "SUSPEND",
            StackAction::Resume => "RESUME",
            StackAction::Check => "CHECK",
            StackAction::CancelUpdate | StackAction::CancelWithoutRollback => "",
        };
        let mut rows = Vec::new();
        for stack in &self.stacks {
            rows.push(act(connection, stack, action, &self.wait, wanted).await?);
        }
        Ok(self.output.list(table(&rows), Format::Table)?)
    }
}

/// `stack wait`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln stack wait web
  kiln --local stack wait web        continue an interrupted --local operation

The exit code is 3 if the operation on the stack failed. A deleted stack is not a failure.")]
pub(crate) struct WaitForArgs {
    /// Names or IDs of the stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl WaitForArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let mut rows = Vec::new();
        for stack in &self.stacks {
            let client = &connection.client;
            let target = Target::running(client, stack).await.map_err(of_stack(stack))?;
            let identity = target.identity().to_owned();
            let end = self.how.follow(connection, target, false).await?;
            ended(stack, &end, "")?;
            match client.stack(&identity, false).await {
                Ok(stack) => rows.push(stack),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.output.list(table(&rows), Format::Table)?)
    }
}

/// `stack cancel`.
#[derive(Args, Debug)]
#[command(after_help = "\
A canceled update is rolled back. With --no-rollback, a create or update stops and its changes are
kept; operations that are already running on resources are still completed.")]
pub(crate) struct CancelArgs {
    /// Names or IDs of the stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,
    /// Keep the changes; do not roll back
    #[arg(long)]
    no_rollback: bool,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl CancelArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let (action, allowed): (_, &[&str]) = if self.no_rollback {
            (StackAction::CancelWithoutRollback, &["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"])
        } else {
            (StackAction::CancelUpdate, &["UPDATE_IN_PROGRESS"])
        };
        let question = format!("Cancel the running operation of {} [y/N]? ", self.stacks.join(", "));
        self.confirm.if_demanded(&question).await?;
        let mut rows = Vec::new();
        for stack in &self.stacks {
            let now = connection.client.stack(stack, false).await.map_err(of_stack(stack))?;
            if !allowed.contains(&now.status()) {
                let status = now.status().to_lowercase();
                let failure = Failure::new(format!("Stack {stack} with status '{status}' not in cancelable state"));
                return Err(match now.status() {
                    "CREATE_IN_PROGRESS" => failure.hint("use --no-rollback to cancel a create"),
                    _ => failure,
                });
            }
            rows.push(act(connection, stack, action, &self.wait, "").await?);
        }
        Ok(self.output.list(table(&rows), Format::Table)?)
    }
}

/// Requests an action, waits if requested, and returns the stack. `wanted` is the action that must complete; empty
/// means
/// any action.
async fn act(
    connection: &Connection,
    stack: &str,
    action: StackAction,
    wait: &WaitArgs,
    wanted: &str,
) -> Outcome<Stack> {
    let client = &connection.client;
    let watched = if wait.waits(connection) {
        Some(Target::existing(client, stack, false).await.map_err(of_stack(stack))?)
    } else {
        None
    };
    client.stack_action(stack, action).await.map_err(of_stack(stack))?;
    if let Some(target) = watched {
        let end = wait.follow(connection, target, action == StackAction::CancelUpdate).await?;
        // An operation that is canceled without a rollback ends in FAILED, as requested.
        if action != StackAction::CancelWithoutRollback {
            ended(stack, &end, wanted)?;
        }
    }
    client.stack(stack, false).await.map_err(of_stack(stack))
}

fn table(stacks: &[Stack]) -> List {
    let columns = [
        ("ID", "id"),
        ("Stack Name", "stack_name"),
        ("Stack Status", "stack_status"),
        ("Creation Time", "creation_time"),
        ("Updated Time", "updated_time"),
    ];
    let row = |stack: &Stack| columns.iter().map(|(_, key)| Cell::from(stack.value().get(key).cloned())).collect();
    List {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: stacks.iter().map(row).collect(),
    }
}
