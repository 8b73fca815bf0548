//! `kiln stack apply`: executes a saved plan.

use std::path::Path;

use clap::Args;
use kiln_client::{Error, SavedPlan};
use kiln_console::output::OutputArgs;
use kiln_console::progress::Target;
use kiln_resource::PlanId;

use super::ask_about;
use super::saved::PlanFile;
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::commands::plan::of_plan;
use crate::commands::stack::{WaitArgs, ended, show};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Execute a saved plan as it was shown, or refuse it if the stack has changed since
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
#[command(after_help = "\
Examples:
  kiln stack plan -t web.yaml --out change.plan web
  kiln stack apply --wait change.plan

A plan is executed once. If the stack has changed since, nothing is changed: make a new plan.")]
pub(crate) struct ApplyArgs {
    /// ID of a saved plan, or the file that 'kiln stack plan --out' wrote
    #[arg(value_name = "PLAN")]
    plan: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ApplyArgs {
    pub(crate) async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let plan = self.stored(connection).await?;
        // The service says why it refuses a plan that is not ready.
        if plan.status() == "READY" {
            if let Some(document) = plan.document()? {
                ask_about(&document);
            }
            if self.confirm.is_needed() {
                self.confirm.confirm("Execute this plan [y/N]? ").await?;
            }
        }
        let (name, action, waits) = (plan.stack_name(), plan.action(), self.wait.waits(connection));
        let is_new = matches!(action, "CREATE" | "ADOPT");
        let identity = format!("{name}/{}", plan.stack_id());
        let watched = match (waits, is_new) {
            (false, _) => None,
            (true, true) => Some(Target::created(name, plan.stack_id())),
            (true, false) => match Target::existing(client, &identity, action == "UPDATE").await {
                Ok(target) => Some(target),
                // The service says why it refuses the plan of a stack that is gone.
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error.into()),
            },
        };
        let executed = client.execute_plan(plan.id(), plan.digest()).await.map_err(|error| refused(&plan, error))?;
        if let Some(target) = watched {
            let end = self.wait.follow(connection, target, action != "DELETE").await?;
            ended(name, &end, action)?;
            if action == "DELETE" {
                return Ok(());
            }
        }
        let answer = show::short(connection, &format!("{name}/{}", executed.stack), &self.output, waits).await;
        // A stack may be deleted before it is read.
        if action == "DELETE" { Ok(()) } else { answer }
    }

    /// The plan that the service has; a file names it, with its digest.
    async fn stored(&self, connection: &Connection) -> Outcome<SavedPlan> {
        let file = Path::new(&self.plan);
        let (id, digest) = if self.plan.parse::<PlanId>().is_ok() && !file.exists() {
            (self.plan.clone(), None)
        } else {
            let read = PlanFile::read(file)?;
            (read.id, Some(read.digest))
        };
        let plan = connection.client.saved_plan(&id).await.map_err(of_plan(&id))?;
        if digest.is_some_and(|digest| digest != plan.digest()) {
            let message = format!("{}: the plan {id} of the service is another one; nothing was changed", self.plan);
            return Err(Failure::new(message).hint(format!("run 'kiln plan show {id}' to see it")));
        }
        Ok(plan)
    }
}

/// Why a service does not execute a plan, and what helps.
fn refused(plan: &SavedPlan, error: Error) -> Failure {
    let id = plan.id();
    if error.status() != Some(409) {
        return of_plan(id)(error);
    }
    let failure = Failure::from(error);
    if plan.lacks_approvals() {
        return failure.hint(format!("others approve it with 'kiln plan approve {id}'"));
    }
    match plan.status() {
        "EXECUTED" | "REJECTED" => failure,
        _ => failure.hint(format!("run 'kiln plan renew {id}' to make it again for the present state of the stack")),
    }
}
