//! `heat-status upgrade check`, and `kiln manage upgrade-check`: whether this version can be started on a configuration
//! and its database.

use std::fmt::Write as _;

use clap::Args;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::{print, wrapped};
use kiln_server::upgrade_check::{self, Check, Grade};
use kiln_value::{Value, text, value};

use crate::commands::effect::Effect;
use crate::commands::oslo_options::{InsteadArgs, no_command};
use crate::exit_code::ExitCodes;
use crate::failure::{Failure, Outcome};

/// `heat-status`.
#[derive(Args, Debug)]
#[command(after_help = "\
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

group! {
    /// The commands of `heat-status`.
    HeatStatusCommand with Config {
        /// Checks before an upgrade
        #[command(subcommand)]
        Upgrade(UpgradeCommand),
    }
}

group! {
    /// `heat-status upgrade …`.
    UpgradeCommand with Config {
        Check(CheckArgs),
    }
}

const CODES: ExitCodes = ExitCodes(&[(0, "all is well"), (1, "there are warnings"), (2, "a check failed")]);

/// Check that this version can be started
#[derive(Args, Debug)]
#[command(add = Effect::Reads, add = CODES)]
pub(crate) struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl HeatStatusArgs {
    pub(crate) async fn run(self) -> Outcome {
        if self.instead.run("heat-status")? {
            return Ok(());
        }
        let Some(command) = self.command else { return Err(no_command("heat-status")) };
        command.run(&Config::load_as_heat(&self.config)?).await
    }
}

impl CheckArgs {
    async fn run(self, config: &Config) -> Outcome {
        let checks = upgrade_check::checks(config).await;
        print(&if self.json { as_json(&checks) } else { as_table(&checks) })?;
        match checks.iter().map(|check| check.grade).max() {
            None | Some(Grade::Success) => Ok(()),
            Some(grade) => Err(Failure::told(grade as u8)),
        }
    }
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
            Check {
                name: "Database Schema",
                grade: Grade::Failure,
                details: Some("The schema has version 3, from a newer Kiln; this version supports up to 2.".to_owned()),
            },
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
        let json: serde_json::Value = serde_json::from_str(&as_json(&checks)).unwrap();
        assert_eq!(json["checks"][1]["result"], 2);
    }
}
