//! `kiln stack …`: the commands of `openstack stack …`.

mod act;
mod change;
mod event;
mod list;
mod output;
mod plan;
mod resource;
mod show;

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use kiln_client::{Error, StackAction};

use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::output::OutputArgs;
use crate::progress::{self, End, Mode, Screen, Target};

pub(crate) use self::show::entries;

/// What to do with stacks.
#[derive(Debug, Subcommand)]
pub(crate) enum StackCommand {
    /// Make a stack of a template
    Create(change::CreateArgs),
    /// Change a stack
    Update(change::UpdateArgs),
    /// List stacks
    List(list::ListArgs),
    /// Show a stack
    Show(show::ShowArgs),
    /// Delete stacks with all that is in them
    Delete(act::DeleteArgs),
    /// Stop what is being done to stacks
    Cancel(act::CancelArgs),
    /// Look whether everything of stacks is there and well
    Check(act::ActArgs),
    /// Put the resources of stacks to sleep
    Suspend(act::ActArgs),
    /// Wake the resources of stacks up
    Resume(act::ActArgs),
    /// Wait until nothing is done with a stack any more
    Wait(act::WaitForArgs),
    /// What happened to a stack
    #[command(subcommand)]
    Event(event::EventCommand),
    /// What a stack is made of
    #[command(subcommand)]
    Resource(resource::ResourceCommand),
    /// What a stack gives
    #[command(subcommand)]
    Output(output::OutputCommand),
    /// The template of a stack
    #[command(subcommand)]
    Template(show::TemplateCommand),
    /// The environment of a stack
    #[command(subcommand)]
    Environment(show::EnvironmentCommand),
    /// The files of a stack
    #[command(subcommand)]
    File(show::FileCommand),
    /// Why a stack failed
    #[command(subcommand)]
    Failures(resource::FailuresCommand),
}

impl StackCommand {
    /// Whether it may be the first one on a database.
    pub(crate) fn creates(&self) -> bool {
        matches!(self, Self::Create(_))
    }

    /// Runs it.
    pub(crate) async fn run(self, connection: &Connection) -> Outcome {
        match self {
            Self::Create(args) => args.run(connection).await,
            Self::Update(args) => args.run(connection).await,
            Self::List(args) => args.run(connection).await,
            Self::Show(args) => args.run(connection).await,
            Self::Delete(args) => args.run(connection).await,
            Self::Cancel(args) => args.run(connection).await,
            Self::Check(args) => args.run(connection, StackAction::Check).await,
            Self::Suspend(args) => args.run(connection, StackAction::Suspend).await,
            Self::Resume(args) => args.run(connection, StackAction::Resume).await,
            Self::Wait(args) => args.run(connection).await,
            Self::Event(command) => command.run(connection).await,
            Self::Resource(command) => command.run(connection).await,
            Self::Output(command) => command.run(connection).await,
            Self::Template(command) => command.run(connection).await,
            Self::Environment(command) => command.run(connection).await,
            Self::File(command) => command.run(connection).await,
            Self::Failures(command) => command.run(connection).await,
        }
    }
}

/// How to wait for the end.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Waiting")]
struct WaitArgs {
    /// Wait until it is done, showing how far it is; without a service (--local) this is always so
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    how: HowArgs,
}

/// How often to look, and how to show what is seen.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Waiting")]
struct HowArgs {
    /// Seconds between two looks [default: 2, or 0.05 with --local]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    poll: Option<Duration>,
    /// How to show how far it is
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    progress: Mode,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds.max(0.05)).map_err(|error| error.to_string())
}

impl WaitArgs {
    /// Whether to wait.
    fn waits(&self, connection: &Connection) -> bool {
        self.wait || connection.is_local()
    }

    async fn follow(&self, connection: &Connection, target: Target, rollback: bool) -> Outcome<End> {
        self.how.follow(connection, target, rollback).await
    }
}

impl HowArgs {
    /// Waits. A stack that ends in FAILED is a failure that names the root cause.
    async fn follow(&self, connection: &Connection, target: Target, rollback: bool) -> Outcome<End> {
        let usual = Duration::from_millis(if connection.is_local() { 50 } else { 2000 });
        let screen = Screen::new(self.progress);
        let poll = self.poll.unwrap_or(usual);
        Ok(progress::follow(&connection.client, target, &screen, poll, rollback).await?)
    }
}

/// The failure of a stack that did not come to the end of `wanted` (`CREATE`).
pub(super) fn ended(name: &str, end: &End, wanted: &str) -> Outcome {
    if end.is_complete() && end.status.starts_with(wanted) {
        return Ok(());
    }
    let mut message = format!("Stack {name} {}", end.status);
    match end.tree.cause() {
        Some(cause) => {
            let kind = if cause.kind.is_empty() { String::new() } else { format!(" ({})", cause.kind) };
            _ = write!(message, "\n  root cause: {}{kind}: {}", cause.path, cause.reason);
        }
        None if !end.reason.is_empty() => _ = write!(message, ": {}", end.reason),
        None => {}
    }
    let failure = Failure::of_stack(message);
    // What is gone has no events to show.
    let is_gone = end.status == "DELETE_COMPLETE";
    Err(if is_gone { failure } else { failure.hint(format!("'kiln stack event list {name}' shows all events")) })
}

/// The error of a call on a stack, in the words of the `openstack` client.
fn of_stack(stack: &str) -> impl Fn(Error) -> Failure + '_ {
    move |error| {
        if error.is_not_found() {
            Failure::new(format!("Stack not found: {stack}")).hint("'kiln stack list' shows the stacks there are")
        } else {
            error.into()
        }
    }
}

/// `key=value` texts as query parameters.
fn filters(given: &[String]) -> Outcome<kiln_client::Query> {
    let parameters = kiln_client::parameters(given)?;
    let mut query = Vec::new();
    for (key, value) in parameters {
        match value {
            kiln_value::Value::List(values) => {
                query.extend(values.iter().map(|value| (key.clone(), kiln_value::text::str(value))));
            }
            value => query.push((key, kiln_value::text::str(&value))),
        }
    }
    Ok(query)
}

/// A stack in a row, or what to print of it by default.
#[derive(Args, Clone, Debug)]
pub(crate) struct StackArg {
    /// Name or id of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// How to print.
    #[command(flatten)]
    output: OutputArgs,
}
