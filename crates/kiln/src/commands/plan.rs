//! `kiln plan …`: saved plans.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kiln_client::{Error, PlanFilter, SavedPlan};
use kiln_console::output::{Format, List, OutputArgs, print};
use kiln_console::plan::Plan;
use kiln_plan_document::PlanDocument;
use kiln_value::Class;

use super::confirm::ConfirmArgs;
use super::stack::{entries, saved_as, show_plan, write_page};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for saved plans.
    PlanCommand {
        List(ListArgs),
        Show(ShowArgs),
        Approve(ApproveArgs),
        Renew(RenewArgs),
        Reject(RejectArgs),
        Delete(DeleteArgs),
    }
}

/// List the saved plans of the project and its change sets, newest first
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln plan list
  kiln plan list --stack web -f json")]
pub(crate) struct ListArgs {
    /// Only plans for the stack with this name or ID
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    /// Maximum number
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only plans before the one with this ID
    #[arg(long, value_name = "PLAN")]
    marker: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show a saved plan
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    plan: PlanArg,
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value_t)]
    format: ShownAs,
    /// Column to print, in a table, JSON, YAML or as values; may be repeated
    #[arg(short = 'c', long = "column", value_name = "COLUMN")]
    columns: Vec<String>,
    /// Also write the plan to this file, as a page for browsers
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Approve a saved plan that another user has made
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no stack"))]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    plan: PlanArg,
}

/// Make a saved plan again, for the present state of its stack
///
/// The new plan keeps the approvals if it does nothing more than the approved one. The former plan cannot be applied any
/// more.
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no stack"))]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    plan: PlanArg,
}

/// Reject a saved plan: nobody can apply it any more
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no stack"))]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    plan: PlanArg,
}

/// Delete saved plans
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct DeleteArgs {
    /// IDs of the plans
    #[arg(value_name = "PLAN", required = true)]
    plans: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// A saved plan.
#[derive(Args, Debug)]
struct PlanArg {
    /// ID of the plan
    #[arg(value_name = "PLAN")]
    id: String,
}

/// The format of a saved plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ShownAs {
    /// Its data, and the plan as text for people.
    #[default]
    Text,
    /// Markdown of at most 60 kB, the highest risk first.
    Markdown,
    /// Its data in a table.
    Table,
    /// JSON with the document (docs/plan.schema.json).
    Json,
    /// YAML with the document.
    Yaml,
    /// The values of its data.
    Value,
}

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("Stack Name", "stack_name"),
    ("Action", "action"),
    ("Status", "status"),
    ("User", "user_name"),
    ("Description", "description"),
    ("Created At", "created_at"),
    ("Expires At", "expires_at"),
];

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let filter = PlanFilter { stack: self.stack, marker: self.marker, limit: self.limit };
        let marker = filter.marker.clone().unwrap_or_default();
        let plans = connection.client.saved_plans(&filter).await.map_err(of_plan(&marker))?;
        Ok(self.output.list(List::of(&plans, COLUMNS).with_empty_cells(), Format::Table)?)
    }
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let id = &self.plan.id;
        let plan = connection.client.saved_plan(id).await.map_err(of_plan(id))?;
        if let Some(file) = &self.html {
            write_page(file, &Plan::of(&document(&plan)?).page())?;
        }
        let as_data = |format, with_document: bool| {
            let mut data = plan.value().clone();
            if let Some(data) = data.as_map_mut().filter(|_| !with_document) {
                data.shift_remove("document");
            }
            let output = OutputArgs { format: Some(format), columns: self.columns.clone(), ..OutputArgs::default() };
            output.one(entries(data), format)
        };
        match self.format {
            ShownAs::Text => {
                as_data(Format::Table, false)?;
                plan.document()?.as_ref().map_or(Ok(()), show_plan)
            }
            ShownAs::Markdown => Ok(print(&Plan::of(&document(&plan)?).markdown())?),
            ShownAs::Table => Ok(as_data(Format::Table, false)?),
            ShownAs::Json => Ok(as_data(Format::Json, true)?),
            ShownAs::Yaml => Ok(as_data(Format::Yaml, true)?),
            ShownAs::Value => Ok(as_data(Format::Value, false)?),
        }
    }
}

impl ApproveArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let id = &self.plan.id;
        connection.client.approve_plan(id).await.map_err(of_plan(id))
    }
}

impl RenewArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let id = &self.plan.id;
        let renewed = connection.client.renew_plan(id).await.map_err(of_plan(id))?;
        renewed.document()?.as_ref().map_or(Ok(()), show_plan)?;
        Ok(print(&saved_as(&renewed, renewed.id()))?)
    }
}

impl RejectArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let id = &self.plan.id;
        connection.client.reject_plan(id).await.map_err(of_plan(id))
    }
}

impl DeleteArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        self.confirm.if_demanded("Are you sure you want to delete these plans [y/N]? ").await?;
        for id in &self.plans {
            connection.client.delete_plan(id).await.map_err(of_plan(id))?;
        }
        Ok(())
    }
}

/// The document of a plan.
fn document(plan: &SavedPlan) -> Outcome<PlanDocument> {
    let missing = || Failure::new(format!("The change set {} of an older release has no document", plan.id()));
    plan.document()?.ok_or_else(missing)
}

/// The error of a call for the plan with an ID.
pub(crate) fn of_plan(id: &str) -> impl Fn(Error) -> Failure + '_ {
    move |error| match error.class() {
        Some(Class::NotFound) => {
            Failure::new(format!("Plan not found: {id}")).hint("run 'kiln plan list' to list the saved plans")
        }
        None if error.is_not_found() => unsaved(),
        _ => error.into(),
    }
}

/// The service is a Heat, or an older Kiln.
pub(crate) fn unsaved() -> Failure {
    Failure::new(
        "The service cannot save plans, so nothing notices that a stack has changed since its plan; only Kiln can",
    )
}
