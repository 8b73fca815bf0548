//! `kiln stack resource …`.

use std::path::PathBuf;

use clap::Args;
use kiln_client::{Client, Error, Resource};
use kiln_console::output::{Cell, Format, List, OutputArgs, print};
use kiln_console::resource_graph;
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

/// A resource of a stack.
#[derive(Args, Clone, Debug)]
pub(super) struct ResourceArg {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Name of the resource; 'group/0/server' is one of a nested stack
    #[arg(value_name = "RESOURCE")]
    resource: String,
}

impl ResourceArg {
    /// Calls the service with the stack and the name of the resource.
    pub(super) async fn call<T>(
        &self,
        client: &Client,
        call: impl AsyncFnOnce(&str, &str) -> Result<T, Error>,
    ) -> Outcome<T> {
        let (stack, name) = located(client, &self.stack, &self.resource).await?;
        match call(&stack, &name).await {
            Ok(done) => Ok(done),
            Err(error) => Err(not_found(client, &self.stack, &self.resource, error).await),
        }
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
            return Ok(print(&resource_graph::graphviz(&resources))?);
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

/// Print the metadata of a resource
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct OneArgs {
    #[command(flatten)]
    of: ResourceArg,
    #[command(flatten)]
    output: OutputArgs,
}

impl OneArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let metadata = self.of.call(client, async |stack, name| client.resource_metadata(stack, name).await).await?;
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
        let (client, OneArgs { of, output }) = (&connection.client, self.one);
        let shown = of.call(client, async |stack, name| client.resource(stack, name, &self.with_attr).await).await?;
        Ok(output.one(show::entries(shown.0), Format::Table)?)
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
    #[command(flatten)]
    of: ResourceArg,
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
        let client = &connection.client;
        self.of.call(client, async |stack, name| client.signal(stack, name, data.as_ref()).await).await
    }
}

/// Mark a resource as unhealthy, or healthy again with --reset
#[derive(Args, Debug)]
#[command(add = Effect::Changes("a mark; the update that follows it asks"))]
pub(crate) struct MarkArgs {
    #[command(flatten)]
    of: ResourceArg,
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
        let mark = async |stack: &str, name: &str| client.mark_unhealthy(stack, name, !self.reset, &self.reason).await;
        self.of.call(client, mark).await
    }
}
