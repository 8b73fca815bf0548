//! `kiln stack list`.

use clap::{Args, ValueEnum};
use kiln_client::StackFilter;
use kiln_console::output::{Cell, Format, List, OutputArgs};

use super::filters;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// How the tags are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TagMode {
    /// Stacks with at least one of the tags.
    Any,
    /// Stacks without at least one of the tags.
    Not,
    /// Stacks with none of the tags.
    NotAny,
}

/// List stacks
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack list
  kiln stack list --property status=FAILED -f json
  kiln stack list --tags web,blue --tag-mode any --sort 'stack_name:desc'")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ListArgs {
    /// Include deleted stacks
    #[arg(long)]
    deleted: bool,
    /// Include nested stacks
    #[arg(long)]
    nested: bool,
    /// Include hidden stacks
    #[arg(long)]
    hidden: bool,
    /// Only stacks with this property (id, status, name, action, tenant, username); may be repeated
    #[arg(long = "property", value_name = "KEY=VALUE")]
    properties: Vec<String>,
    /// Only stacks of the project with this ID (admin)
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Only stacks with all of these tags
    #[arg(long, value_name = "TAG1,TAG2…")]
    tags: Option<String>,
    /// How to match the tags, if not all of them are required
    #[arg(long, value_enum, value_name = "MODE", requires = "tags")]
    tag_mode: Option<TagMode>,
    /// Maximum number of stacks
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only stacks after the stack with this ID
    #[arg(long, value_name = "ID")]
    marker: Option<String>,
    /// Sort by these keys, separated by commas; ':desc' after a key for descending order
    #[arg(long, value_name = "KEY[:DIRECTION]")]
    sort: Option<String>,
    /// Include stacks of all projects (admin)
    #[arg(long)]
    all_projects: bool,
    /// Show fewer columns
    #[arg(long)]
    short: bool,
    /// Show more columns and stacks of all projects
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ListArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let mode = match self.tag_mode {
            None => "tags",
            Some(TagMode::Any) => "tags_any",
            Some(TagMode::Not) => "not_tags",
            Some(TagMode::NotAny) => "not_tags_any",
        };
        let filter = StackFilter {
            limit: self.limit,
            marker: self.marker.clone(),
            properties: filters(&self.properties)?,
            tags: self.tags.clone().map(|tags| (mode, tags)),
            all_projects: self.all_projects || self.long,
            project: self.project.clone(),
            deleted: self.deleted,
            hidden: self.hidden,
            nested: self.nested,
        };
        let stacks = connection.client.stacks(&filter).await?;
        let mut columns = vec![("ID", "id"), ("Stack Name", "stack_name"), ("Stack Status", "stack_status")];
        if !self.short {
            columns.extend([("Creation Time", "creation_time"), ("Updated Time", "updated_time")]);
        }
        if self.long {
            columns.insert(2, ("Stack Owner", "stack_owner"));
        }
        if self.nested {
            columns.push(("Parent", "parent"));
        }
        if self.deleted {
            columns.push(("Deletion Time", "deletion_time"));
        }
        if stacks.iter().any(|stack| stack.value().get("project").is_some()) {
            columns.insert(2, ("Project", "project"));
        }
        let mut values: Vec<&kiln_value::Value> = stacks.iter().map(kiln_client::Stack::value).collect();
        sort(&mut values, self.sort.as_deref().unwrap_or_default())?;
        let row = |stack: &&kiln_value::Value| {
            columns.iter().map(|(_, key)| stack.get(key).cloned().map_or_else(|| Cell::from(""), Cell::from)).collect()
        };
        let list = List {
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: values.iter().map(row).collect(),
        };
        Ok(self.output.list(list, Format::Table)?)
    }
}

/// Sorts by `key[:asc|:desc],…`; the first key is the primary one.
pub(super) fn sort(values: &mut [&kiln_value::Value], order: &str) -> Outcome {
    for part in order.split(',').rev().filter(|part| !part.is_empty()) {
        let (key, direction) = part.split_once(':').unwrap_or((part, "asc"));
        let key = |value: &&kiln_value::Value| value.get(key).map(kiln_value::text::str).unwrap_or_default();
        match direction {
            "asc" => values.sort_by_key(key),
            "desc" => values.sort_by_key(|value| std::cmp::Reverse(key(value))),
            other => {
                return Err(Failure::new(format!("Specify sort direction by 'asc' or 'desc', not {other:?}")));
            }
        }
    }
    Ok(())
}
