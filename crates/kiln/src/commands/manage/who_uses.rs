//! `kiln manage who-uses`.

use clap::Args;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::{Format, List, OutputArgs};
use kiln_server::database;
use kiln_store::{Error, SqlStore, Stack, StackId, Store as _};

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

/// Show which stack and resource an object of the cloud belongs to
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
The object can belong to any project. Exits with 1 if it belongs to no stack.

Examples:
  kiln manage who-uses 0e2b3941-efd0-46c9-9308-2f92bf6cabf0
  kiln manage who-uses 0e2b3941-efd0-46c9-9308-2f92bf6cabf0 -f json")]
pub(crate) struct WhoUsesArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// ID of the object, such as that of a server
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    output: OutputArgs,
}

impl WhoUsesArgs {
    pub(super) async fn run(self, _: &Global) -> Outcome {
        let store = Box::pin(database::open_unchanged(&Config::load(&self.config)?)).await?;
        let failed = |error: Error| Failure::new(error.to_string());
        let mut rows = Vec::new();
        for row in store.resources_with_object(&self.id).await.map_err(failed)? {
            let Some((root, path)) = place(&store, row.stack, &row.name).await.map_err(failed)? else { continue };
            rows.push(vec![
                root.project.as_str().into(),
                root.name.as_str().into(),
                root.id.to_string().into(),
                path.into(),
                row.resource_type.as_str().into(),
                row.state.to_string().into(),
            ]);
        }
        if rows.is_empty() {
            return Err(Failure::new(format!("no stack has an object with the ID {}", self.id)));
        }
        let columns =
            ["Project", "Stack", "Stack ID", "Resource", "Resource Type", "State"].map(str::to_owned).to_vec();
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}

/// The root stack of a resource, and the path of the resource in it: `web.0.server`. `None`: the stack is purged.
pub(super) async fn place(store: &SqlStore, stack: StackId, name: &str) -> Result<Option<(Stack, String)>, Error> {
    let Some(mut stack) = store.stack(stack).await? else { return Ok(None) };
    let mut path = name.to_owned();
    while let Some(parent) = stack.parent.clone() {
        path = format!("{}.{path}", parent.resource_name);
        let Some(outer) = store.stack(parent.stack).await? else { return Ok(None) };
        stack = outer;
    }
    Ok(Some((stack, path)))
}
