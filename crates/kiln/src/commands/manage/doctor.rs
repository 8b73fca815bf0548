//! `kiln manage doctor`: what a service needs, checked from here.

use clap::{Args, ValueEnum};
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::{json_text, print};
use kiln_server::doctor::{Finding, Grade, findings};
use kiln_value::{Value, value};

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// Check the database, Keystone, users, catalog, clocks, keys and certificates
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Checks the configuration, the encryption key, the database and its clock, the engines, the message bus, \
Keystone and its clock, the service user, the trustee, the domain of stack users, the roles of stack \
users and of trusts, the URL that servers report to, the catalog, the certificates of this service and \
of all services that it calls, and response times. It declares the exchange of the message bus, and \
changes nothing else. Prints one line for each check, and a hint if a check is not ok. \
Exits with 1 if a check failed.

Examples:
  kiln manage doctor --config-file kiln.conf
  kiln manage doctor --config-file kiln.conf -f json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", default_value = "text")]
    format: DoctorFormat,
}

/// The forms of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DoctorFormat {
    /// One line each.
    Text,
    /// A list of objects.
    Json,
}

impl DoctorArgs {
    pub(super) async fn run(self, _: &Global) -> Outcome {
        let config = Config::load(&self.config)?;
        let found = findings(&config).await;
        print(&match self.format {
            DoctorFormat::Text => found.iter().map(line).collect(),
            DoctorFormat::Json => {
                let list: Vec<Value> = found.iter().map(entry).collect();
                format!("{}\n", json_text(&Value::from(list)))
            }
        })?;
        match found.iter().filter(|finding| finding.grade == Grade::Failed).count() {
            0 => Ok(()),
            1 => Err(Failure::new("a check failed")),
            failed => Err(Failure::new(format!("{failed} checks failed"))),
        }
    }
}

fn line(finding: &Finding) -> String {
    let Finding { check, grade, details, hint } = finding;
    let hint = if hint.is_empty() { String::new() } else { format!("{:<34} hint: {hint}\n", "") };
    format!("{grade:<7} {check:<26} {details}\n{hint}")
}

fn entry(finding: &Finding) -> Value {
    let Finding { check, grade, details, hint } = finding;
    value!({"check": check, "result": (grade.to_string()), "details": details, "hint": hint})
}
