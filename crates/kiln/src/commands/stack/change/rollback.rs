//! `kiln stack rollback`.

use clap::Args;
use kiln_console::output::OutputArgs;

use super::{Changed, DryRunArgs, Rollback, UpdateArgs};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::commands::open_page::OpenArgs;
use crate::commands::stack::WaitArgs;
use crate::commands::stack::revision::revision_of;
use crate::connect::Connection;
use crate::failure::Outcome;

/// Update a stack to one of its revisions
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
Examples:
  kiln stack rollback web --to 1 --dry-run    show what would change
  kiln stack rollback web --to 1 --wait")]
pub(crate) struct RollbackArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    pub(crate) stack: String,
    /// Number of the revision with the template, environment and parameters to return to
    #[arg(long, value_name = "REVISION")]
    to: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl RollbackArgs {
    /// An update to the revision.
    pub(crate) async fn run(self, connection: &Connection) -> Outcome {
        // A service without revisions would update the stack to its present template.
        revision_of(&connection.client, &self.stack, &self.to).await?;
        let update = UpdateArgs {
            preflight: false,
            stack: self.stack,
            template: None,
            changed: Changed { existing: true, revision: Some(self.to), ..Changed::default() },
            rollback: Rollback::Keep,
            pre_update: Vec::new(),
            confirm: self.confirm,
            dry_run: self.dry_run,
            show_nested: false,
            wait: self.wait,
            page: OpenArgs::default(),
            output: self.output,
        };
        update.run(connection).await
    }
}
