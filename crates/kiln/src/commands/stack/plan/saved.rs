//! Saves a plan, in the service and in a file.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_client::{RequestToPlan, SavedPlan};
use kiln_console::output::json_text;
use kiln_value::{Value, value};

use crate::commands::plan::unsaved;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use kiln_server::whole_file;

/// Whether and how a plan is saved.
#[derive(Args, Debug)]
#[command(next_help_heading = "Saving", group = clap::ArgGroup::new("saved").args(["save", "out"]).multiple(true))]
pub(super) struct SaveArgs {
    /// Save the plan: 'kiln stack apply' executes it, or refuses it if the stack has changed since
    #[arg(long)]
    save: bool,
    /// Save the plan, and write its ID, digest and content to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Description of the saved plan
    #[arg(long, value_name = "TEXT", requires = "saved")]
    description: Option<String>,
    /// How long the saved plan can be applied, at most as long as the service allows [default: that time]
    #[arg(long, value_name = "SECONDS", requires = "saved")]
    expires_in: Option<u64>,
    /// Do not read the objects that the plan changes or deletes: only changes of the stack make the saved plan stale
    #[arg(long, requires = "saved")]
    no_refresh: bool,
}

/// What a file says of a saved plan.
pub(super) struct PlanFile {
    /// The ID of the plan.
    pub(super) id: String,
    /// The digest of the plan.
    pub(super) digest: String,
}

/// The number of the format of files.
const FORMAT: i64 = 1;

impl SaveArgs {
    /// Whether the plan is saved.
    pub(super) fn saves(&self) -> bool {
        self.save || self.out.is_some()
    }

    /// Saves the plan of a request.
    pub(super) async fn save(
        &self,
        connection: &Connection,
        request: RequestToPlan<'_>,
    ) -> Result<SavedPlan, kiln_client::Error> {
        connection.client.save_plan(request, self.description.as_deref(), self.expires_in, !self.no_refresh).await
    }

    /// Refuses a file that cannot be written, before the plan is saved.
    pub(super) fn check(&self) -> Outcome {
        match &self.out {
            Some(file) => whole_file::check(file).map_err(|error| Failure::unwritable(file, &error)),
            None => Ok(()),
        }
    }

    /// Writes the file of a plan that is saved; what to do with the plan.
    pub(super) fn saved(&self, plan: &SavedPlan) -> Outcome<String> {
        let mut named = plan.id().to_owned();
        if let Some(file) = &self.out {
            let document = plan.value().get("document").cloned();
            let content =
                value!({ "format": FORMAT, "id": (plan.id()), "digest": (plan.digest()), "document": document });
            let written = whole_file::replace_secret(file, format!("{}\n", json_text(&content)).as_bytes());
            written.map_err(|error| Failure::unwritable(file, &error))?;
            named = file.display().to_string();
        }
        Ok(saved_as(plan, &named))
    }
}

/// What to do with a saved plan; `named`: its ID, or its file.
pub(crate) fn saved_as(plan: &SavedPlan, named: &str) -> String {
    let (id, digest, expires) = (plan.id(), plan.digest(), plan.expires());
    format!(
        "\nSaved as plan {id} until {expires}\n  digest: {digest}\n  to execute it, run 'kiln stack apply {named}'\n"
    )
}

impl PlanFile {
    pub(super) fn read(file: &Path) -> Outcome<Self> {
        let wrong = |why: String| Failure::new(format!("{}: {why}", file.display()));
        let text = std::fs::read(file).map_err(|error| {
            wrong(error.to_string()).hint("specify the ID of a saved plan, or a file of 'kiln stack plan --out'")
        })?;
        let read: Value = serde_json::from_slice(&text).map_err(|error| wrong(format!("not a saved plan: {error}")))?;
        let format = read.get("format").and_then(Value::as_i64);
        match (format, read.str_at("id"), read.str_at("digest")) {
            (Some(FORMAT), Some(id), Some(digest)) => Ok(Self { id: id.to_owned(), digest: digest.to_owned() }),
            _ => Err(wrong("not a saved plan, or one of a newer version of Kiln".to_owned())),
        }
    }
}

/// The error of a service that saves no plans; other errors stay.
pub(super) fn refused(error: kiln_client::Error) -> Result<kiln_client::Error, Failure> {
    if error.is_not_found() && error.class().is_none() { Err(unsaved()) } else { Ok(error) }
}
