//! `kiln stack delete`, `cancel`, `check`, `suspend`, `resume` and `wait`.

use clap::Args;
use kiln_client::{Error, Stack, StackAction};
use kiln_console::output::{Format, List, OutputArgs};
use kiln_console::progress::Target;

use super::select::{SelectArgs, all_done};
use super::{HowArgs, WaitArgs, ended, of_stack, plan};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Delete stacks and their resources
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
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
        // What is deleted is what was shown.
        let mut versions: Vec<Option<String>> = vec![None; self.stacks.len()];
        if self.confirm.is_needed() {
            for (stack, version) in self.stacks.iter().zip(&mut versions) {
                match connection.client.plan_delete(stack, false).await {
                    Ok(plan) => {
                        plan::ask_about(&plan);
                        *version = plan.version;
                    }
                    // The delete reports an error of its own.
                    Err(_) => eprintln!("{stack}: its resources cannot be listed"),
                }
            }
            let stacks = if self.stacks.len() == 1 { "this stack" } else { "these stacks" };
            self.confirm.confirm(&format!("Are you sure you want to delete {stacks} [y/N]? ")).await?;
        }
        let mut failures: Vec<Failure> = Vec::new();
        let mut watched = Vec::new();
        for (stack, version) in self.stacks.iter().zip(versions) {
            match self.ask(connection, stack, version.as_deref()).await {
                Ok(target) => watched.extend(target.map(|target| (stack, target))),
                Err(error) => failures.push(refused(stack, error)),
            }
        }
        for (stack, target) in watched {
            let end = self.wait.follow(connection, target, false).await?;
            failures.extend(ended(stack, &end, "DELETE").err());
        }
        all_done(failures, self.stacks.len(), "delete")
    }

    async fn ask(&self, connection: &Connection, stack: &str, version: Option<&str>) -> Result<Option<Target>, Error> {
        let client = &connection.client;
        if !self.wait.waits(connection) {
            return client.delete_planned(stack, version).await.map(|()| None);
        }
        let target = Target::existing(client, stack, false).await?;
        client.delete_planned(target.identity(), version).await?;
        Ok(Some(target))
    }
}

fn refused(stack: &str, error: Error) -> Failure {
    match error.status() {
        Some(404) => of_stack(stack)(error),
        Some(403) => Failure::new(format!("Forbidden: {stack}")),
        Some(409) => Failure::from(error).hint("run the command again to see the current plan"),
        _ => error.into(),
    }
}

/// Check that the resources of stacks still exist and are healthy
#[derive(Args, Debug)]
#[command(add = Effect::Changes("reads the objects"))]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(super) act: ActArgs,
}

impl CheckArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        self.act.run(connection, StackAction::Check, "CHECK").await
    }
}

/// Suspend the resources of stacks
#[derive(Args, Debug)]
#[command(add = Effect::Changes("keeps everything; resume is the way back"))]
pub(crate) struct SuspendArgs {
    #[command(flatten)]
    pub(super) act: ActArgs,
}

impl SuspendArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        self.act.run(connection, StackAction::Suspend, "SUSPEND").await
    }
}

/// Resume the suspended resources of stacks
#[derive(Args, Debug)]
#[command(add = Effect::Changes("the way back of suspend"))]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(super) act: ActArgs,
}

impl ResumeArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        self.act.run(connection, StackAction::Resume, "RESUME").await
    }
}

/// The stacks on which an action is requested.
#[derive(Args, Debug)]
pub(super) struct ActArgs {
    /// Names or IDs of the stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ActArgs {
    async fn run(self, connection: &Connection, action: StackAction, wanted: &str) -> Outcome {
        let mut rows = Vec::new();
        for stack in &self.stacks {
            rows.push(act(connection, stack, action, &self.wait, wanted).await?);
        }
        Ok(self.output.list(table(&rows), Format::Table)?)
    }
}

/// Wait until the running operation of stacks is done
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
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

/// Cancel the running create or update of stacks
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
A canceled update is rolled back. With --no-rollback, a create or update stops and its changes are \
kept; operations that are already running on resources are still completed.

Examples:
  kiln stack cancel web
  kiln stack cancel --all --all-projects --yes")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(super) select: SelectArgs,
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
            (StackAction::CancelWithoutRollback, &["CREATE", "UPDATE"])
        } else {
            (StackAction::CancelUpdate, &["UPDATE"])
        };
        let what = "Cancel the running operation of";
        let stacks = self.select.confirmed(connection, ("IN_PROGRESS", allowed), self.confirm, what).await?;
        let mut rows = Vec::new();
        for stack in &stacks {
            let now = connection.client.stack(stack, false).await.map_err(of_stack(stack))?;
            if now.status().strip_suffix("_IN_PROGRESS").is_none_or(|action| !allowed.contains(&action)) {
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

pub(super) fn table(stacks: &[Stack]) -> List {
    let columns = [
        ("ID", "id"),
        ("Stack Name", "stack_name"),
        ("Stack Status", "stack_status"),
        ("Creation Time", "creation_time"),
        ("Updated Time", "updated_time"),
    ];
    List::of(stacks.iter().map(Stack::value), &columns)
}
