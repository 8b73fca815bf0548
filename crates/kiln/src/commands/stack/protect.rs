//! `kiln stack protect`, `unprotect`, `freeze` and `thaw`.

use clap::{Args, ValueEnum};
use kiln_console::output::print;
use kiln_value::{Map, Value};

use super::of_stack;
use crate::commands::effect::Effect;
use crate::commands::guard::{TermsArgs, add, with_words};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Protect a stack, or some of its resources, from deletion or change
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
The guard is kept in the service: no template, environment or client removes it. A resource is protected with all that is \
inside of it, whatever would remove it. Lift the guard with 'kiln stack unprotect'.

Examples:
  kiln stack protect web                                  nobody deletes the stack
  kiln stack protect web --resource db                    nobody deletes or replaces this resource
  kiln stack protect web --resource 'group/*/volume' --from delete --from update
  kiln stack protect web --resource db --lock             the cloud refuses it too
  kiln stack protect --all-stacks --until 2027-01-07T06:00:00Z --reason 'the yearly report'")]
pub(crate) struct ProtectArgs {
    #[command(flatten)]
    of: StacksArgs,
    /// Path of a resource below the stack, with '*' for any characters of a name; may be repeated
    #[arg(long = "resource", value_name = "PATH")]
    resources: Vec<String>,
    /// From what; a replacement deletes the object and changes the resource, so each of them forbids it. May be repeated
    #[arg(long, value_name = "ACTION", default_value = "delete")]
    from: Vec<From>,
    /// Also lock existing servers (Nova) and protect existing images (Glance), so that nobody deletes them in the cloud
    #[arg(long, conflicts_with_all = ["all_stacks", "until"])]
    lock: bool,
    #[command(flatten)]
    terms: TermsArgs,
}

/// Lift the guards of 'kiln stack protect'
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
#[command(after_help = "\
Examples:
  kiln stack unprotect web --resource db       only the guards of this path
  kiln stack unprotect web                     all of them")]
pub(crate) struct UnprotectArgs {
    #[command(flatten)]
    of: StacksArgs,
    /// Only the guards of this path
    #[arg(long = "resource", value_name = "PATH")]
    resources: Vec<String>,
}

/// Forbid every change of a stack, except to cancel one that is in progress
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
An operation in progress stops before its next call. Lift the guard with 'kiln stack thaw'.

Examples:
  kiln stack freeze web --reason 'exam week'
  kiln stack freeze --all-stacks --signals --until 2027-01-07T06:00:00Z")]
pub(crate) struct FreezeArgs {
    #[command(flatten)]
    of: StacksArgs,
    /// Resources receive no signals either, so that no group changes its size
    #[arg(long)]
    signals: bool,
    #[command(flatten)]
    terms: TermsArgs,
}

/// Lift the guards of 'kiln stack freeze'
#[derive(Args, Debug)]
#[command(add = Effect::Changes("changes no resource"))]
pub(crate) struct ThawArgs {
    #[command(flatten)]
    of: StacksArgs,
}

/// A stack, or all stacks of the project.
#[derive(Args, Clone, Debug)]
struct StacksArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK", required_unless_present = "all_stacks")]
    stack: Option<String>,
    /// All stacks of the project, also later ones
    #[arg(long, conflicts_with = "stack")]
    all_stacks: bool,
}

/// What a guard protects from.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// An update in place
    Update,
    /// A replacement
    Replace,
    /// A delete
    Delete,
}

impl From {
    fn word(self) -> Value {
        match self {
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Delete => "delete",
        }
        .into()
    }
}

impl ProtectArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let from: Value = self.from.iter().map(|from| from.word()).collect();
        let rule = |resources: Option<&String>| {
            let mut rule = Map::from([("protect".to_owned(), from.clone())]);
            if self.lock {
                rule.insert("lock".to_owned(), true.into());
            }
            rule.extend(resources.map(|path| ("resources".to_owned(), path.as_str().into())));
            rule
        };
        if self.resources.is_empty() {
            return add(connection, self.of.stack, rule(None), self.terms).await;
        }
        for path in &self.resources {
            add(connection, self.of.stack.clone(), rule(Some(path)), self.terms.clone()).await?;
        }
        Ok(())
    }
}

impl UnprotectArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let is_meant = |guard: &Value| {
            let path = guard.str_at("resources");
            let is_named = path.is_some_and(|path| self.resources.iter().any(|named| named == path));
            guard.get("protect").is_some() && (self.resources.is_empty() || is_named)
        };
        self.of.lift(connection, is_meant, "protects").await
    }
}

impl FreezeArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let rule = Map::from([("freeze".to_owned(), true.into()), ("signals".to_owned(), self.signals.into())]);
        add(connection, self.of.stack, rule, self.terms).await
    }
}

impl ThawArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        self.of.lift(connection, |guard| guard.get("freeze").is_some(), "freezes").await
    }
}

impl StacksArgs {
    /// Lifts the guards that are of these stacks themselves. A guard of the whole project is not lifted for one stack.
    async fn lift(&self, connection: &Connection, is_meant: impl Fn(&Value) -> bool, what: &str) -> Outcome {
        let client = &connection.client;
        let guards = client.guards(self.stack.as_deref()).await.map_err(|error| match &self.stack {
            Some(stack) => of_stack(stack)(error),
            None => error.into(),
        })?;
        let meant: Vec<&Value> = guards.iter().filter(|guard| is_meant(guard)).collect();
        let is_own = |guard: &&&Value| guard.get("stack_id").is_none_or(Value::is_null) == self.stack.is_none();
        let own: Vec<&&Value> = meant.iter().filter(is_own).collect();
        if own.is_empty() {
            let of = self.stack.as_ref().map_or_else(|| "all stacks".to_owned(), |stack| format!("stack {stack}"));
            let failure = Failure::new(format!("No guard of {of} {what} anything like this"));
            return Err(match (meant.is_empty(), &self.stack) {
                (false, Some(_)) => failure.hint("a guard of the whole project does: repeat it with --all-stacks"),
                _ => failure.hint("run 'kiln guard list' to list the guards"),
            });
        }
        for guard in own {
            let id = guard.str_at("id").unwrap_or_default();
            client.lift_guard(id).await?;
            let guard = with_words((**guard).clone());
            print(&format!("Lifted guard {id}: it forbade {}\n", guard.str_at("forbids").unwrap_or_default()))?;
        }
        Ok(())
    }
}
