//! `kiln stack continue`.

use clap::Args;
use kiln_client::Stack;
use kiln_console::output::{Format, OutputArgs};
use kiln_console::progress::Target;

use super::select::{SelectArgs, all_done};
use super::{WaitArgs, act, ended, of_stack};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::Outcome;

/// Continue failed creates, updates, rollbacks or deletes of stacks where they stood
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
What is done stays done; what has failed is tried again, and then the rest follows. A skipped resource stays as it is; if its \
delete has failed, it is forgotten, and its object is added to the list of orphans.

Examples:
  kiln stack continue --wait web
  kiln stack continue --wait --skip server --skip group/0 web
  kiln stack continue --all --all-projects --property action=CREATE --yes")]
pub(crate) struct ContinueArgs {
    #[command(flatten)]
    pub(super) select: SelectArgs,
    /// Do nothing with the resource with this path, which has failed or not begun; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "all")]
    skip: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The actions that can be continued when they have failed.
const ACTIONS: [&str; 4] = ["CREATE", "UPDATE", "ROLLBACK", "DELETE"];

impl ContinueArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let Self { select, skip, confirm, wait, output } = self;
        let what = "Continue the failed operation of";
        let stacks = select.confirmed(connection, ("FAILED", &ACTIONS), confirm, what).await?;
        let (mut rows, mut failures) = (Vec::new(), Vec::new());
        for stack in &stacks {
            match one(connection, stack, &skip, &wait).await {
                Ok(shown) => rows.extend(shown),
                Err(failure) => failures.push(failure),
            }
        }
        if !rows.is_empty() {
            output.list(act::table(&rows), Format::Table)?;
        }
        all_done(failures, stacks.len(), "continue")
    }
}

/// Continues a stack, and shows it; `None`: it is deleted.
async fn one(connection: &Connection, stack: &str, skip: &[String], wait: &WaitArgs) -> Outcome<Option<Stack>> {
    let client = &connection.client;
    let target = Target::existing(client, stack, true).await.map_err(of_stack(stack))?;
    let identity = target.identity().to_owned();
    client.continue_stack(&identity, skip).await?;
    if wait.waits(connection) {
        let end = wait.follow(connection, target, false).await?;
        ended(stack, &end, "")?;
    }
    match client.stack(&identity, false).await {
        Ok(stack) => Ok(Some(stack)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
