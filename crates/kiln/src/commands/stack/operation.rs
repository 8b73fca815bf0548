//! `kiln stack operation …`.

use clap::{Args, Subcommand};
use kiln_client::OperationPage;
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_value::Value;

use super::show::entries;
use super::{StackArg, of_stack};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// `stack operation …`.
#[derive(Debug, Subcommand)]
pub(crate) enum OperationCommand {
    /// List what was requested of a stack, by whom, and how it ended
    List(PageArgs),
    /// Show an operation, with the cause of its failure
    Show(ShowArgs),
}

/// A page of a list.
#[derive(Args, Debug)]
pub(crate) struct PageArgs {
    #[command(flatten)]
    pub(super) of: StackArg,
    /// Maximum number
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only operations before the one with this ID
    #[arg(long, value_name = "OPERATION")]
    marker: Option<String>,
}

impl PageArgs {
    pub(super) fn page(&self) -> OperationPage {
        OperationPage { limit: self.limit, marker: self.marker.clone() }
    }
}

/// `stack operation show`.
#[derive(Args, Debug)]
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

impl OperationCommand {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        match self {
            Self::List(args) => {
                let stack = &args.of.stack;
                let operations = client.operations(stack, &args.page()).await.map_err(of_stack(stack))?;
                Ok(args.of.output.list(table(&operations, COLUMNS), Format::Table)?)
            }
            Self::Show(ShowArgs { stack, operation, output }) => {
                let mut id = operation.clone();
                if operation == "last" {
                    let page = OperationPage { limit: Some(1), marker: None };
                    let newest = client.operations(&stack, &page).await.map_err(of_stack(&stack))?;
                    let missing = || Failure::new(format!("No operation of stack {stack} is kept"));
                    id = newest.first().and_then(|one| one.str_at("id")).ok_or_else(missing)?.to_owned();
                }
                let found = client.operation(&stack, &id).await.map_err(|error| {
                    if !error.is_not_found() {
                        return error.into();
                    }
                    Failure::new(format!("Operation not found: {id} of stack {stack}"))
                        .hint(format!("run 'kiln stack operation list {stack}' to list the operations"))
                })?;
                Ok(output.one(entries(found), Format::Yaml)?)
            }
        }
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
pub(super) fn table(operations: &[Value], columns: &[(&str, &str)]) -> List {
    let cell = |operation: &Value, key: &str| {
        operation.get(key).filter(|value| !value.is_null()).cloned().map_or_else(|| Cell::from(""), Cell::from)
    };
    let row = |operation: &Value| columns.iter().map(|(_, key)| cell(operation, key)).collect();
    List {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: operations.iter().map(row).collect(),
    }
}
