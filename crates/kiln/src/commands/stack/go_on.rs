//! `kiln stack continue`.

use clap::Args;
use kiln_console::output::{Format, OutputArgs};
use kiln_console::progress::Target;

use super::{WaitArgs, act, ended, of_stack};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::Outcome;

/// Continue a failed create, update, rollback or delete where it stood
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
What is done stays done; what has failed is tried again, and then the rest follows. A skipped resource stays as it is; if its \
delete has failed, it is forgotten, and its object is added to the list of orphans.

Examples:
  kiln stack continue --wait web
  kiln stack continue --wait --skip server --skip group/0 web")]
pub(crate) struct ContinueArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    pub(super) stack: String,
    /// Do nothing with the resource with this path, which has failed or not begun; may be repeated
    #[arg(long, value_name = "PATH")]
    skip: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ContinueArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        self.confirm.if_demanded("Are you sure you want to continue the failed operation [y/N]? ").await?;
        let (client, stack) = (&connection.client, &self.stack);
        let target = Target::existing(client, stack, true).await.map_err(of_stack(stack))?;
        let identity = target.identity().to_owned();
        client.continue_stack(&identity, &self.skip).await?;
        if self.wait.waits(connection) {
            let end = self.wait.follow(connection, target, false).await?;
            ended(stack, &end, "")?;
        }
        match client.stack(&identity, false).await {
            Ok(stack) => Ok(self.output.list(act::table(&[stack]), Format::Table)?),
            // A delete has ended.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
