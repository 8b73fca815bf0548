//! `kiln stack adopt`, `abandon` and `export`.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_client::address::url_of;
use kiln_client::{Bundle, StackRequest, parameters};
use kiln_console::output::{Format, OutputArgs, print};
use kiln_console::progress::{Mode, Target};
use kiln_server::whole_file;
use kiln_value::{Map, Value, text};

use super::show::{self, entries};
use super::{HowArgs, WaitArgs, ended, of_stack};
use crate::commands::confirm::ConfirmArgs;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Create a stack from existing resources
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
Examples:
  kiln stack abandon web --output-file web.json
  kiln stack adopt --adopt-file web.json --wait web")]
pub(crate) struct AdoptArgs {
    /// Name of the stack
    #[arg(value_name = "STACK-NAME")]
    pub(super) name: String,
    /// Data of the stack, as 'kiln stack abandon' prints it: path or URL
    #[arg(long, value_name = "FILE")]
    adopt_file: String,
    /// Environment: path or URL; may be repeated, later ones take precedence
    #[arg(short, long, value_name = "ENVIRONMENT")]
    environment: Vec<String>,
    /// Parameter value; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    parameter: Vec<String>,
    /// Timeout of the operation in minutes
    #[arg(long, value_name = "MINUTES")]
    timeout: Option<i64>,
    /// Roll back if the adopt fails: forget the resources, keep their objects
    #[arg(long)]
    enable_rollback: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl AdoptArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let unreadable = |why: String| Failure::new(format!("{}: {why}", self.adopt_file));
        let data = connection.source.read(&url_of(&self.adopt_file)).await.map_err(unreadable)?;
        let data = String::from_utf8(data).map_err(|error| unreadable(error.to_string()))?;
        let mut bundle = Bundle::read(&connection.source, None, &self.environment).await?;
        for (name, file) in files_of(&data) {
            bundle.files.entry(name).or_insert(file);
        }
        let request = StackRequest {
            bundle,
            parameters: parameters(&self.parameter)?,
            timeout_mins: self.timeout,
            disable_rollback: Some(!self.enable_rollback),
            adopt: Some(data),
            ..StackRequest::default()
        };
        let id = connection.client.create_stack(&self.name, &request).await?;
        let waits = self.wait.waits(connection);
        if waits {
            let target = Target::created(&self.name, &id);
            let end = self.wait.follow(connection, target, self.enable_rollback).await?;
            ended(&self.name, &end, "ADOPT")?;
        }
        show::short(connection, &id, &self.output, waits).await
    }
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", file.display()))
}

/// The files in the data. Data that cannot be read is rejected by the service.
fn files_of(data: &str) -> Map {
    let parsed = kiln_yaml::parse(data).map(|document| document.value).unwrap_or_default();
    parsed.get("files").and_then(Value::as_map).cloned().unwrap_or_default()
}

/// Delete a stack, but keep the objects of its resources; print the data to adopt them
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct AbandonArgs {
    #[command(flatten)]
    export: ExportArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// Print the data of a stack with its resources
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ExportArgs {
    /// Name or ID of the stack
    #[arg(value_name = "STACK")]
    stack: String,
    /// Write the data of the stack to this file
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl AbandonArgs {
    /// Deletes the stack and keeps its objects.
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let question = format!("The objects of stack {} stay in the cloud. Abandon it [y/N]? ", self.export.stack);
        self.confirm.if_demanded(&question).await?;
        self.export.abandon(connection).await
    }
}

impl ExportArgs {
    async fn abandon(self, connection: &Connection) -> Outcome {
        let target = if connection.is_local() {
            Some(Target::existing(&connection.client, &self.stack, false).await.map_err(of_stack(&self.stack))?)
        } else {
            None
        };
        if let Some(file) = &self.output_file {
            // A file that cannot be written is an error before the stack is gone.
            whole_file::check(file).map_err(|error| unwritable(file, &error))?;
        }
        let data = connection.client.abandon_stack(&self.stack).await.map_err(of_stack(&self.stack))?;
        // The data is the only record of the objects: it is printed first, and somewhere in any case.
        let stack = self.stack.clone();
        let record = text::json(&data);
        if let Err(failure) = self.print(data) {
            if print(&format!("{record}\n")).is_err() {
                eprintln!("{record}");
            }
            return Err(failure.hint("the stack is abandoned; its data is printed as JSON"));
        }
        if let Some(target) = target {
            let how = HowArgs { poll: None, progress: Mode::None };
            let end = how.follow(connection, target, false).await?;
            ended(&stack, &end, "DELETE")?;
        }
        Ok(())
    }

    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let data = connection.client.export_stack(&self.stack).await.map_err(of_stack(&self.stack))?;
        self.print(data)
    }

    fn print(self, data: Value) -> Outcome {
        match &self.output_file {
            Some(file) => {
                whole_file::replace(file, text::json(&data).as_bytes()).map_err(|error| unwritable(file, &error))
            }
            None => Ok(self.output.one(entries(data), Format::Json)?),
        }
    }
}
