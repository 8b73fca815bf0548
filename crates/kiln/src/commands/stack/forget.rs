//! `kiln stack resource forget`.

use std::time::Duration;

use clap::Args;
use kiln_client::OrphanFilter;
use tokio::time::Instant;

use super::of_stack;
use super::resource::{located, not_found};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// How long the command waits for the engine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Interval of its polls.
const POLL: Duration = Duration::from_millis(200);

/// Forget a resource that cannot be deleted, and leave its object in the cloud
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
The object stays in the cloud and is added to the list of orphans ('kiln orphan list'). Delete the stack \
again afterwards.

Examples:
  kiln stack resource forget web server
  kiln stack resource forget web group/0/server --reason 'host lost'")]
pub(crate) struct ForgetArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Name of the resource whose delete failed; in nested stacks, the names on the way to it, joined with slashes
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// Why, for the list of orphans
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

impl ForgetArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let root = client.stack(&self.stack, false).await.map_err(of_stack(&self.stack))?;
        let (stack, name) = located(client, root.id(), &self.resource).await?;
        let question = format!("The object of {} is left in the cloud. Forget the resource [y/N]? ", self.resource);
        self.confirm.if_demanded(&question).await?;
        if let Err(error) = client.forget(&stack, &name, &self.reason).await {
            return Err(not_found(client, root.name(), &self.resource, error).await);
        }
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match client.resource(&stack, &name, &[]).await {
                Err(error) if error.is_not_found() => {
                    let filter = OrphanFilter { stack: Some(root.id().to_owned()), ..OrphanFilter::default() };
                    let orphans = client.orphans(&filter).await?;
                    let own = orphans.iter().find(|orphan| {
                        let path = orphan.str_at("resource_path").unwrap_or_default();
                        path == self.resource
                    });
                    let object = own.and_then(|orphan| orphan.str_at("physical_resource_id")).unwrap_or("(none)");
                    return Ok(kiln_console::output::print(&match own {
                        Some(_) => format!("Forgot {}; its object {object} is left in the cloud\n", self.resource),
                        None => format!("{} was deleted meanwhile\n", self.resource),
                    })?);
                }
                Err(error) => return Err(error.into()),
                Ok(_) => tokio::time::sleep(POLL).await,
            }
        }
        Err(Failure::new(format!("{} is not forgotten yet: its running delete has not ended", self.resource))
            .hint("run 'kiln orphan list' later"))
    }
}
