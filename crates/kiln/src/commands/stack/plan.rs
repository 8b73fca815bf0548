//! `kiln stack plan`, and what `--dry-run` shows: what a request would change.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kiln_client::{Error, PlannedCreate, Stack};
use kiln_console::output::{OutputArgs, print};
use kiln_console::plan::{Canvas, Plan};
use kiln_plan_document::{PlanDocument, Risk};
use kiln_server::whole_file;

use super::change::{Changed, preview_of_heat};
use super::{note, of_stack};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Something would change.
const CHANGES: u8 = 2;
/// Something would be lost.
const LOSES: u8 = 5;

/// Show what a create, an update or a delete would change
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack plan -t web.yaml web                    a create, or an update if the stack exists
  kiln stack plan --existing --parameter flavor=m1.large web
  kiln stack plan --delete web                       what a delete would delete and lose
  kiln stack plan --replace server web               replace a healthy resource
  kiln stack plan -t web.yaml -f markdown web        for a merge request")]
pub(crate) struct PlanArgs {
    /// Name or ID of the stack; a new name for the plan of a create
    #[arg(value_name = "STACK")]
    stack: String,
    /// Template: path or URL
    #[arg(short, long, value_name = "TEMPLATE", required_unless_present_any = ["existing", "delete", "replace"])]
    template: Option<String>,
    #[command(flatten)]
    changed: Changed,
    /// Plan the delete of the stack
    #[arg(long, conflicts_with_all = ["template", "existing", "replace", "converge"])]
    delete: bool,
    /// Plan the replacement of this resource, as after 'stack resource mark unhealthy'; may be repeated
    #[arg(long, value_name = "PATH")]
    replace: Vec<String>,
    /// Exit with 0 if nothing would change, 2 if something would, 5 if something would be lost, 1 after an error, and 4 if the service is not reachable
    #[arg(long)]
    detailed_exitcode: bool,
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Also write the plan to this file, as a page for browsers
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The format of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people.
    #[default]
    Text,
    /// The document (docs/plan.schema.json).
    Json,
    /// Markdown of at most 60 kB, the highest risk first.
    Markdown,
}

impl PlanArgs {
    /// Whether it is the plan of a create if there is no such stack.
    pub(super) fn may_be_of_a_create(&self) -> bool {
        self.template.is_some() && !self.changed.existing && self.replace.is_empty()
    }

    pub(crate) async fn run(mut self, connection: &Connection) -> Outcome {
        if self.template.is_none() && !self.delete {
            self.changed.existing = true;
        }
        let plan = if self.delete {
            connection.client.plan_delete(&self.stack).await.map_err(of_stack(&self.stack))?
        } else {
            match self.of_content(connection).await? {
                PlannedCreate::Plan(plan) => plan,
                PlannedCreate::Preview(_) if self.html.is_some() || self.format != Format::Text => {
                    return Err(Failure::new("The service has no plan of a create; only Kiln has")
                        .hint("leave out --html and -f to see the preview of the service"));
                }
                PlannedCreate::Preview(stack) => {
                    return show_preview(&stack, &OutputArgs::default(), self.detailed_exitcode);
                }
            }
        };
        if let Some(file) = &self.html {
            write(file, &Plan::of(&plan).page())?;
        }
        match self.format {
            Format::Text => show(&plan)?,
            Format::Json => {
                let json = serde_json::to_string_pretty(&plan).map_err(|error| Failure::new(error.to_string()))?;
                print(&(json + "\n"))?;
            }
            Format::Markdown => print(&Plan::of(&plan).markdown())?,
        }
        ended(&plan, self.detailed_exitcode)
    }

    /// The plan of an update, or of a create if there is no such stack.
    async fn of_content(&self, connection: &Connection) -> Outcome<PlannedCreate> {
        let (client, template) = (&connection.client, self.template.as_deref());
        let request = self.changed.request(connection, template).await?;
        let is_new = match client.stack_identity(&self.stack).await {
            Err(error) if error.is_not_found() && self.may_be_of_a_create() => true,
            Err(error) => return Err(of_stack(&self.stack)(error)),
            Ok(_) => false,
        };
        if is_new {
            let planned = client.plan_create(&self.stack, &request).await;
            return self.changed.judged(connection, &self.stack, &request, planned).await;
        }
        self.changed.check_parameters(client, &self.stack, &request).await?;
        match client.plan_update(&self.stack, &request, &self.replace).await {
            // The stack is there, so it is one of the paths that is not.
            Err(error @ Error::Refused(_)) if error.is_not_found() && !self.replace.is_empty() => Err(error.into()),
            planned => {
                let plan = self.changed.judged(connection, &self.stack, &request, planned).await?;
                Ok(PlannedCreate::Plan(plan))
            }
        }
    }
}

/// The end of a command that has shown a plan; with `detailed`, the exit code depends on the plan.
pub(super) fn ended(plan: &PlanDocument, detailed: bool) -> Outcome {
    match plan {
        _ if !detailed => Ok(()),
        plan if plan.is_refused() => Err(Failure::told(1)),
        plan if plan.is_empty() => Ok(()),
        plan if plan.risk() == Risk::DataLoss => Err(Failure::told(LOSES)),
        _ => Err(Failure::told(CHANGES)),
    }
}

/// Prints the preview of a create by a Heat, which has no plan.
pub(super) fn show_preview(stack: &Stack, output: &OutputArgs, detailed: bool) -> Outcome {
    output.one(preview_of_heat(stack), kiln_console::output::Format::Table)?;
    if detailed { Err(Failure::told(CHANGES)) } else { Ok(()) }
}

/// Prints a plan.
pub(super) fn show(plan: &PlanDocument) -> Outcome {
    Ok(print(&(Plan::of(plan).text(Canvas::of_stdout()) + &note::of_plan(plan)))?)
}

/// Shows a plan before a question.
pub(super) fn ask_about(plan: &PlanDocument) {
    eprint!("{}{}", Plan::of(plan).text(Canvas::of_stderr()), note::of_plan(plan));
}

/// Writes a page.
fn write(file: &Path, page: &str) -> Outcome {
    whole_file::replace(file, page.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
}
