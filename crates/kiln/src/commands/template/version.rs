//! `kiln template version`: the versions of templates.

use clap::Args;
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_template::Release;
use kiln_template::version::Dialect;
use kiln_value::Value;

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::connect::{Connection, Need};
use crate::failure::Outcome;

group! {
    /// `template version …`.
    VersionCommand with Global {
        List(VersionArgs),
    }
}

/// List the template versions
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct VersionArgs {
    /// List the versions that Kiln supports, without a service
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// The name of a version in the API.
pub(super) fn name(release: Release) -> String {
    format!("{}.{}", release.dialect().version_key(), release.name())
}

/// The supported versions: name, language, alias.
fn supported() -> Vec<Vec<Cell>> {
    let row = |release: &Release| -> Vec<Cell> {
        let kind = if release.dialect() == Dialect::Hot { "hot" } else { "cfn" };
        vec![name(*release).into(), kind.into(), release.alias().unwrap_or_default().into()]
    };
    Release::ALL.iter().map(row).collect()
}

impl VersionArgs {
    async fn run(self, global: &Global) -> Outcome {
        let rows: Vec<Vec<Cell>> = if self.offline {
            supported()
        } else {
            let connection = Connection::open(global, Need::Nothing).await?;
            let versions = connection.client.template_versions().await;
            connection.close().await?;
            let aliases = |version: &Value| {
                let aliases = version.get("aliases").and_then(Value::as_list).unwrap_or_default();
                aliases.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
            };
            let text = |version: &Value, key| version.str_at(key).unwrap_or_default().to_owned();
            let row = |version: &Value| -> Vec<Cell> {
                vec![text(version, "version").into(), text(version, "type").into(), aliases(version).into()]
            };
            versions?.iter().map(row).collect()
        };
        let columns = ["Version", "Type", "Aliases"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}
