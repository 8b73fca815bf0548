//! Names that a service knows. Completion prints no errors: without an answer there are no names.

use std::ffi::OsStr;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use clap_complete::engine::CompletionCandidate;
use kiln_client::{Client, StackFilter};

use crate::cli::{Cli, Global};
use crate::commands::stack::located;
use crate::connect::{Connection, Need};
use crate::failure::Outcome;

/// How long a service may take to answer, if [`TIMEOUT`] is not set.
const PATIENCE: Duration = Duration::from_secs(2);
/// The variable with another time, in seconds.
const TIMEOUT: &str = "KILN_COMPLETE_TIMEOUT";

/// What a value names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Names {
    Stacks,
    /// Resources of the stack in the line.
    Resources,
    /// Outputs of the stack in the line.
    Outputs,
}

impl Names {
    /// The names that begin like a value.
    pub(super) fn completed(self, begun: &OsStr) -> Vec<CompletionCandidate> {
        // An option is not a name.
        let Some(begun) = begun.to_str().filter(|begun| !begun.starts_with('-')) else { return Vec::new() };
        let names = self.asked(begun).unwrap_or_default();
        names.into_iter().filter(|name| name.starts_with(begun)).map(CompletionCandidate::new).collect()
    }

    /// Connects with the options of the line, and asks for the names.
    fn asked(self, begun: &str) -> Option<Vec<String>> {
        let line = std::env::args_os().skip_while(|word| word != "--").skip(1);
        let line = Cli::command().ignore_errors(true).try_get_matches_from(line).ok()?;
        let global = Global::from_arg_matches(&line).ok()?;
        let seconds = std::env::var(TIMEOUT).ok().and_then(|text| text.parse().ok());
        let patience = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let answer = runtime.block_on(async {
            let known = async {
                let connection = Box::pin(Connection::open(&global, Need::Names)).await?;
                self.known(&connection.client, &line, begun).await
            };
            tokio::time::timeout(patience, known).await
        });
        // The resolver of host names may still work.
        runtime.shutdown_background();
        answer.ok()?.ok()
    }

    async fn known(self, client: &Client, line: &ArgMatches, begun: &str) -> Outcome<Vec<String>> {
        let mut command = line;
        while let Some((_, below)) = command.subcommand() {
            command = below;
        }
        let stack = command.try_get_one::<String>("stack").ok().flatten();
        Ok(match (self, stack) {
            (Self::Stacks, _) => {
                let stacks = client.stacks(&StackFilter::default()).await?;
                stacks.iter().map(|stack| stack.name().to_owned()).collect()
            }
            (_, None) => Vec::new(),
            (Self::Resources, Some(stack)) => {
                let (nested, name) = located(client, stack, begun).await?;
                let above = begun.strip_suffix(&name).unwrap_or_default();
                let resources = client.resources(&nested, 0, false, &vec![]).await?;
                resources.iter().map(|resource| format!("{above}{}", resource.name())).collect()
            }
            (Self::Outputs, Some(stack)) => {
                let outputs = client.outputs(stack).await?;
                outputs.iter().filter_map(|output| output.str_at("output_key").map(str::to_owned)).collect()
            }
        })
    }
}
