//! `kiln stack drift`.

mod accept;

use std::path::PathBuf;

use clap::Args;
use kiln_client::{Error, SavedPlan};
use kiln_console::output::{Cell, Format, List, Look, OutputArgs, print};
use kiln_value::{Map, Value, text};

use super::plan::{saved_as, show};
use super::resource::not_found;
use super::{note, of_stack};
use crate::commands::effect::Effect;
use crate::commands::guard::{TermsArgs, add};
use crate::connect::Connection;
use crate::exit_code::{ExitCodes, INVALID};
use crate::failure::{Failure, Outcome};

/// Something has drifted, as in Terraform.
const DRIFTED: u8 = 2;
/// Nothing has drifted, but something was not checked.
const NOT_CHECKED: u8 = 5;
const CODES: ExitCodes = ExitCodes(&[
    (0, "with --detailed-exitcode: nothing has drifted"),
    INVALID,
    (DRIFTED, "with --detailed-exitcode: something has drifted"),
    (NOT_CHECKED, "with --detailed-exitcode: nothing has drifted, but something was not checked"),
]);

/// Compare the resources of a stack with their objects in the cloud
#[derive(Args, Debug)]
#[command(add = Effect::Changes("at most it saves a plan and writes the file that it is given"), add = CODES)]
#[command(after_help = "\
Reads the objects of the stack and of its nested stacks, and changes nothing. The status is IN_SYNC, \
MODIFIED, DELETED or NOT_CHECKED: a property that the type cannot read in the object, or a resource \
that cannot be read, is never IN_SYNC. Heat has no such call.

--repair saves a plan that writes the values of the template into the objects again, and creates again \
what was deleted. --accept saves a plan that takes the values of the objects into the template and the templates of nested stacks, and changes \
no object. 'kiln stack apply' executes such a plan. --ignore adds a guard: 'kiln guard lift' ends it.

Examples:
  kiln stack drift web
  kiln stack drift web --resource server -f json
  kiln stack drift web --repair
  kiln stack drift web --accept -t web.yaml
  kiln stack drift web --ignore server.metadata --reason 'set by the monitoring'")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct DriftArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Compare only this resource; 'group/0/server' is one of a nested stack; may be repeated
    #[arg(long, value_name = "RESOURCE")]
    resource: Vec<String>,
    /// Save a plan that repairs what others have changed or deleted
    #[arg(long, conflicts_with = "accept")]
    repair: bool,
    /// With --repair, replace the resources that have a property that cannot be changed in place
    #[arg(long, requires = "repair")]
    replace: bool,
    /// Save a plan that takes what others have changed into the template of the stack
    #[arg(long)]
    accept: bool,
    /// With --accept, the file of the template: the values are written into it and the files that it names, and the rest of their text stays
    #[arg(short, long, value_name = "FILE", requires = "accept")]
    template: Option<PathBuf>,
    /// No longer report how others change this property ('server.tags', 'group/*/server.*'); may be repeated
    #[arg(long, value_name = "PATH", conflicts_with_all = ["accept", "repair", "resource"])]
    ignore: Vec<String>,
    /// With --ignore, do not write this property either, except in new objects
    #[arg(long, requires = "ignore")]
    leave: bool,
    /// With --ignore, until this time (2027-01-31T12:00:00Z)
    #[arg(long, value_name = "TIME", requires = "ignore")]
    until: Option<String>,
    /// With --ignore, why
    #[arg(long, value_name = "TEXT", requires = "ignore")]
    reason: Option<String>,
    /// Tell by the exit code whether something has drifted
    #[arg(long)]
    detailed_exitcode: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl DriftArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        if self.accept {
            return self.accept(connection).await;
        }
        if self.repair {
            return self.repair(connection).await;
        }
        if !self.ignore.is_empty() {
            let ignored: Value = self.ignore.iter().map(String::as_str).collect();
            let rule = Map::from([("ignore".to_owned(), ignored), ("leave".to_owned(), self.leave.into())]);
            return add(connection, Some(self.stack), rule, TermsArgs { until: self.until, reason: self.reason }).await;
        }
        let compared = match connection.client.drift(&self.stack, &self.resource).await {
            Ok(compared) => compared,
            Err(error) => return Err(self.failure(connection, error).await),
        };
        let columns =
            ["resource_name", "physical_resource_id", "resource_type", "drift_status", "differences", "stack_name"];
        let resources = compared.get("resources").and_then(Value::as_list).unwrap_or_default();
        let rows = resources.iter().map(|one| {
            columns
                .iter()
                .map(|column| match *column {
                    "differences" => differences(one).into(),
                    column => Cell::from(one.str_at(column).unwrap_or_default()),
                })
                .collect()
        });
        let columns = columns.map(str::to_owned).to_vec();
        self.output.list(List { columns, rows: rows.collect() }, Format::Table)?;
        eprint!("{}", note::of_drift(resources));
        let status = compared.str_at("status").unwrap_or_default();
        let count = |name: &str| compared.get("extent").and_then(|extent| extent.get(name)).map(text::str);
        let of = |what: &str| Some(format!("{} of {} {what}", count(&format!("{what}_checked"))?, count(what)?));
        // A service of an earlier release does not say how much it has compared.
        let extent = of("resources").zip(of("properties"));
        let extent = extent.map(|(resources, properties)| format!(" ({resources} checked, {properties})"));
        eprintln!("{}: {status}{}", self.stack, extent.unwrap_or_default());
        match status {
            "DRIFTED" if self.detailed_exitcode => Err(Failure::told(DRIFTED)),
            "NOT_CHECKED" if self.detailed_exitcode => Err(Failure::told(NOT_CHECKED)),
            _ => Ok(()),
        }
    }
}

impl DriftArgs {
    async fn repair(&self, connection: &Connection) -> Outcome {
        let plan = match connection.client.plan_repair(&self.stack, &self.resource, self.replace).await {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                self.nothing();
                return Ok(());
            }
            Err(error) => return Err(self.failure(connection, error).await),
        };
        self.planned(&plan)
    }

    fn nothing(&self) {
        eprintln!("{}: nothing has drifted", self.stack);
    }

    /// Shows a plan that was saved.
    fn planned(&self, plan: &SavedPlan) -> Outcome {
        if let Some(format) = self.output.format.filter(|format| *format != Format::Table) {
            let columns = plan.value().as_map().into_iter().flatten();
            let columns = columns.map(|(name, value)| (name.clone(), Cell::with(value.clone(), Look::Json)));
            return Ok(self.output.one(columns.collect(), format)?);
        }
        if let Some(document) = plan.document()? {
            show(&document)?;
        }
        Ok(print(&saved_as(plan, plan.id()))?)
    }

    /// A missing stack, a missing resource, or a service without this call.
    async fn failure(&self, connection: &Connection, error: Error) -> Failure {
        if let Some(missing) = error.places().iter().find_map(|place| place.name.clone()) {
            return not_found(&connection.client, &self.stack, &missing, error).await;
        }
        if !error.is_not_found() || connection.client.stack(&self.stack, false).await.is_err() {
            return of_stack(&self.stack)(error);
        }
        Failure::new("The service cannot compare stacks with their objects; only Kiln can")
    }
}

/// One line for each difference, or the reason why there is no comparison.
fn differences(resource: &Value) -> String {
    if let Some(reason) = resource.str_at("drift_status_reason") {
        return reason.to_owned();
    }
    let open = resource.get("not_checked").and_then(Value::as_list).unwrap_or_default().iter();
    let open = open.map(|name| format!("{}: not checked", text::str(name)));
    let settled = resource.get("not_applied").and_then(Value::as_list).unwrap_or_default().iter();
    let settled = settled
        .map(|name| format!("{}: not applied, the object has had another value since it settled", text::str(name)));
    let ignored = resource.get("ignored").and_then(Value::as_list).unwrap_or_default().iter();
    let ignored = ignored.map(|name| format!("{}: ignored", text::str(name)));
    let shown = |one: &Value, key: &str| one.get(key).map(text::json).unwrap_or_default();
    let differences = resource.get("differences").and_then(Value::as_list).unwrap_or_default().iter();
    let lines = differences.map(|one| {
        let expected = shown(one, if one.get("baseline").is_some() { "baseline" } else { "expected" });
        let actual = shown(one, "actual");
        let replace = one.get("needs_replacement").is_some_and(Value::is_truthy);
        let note = if replace { " (needs a replacement)" } else { "" };
        format!("{}: {expected} is {actual}{note}", one.str_at("property").unwrap_or_default())
    });
    lines.chain(ignored).chain(settled).chain(open).collect::<Vec<_>>().join("\n")
}
