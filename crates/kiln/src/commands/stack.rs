//! `kiln stack …`: the commands of `openstack stack …`.

mod act;
mod adopt;
mod change;
mod drift;
mod event;
mod failures;
mod forget;
mod go_on;
mod hook;
mod list;
mod operation;
mod output;
mod plan;
mod protect;
mod refactor;
mod release;
mod resource;
mod revision;
mod select;
mod show;
mod snapshot;
mod timeline;

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use kiln_client::Error;
use kiln_console::note;
use kiln_console::output::OutputArgs;
use kiln_console::progress::{self, End, Mode, Screen, Target};

pub(crate) use self::change::{Content, read};
pub(crate) use self::plan::{saved_as, show as show_plan, write_page};
pub(crate) use self::resource::located;
pub(crate) use self::show::{entries, short};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::exit_code::{OF_PLAN, OF_PLANNED_CREATE};
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for stacks.
    StackCommand {
        /// Create a stack from a template
        #[command(add = Effect::Changes("adds"), add = OF_PLANNED_CREATE)]
        Create(change::CreateArgs),
        /// Update a stack
        #[command(add = Effect::Destroys, add = OF_PLAN)]
        Update(change::UpdateArgs),
        #[command(add = OF_PLAN)]
        Plan(plan::PlanArgs),
        Apply(plan::ApplyArgs),
        List(list::ListArgs),
        Show(show::ShowArgs),
        Delete(act::DeleteArgs),
        Adopt(adopt::AdoptArgs),
        Abandon(adopt::AbandonArgs),
        Release(release::ReleaseArgs),
        Refactor(refactor::RefactorArgs),
        Export(adopt::ExportArgs),
        Cancel(act::CancelArgs),
        Continue(go_on::ContinueArgs),
        Check(act::CheckArgs),
        Drift(drift::DriftArgs),
        Suspend(act::SuspendArgs),
        Resume(act::ResumeArgs),
        Wait(act::WaitForArgs),
        /// Create, list, show, delete and restore snapshots of a stack
        #[command(subcommand)]
        Snapshot(snapshot::SnapshotCommand),
        /// List and clear the hooks at which the resources of a stack wait
        #[command(subcommand)]
        Hook(hook::HookCommand),
        /// List and show the events of a stack
        #[command(subcommand)]
        Event(event::EventCommand),
        /// List, show, signal and mark the resources of a stack
        #[command(subcommand)]
        Resource(resource::ResourceCommand),
        /// List and show the outputs of a stack
        #[command(subcommand)]
        Output(output::OutputCommand),
        /// Show the template of a stack
        #[command(subcommand)]
        Template(show::TemplateCommand),
        /// Show the environment of a stack
        #[command(subcommand)]
        Environment(show::EnvironmentCommand),
        /// List the files of a stack
        #[command(subcommand)]
        File(show::FileCommand),
        /// List and show what was requested of a stack
        #[command(subcommand)]
        Operation(operation::OperationCommand),
        /// List, show and compare the templates that a stack had
        #[command(subcommand)]
        Revision(revision::RevisionCommand),
        Rollback(change::RollbackArgs),
        Protect(protect::ProtectArgs),
        Unprotect(protect::UnprotectArgs),
        Freeze(protect::FreezeArgs),
        Thaw(protect::ThawArgs),
        Timeline(timeline::TimelineArgs),
        /// List the failed resources of a stack
        #[command(subcommand)]
        Failures(failures::FailuresCommand),
    }
}

impl StackCommand {
    /// Whether the command may run on a database that does not exist yet.
    pub(crate) fn creates(&self) -> bool {
        match self {
            Self::Create(_) | Self::Adopt(_) => true,
            Self::Plan(args) => args.may_be_of_a_create(),
            _ => false,
        }
    }

    /// The names of the stacks on which the command starts or waits for an operation.
    pub(crate) fn changed(&self) -> Vec<String> {
        match self {
            Self::Create(args) => vec![args.name.clone()],
            Self::Update(args) => vec![args.stack.clone()],
            Self::Rollback(args) => vec![args.stack.clone()],
            Self::Adopt(args) => vec![args.name.clone()],
            Self::Delete(args) => args.stacks.clone(),
            Self::Cancel(args) => args.select.stacks.clone(),
            Self::Continue(args) => args.select.stacks.clone(),
            Self::Check(args) => args.act.stacks.clone(),
            Self::Suspend(args) => args.act.stacks.clone(),
            Self::Resume(args) => args.act.stacks.clone(),
            Self::Wait(args) => args.stacks.clone(),
            _ => Vec::new(),
        }
    }
}

/// Options for waiting.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Waiting")]
pub(crate) struct WaitArgs {
    /// Wait until the operation is done and show its progress; always on with --local
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    how: HowArgs,
}

/// Polling and progress.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Waiting")]
struct HowArgs {
    /// Polling interval in seconds [default: 2, or 0.05 with --local]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    poll: Option<Duration>,
    /// How to show the progress
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    progress: Mode,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if seconds.is_nan() {
        return Err("not a number of seconds".to_owned());
    }
    Duration::try_from_secs_f64(seconds.max(0.05)).map_err(|error| error.to_string())
}

impl WaitArgs {
    /// Whether the command waits.
    pub(crate) fn waits(&self, connection: &Connection) -> bool {
        self.wait || connection.is_local()
    }

    /// Whether the progress shows numbers of resources.
    fn shows_counts(&self) -> bool {
        matches!(self.how.progress, Mode::Auto | Mode::Plain)
    }

    pub(crate) async fn follow(&self, connection: &Connection, target: Target, rollback: bool) -> Outcome<End> {
        self.how.follow(connection, target, rollback).await
    }
}

impl HowArgs {
    /// Waits until the operation of the stack is done and shows its progress.
    async fn follow(&self, connection: &Connection, target: Target, rollback: bool) -> Outcome<End> {
        let usual = Duration::from_millis(if connection.is_local() { 50 } else { 2000 });
        let screen = Screen::new(self.progress);
        let poll = self.poll.unwrap_or(usual);
        Ok(progress::follow(&connection.client, target, &screen, poll, rollback).await?)
    }
}

/// Fails unless the stack completed the action `wanted` (`CREATE`); the failure contains the root cause.
pub(crate) fn ended(name: &str, end: &End, wanted: &str) -> Outcome {
    if let Some(action) = end.superseded.as_ref().filter(|_| !wanted.is_empty()) {
        let status = &end.status;
        let message = format!("another request replaced the {wanted} of stack {name} by {action}: it is {status} now");
        return Err(Failure::of_stack(message).hint(format!("run 'kiln stack event list {name}' to list all events")));
    }
    if end.is_complete() && end.status.starts_with(wanted) {
        return Ok(());
    }
    let mut message = format!("Stack {name} {}", end.status);
    if end.status == "ROLLBACK_FAILED" && end.tree.cause_of_rollback().is_none() {
        _ = write!(message, ": {}", end.reason);
    }
    match end.tree.cause() {
        Some(cause) => {
            _ = write!(message, "\n  root cause: {cause}");
            if let Some(before) = end.tree.cause_before_rollback() {
                _ = write!(message, "\n  rolled back because of {before}");
            }
        }
        None if !end.reason.is_empty() => _ = write!(message, ": {}", end.reason),
        None => {}
    }
    let failure = Failure::of_stack(message);
    // A deleted stack has no events to show.
    if end.status == "DELETE_COMPLETE" {
        return Err(failure);
    }
    let failure = failure.hint(format!("run 'kiln stack event list {name}' to list all events"));
    Err(match end.status.as_str() {
        "CREATE_FAILED" | "UPDATE_FAILED" | "ROLLBACK_FAILED" => failure.hint(format!(
            "when the cause is removed, run 'kiln stack continue {name}'; with --skip PATH it leaves a resource as it is"
        )),
        "DELETE_FAILED" => {
            let failure = failure.hint(format!("run 'kiln stack delete {name}' to try again"));
            match end.tree.cause() {
                Some(cause) => failure.hint(format!(
                    "run 'kiln stack resource forget {name} {}' to leave its object in the cloud",
                    cause.path
                )),
                None => failure,
            }
        }
        _ => failure,
    })
}

/// Converts the error of a call on a stack to the text of the `openstack` client.
pub(crate) fn of_stack(stack: &str) -> impl Fn(Error) -> Failure + '_ {
    move |error| {
        if error.is_not_found() {
            Failure::new(format!("Stack not found: {stack}")).hint("run 'kiln stack list' to list the stacks")
        } else {
            error.into()
        }
    }
}

/// Converts `key=value` arguments to query parameters. The API has the action and the status in separate ones, so a
/// status such as `CREATE_COMPLETE`, as lists show it, becomes both.
fn filters(given: &[String]) -> Outcome<kiln_client::Query> {
    let parameters = kiln_client::parameters(given)?;
    let mut query = Vec::new();
    let mut add = |key: &str, value: &kiln_value::Value| {
        let value = kiln_value::text::str(value);
        let statuses = ["COMPLETE", "FAILED", "IN_PROGRESS"];
        let parts = |status| Some((value.strip_suffix(status)?.strip_suffix('_')?, status));
        let whole = statuses.into_iter().find_map(parts).filter(|_| key.ends_with("status"));
        match whole {
            Some((action, status)) => {
                query.push((key.replace("status", "action"), action.to_owned()));
                query.push((key.to_owned(), status.to_owned()));
            }
            None => query.push((key.to_owned(), value)),
        }
    };
    for (key, value) in parameters {
        match value {
            kiln_value::Value::List(values) => values.iter().for_each(|value| add(&key, value)),
            value => add(&key, &value),
        }
    }
    Ok(query)
}

/// A stack and the output format.
#[derive(Args, Clone, Debug)]
pub(crate) struct StackArg {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Output options.
    #[command(flatten)]
    output: OutputArgs,
}
