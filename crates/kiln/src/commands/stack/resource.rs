//! `kiln stack resource …` and `kiln stack failures …`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use kiln_client::{Client, Error, Resource};
use kiln_console::output::{Cell, Format, List, OutputArgs, print};
use kiln_value::Value;

use super::forget::ForgetArgs;
use super::{StackArg, filters, of_stack, show};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// `stack resource …`.
    ResourceCommand {
        List(ListArgs),
        Show(ShowArgs),
        Metadata(OneArgs),
        Signal(SignalArgs),
        /// Mark a resource for replacement by the next update
        #[command(subcommand)]
        Mark(MarkCommand),
        Forget(ForgetArgs),
    }
}

group! {
    /// `stack resource mark …`.
    MarkCommand {
        Unhealthy(MarkArgs),
    }
}

/// List the resources
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack resource list web
  kiln stack resource list -n 5 --filter status=FAILED web
  kiln stack resource list -n 5 -f dot web | dot -Tsvg > web.svg")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    stack: StackArg,
    /// Show more columns
    #[arg(long)]
    long: bool,
    /// Include resources of nested stacks down to this depth
    #[arg(short, long, value_name = "DEPTH", default_value_t = 0, hide_default_value = true)]
    nested_depth: u32,
    /// Only resources with this name, status, type, action, id or physical_resource_id; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    filter: Vec<String>,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = &self.stack;
        let resources = connection.client.resources(stack, self.nested_depth, self.long, &filters(&self.filter)?).await;
        let resources = resources.map_err(of_stack(stack))?;
        if output.format == Some(Format::Dot) {
            return Ok(print(&graph(&resources))?);
        }
        let mut columns =
            vec!["resource_name", "physical_resource_id", "resource_type", "resource_status", "updated_time"];
        if self.nested_depth > 0 || self.long {
            columns.push("stack_name");
        }
        let cell = |resource: &Resource, name: &str| match name {
            "stack_name" => Cell::from(resource.stack_name()),
            name => Cell::from(resource.value().get(name).cloned()),
        };
        let rows = resources.iter().map(|resource| columns.iter().map(|name| cell(resource, name)).collect()).collect();
        let list = List { rows, columns: columns.into_iter().map(str::to_owned).collect() };
        Ok(output.list(list, Format::Table)?)
    }
}

/// The dependency graph in Graphviz format, with nested stacks as clusters.
fn graph(resources: &[Resource]) -> String {
    let ids: HashMap<(&str, &str), String> =
        resources.iter().enumerate().map(|(i, r)| ((r.stack_id(), r.name()), format!("r{i}"))).collect();
    let nested = |r: &Resource| r.nested().and_then(|n| n.rsplit('/').next()).map(str::to_owned);
    let inner: Vec<String> = resources.iter().filter_map(nested).collect();
    let mut out = String::from("digraph G {\n  graph [fontsize=10 fontname=\"Verdana\" compound=true rankdir=LR]\n");
    let node = |out: &mut String, indent: &str, r: &Resource| {
        let id = ids.get(&(r.stack_id(), r.name())).cloned().unwrap_or_default();
        let style = if r.status().ends_with("FAILED") { " style=filled color=red" } else { "" };
        let (name, kind) = (r.name().replace('"', "\\\""), r.kind().replace('"', "\\\""));
        _ = writeln!(out, "{indent}{id} [label=\"{name}\\n{kind}\"{style}];");
    };
    for resource in resources.iter().filter(|r| !inner.iter().any(|id| id == r.stack_id())) {
        node(&mut out, "  ", resource);
    }
    for owner in resources {
        let Some(stack) = nested(owner) else { continue };
        let members: Vec<&Resource> = resources.iter().filter(|r| r.stack_id() == stack).collect();
        let Some(first) = members.first() else { continue };
        _ = writeln!(out, "  subgraph cluster_{} {{\n    label=\"{}\";", stack.replace('-', "_"), owner.name());
        for member in &members {
            node(&mut out, "    ", member);
        }
        out.push_str("  }\n");
        let id = |r: &Resource| ids.get(&(r.stack_id(), r.name())).cloned().unwrap_or_default();
        let cluster = stack.replace('-', "_");
        _ = writeln!(out, "  {} -> {} [color=dimgray lhead=cluster_{cluster} arrowhead=none];", id(owner), id(first));
    }
    for resource in resources {
        let needed_by = resource.value().get("required_by").and_then(Value::as_list).unwrap_or_default();
        for other in needed_by.iter().filter_map(Value::as_str) {
            let from = ids.get(&(resource.stack_id(), resource.name()));
            if let (Some(from), Some(to)) = (from, ids.get(&(resource.stack_id(), other))) {
                _ = writeln!(out, "  {from} -> {to};");
            }
        }
    }
    out.push_str("}\n");
    out
}

/// Print the metadata of a resource
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct OneArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Name of the resource; 'group/0/server' is one of a nested stack
    #[arg(value_name = "RESOURCE")]
    resource: String,
    #[command(flatten)]
    output: OutputArgs,
}

impl OneArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let (stack, name) = located(&connection.client, &self.stack, &self.resource).await?;
        let metadata = connection.client.resource_metadata(&stack, &name).await;
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) => return Err(not_found(&connection.client, &self.stack, &self.resource, error).await),
        };
        Ok(self.output.one(show::entries(metadata), Format::Json)?)
    }
}

/// Show a resource with its attributes
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Include this attribute; may be repeated
    #[arg(long, value_name = "ATTRIBUTE")]
    with_attr: Vec<String>,
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let OneArgs { stack, resource, output } = self.one;
        let (nested, name) = located(&connection.client, &stack, &resource).await?;
        match connection.client.resource(&nested, &name, &self.with_attr).await {
            Ok(shown) => Ok(output.one(show::entries(shown.0), Format::Table)?),
            Err(error) => Err(not_found(&connection.client, &stack, &resource, error).await),
        }
    }
}

/// The stack and the name of a resource: `group/0/server` is the resource `server` in the nested stack of `0` in that of
/// `group`.
pub(crate) async fn located(client: &Client, root: &str, path: &str) -> Outcome<(String, String)> {
    let (mut stack, mut left) = (root.to_owned(), path);
    while let Some((name, below)) = left.split_once('/') {
        let resources = client.resources(&stack, 0, false, &vec![]).await.map_err(of_stack(&stack))?;
        let Some(found) = resources.iter().find(|resource| resource.name() == name) else {
            return Err(unknown(root, path, name, &resources));
        };
        let Some(nested) = found.nested() else {
            return Err(Failure::new(format!("Resource not found: {path}: {name} has no nested stack")));
        };
        (stack, left) = (nested.to_owned(), below);
    }
    Ok((stack, left.to_owned()))
}

/// The failure of a call on a resource, with a suggestion for a misspelled name.
pub(super) async fn not_found(client: &Client, stack: &str, resource: &str, error: Error) -> Failure {
    if !error.is_not_found() {
        return error.into();
    }
    let name = resource.rsplit('/').next().unwrap_or(resource);
    let known = match located(client, stack, resource).await {
        Ok((nested, _)) => client.resources(&nested, 0, false, &vec![]).await.unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    unknown(stack, resource, name, &known)
}

/// The failure for a path whose part `name` is none of the known resources.
fn unknown(stack: &str, path: &str, name: &str, known: &[Resource]) -> Failure {
    let failure = Failure::new(format!("Stack or resource not found: {stack} {path}"));
    let otherwise = format!("run 'kiln stack resource list -n 5 {stack}' to list the resources");
    failure.suggesting(name, known.iter().map(Resource::name), otherwise)
}

/// Send a signal to a resource
#[derive(Args, Debug)]
#[command(add = Effect::Changes("tells a resource what it waits for"))]
pub(crate) struct SignalArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Name of the resource; 'group/0/server' is one of a nested stack
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// JSON to send
    #[arg(long, value_name = "JSON", conflicts_with = "data_file")]
    data: Option<String>,
    /// File with the JSON to send
    #[arg(long, value_name = "FILE")]
    data_file: Option<PathBuf>,
}

impl SignalArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let text = match (self.data, &self.data_file) {
            (Some(text), _) => Some(text),
            (None, Some(file)) => {
                let read = std::fs::read_to_string(file);
                Some(read.map_err(|error| Failure::new(format!("{}: {error}", file.display())))?)
            }
            (None, None) => None,
        };
        let data = match text {
            Some(text) => {
                let wrong = |error| Failure::new(format!("Data should be in JSON format: {error}"));
                let value: Value = serde_json::from_str(&text).map_err(wrong)?;
                if value.as_map().is_none() {
                    return Err(Failure::new("Data should be a JSON dict"));
                }
                Some(value)
            }
            None => None,
        };
        let (stack, name) = located(&connection.client, &self.stack, &self.resource).await?;
        match connection.client.signal(&stack, &name, data.as_ref()).await {
            Ok(()) => Ok(()),
            Err(error) => Err(not_found(&connection.client, &self.stack, &self.resource, error).await),
        }
    }
}

/// Mark a resource as unhealthy, or healthy again with --reset
#[derive(Args, Debug)]
#[command(add = Effect::Changes("a mark; the update that follows it asks"))]
pub(crate) struct MarkArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Name of the resource; 'group/0/server' is one of a nested stack
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// Reason
    #[arg(value_name = "REASON", default_value = "", hide_default_value = true)]
    reason: String,
    /// Mark it as healthy again
    #[arg(long)]
    reset: bool,
}

impl MarkArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let (stack, name) = located(client, &self.stack, &self.resource).await?;
        match client.mark_unhealthy(&stack, &name, !self.reset, &self.reason).await {
            Ok(()) => Ok(()),
            Err(error) => Err(not_found(client, &self.stack, &self.resource, error).await),
        }
    }
}

/// `stack failures …`.
#[derive(Debug, Subcommand)]
pub(crate) enum FailuresCommand {
    List(FailuresArgs),
}

/// List the failed resources that caused the failure, in nested stacks too
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct FailuresArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Print full reasons, not only their last lines
    #[arg(long)]
    long: bool,
}

impl FailuresCommand {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let Self::List(FailuresArgs { stack, long }) = self;
        let shown = connection.client.stack(&stack, false).await.map_err(of_stack(&stack))?;
        if !shown.status().ends_with("FAILED") {
            return Ok(());
        }
        let resources = connection.client.resources(shown.id(), u32::from(u8::MAX), false, &vec![]).await?;
        let below = |r: &Resource| -> Vec<&Resource> {
            let nested = r.nested().and_then(|n| n.rsplit('/').next()).unwrap_or_default().to_owned();
            resources.iter().filter(|other| other.stack_id() == nested && !nested.is_empty()).collect()
        };
        let top = resources.iter().filter(|r| r.stack_id() == shown.id()).collect();
        let mut waiting: Vec<(String, Vec<&Resource>)> = vec![(shown.name().to_owned(), top)];
        while let Some((path, level)) = waiting.pop() {
            for resource in level.into_iter().filter(|r| r.status().ends_with("FAILED")) {
                let path = format!("{path}.{}", resource.name());
                let inner = below(resource);
                if inner.iter().any(|r| r.status().ends_with("FAILED")) {
                    waiting.push((path, inner));
                } else {
                    print(&failed(&path, resource, long))?;
                }
            }
        }
        Ok(())
    }
}

/// A failed resource in the layout of `openstack stack failures list`.
fn failed(path: &str, resource: &Resource, long: bool) -> String {
    const SHOWN: usize = 10;
    let mut lines: Vec<&str> = resource.reason().lines().collect();
    if !long && lines.len() > SHOWN {
        lines.drain(..lines.len() - SHOWN);
        lines.insert(0, "...");
    }
    let reason: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    format!(
        "{path}:\n  resource_type: {}\n  physical_resource_id: {}\n  status: {}\n  status_reason: |\n{}\n",
        resource.kind(),
        resource.physical_id(),
        resource.status(),
        reason.join("\n"),
    )
}
