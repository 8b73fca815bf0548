//! `kiln template versions` and `functions`: the versions and functions that this program supports.

use clap::Args;
use kiln_template::version::Dialect;
use kiln_template::{Release, functions};

use crate::failure::{Failure, Outcome, nearest};
use kiln_console::output::{Cell, Format, List, OutputArgs};

/// `template versions`.
#[derive(Args, Debug)]
pub(crate) struct VersionsArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// The name of the version in the API.
fn name(release: Release) -> String {
    format!("{}.{}", release.dialect().version_key(), release.name())
}

/// The supported versions: name, language, alias.
pub(super) fn version_rows() -> Vec<Vec<Cell>> {
    let row = |release: &Release| -> Vec<Cell> {
        let kind = if release.dialect() == Dialect::Hot { "hot" } else { "cfn" };
        vec![name(*release).into(), kind.into(), release.alias().unwrap_or_default().into()]
    };
    Release::ALL.iter().map(row).collect()
}

impl VersionsArgs {
    pub(super) fn run(self) -> Outcome {
        let columns = ["Version", "Type", "Aliases"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows: version_rows() }, Format::Table)?)
    }
}

/// `template functions`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kiln template functions                       functions of the latest version
  kiln template functions 2015-10-15
  kiln template functions AWSTemplateFormatVersion.2010-09-09")]
pub(crate) struct FunctionsArgs {
    /// Template version, such as 2018-08-31, rocky or heat_template_version.2018-08-31
    #[arg(value_name = "TEMPLATE-VERSION", default_value = "2021-04-16")]
    version: String,
    /// Include the functions of conditions
    #[arg(long, alias = "with_conditions")]
    with_conditions: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl FunctionsArgs {
    pub(super) fn run(self) -> Outcome {
        let is_meant = |release: &Release| {
            release.name() == self.version
                || release.alias() == Some(self.version.as_str())
                || name(*release) == self.version
        };
        let Some(release) = Release::ALL.into_iter().find(is_meant) else {
            let failure = Failure::new(format!("Template version not found: {}", self.version));
            return Err(match nearest(&self.version, Release::ALL.iter().map(|release| release.name())) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint("run 'kiln template versions' to list the versions"),
            });
        };
        let functions = functions(release, self.with_conditions);
        let rows = functions.iter().map(|function| vec![function.name.into(), function.summary.into()]).collect();
        let columns = ["Functions", "Description"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}
