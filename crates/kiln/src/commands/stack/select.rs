//! The stacks that a command is about.

use clap::Args;
use kiln_client::{Stack, StackFilter};

use super::filters;
use crate::commands::confirm::ConfirmArgs;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Names of stacks, or a filter that finds them.
#[derive(Args, Clone, Debug)]
pub(super) struct SelectArgs {
    /// Names or IDs of the stacks
    #[arg(value_name = "STACK", required_unless_present = "all")]
    pub(super) stacks: Vec<String>,
    /// All stacks of the project with which this can be done
    #[arg(long, conflicts_with = "stacks")]
    all: bool,
    /// With --all: stacks of all projects (admin)
    #[arg(long, requires = "all")]
    all_projects: bool,
    /// With --all: only stacks of the project with this ID (admin)
    #[arg(long, requires = "all", value_name = "PROJECT")]
    project: Option<String>,
    /// With --all: only stacks with this property (name, action, username …); may be repeated
    #[arg(long = "property", requires = "all", value_name = "KEY=VALUE")]
    properties: Vec<String>,
}

impl SelectArgs {
    /// The stacks by name, or the IDs of those that the filter finds, with this status of one of these actions, after the user has
    /// confirmed what is done with them: `Continue the failed operation of`.
    pub(super) async fn confirmed(
        self,
        connection: &Connection,
        (status, actions): (&str, &[&str]),
        confirm: ConfirmArgs,
        what: &str,
    ) -> Outcome<Vec<String>> {
        if !self.all {
            confirm.if_demanded(&format!("{what} {} [y/N]? ", self.stacks.join(", "))).await?;
            return Ok(self.stacks);
        }
        let mut properties = filters(&self.properties)?;
        properties.push(("status".to_owned(), status.to_owned()));
        let filter = StackFilter {
            properties,
            all_projects: self.all_projects,
            project: self.project,
            ..StackFilter::default()
        };
        let mut found = connection.client.stacks(&filter).await?;
        found.retain(|stack| actions.iter().any(|action| stack.status() == format!("{action}_{status}")));
        if found.is_empty() {
            return Err(Failure::new("no stack is in such a state".to_owned()));
        }
        if confirm.is_needed() {
            for stack in &found {
                eprintln!("{}  {}  {}", stack.id(), stack.name(), stack.status());
            }
            confirm.confirm(&format!("{what} these {} stacks [y/N]? ", found.len())).await?;
        }
        Ok(found.iter().map(Stack::id).map(str::to_owned).collect())
    }
}

/// Reports the failures for some of several stacks. `what`: `continue`.
pub(super) fn all_done(mut failures: Vec<Failure>, total: usize, what: &str) -> Outcome {
    match failures.as_slice() {
        [] => Ok(()),
        _ if total == 1 => Err(failures.remove(0)),
        _ => {
            for failure in &failures {
                failure.report();
            }
            Err(Failure::new(format!("Unable to {what} {} of the {total} stacks.", failures.len())))
        }
    }
}
