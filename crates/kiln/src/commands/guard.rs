//! `kiln guard …`: what nobody may do with stacks and their resources.

use std::fmt::Write as _;

use clap::Args;
use kiln_client::NewGuard;
use kiln_console::output::{Format, List, OutputArgs, print};
use kiln_value::{Map, Value};

use super::stack::entries;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for guards.
    GuardCommand {
        List(ListArgs),
        Show(ShowArgs),
        Lift(LiftArgs),
        RequirePlans(RequirePlansArgs),
    }
}

/// List the guards of the project, or of a stack
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
'kiln stack protect' and 'kiln stack freeze' add guards.

Examples:
  kiln guard list
  kiln guard list --stack web -f json")]
pub(crate) struct ListArgs {
    /// Only guards that hold for the stack with this name or ID
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show a guard
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    /// ID of the guard
    #[arg(value_name = "GUARD")]
    guard: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Lift guards: what they have protected can be changed again
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
pub(crate) struct LiftArgs {
    /// IDs of the guards
    #[arg(value_name = "GUARD", required = true)]
    guards: Vec<String>,
}

/// Require a saved plan for each change of the project's stacks, or of one stack
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
Creates, updates and deletes then need 'kiln stack plan --save' and 'kiln stack apply', with whatever client. \
To no longer require plans, lift the guard.

Examples:
  kiln guard require-plans --reason 'two people look at each change'
  kiln guard require-plans --stack web")]
pub(crate) struct RequirePlansArgs {
    /// Only for the stack with this name or ID
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    #[command(flatten)]
    terms: TermsArgs,
}

/// Until when a guard holds, and why it was added.
#[derive(Args, Clone, Debug)]
pub(crate) struct TermsArgs {
    /// End by itself at this time (2027-01-31T12:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<String>,
    /// Why: shown to everybody who is refused
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("Stack ID", "stack_id"),
    ("Forbids", "forbids"),
    ("Until", "until"),
    ("By", "user_name"),
    ("Reason", "reason"),
];

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let guards = connection.client.guards(self.stack.as_deref()).await.map_err(|error| match &self.stack {
            Some(stack) => super::stack::of_stack(stack)(error),
            None => error.into(),
        })?;
        let guards: Vec<Value> = guards.into_iter().map(with_words).collect();
        Ok(self.output.list(List::of(&guards, COLUMNS).with_empty_cells(), Format::Table)?)
    }
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let guard = connection.client.guard(&self.guard).await.map_err(of_guard(&self.guard))?;
        Ok(self.output.one(entries(guard), Format::Table)?)
    }
}

impl LiftArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        for id in &self.guards {
            connection.client.lift_guard(id).await.map_err(of_guard(id))?;
        }
        Ok(())
    }
}

impl RequirePlansArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let rule = Map::from([("plans".to_owned(), "required".into())]);
        add(connection, self.stack, rule, self.terms).await
    }
}

/// Adds a guard, and prints what it is and what it does not stop.
pub(super) async fn add(connection: &Connection, stack: Option<String>, rule: Map, terms: TermsArgs) -> Outcome {
    let new = NewGuard { stack, rule, until: terms.until, reason: terms.reason };
    let added = connection.client.add_guard(&new).await.map_err(|error| match &new.stack {
        Some(stack) => super::stack::of_stack(stack)(error),
        None => error.into(),
    })?;
    let guard = with_words(added.get("guard").cloned().unwrap_or_default());
    let (id, forbids) = (guard.str_at("id").unwrap_or_default(), guard.str_at("forbids").unwrap_or_default());
    let mut text = format!("Guard {id} forbids {forbids}\n");
    for running in added.get("in_flight").and_then(Value::as_list).into_iter().flatten() {
        let (path, action) = (running.str_at("resource_path"), running.str_at("action"));
        let (path, action) = (path.unwrap_or_default(), action.unwrap_or_default());
        _ = writeln!(text, "It does not stop the {action} of {path}, which had begun");
    }
    for path in added.get("locked").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_str) {
        _ = writeln!(text, "The object of {path} is locked in the cloud");
    }
    Ok(print(&text)?)
}

/// With what it forbids, in words.
pub(super) fn with_words(mut guard: Value) -> Value {
    let verbs = |protect: &Value| {
        let verbs = protect.as_list().into_iter().flatten().filter_map(Value::as_str);
        verbs.collect::<Vec<_>>().join(", ")
    };
    let is = |key: &str| guard.get(key).is_some_and(Value::is_truthy);
    let ignored = guard.get("ignore").and_then(Value::as_list).unwrap_or_default();
    let ignored = ignored.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    let words = match (guard.get("protect"), guard.str_at("resources")) {
        (Some(protect), Some(resources)) => format!("{} of {resources}", verbs(protect)),
        (Some(protect), None) => format!("{} of the stack", verbs(protect)),
        _ if is("freeze") && is("signals") => "every change, signals too".to_owned(),
        _ if is("freeze") => "every change except signals".to_owned(),
        _ if is("leave") => format!("writes of {ignored}, and reports of it as drift"),
        _ if !ignored.is_empty() => format!("reports of {ignored} as drift"),
        _ if is("plans") => "changes without a saved plan".to_owned(),
        _ => "what its stack policy denies".to_owned(),
    };
    let words = if is("lock") { format!("{words}, also in the cloud") } else { words };
    if let Some(guard) = guard.as_map_mut() {
        guard.insert("forbids".to_owned(), words.into());
    }
    guard
}

fn of_guard(id: &str) -> impl Fn(kiln_client::Error) -> Failure {
    move |error| {
        if error.is_not_found() {
            Failure::new(format!("Guard not found: {id}")).hint("run 'kiln guard list' to list the guards")
        } else {
            error.into()
        }
    }
}
