//! `kiln stack revision …`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use kiln_client::{Client, OperationPage};
use kiln_console::output::{Format, List, OutputArgs, print, visible, yaml_text};
use kiln_value::{Map, Value};
use similar::TextDiff;

use super::StackArg;
use super::operation::{PageArgs, kept};
use super::show::entries;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for revisions.
    RevisionCommand {
        List(ListArgs),
        Show(ShowArgs),
        Diff(DiffArgs),
    }
}

/// List the templates that a stack had, and who set them
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    list: PageArgs,
}

/// Show the template, environment and files of a revision
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Number of the revision
    #[arg(value_name = "REVISION")]
    revision: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show the lines that differ between two revisions
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack revision diff web 1    from revision 1 to the newest one")]
pub(crate) struct DiffArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Number of the older revision
    #[arg(value_name = "FROM")]
    from: String,
    /// Number of the newer revision [default: the newest one]
    #[arg(value_name = "TO")]
    to: Option<String>,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = &self.list.of;
        let revisions = connection.client.revisions(stack, &self.list.page()).await.map_err(kept(stack, None))?;
        Ok(output.list(List::of(&revisions, COLUMNS).with_empty_cells(), Format::Table)?)
    }
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let revision = revision_of(&connection.client, &self.stack, &self.revision).await?;
        Ok(self.output.one(entries(revision), Format::Yaml)?)
    }
}

impl DiffArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let stack = &self.stack;
        let to = match self.to {
            Some(to) => to,
            None => newest(client, stack).await?,
        };
        let (old, new) = (revision_of(client, stack, &self.from).await?, revision_of(client, stack, &to).await?);
        let (old, new) = (documents(&old), documents(&new));
        let names: BTreeSet<&String> = old.iter().chain(&new).map(|(name, _)| name).collect();
        let text = |documents: &[(String, String)], name: &String| {
            documents.iter().find(|(known, _)| known == name).map_or_else(String::new, |(_, text)| text.clone())
        };
        let mut shown = String::new();
        for name in names {
            let (before, after) = (text(&old, name), text(&new, name));
            // The time grows with the square of the lines that differ.
            let diff = TextDiff::configure().timeout(LONGEST).diff_lines(&before, &after);
            let (from, to) = (format!("{name} (revision {})", self.from), format!("{name} (revision {to})"));
            _ = write!(shown, "{}", diff.unified_diff().header(&from, &to));
        }
        Ok(print(&visible(&shown))?)
    }
}

/// After this time, a difference is no longer the shortest one.
const LONGEST: Duration = Duration::from_secs(2);

const COLUMNS: &[(&str, &str)] = &[
    ("Revision", "revision"),
    ("Action", "action"),
    ("Status", "status"),
    ("User", "user_name"),
    ("Started At", "started_at"),
    ("Operation", "id"),
];

/// A revision of a stack.
pub(super) async fn revision_of(client: &Client, stack: &str, number: &str) -> Outcome<Value> {
    client.revision(stack, number).await.map_err(kept(stack, Some(("revision", number))))
}

async fn newest(client: &Client, stack: &str) -> Outcome<String> {
    let page = OperationPage { limit: Some(1), marker: None };
    let revisions = client.revisions(stack, &page).await.map_err(kept(stack, None))?;
    let number = revisions.first().and_then(|newest| newest.get("revision")?.as_i64());
    Ok(number.ok_or_else(|| Failure::new(format!("No revision of stack {stack} is kept")))?.to_string())
}

/// The template, the environment and the files as texts.
fn documents(revision: &Value) -> Vec<(String, String)> {
    let of = |name: &str| (name.to_owned(), revision.get(name).map(yaml_text).unwrap_or_default());
    let files = revision.get("files").and_then(Value::as_map).into_iter().flat_map(Map::iter);
    let files = files.map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()));
    [of("template"), of("environment")].into_iter().chain(files).collect()
}
