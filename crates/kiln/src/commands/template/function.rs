//! `kiln template function`: the functions of templates.

use std::fmt::Write as _;

use clap::Args;
use kiln_console::output::{Cell, Format, List, OutputArgs, print};
use kiln_template::{Release, all_functions, functions};
use kiln_value::Value;

use super::version;
use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::connect::{Connection, Need};
use crate::failure::{Failure, Outcome};

group! {
    /// `template function …`.
    FunctionCommand with Global {
        List(FunctionArgs),
        Show(FunctionShowArgs) now,
    }
}

/// List the functions of a template version
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln template function list heat_template_version.2018-08-31
  kiln template function list --offline              functions of the latest version
  kiln template function list --offline 2015-10-15")]
pub(crate) struct FunctionArgs {
    /// Template version, such as heat_template_version.2018-08-31; with --offline also 2018-08-31 or rocky
    #[arg(value_name = "TEMPLATE-VERSION", required_unless_present = "offline")]
    version: Option<String>,
    /// List the functions that Kiln supports, without a service
    #[arg(long)]
    offline: bool,
    /// Include the functions of conditions
    #[arg(long, alias = "with_conditions")]
    with_conditions: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show the arguments of a function, with examples; no service is needed
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Example:
  kiln template function show str_replace")]
pub(crate) struct FunctionShowArgs {
    /// Function
    #[arg(value_name = "FUNCTION")]
    name: String,
}

impl FunctionArgs {
    async fn run(self, global: &Global) -> Outcome {
        let rows = if self.offline { self.supported()? } else { self.of_service(global).await? };
        let columns = ["Functions", "Description"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }

    fn supported(&self) -> Outcome<Vec<Vec<Cell>>> {
        let release = match &self.version {
            None => Release::Hot20210416,
            Some(wanted) => {
                let is_meant = |release: &Release| {
                    release.name() == wanted
                        || release.alias() == Some(wanted.as_str())
                        || version::name(*release) == *wanted
                };
                Release::ALL.into_iter().find(is_meant).ok_or_else(|| unknown(wanted))?
            }
        };
        let functions = functions(release, self.with_conditions);
        Ok(functions.iter().map(|function| vec![function.name.into(), function.summary.into()]).collect())
    }

    async fn of_service(&self, global: &Global) -> Outcome<Vec<Vec<Cell>>> {
        let wanted = self.version.as_deref().unwrap_or_default();
        let connection = Connection::open(global, Need::Nothing).await?;
        let functions = connection.client.template_functions(wanted, self.with_conditions).await;
        connection.close().await?;
        let functions = match functions {
            Err(error) if error.is_not_found() => return Err(unknown(wanted)),
            functions => functions?,
        };
        let text = |function: &Value, key| function.str_at(key).unwrap_or_default().to_owned();
        let row = |function: &Value| vec![text(function, "functions").into(), text(function, "description").into()];
        Ok(functions.iter().map(row).collect())
    }
}

fn unknown(version: &str) -> Failure {
    let failure = Failure::new(format!("Template version not found: {version}"));
    let otherwise = "run 'kiln template version list --offline' to list the versions";
    failure.suggesting(version, Release::ALL.iter().map(|release| release.name()), otherwise)
}

impl FunctionShowArgs {
    fn run(&self) -> Outcome {
        let Some(function) = all_functions().iter().find(|function| function.name == self.name) else {
            let failure = Failure::new(format!("there is no template function {:?}", self.name));
            let otherwise = "run 'kiln template function list --offline' to list the functions";
            return Err(failure.suggesting(
                &self.name,
                all_functions().iter().map(|function| function.name),
                otherwise,
            ));
        };
        let mut text = format!("{}\n\n{} {}", function.label(), function.summary, function.text).trim_end().to_owned();
        text.push('\n');
        for example in function.examples {
            // Writing to a string cannot fail.
            _ = write!(text, "\n{}\n  → {}\n", example.call, example.result);
        }
        Ok(print(&text)?)
    }
}
