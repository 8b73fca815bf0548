//! `heat-status upgrade check`, and `kiln manage upgrade-check`: whether this version can be started on a configuration
//! and its database.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use kiln_config::Config;
use kiln_config::ConfigArgs;
use kiln_console::output::{print, wrapped};
use kiln_server::policy_files::PolicyFiles;
use kiln_server::{checks, database, runtime};
use kiln_store::{SchemaState, SchemaVersions};
use kiln_value::{Value, text, value};

use crate::commands::effect::Effect;
use crate::commands::oslo_options::{InsteadArgs, no_command};
use crate::failure::{Failure, Outcome};

/// `heat-status`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exits with 0 if all is well, with 1 if there are warnings, and with 2 if a check failed.

Example:
  kiln heat-status --config-file kiln.conf upgrade check")]
pub(crate) struct HeatStatusArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    instead: InsteadArgs,
    #[command(subcommand)]
    command: Option<HeatStatusCommand>,
}

/// The commands of `heat-status`.
#[derive(Debug, Subcommand)]
enum HeatStatusCommand {
    /// Checks before an upgrade
    #[command(subcommand)]
    Upgrade(UpgradeCommand),
}

/// `heat-status upgrade …`.
#[derive(Debug, Subcommand)]
enum UpgradeCommand {
    /// Check that this version can be started
    #[command(add = Effect::Reads)]
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The result of a check; the numbers are exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Grade {
    Success = 0,
    Warning = 1,
    Failure = 2,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    name: &'static str,
    grade: Grade,
    details: Option<String>,
}

impl HeatStatusArgs {
    pub(crate) async fn run(self) -> Outcome {
        if self.instead.run("heat-status")? {
            return Ok(());
        }
        let Some(HeatStatusCommand::Upgrade(UpgradeCommand::Check { json })) = self.command else {
            return Err(no_command("heat-status"));
        };
        let config = Config::load_as_heat(&self.config)?;
        let checks = Box::pin(checks_of(&config)).await;
        print(&if json { as_json(&checks) } else { as_table(&checks) })?;
        match checks.iter().map(|check| check.grade).max() {
            None | Some(Grade::Success) => Ok(()),
            Some(grade) => Err(Failure::told(grade as u8)),
        }
    }
}

async fn checks_of(config: &Config) -> Vec<Check> {
    let failed =
        |name, error: &anyhow::Error| Check { name, grade: Grade::Failure, details: Some(format!("{error:#}")) };
    let good = |name| Check { name, grade: Grade::Success, details: None };
    // The name of Heat's only check. Kiln reads policies in JSON too.
    let policy = "Policy File JSON to YAML Migration";
    let policy = match PolicyFiles::of(config).and_then(|files| files.read()) {
        Ok(_) => good(policy),
        Err(error) => failed(policy, &error),
    };
    let options = match runtime::check_options(config).first() {
        None => good("Configuration"),
        Some(error) => failed("Configuration", error),
    };
    let mut checks = vec![policy, options];
    match Box::pin(database::open_unchanged(config)).await {
        Err(error) => checks.push(failed("Database", &error)),
        Ok(store) => {
            checks.push(match Box::pin(checks::stacks_of_heat(&store)).await {
                Ok(()) => good("Stacks of Heat"),
                Err(error) => failed("Stacks of Heat", &error),
            });
            let schema = Box::pin(store.schema_versions()).await;
            let is_current = schema.as_ref().is_ok_and(|versions| versions.state() == SchemaState::Current);
            checks.push(schema_check(schema));
            if is_current {
                checks.push(match checks::key(&store).await {
                    Ok(()) => good("Encryption Key"),
                    Err(error) => failed("Encryption Key", &error),
                });
            }
        }
    }
    checks
}

fn schema_check(versions: Result<SchemaVersions, kiln_store::Error>) -> Check {
    let (grade, details) = match versions.map(|versions| (versions.state(), versions)) {
        Ok((SchemaState::Current | SchemaState::UsableNewer, _)) => (Grade::Success, None),
        Ok((SchemaState::Missing | SchemaState::Older, SchemaVersions { done, latest, .. })) => (
            Grade::Warning,
            Some(format!(
                "The schema has version {done}; this version of Kiln uses {latest}. Make a backup. The first service that \
                 starts upgrades it, or heat-manage db_sync; services of the former version continue to work."
            )),
        ),
        Ok((SchemaState::TooNew, SchemaVersions { done, latest, .. })) => (
            Grade::Failure,
            Some(format!("The schema has version {done}, from a newer Kiln; this version supports up to {latest}.")),
        ),
        Err(error) => (Grade::Failure, Some(error.to_string())),
    };
    Check { name: "Database Schema", grade, details }
}

/// The object of oslo.upgradecheck.
fn as_json(checks: &[Check]) -> String {
    let check = |check: &Check| -> Value {
        let details = check.details.as_deref().map_or(Value::Null, Value::from);
        value!({ "check": (check.name), "result": (i64::from(check.grade as u8)), "details": details })
    };
    let checks: Vec<Value> = checks.iter().map(check).collect();
    format!("{}\n", text::json(&value!({ "name": "Upgrade Check Results", "checks": checks })))
}

/// The table of oslo.upgradecheck.
fn as_table(checks: &[Check]) -> String {
    const HEADING: &str = "Upgrade Check Results";
    let lines = |check: &Check| {
        let details =
            check.details.as_deref().map_or_else(|| vec!["None".to_owned()], |details| wrapped(details, 60, "  "));
        let mut lines = vec![format!("Check: {}", check.name), format!("Result: {:?}", check.grade)];
        lines.push(format!("Details: {}", details.first().cloned().unwrap_or_default()));
        lines.extend(details.into_iter().skip(1));
        lines
    };
    let cells: Vec<Vec<String>> = std::iter::once(vec![HEADING.to_owned()]).chain(checks.iter().map(lines)).collect();
    let width = cells.iter().flatten().map(|line| line.chars().count()).max().unwrap_or_default();
    let rule = format!("+{}+\n", "-".repeat(width + 2));
    let mut table = rule.clone();
    for cell in cells {
        for line in cell {
            _ = writeln!(table, "| {line:<width$} |");
        }
        table.push_str(&rule);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_form_of_oslo_upgradecheck() {
        let checks = [
            Check { name: "Policy File JSON to YAML Migration", grade: Grade::Success, details: None },
            schema_check(Ok(SchemaVersions { done: 3, latest: 2, floor: 3 })),
        ];
        // The form of oslo.upgradecheck 2.6 with these results.
        let expected = "\
+-----------------------------------------------------------------------+
| Upgrade Check Results                                                 |
+-----------------------------------------------------------------------+
| Check: Policy File JSON to YAML Migration                             |
| Result: Success                                                       |
| Details: None                                                         |
+-----------------------------------------------------------------------+
| Check: Database Schema                                                |
| Result: Failure                                                       |
| Details: The schema has version 3, from a newer Kiln; this version    |
|   supports up to 2.                                                   |
+-----------------------------------------------------------------------+
";
        let trimmed = |table: &str| -> Vec<String> {
            table.lines().map(|line| line.trim_matches(['|', '+', '-', ' ']).to_owned()).collect()
        };
        assert_eq!(trimmed(&as_table(&checks)), trimmed(expected));
        let grade = |done, floor| schema_check(Ok(SchemaVersions { done, latest: 2, floor })).grade;
        assert_eq!([grade(2, 2), grade(3, 2), grade(1, 1)], [Grade::Success, Grade::Success, Grade::Warning]);
        let json: serde_json::Value = serde_json::from_str(&as_json(&checks)).unwrap();
        assert_eq!(json["checks"][1]["result"], 2);
    }
}
