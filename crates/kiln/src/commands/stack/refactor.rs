//! `kiln stack refactor`.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_client::StackRequest;
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_console::progress::Target;
use kiln_value::{Map, Value, text};

use super::{WaitArgs, change, ended, of_stack};
use crate::commands::edit;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Move resources between stacks, or give them other names; their objects stay as they are
#[derive(Args, Debug)]
#[command(add = Effect::Changes("keeps every object"))]
#[command(after_help = "\
The file has the new templates of the stacks, and the moves:

  stacks:
    web: {template: web.yaml, parameters: {network: 5b1f…}}
    base: {template: base.yaml}
  moves:
    - {from: web/net, to: base/network}

A member of a group or of a nested stack is web/servers/0. Resources move into groups and nested stacks that exist; create a \
group with the count 0 first.

A resource that leaves one template and appears in one other with the same name needs no entry below moves. With the new \
templates, nothing may be left to do in any of the stacks; else nothing is moved. All stacks are changed, or none. \
Heat has no such call.

Examples:
  kiln stack refactor --moves web.moves.yaml --plan
  kiln stack refactor --moves web.moves.yaml")]
pub(crate) struct RefactorArgs {
    /// File with the stacks and the moves
    #[arg(short, long, value_name = "FILE")]
    moves: PathBuf,
    /// Show what would be moved and what stands in the way, and change nothing
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl RefactorArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let given = edit::value(&self.moves)?;
        let folder = self.moves.parent().unwrap_or(Path::new(""));
        let mut stacks = Vec::new();
        for (name, entry) in given.get("stacks").and_then(Value::as_map).into_iter().flatten() {
            stacks.push((name.clone(), self.request(connection, folder, name, entry).await?));
        }
        if stacks.is_empty() {
            return Err(self.wrong("it has no stacks"));
        }
        let moves = given.get("moves").cloned().unwrap_or_else(|| Value::List(Vec::new()));
        let mut targets = Vec::new();
        if !self.plan && self.wait.waits(connection) {
            for (name, _) in &stacks {
                let target = Target::existing(&connection.client, name, false).await.map_err(of_stack(name))?;
                targets.push((name, target));
            }
        }
        let done = connection.client.refactor_stacks(&stacks, &moves, self.plan).await?;
        let obstacles: Vec<String> = texts(&done, "obstacles");
        let columns = ["from", "to", "resource_type", "physical_resource_id"].map(str::to_owned).to_vec();
        let entries = done.get("moves").and_then(Value::as_list).unwrap_or_default();
        let row = |one: &Value| columns.iter().map(|key| Cell::from(one.str_at(key).unwrap_or_default())).collect();
        let rows = entries.iter().map(row).collect();
        self.output.list(List { columns: columns.clone(), rows }, Format::Table)?;
        let updating = texts(&done, "updating");
        for (name, target) in targets.into_iter().filter(|(name, _)| updating.contains(name)) {
            ended(name, &self.wait.follow(connection, target, false).await?, "UPDATE")?;
        }
        if obstacles.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("nothing would be moved: {}", obstacles.join("; "))))
    }

    /// The new content of a stack.
    async fn request(
        &self,
        connection: &Connection,
        folder: &Path,
        name: &str,
        entry: &Value,
    ) -> Outcome<StackRequest> {
        let none = Map::new();
        let entry = entry.as_map().unwrap_or(&none);
        if let Some(other) =
            entry.keys().find(|key| !["template", "parameters", "environments"].contains(&key.as_str()))
        {
            return Err(
                self.wrong(&format!("stacks.{name}.{other} is not known: template, parameters and environments are"))
            );
        }
        let place = |file: &str| {
            let is_url = file.contains("://");
            if is_url { file.to_owned() } else { folder.join(file).to_string_lossy().into_owned() }
        };
        let template = entry.get("template").and_then(Value::as_str).map(place);
        let environments: Vec<String> = entry
            .get("environments")
            .and_then(Value::as_list)
            .into_iter()
            .flatten()
            .map(|one| place(&text::str(one)))
            .collect();
        let parameters = entry.get("parameters").and_then(Value::as_map).cloned().unwrap_or_default();
        let bundle = change::read(connection, template.as_deref(), &environments, None, &parameters, None).await?;
        Ok(StackRequest { bundle, parameters, ..StackRequest::default() })
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::new(format!("{}: {why}", self.moves.display()))
    }
}

fn texts(answer: &Value, key: &str) -> Vec<String> {
    answer.get(key).and_then(Value::as_list).into_iter().flatten().map(text::str).collect()
}
