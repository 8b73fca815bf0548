//! `kiln import scan`.

use clap::Args;
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_value::Value;

use super::selection::SelectionArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::Outcome;

/// List the objects of the project that can become resources, and the stacks that have them
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Objects that are shared or public, and objects that services made for themselves, are not listed. An object \
of a stack of another service, such as a Heat, has no stack here. Heat has no such call.

Examples:
  kiln import scan
  kiln import scan --unmanaged --type server --type volume
  kiln import scan --name 'web*' -f json")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Only objects that are in no stack
    #[arg(long)]
    unmanaged: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ScanArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let scanned = connection.client.scan_project().await?;
        let objects = scanned.get("objects").and_then(Value::as_list).unwrap_or_default();
        let is_meant = |one: &&Value| {
            self.selection.has(one) && !(self.unmanaged && one.get("owner").is_some_and(Value::is_truthy))
        };
        let columns = ["resource_type", "physical_resource_id", "name", "stack"].map(str::to_owned).to_vec();
        let rows = objects.iter().filter(is_meant).map(|one| {
            let text = |key: &str| one.str_at(key).unwrap_or_default();
            let stack = one
                .get("owner")
                .and_then(|owner| Some(format!("{}/{}", owner.str_at("stack_name")?, owner.str_at("resource_name")?)));
            let cells = [text("resource_type"), text("physical_resource_id"), text("name")].map(Cell::from);
            cells.into_iter().chain([Cell::from(stack.unwrap_or_default())]).collect()
        });
        let rows: Vec<Vec<Cell>> = rows.collect();
        let count = rows.len();
        self.output.list(List { columns, rows }, Format::Table)?;
        for one in scanned.get("unlisted").and_then(Value::as_list).into_iter().flatten() {
            let text = |key: &str| one.str_at(key).unwrap_or_default();
            anstream::eprintln!("warning: {} is not listed in whole: {}", text("resource_type"), text("reason"));
        }
        eprintln!("{count} of {} objects", objects.len());
        Ok(())
    }
}
