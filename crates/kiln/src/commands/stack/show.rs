//! `kiln stack show`, `template`, `environment` and `file`.

use clap::Args;
use kiln_console::output::{Cell, Format, Look, One, OutputArgs, print_bytes};
use kiln_topology::original::{FILE, Original};
use kiln_value::Value;

use super::{StackArg, of_stack};
use crate::commands::effect::Effect;
use crate::commands::guard::with_words;
use crate::commands::open_page::OpenArgs;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// The first columns of `stack show`, and the columns that create and update print.
const FIRST: [&str; 7] =
    ["id", "stack_name", "description", "creation_time", "updated_time", "stack_status", "stack_status_reason"];

/// Show a stack
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    stack: StackArg,
    /// Do not resolve outputs, which can take a long time
    #[arg(long)]
    no_resolve_outputs: bool,
    #[command(flatten)]
    page: OpenArgs,
}

impl ShowArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = self.stack;
        let answer = connection.client.stack(&stack, !self.no_resolve_outputs).await.map_err(of_stack(&stack))?;
        self.page.open(connection, &stack).await;
        let mut columns: Vec<&str> = FIRST.to_vec();
        columns.push("parameters");
        if !self.no_resolve_outputs {
            columns.push("outputs");
        }
        columns.push("links");
        let rest = answer.entries().into_iter().flat_map(|entries| entries.keys().map(String::as_str));
        for name in rest.filter(|name| *name != "template_description") {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        let look = if output.format.is_none_or(|format| format == Format::Table) { Look::Yaml } else { Look::Json };
        let mut shown = pick(answer.value(), &columns, look);
        let guards = guards(connection, answer.id()).await?;
        if !guards.is_empty() {
            shown.push(("guards".to_owned(), Cell::with(guards.into_iter().collect::<Value>(), look)));
        }
        Ok(output.one(shown, Format::Table)?)
    }
}

/// The guards that hold for a stack. A Heat has none, and whoever may see the stack need not see them.
async fn guards(connection: &Connection, stack: &str) -> Result<Vec<Value>, Failure> {
    match connection.client.guards(Some(stack)).await {
        Ok(guards) => Ok(guards.into_iter().map(with_words).collect()),
        Err(error) if error.status().is_some_and(|status| status < 500) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Prints a stack after a create or update, with the outputs if the operation is `done`.
pub(crate) async fn short(connection: &Connection, stack: &str, output: &OutputArgs, done: bool) -> Outcome {
    let answer = connection.client.stack(stack, done).await.map_err(of_stack(stack))?;
    let mut columns = FIRST.to_vec();
    if done && !answer.outputs().is_empty() {
        columns.push("outputs");
    }
    let look = if output.format.is_none_or(|format| format == Format::Table) { Look::Yaml } else { Look::Json };
    Ok(output.one(pick(answer.value(), &columns, look), Format::Table)?)
}

fn pick(stack: &Value, columns: &[&str], look: Look) -> One {
    let cell = |name: &&str| {
        let value = stack.get(name).cloned().unwrap_or_else(|| "".into());
        let look = if matches!(*name, "parameters" | "outputs" | "links" | "tags") { look } else { Look::Plain };
        ((*name).to_owned(), Cell::with(value, look))
    };
    columns.iter().map(cell).collect()
}

group! {
    /// `stack template …`.
    TemplateCommand {
        Show(ShowTemplateArgs),
    }
}

/// Print the template
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln stack template show web
  kiln stack template show --original app > app.csar")]
pub(crate) struct ShowTemplateArgs {
    /// Print the blueprint, CAMP plan, TOSCA template or package that the template was made from, as it was sent
    #[arg(long)]
    original: bool,
    #[command(flatten)]
    of: StackArg,
}

impl ShowTemplateArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = self.of;
        let template = connection.client.stack_template(&stack).await.map_err(of_stack(&stack))?;
        if self.original {
            let files = connection.client.stack_files(&stack).await.map_err(of_stack(&stack))?;
            let entry = files.str_at(FILE).and_then(|entry| Original::of_file(entry, &template));
            let found = entry.ok_or_else(|| {
                Failure::new(format!("The template of the stack {stack} was not made from another document"))
            })?;
            return Ok(print_bytes(&found.content)?);
        }
        Ok(output.one(entries(template), Format::Yaml)?)
    }
}

group! {
    /// `stack environment …`.
    EnvironmentCommand {
        Show(ShowEnvironmentArgs),
    }
}

/// Print the environment
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowEnvironmentArgs {
    #[command(flatten)]
    of: StackArg,
}

impl ShowEnvironmentArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = self.of;
        let environment = connection.client.stack_environment(&stack).await.map_err(of_stack(&stack))?;
        let sections = ["parameters", "resource_registry", "parameter_defaults"];
        let cells = sections.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.into())));
        Ok(output.one(cells.collect(), Format::Yaml)?)
    }
}

group! {
    /// `stack file …`.
    FileCommand {
        List(ListFilesArgs),
    }
}

/// Print the files
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListFilesArgs {
    #[command(flatten)]
    of: StackArg,
}

impl ListFilesArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let StackArg { stack, output } = self.of;
        let files = connection.client.stack_files(&stack).await.map_err(of_stack(&stack))?;
        Ok(output.one(vec![("files".into(), files.into())], Format::Yaml)?)
    }
}

/// Converts the entries of a map to names and cells.
pub(crate) fn entries(value: Value) -> One {
    match value {
        Value::Map(entries) => entries.into_iter().map(|(name, value)| (name, value.into())).collect(),
        other => vec![("value".into(), other.into())],
    }
}
