//! `kiln stack output …`.

use clap::Args;
use kiln_console::output::{Cell, Format, List, Look};

use super::{StackArg, of_stack, show};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome, nearest};

group! {
    /// `stack output …`.
    OutputCommand {
        List(ListArgs),
        Show(ShowArgs),
    }
}

/// List the outputs
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    of: StackArg,
}

/// Show one output or all outputs with their values
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack output show web address
  kiln stack output show web address -f value -c output_value    print only the value, for scripts
  kiln stack output show web --all")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    stack: StackArg,
    /// Name of the output
    #[arg(value_name = "OUTPUT", required_unless_present = "all", conflicts_with = "all")]
    output: Option<String>,
    /// Show all outputs
    #[arg(long)]
    all: bool,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = self.of;
        let outputs = connection.client.outputs(&stack).await.map_err(of_stack(&stack))?;
        let columns = [("output_key", "output_key"), ("description", "description")];
        Ok(output.list(List::of(&outputs, &columns), Format::Table)?)
    }
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output: printed } = self.stack;
        let client = &connection.client;
        let Some(name) = self.output else {
            let answer = client.stack(&stack, true).await.map_err(of_stack(&stack))?;
            let all = answer.outputs().iter().map(|output| {
                let name = output.str_at("output_key").unwrap_or_default();
                (name.to_owned(), Cell::with(output, Look::Json))
            });
            return Ok(printed.one(all.collect(), Format::Table)?);
        };
        let output = match client.output(&stack, &name).await {
            Ok(output) => output,
            Err(error) if error.is_not_found() => {
                let failure = Failure::new(format!("Stack {stack} or output {name} not found."));
                let known = client.outputs(&stack).await.map_err(of_stack(&stack))?;
                let keys = known.iter().filter_map(|output| output.str_at("output_key"));
                return Err(match nearest(&name, keys) {
                    Some(near) => failure.hint(format!("did you mean {near}?")),
                    None => failure,
                });
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(error) = output.str_at("output_error") {
            return Err(Failure::new(format!("Output error: {error}")));
        }
        Ok(printed.one(show::entries(output), Format::Table)?)
    }
}
