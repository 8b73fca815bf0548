//! `kiln stack operation …`.

use clap::Args;
use kiln_client::{Error, OperationPage};
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_value::{Class, Value};

use super::show::entries;
use super::{StackArg, of_stack};
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for operations.
    OperationCommand {
        List(ListArgs),
        Show(ShowArgs),
    }
}

/// List what was requested of a stack, by whom, and how it ended
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    list: PageArgs,
}

/// A page of the operations or revisions of a stack.
#[derive(Args, Debug)]
pub(super) struct PageArgs {
    /// Maximum number
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only operations before the one with this ID
    #[arg(long, value_name = "OPERATION")]
    marker: Option<String>,
    #[command(flatten)]
    pub(super) of: StackArg,
}

impl PageArgs {
    pub(super) fn page(&self) -> OperationPage {
        OperationPage { limit: self.limit, marker: self.marker.clone() }
    }
}

/// Show an operation, with the cause of its failure
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// ID of the operation; 'last' is the newest one
    #[arg(value_name = "OPERATION")]
    operation: String,
    #[command(flatten)]
    output: OutputArgs,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = &self.list.of;
        let operations = connection.client.operations(stack, &self.list.page()).await.map_err(kept(stack, None))?;
        Ok(output.list(table(&operations, COLUMNS), Format::Table)?)
    }
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let (client, stack, mut id) = (&connection.client, self.stack, self.operation);
        if id == "last" {
            let page = OperationPage { limit: Some(1), marker: None };
            let newest = client.operations(&stack, &page).await.map_err(kept(&stack, None))?;
            let missing = || Failure::new(format!("No operation of stack {stack} is kept"));
            newest.first().and_then(|one| one.str_at("id")).ok_or_else(missing)?.clone_into(&mut id);
        }
        let found = client.operation(&stack, &id).await.map_err(kept(&stack, Some(("operation", &id))))?;
        Ok(self.output.one(entries(found), Format::Yaml)?)
    }
}

/// The error of a call for what Kiln keeps of a stack: there is no such stack, no such operation or revision, or the service
/// is a Heat.
pub(super) fn kept<'a>(stack: &'a str, wanted: Option<(&'a str, &'a str)>) -> impl Fn(Error) -> Failure + 'a {
    move |error| match (error.class(), wanted) {
        (Some(Class::NotFound), Some((kind, name))) => {
            Failure::new(format!("No {kind} {name} of stack {stack} is kept"))
                .hint(format!("run 'kiln stack {kind} list {stack}' to list them"))
        }
        (Some(Class::EntityNotFound), _) => of_stack(stack)(error),
        _ if error.is_not_found() => Failure::new("The service keeps no operations and revisions; only Kiln does"),
        _ => error.into(),
    }
}

const COLUMNS: &[(&str, &str)] = &[
    ("ID", "id"),
    ("Action", "action"),
    ("Status", "status"),
    ("User", "user_name"),
    ("Revision", "revision"),
    ("Started At", "started_at"),
    ("Ended At", "ended_at"),
];

/// A table of operations.
pub(crate) fn table(operations: &[Value], columns: &[(&str, &str)]) -> List {
    let cell = |operation: &Value, key: &str| {
        operation.get(key).filter(|value| !value.is_null()).cloned().map_or_else(|| Cell::from(""), Cell::from)
    };
    let row = |operation: &Value| columns.iter().map(|(_, key)| cell(operation, key)).collect();
    List {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: operations.iter().map(row).collect(),
    }
}
