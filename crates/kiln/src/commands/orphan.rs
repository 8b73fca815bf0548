//! `kiln orphan …`: the objects of forgotten resources.

use clap::Args;
use kiln_client::OrphanFilter;
use kiln_console::output::{Format, List, OutputArgs};

use super::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for orphans.
    OrphanCommand {
        List(ListArgs),
        Delete(DeleteArgs),
    }
}

/// List the objects that are left in the cloud because their resources were forgotten
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln orphan list
  kiln orphan list --long -f json")]
pub(crate) struct ListArgs {
    /// Only objects of the stack with this ID
    #[arg(long, value_name = "ID")]
    stack: Option<String>,
    /// Include objects of all projects (admin)
    #[arg(long, conflicts_with = "project")]
    all_projects: bool,
    /// Only objects of the project with this ID (admin)
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Maximum number of objects
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only objects after the entry with this ID
    #[arg(long, value_name = "ID")]
    marker: Option<String>,
    /// Show more columns
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Remove entries from the list; the objects are not deleted
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct DeleteArgs {
    /// IDs of the entries
    #[arg(value_name = "ORPHAN", required = true)]
    orphans: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

const SHORT: &[(&str, &str)] = &[
    ("ID", "id"),
    ("Stack Name", "stack_name"),
    ("Resource", "resource_path"),
    ("Resource Type", "resource_type"),
    ("Physical Resource ID", "physical_resource_id"),
    ("Forgotten At", "forgotten_at"),
];
const LONG: &[(&str, &str)] = &[
    ("Stack ID", "stack_id"),
    ("Project", "project"),
    ("Region", "region"),
    ("User", "user_name"),
    ("Reason", "reason"),
];

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let filter = OrphanFilter {
            stack: self.stack,
            all_projects: self.all_projects,
            project: self.project,
            marker: self.marker,
            limit: self.limit,
        };
        let orphans = connection.client.orphans(&filter).await?;
        let mut columns = SHORT.to_vec();
        if self.long {
            columns.extend(LONG);
        } else if filter.all_projects {
            columns.push(("Project", "project"));
        }
        let list = List::of(&orphans, &columns).with_empty_cells();
        Ok(self.output.list(list, Format::Table)?)
    }
}

impl DeleteArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        self.confirm.if_demanded("Are you sure you want to remove these entries [y/N]? ").await?;
        for id in &self.orphans {
            connection.client.delete_orphan(id).await.map_err(|error| {
                if error.is_not_found() {
                    Failure::new(format!("Orphan not found: {id}")).hint("run 'kiln orphan list' to list the orphans")
                } else {
                    error.into()
                }
            })?;
        }
        Ok(())
    }
}
