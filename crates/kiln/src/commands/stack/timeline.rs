//! `kiln stack timeline`.

use clap::{Args, ValueEnum};
use kiln_client::EventFilter;
use kiln_console::output::{self, print};
use kiln_console::timeline::Timeline;
use kiln_stack::{Clock as _, SystemClock};

use super::of_stack;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Format of the timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// Lines for a terminal.
    #[default]
    Text,
    /// SVG image.
    Svg,
    /// Seconds of each resource as JSON.
    Json,
}

/// Show how long each resource took in the latest operation
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack timeline web
  kiln stack timeline web -f svg > web.svg

█ is done, ░ is in progress, × has failed. The resources of nested stacks are included.")]
pub(crate) struct TimelineArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text")]
    format: Drawing,
}

impl TimelineArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let stack = client.stack(&self.stack, false).await.map_err(of_stack(&self.stack))?;
        let filter = EventFilter { nested_depth: u32::from(u8::MAX), ..EventFilter::default() };
        let events = client.events(&self.stack, &filter).await.map_err(of_stack(&self.stack))?;
        let timeline = Timeline::of(stack.id(), &events, SystemClock.now());
        let timeline = timeline.ok_or_else(|| Failure::new(format!("no operation of {} has events", stack.name())))?;
        Ok(print(&match self.format {
            Drawing::Text => timeline.text(output::terminal_width().map(usize::from)),
            Drawing::Svg => timeline.svg(stack.name()),
            Drawing::Json => {
                let json = serde_json::to_string_pretty(&timeline);
                format!("{}\n", json.map_err(|error| Failure::new(error.to_string()))?)
            }
        })?)
    }
}
