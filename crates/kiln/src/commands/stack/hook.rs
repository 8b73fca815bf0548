//! `kiln stack hook poll` and `clear`.

use std::pin::Pin;

use clap::Args;
use kiln_client::{Client, Event};
use kiln_console::output::{Cell, Format, List};
use kiln_value::value;

use super::{StackArg, of_stack};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// `stack hook …`.
    HookCommand {
        Poll(PollArgs),
        Clear(ClearArgs),
    }
}

/// List the resources that wait at a hook
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct PollArgs {
    #[command(flatten)]
    stack: StackArg,
    /// Include nested stacks down to this depth
    #[arg(long, value_name = "DEPTH", default_value_t = 0, hide_default_value = true)]
    nested_depth: u32,
}

/// Clear hooks of resources, so that their operation continues
#[derive(Args, Debug)]
#[command(add = Effect::Changes("continues what waits"))]
#[command(after_help = "\
Examples:
  kiln stack create -t web.yaml --pre-create server web
  kiln stack hook poll web
  kiln stack hook clear --pre-create web server
  kiln stack hook clear web 'nested/*'               every hook of the resources of a nested stack")]
pub(crate) struct ClearArgs {
    /// Clear pre-create hooks
    #[arg(long)]
    pre_create: bool,
    /// Clear pre-update hooks
    #[arg(long)]
    pre_update: bool,
    /// Clear pre-delete hooks
    #[arg(long)]
    pre_delete: bool,
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Resource; with '*' for any characters, and 'nested/inner' for nested stacks
    #[arg(value_name = "RESOURCE", required = true)]
    resources: Vec<String>,
}

impl PollArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = self.stack;
        let pending = connection.client.pending_hooks(&stack, self.nested_depth).await.map_err(of_stack(&stack))?;
        let mut columns = vec!["resource_name", "id", "resource_status_reason", "resource_status", "event_time"];
        if self.nested_depth > 0 {
            columns.push("stack_name");
        }
        let cell = |event: &Event, name: &str| match name {
            "stack_name" => Cell::from(event.stack_name().unwrap_or(&stack)),
            name => Cell::from(event.value().get(name).cloned()),
        };
        let rows = pending.iter().map(|(_, event)| columns.iter().map(|name| cell(event, name)).collect()).collect();
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Ok(output.list(List { columns, rows }, Format::Table)?)
    }
}

impl ClearArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let kinds = [("pre-create", self.pre_create), ("pre-update", self.pre_update), ("pre-delete", self.pre_delete)];
        let wanted: Vec<&str> = kinds.into_iter().filter(|(_, given)| *given).map(|(kind, _)| kind).collect();
        let client = &connection.client;
        for resource in &self.resources {
            let path: Vec<&str> = resource.split('/').collect();
            if clear(client, &self.stack, &path, &wanted).await? == 0 {
                return Err(Failure::new(format!("No resource of stack {} waits at a hook: {resource}", self.stack))
                    .hint(format!("run 'kiln stack hook poll {}' to list the hooks", self.stack)));
            }
        }
        Ok(())
    }
}

/// Clears the hooks of the resources on a path; returns how many. Without wanted kinds, all are cleared.
fn clear<'a>(
    client: &'a Client,
    stack: &'a str,
    path: &'a [&'a str],
    wanted: &'a [&'a str],
) -> Pin<Box<dyn Future<Output = Outcome<usize>> + Send + 'a>> {
    Box::pin(async move {
        let Some((name, rest)) = path.split_first() else { return Ok(0) };
        let mut cleared = 0;
        if rest.is_empty() {
            for (hook, event) in client.pending_hooks(stack, 0).await.map_err(of_stack(stack))? {
                let is_wanted = wanted.is_empty() || wanted.contains(&hook.as_str());
                if is_wanted && matches(name, event.resource_name()) {
                    client.signal(stack, event.resource_name(), Some(&value!({ "unset_hook": hook }))).await?;
                    cleared += 1;
                }
            }
            return Ok(cleared);
        }
        for resource in client.resources(stack, 0, false, &vec![]).await.map_err(of_stack(stack))? {
            if let (true, Some(nested)) = (matches(name, resource.name()), resource.nested()) {
                cleared += clear(client, nested, rest, wanted).await?;
            }
        }
        Ok(cleared)
    })
}

/// Whether a name matches a pattern with `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| name.get(at..).is_some_and(|tail| matches(rest, tail)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, fits) in
            [("a", "a", true), ("a*", "abc", true), ("*", "", true), ("*b*", "abc", true), ("a*c", "ab", false)]
        {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
