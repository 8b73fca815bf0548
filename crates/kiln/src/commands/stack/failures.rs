//! `kiln stack failures …`.

use clap::Args;
use kiln_client::Resource;
use kiln_console::output::print;

use super::of_stack;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::Outcome;

group! {
    /// `stack failures …`.
    FailuresCommand {
        List(ListArgs),
    }
}

/// List the failed resources that caused the failure, in nested stacks too
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Print full reasons, not only their last lines
    #[arg(long)]
    long: bool,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let shown = connection.client.stack(&self.stack, false).await.map_err(of_stack(&self.stack))?;
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
                    print(&failed(&path, resource, self.long))?;
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
