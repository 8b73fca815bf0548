//! `kiln quota …`: how many stacks and resources a project may have.

use clap::Args;
use kiln_console::output::{Format, List, OutputArgs};
use kiln_value::{Map, Value};

use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for quotas.
    QuotaCommand {
        Show(ShowArgs),
        Set(SetArgs),
        Reset(ResetArgs),
    }
}

/// Show the quotas of your project, or of any project (admin), and how much is in use
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
-1 means no limit. 'Default' is what the configuration of the service says.")]
pub(crate) struct ShowArgs {
    /// ID of the project [default: your own]
    #[arg(value_name = "PROJECT")]
    project: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Change quotas of a project (admin); what is there stays
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
#[command(after_help = "\
Examples:
  kiln quota set 3f5f70b8c1fa464284647355841d6d73 --stacks 2000
  kiln quota set 3f5f70b8c1fa464284647355841d6d73 --resources-per-stack -1      no limit")]
pub(crate) struct SetArgs {
    /// ID of the project
    #[arg(value_name = "PROJECT")]
    project: String,
    /// Stacks, without nested ones
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    stacks: Option<i64>,
    /// Resources of a stack with its nested stacks
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    resources_per_stack: Option<i64>,
    /// Snapshots of a stack
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    snapshots_per_stack: Option<i64>,
    /// Software configs
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    software_configs: Option<i64>,
    /// Software deployments
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    software_deployments: Option<i64>,
    /// Saved plans and change sets
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    saved_plans: Option<i64>,
    /// Stacks with an operation in progress, without nested ones
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    operations_in_progress: Option<i64>,
    /// Requests that wait for events, in each process
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    event_streams: Option<i64>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Give a project the quotas of the configuration again (admin)
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
pub(crate) struct ResetArgs {
    /// ID of the project
    #[arg(value_name = "PROJECT")]
    project: String,
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let quotas = connection.client.quotas(self.project.as_deref()).await?;
        print(&self.output, &quotas)
    }
}

impl SetArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let given = [
            ("stacks", self.stacks),
            ("resources_per_stack", self.resources_per_stack),
            ("snapshots_per_stack", self.snapshots_per_stack),
            ("software_configs", self.software_configs),
            ("software_deployments", self.software_deployments),
            ("saved_plans", self.saved_plans),
            ("operations_in_progress", self.operations_in_progress),
            ("event_streams", self.event_streams),
        ];
        let changes: Map = given.into_iter().filter_map(|(name, most)| Some((name.to_owned(), most?.into()))).collect();
        if changes.is_empty() {
            return Err(Failure::new("no quota is given").hint("for example --stacks 2000"));
        }
        let quotas = connection.client.set_quotas(&self.project, changes).await?;
        print(&self.output, &quotas)
    }
}

impl ResetArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        Ok(connection.client.reset_quotas(&self.project).await?)
    }
}

fn print(output: &OutputArgs, quotas: &Value) -> Outcome {
    let rows = quotas.as_map().into_iter().flatten().map(|(name, state)| {
        let mut row = state.as_map().cloned().unwrap_or_default();
        row.insert("name".to_owned(), name.as_str().into());
        Value::Map(row)
    });
    let rows: Vec<Value> = rows.collect();
    let columns = [("Quota", "name"), ("Limit", "limit"), ("Default", "default"), ("In Use", "in_use")];
    Ok(output.list(List::of(&rows, &columns).with_empty_cells(), Format::Table)?)
}
