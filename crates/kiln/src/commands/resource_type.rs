//! `kiln resource-type …`: the commands of `openstack orchestration resource type …`.

use clap::{Args, ValueEnum};
use kiln_client::{Client, Dialect, parameters};
use kiln_console::output::{Cell, Format, List, OutputArgs};
use kiln_value::{Value, text};

use super::stack::entries;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for resource types.
    ResourceTypeCommand {
        List(ListArgs),
        Show(ShowArgs),
    }
}

/// List the resource types
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln resource-type list
  kiln resource-type list --filter name='OS::Neutron::.*' -f value")]
pub(crate) struct ListArgs {
    /// Only types with this name (a regular expression), version or support_status; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    filter: Vec<String>,
    /// Show descriptions
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let filters = parameters(&self.filter)?.into_iter().map(|(key, value)| (key, text::str(&value))).collect();
        let types = connection.client.resource_types(&filters, self.long).await?;
        let mut rows: Vec<Vec<Cell>> = Vec::with_capacity(types.len());
        let mut sorted: Vec<(String, String)> = types.iter().map(named).collect();
        sorted.sort();
        for (name, description) in sorted {
            rows.push(if self.long { vec![name.into(), description.into()] } else { vec![name.into()] });
        }
        let mut columns = vec!["Resource Type".to_owned()];
        if self.long {
            columns.push("Description".to_owned());
        }
        Ok(self.output.list(List { columns, rows }, Format::Table)?)
    }
}

/// Name and description of a list item.
fn named(item: &Value) -> (String, String) {
    match item {
        Value::Str(name) => (name.clone(), String::new()),
        item => {
            let text = |key| item.str_at(key).unwrap_or_default().to_owned();
            (text("resource_type"), text("description"))
        }
    }
}

/// Template language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// HOT.
    Hot,
    /// CloudFormation.
    Cfn,
}

/// Show the properties and attributes of a resource type, or a template for it
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
#[command(after_help = "\
Examples:
  kiln resource-type show OS::Nova::Server
  kiln resource-type show OS::Nova::Server --template-type hot > server.yaml")]
pub(crate) struct ShowArgs {
    /// Name of the type
    #[arg(value_name = "RESOURCE-TYPE")]
    resource_type: String,
    /// Print a template with one resource of this type
    #[arg(long, value_enum, value_name = "LANGUAGE", ignore_case = true, conflicts_with = "long")]
    template_type: Option<Language>,
    /// Show the description
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        let name = &self.resource_type;
        let answer = match self.template_type {
            Some(Language::Hot) => client.resource_type_template(name, Dialect::Hot).await,
            Some(Language::Cfn) => client.resource_type_template(name, Dialect::Cfn).await,
            None => client.resource_type(name, self.long).await,
        };
        match answer {
            Ok(mut shown) => {
                if self.long {
                    add_description(&connection.client, name, &mut shown).await?;
                }
                Ok(self.output.one(entries(shown), Format::Yaml)?)
            }
            Err(error) if error.is_not_found() => {
                let failure = Failure::new(format!("Resource type not found: {name}"));
                let known: Vec<String> =
                    client.resource_types(&vec![], false).await?.iter().map(|item| named(item).0).collect();
                let otherwise = "run 'kiln resource-type list' to list the types";
                Err(failure.suggesting(name, known.iter().map(String::as_str), otherwise))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Adds the description of a type to its schema. Heat's API accepts `with_description` only in the list of types.
async fn add_description(client: &Client, name: &str, shown: &mut Value) -> Outcome {
    let filter = vec![("name".to_owned(), name.to_owned())];
    let listed = client.resource_types(&filter, true).await?;
    let found = listed.iter().map(named).find(|(listed, _)| listed == name);
    if let (Some((_, description)), Some(schema)) = (found, shown.as_map_mut()) {
        schema.insert("description".to_owned(), description.into());
    }
    Ok(())
}
