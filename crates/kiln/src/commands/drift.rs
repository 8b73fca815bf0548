//! `kiln drift …`: stacks that are compared with their objects regularly.

mod schedule;

use clap::{Args, ValueEnum};
use kiln_client::DriftFilter;
use kiln_console::output::{Format, List, OutputArgs};
use kiln_value::Value;

use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::Outcome;

group! {
    /// Commands for drift.
    DriftCommand {
        List(ListArgs),
        /// Say how often stacks are compared with their objects
        #[command(subcommand)]
        Schedule(schedule::ScheduleCommand),
    }
}

/// List the stacks that are compared regularly, and what the last comparison has found
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Status: DRIFTED, others have changed or deleted objects; IN_SYNC, they have not; NOT_CHECKED, objects \
could not be read. Without a status, the first comparison is still due. 'kiln stack drift STACK' compares \
a stack now, and shows the values.

Examples:
  kiln drift list
  kiln drift list --status drifted -f json")]
pub(crate) struct ListArgs {
    /// Only stacks with this status
    #[arg(long)]
    status: Option<Statuses>,
    /// Include stacks of all projects (admin)
    #[arg(long)]
    all_projects: bool,
    /// Maximum number of stacks
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only stacks after the one with this ID
    #[arg(long, value_name = "ID")]
    marker: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// What was found.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Statuses {
    /// Others have changed or deleted objects.
    Drifted,
    /// All objects are as the template says.
    InSync,
    /// Objects could not be read.
    NotChecked,
}

const COLUMNS: &[(&str, &str)] = &[
    ("Stack ID", "stack_id"),
    ("Stack Name", "stack_name"),
    ("Status", "status"),
    ("Since", "since"),
    ("Checked At", "checked_at"),
    ("Drifted", "drifted"),
];

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let status = self.status.map(|status| match status {
            Statuses::Drifted => "DRIFTED".to_owned(),
            Statuses::InSync => "IN_SYNC".to_owned(),
            Statuses::NotChecked => "NOT_CHECKED".to_owned(),
        });
        let all_projects = self.all_projects;
        let filter = DriftFilter { status, all_projects, limit: self.limit, marker: self.marker };
        let watched = connection.client.watched_stacks(&filter).await?;
        let watched: Vec<Value> = watched.into_iter().map(with_words).collect();
        let mut columns = COLUMNS.to_vec();
        if all_projects {
            columns.insert(2, ("Project", "project"));
        }
        Ok(self.output.list(List::of(&watched, &columns).with_empty_cells(), Format::Table)?)
    }
}

/// With what has drifted, and why something is not known or not repaired, in words.
fn with_words(mut watched: Value) -> Value {
    let mut words = of_resources(&watched, "resources");
    let all = watched.get("drifted_resources").and_then(Value::as_i64).unwrap_or_default();
    let more = all.saturating_sub(i64::try_from(words.len()).unwrap_or(i64::MAX));
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.extend(watched.str_at("reason").map(str::to_owned));
    let stopped = of_resources(&watched, "no_longer_repaired");
    if !stopped.is_empty() {
        words.push(format!("no longer repaired after 3 times within a day: {}", stopped.join(", ")));
    }
    if let Some(watched) = watched.as_map_mut() {
        watched.insert("drifted".to_owned(), words.join("; ").into());
    }
    watched
}

fn of_resources(watched: &Value, key: &str) -> Vec<String> {
    let resources = watched.get(key).and_then(Value::as_list).unwrap_or_default();
    let words = resources.iter().map(|one| {
        let path = one.str_at("resource_path").unwrap_or_default();
        let properties = one.get("properties").and_then(Value::as_list).unwrap_or_default();
        let properties: Vec<&str> = properties.iter().filter_map(Value::as_str).collect();
        if properties.is_empty() { format!("{path} (deleted)") } else { format!("{path}.{}", properties.join(", ")) }
    });
    words.collect()
}
