//! `kiln drift schedule …`.

use std::time::Duration;

use clap::Args;
use kiln_console::output::{Format, List, OutputArgs};
use kiln_value::Value;

use crate::commands::duration;
use crate::commands::effect::Effect;
use crate::commands::stack::of_stack;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// `drift schedule …`.
    ScheduleCommand {
        List(ListArgs),
        Set(SetArgs),
        Remove(RemoveArgs),
    }
}

/// List the schedules of the project and of its stacks
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// Compare a stack, or all stacks of the project, with their objects regularly
#[derive(Args, Debug)]
#[command(add = Effect::Changes("engines repair only what interrupts nothing"))]
#[command(after_help = "\
Engines compare the stacks with the stored credentials of each. Without --repair, they change nothing. When \
something has drifted, webhooks and the notifications of the operator get drift.found.

With --repair, an engine gives changed properties the values of the template again, if that interrupts nothing. \
For deleted objects and what needs a replacement it saves a plan, which waits for you: 'kiln plan list'. A property \
that was repaired three times within a day is left as it is.

Examples:
  kiln drift schedule set --every 1d            all stacks of the project
  kiln drift schedule set web --every 1h        this one more often
  kiln drift schedule set web --every never     this one not at all
  kiln drift schedule set web --every 1h --repair")]
pub(crate) struct SetArgs {
    /// Name or ID of the stack [default: all stacks of the project]
    #[arg(value_name = "STACK")]
    stack: Option<String>,
    /// Time between comparisons, such as 30m, 6h or 1d, or never
    #[arg(long, value_name = "TIME", value_parser = every)]
    every: Duration,
    /// Repair what others have changed, where that has a low risk
    #[arg(long)]
    repair: bool,
}

/// Remove the schedule of a stack, which then has that of the project, or that of the project
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
pub(crate) struct RemoveArgs {
    /// Name or ID of the stack [default: the schedule of the project]
    #[arg(value_name = "STACK")]
    stack: Option<String>,
}

const COLUMNS: &[(&str, &str)] = &[
    ("Stack ID", "stack_id"),
    ("Every", "period"),
    ("Repair", "repair"),
    ("By", "user_name"),
    ("Set At", "created_at"),
];

/// A period; zero: never.
fn every(text: &str) -> Result<Duration, String> {
    if text == "never" {
        return Ok(Duration::ZERO);
    }
    let every = duration::parse(text).filter(|every| every.as_secs() > 0);
    every.ok_or_else(|| "neither a time such as 30m, 6h or 1d nor never".to_owned())
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let schedules = connection.client.drift_schedules().await?;
        let schedules: Vec<Value> = schedules.into_iter().map(with_period).collect();
        Ok(self.output.list(List::of(&schedules, COLUMNS).with_empty_cells(), Format::Table)?)
    }
}

impl SetArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let stack = self.stack.as_deref();
        let set = connection.client.set_drift_schedule(stack, self.every.as_secs(), self.repair).await;
        set.map(drop).map_err(|error| refused(stack, error))
    }
}

impl RemoveArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let stack = self.stack.as_deref();
        connection.client.remove_drift_schedule(stack).await.map_err(|error| match stack {
            None if error.is_not_found() => Failure::new("The project has no schedule".to_owned()),
            _ => refused(stack, error),
        })
    }
}

fn refused(stack: Option<&str>, error: kiln_client::Error) -> Failure {
    match stack {
        Some(stack) => of_stack(stack)(error),
        None => error.into(),
    }
}

/// With the period in words.
fn with_period(mut schedule: Value) -> Value {
    let seconds = schedule.get("every").and_then(Value::as_i64).unwrap_or_default();
    let words = match u64::try_from(seconds) {
        Ok(seconds) if seconds > 0 => duration::words(Duration::from_secs(seconds)),
        _ => "never".to_owned(),
    };
    if let Some(schedule) = schedule.as_map_mut() {
        schedule.insert("period".to_owned(), words.into());
    }
    schedule
}
