//! `kiln stack plan`, and what `--dry-run` shows: what a request would change.

mod apply;
mod saved;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kiln_client::{Error, PlannedCreate, RequestToPlan, SavedPlan, Stack};
use kiln_console::output::{OutputArgs, json_text, print};
use kiln_console::plan::{Canvas, Plan};
use kiln_plan_document::{Check, PlanDocument, Risk};
use kiln_server::whole_file;

pub(crate) use self::apply::ApplyArgs;
use self::saved::SaveArgs;
pub(crate) use self::saved::saved_as;
use super::change::{Changed, preview_of_heat};
use super::revision::revision_of;
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
  kiln stack plan --existing --refresh web           also what others have changed
  kiln stack plan -t web.yaml -f markdown web        for a merge request
  kiln stack plan -t web.yaml --out web.plan web     save it, for 'kiln stack apply web.plan'
  kiln stack plan --to 1 web                         return to revision 1")]
pub(crate) struct PlanArgs {
    /// Name or ID of the stack; a new name for the plan of a create
    #[arg(value_name = "STACK")]
    stack: String,
    /// Template: path or URL
    #[arg(short, long, value_name = "TEMPLATE", required_unless_present_any = ["existing", "delete", "replace", "to"])]
    template: Option<String>,
    #[command(flatten)]
    changed: Changed,
    /// Plan the delete of the stack
    #[arg(long, conflicts_with_all = ["template", "existing", "replace", "converge", "to"])]
    delete: bool,
    /// Plan the return to the revision with this number, as of 'stack rollback'
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["template", "replace"])]
    to: Option<String>,
    /// Plan the replacement of this resource, as after 'stack resource mark unhealthy'; may be repeated
    #[arg(long, value_name = "PATH")]
    replace: Vec<String>,
    /// Read the objects that would be changed or deleted, and show what others have changed in them; saved plans do so without this option
    #[arg(long, conflicts_with = "no_refresh")]
    refresh: bool,
    /// Exit with 0 if nothing would change, 2 if something would, 5 if something would be lost, 1 after an error, and 4 if the service is not reachable
    #[arg(long)]
    detailed_exitcode: bool,
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Also write the plan to this file, as a page for browsers
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    save: SaveArgs,
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
        if let Some(number) = &self.to {
            // A service without revisions would plan an update to the present template.
            revision_of(&connection.client, &self.stack, number).await?;
            self.changed.revision = Some(number.clone());
        }
        self.save.check()?;
        let (planned, saved) = match self.planned(connection).await? {
            Answer::Planned(planned) => (planned, None),
            Answer::Saved(saved) => {
                let missing = || Error::Answer("The saved plan has no document".to_owned());
                (PlannedCreate::Plan(Box::new(saved.document()?.ok_or_else(missing)?)), Some(saved))
            }
        };
        let plan = match planned {
            PlannedCreate::Plan(plan) => plan,
            PlannedCreate::Preview(_) if self.html.is_some() || self.format != Format::Text => {
                return Err(Failure::new("The service has no plan of a create; only Kiln has")
                    .hint("leave out --html and -f to see the preview of the service"));
            }
            PlannedCreate::Preview(stack) => {
                return show_preview(&stack, &OutputArgs::default(), self.detailed_exitcode);
            }
        };
        if let Some(file) = &self.html {
            write_page(file, &Plan::of(&plan).page())?;
        }
        match (self.format, &saved) {
            (Format::Text, _) => show(&plan)?,
            (Format::Json, Some(saved)) => print(&(json_text(saved.value()) + "\n"))?,
            (Format::Json, None) => {
                let json = serde_json::to_string_pretty(&plan).map_err(|error| Failure::new(error.to_string()))?;
                print(&(json + "\n"))?;
            }
            (Format::Markdown, _) => print(&Plan::of(&plan).markdown())?,
        }
        if let Some(saved) = saved {
            let told = self.save.saved(&saved)?;
            if self.format == Format::Text { print(&told)? } else { anstream::eprint!("{told}") }
        }
        ended(&plan, self.detailed_exitcode)
    }

    /// The plan of an update or a delete, or of a create if there is no such stack.
    async fn planned(&self, connection: &Connection) -> Outcome<Answer> {
        let (client, template) = (&connection.client, self.template.as_deref());
        if self.delete {
            let answer = if self.save.saves() {
                self.save.save(connection, RequestToPlan::Delete(&self.stack)).await.map(Answer::Saved)
            } else {
                client.plan_delete(&self.stack, self.refresh).await.map(Answer::of)
            };
            return answer.or_else(|error| Err(of_stack(&self.stack)(saved::refused(error)?)));
        }
        let request = self.changed.request(connection, template).await?;
        let is_new = match client.stack_identity(&self.stack).await {
            Err(error) if error.is_not_found() && self.may_be_of_a_create() => true,
            Err(error) => return Err(of_stack(&self.stack)(error)),
            Ok(_) => false,
        };
        if !is_new {
            self.changed.check_parameters(client, &self.stack, &request).await?;
        }
        let answer = match (self.save.saves(), is_new) {
            (true, true) => {
                self.save.save(connection, RequestToPlan::Create(&self.stack, &request)).await.map(Answer::Saved)
            }
            (true, false) => {
                let request = RequestToPlan::Update(&self.stack, &request, &self.replace);
                self.save.save(connection, request).await.map(Answer::Saved)
            }
            (false, true) => client.plan_create(&self.stack, &request).await.map(Answer::Planned),
            (false, false) => {
                let plan = client.plan_update(&self.stack, &request, &self.replace, self.refresh).await;
                plan.map(Answer::of)
            }
        };
        match answer {
            // The stack is there, so it is one of the paths that is not.
            Err(error @ Error::Refused(_)) if error.is_not_found() && !self.replace.is_empty() => Err(error.into()),
            Err(error) if self.save.saves() => {
                let error = saved::refused(error)?;
                self.changed.judged(connection, &self.stack, &request, Err(error)).await
            }
            answer => self.changed.judged(connection, &self.stack, &request, answer).await,
        }
    }
}

/// A plan, or a plan that is saved.
enum Answer {
    Planned(PlannedCreate),
    Saved(SavedPlan),
}

impl Answer {
    fn of(plan: PlanDocument) -> Self {
        Self::Planned(PlannedCreate::Plan(Box::new(plan)))
    }
}

/// Refuses to go on with a plan whose pre-flight has failed.
pub(super) fn refuse_failing(plan: &PlanDocument) -> Outcome {
    let failures: Vec<String> = plan.failures().map(Check::text).collect();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("The pre-flight failed, and nothing was changed: {}", failures.join("; ")))
        .hint("--yes goes on without a plan"))
}

/// The end of a command that has shown a plan; with `detailed`, the exit code depends on the plan.
pub(super) fn ended(plan: &PlanDocument, detailed: bool) -> Outcome {
    match plan {
        _ if !detailed => Ok(()),
        plan if plan.is_refused() || plan.failures().next().is_some() => Err(Failure::told(1)),
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
pub(crate) fn show(plan: &PlanDocument) -> Outcome {
    Ok(print(&(Plan::of(plan).text(Canvas::of_stdout()) + &note::of_plan(plan)))?)
}

/// Shows a plan before a question.
pub(super) fn ask_about(plan: &PlanDocument) {
    eprint!("{}{}", Plan::of(plan).text(Canvas::of_stderr()), note::of_plan(plan));
}

/// Writes a page.
pub(crate) fn write_page(file: &Path, page: &str) -> Outcome {
    whole_file::replace(file, page.as_bytes()).map_err(|error| Failure::unwritable(file, &error))
}
