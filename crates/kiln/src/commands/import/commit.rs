//! `kiln import commit`.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_console::output::{Cell, Format, List, OutputArgs, visible};
use kiln_console::progress::Target;
use kiln_server::whole_file;
use kiln_template::PropertyPlace;
use kiln_template::parameter::HIDDEN;
use kiln_value::{Value, text};

use super::objects::beside;
use crate::commands::edit::{self, NewValue, with};
use crate::commands::effect::Effect;
use crate::commands::stack::{Content, WaitArgs, ended, short};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Create a stack that takes over objects as they are
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
The objects must be as the template says: each property is read and compared, and no object is changed. If something \
differs, nothing is imported: change the object, or take its values into the template with --accept. Properties that cannot be read must be confirmed, \
by --confirm or in the file of the objects. Deleting the stack later deletes its objects. Heat has no such call.

Examples:
  kiln import commit -t web.yaml --dry-run web
  kiln import commit -t web.yaml --wait web
  kiln import commit -t web.yaml --accept web
  kiln import commit -t web.yaml --objects web.import.json --confirm server.networks web")]
pub(crate) struct CommitArgs {
    /// Name of the stack
    #[arg(value_name = "STACK-NAME")]
    name: String,
    /// Template: path or URL
    #[arg(short, long, value_name = "TEMPLATE")]
    template: String,
    /// File with the object of each resource [default: beside the template, web.import.json for web.yaml]
    #[arg(long, value_name = "FILE")]
    objects: Option<PathBuf>,
    /// A property that cannot be read, and that is as the template says (server.networks); may be repeated
    #[arg(long, value_name = "RESOURCE.PROPERTY")]
    confirm: Vec<String>,
    /// Compare the objects with the template, and create nothing
    #[arg(long)]
    dry_run: bool,
    /// First write what differs in the objects into the file of the template: only these values, the rest of the text stays
    #[arg(long, conflicts_with = "dry_run")]
    accept: bool,
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl CommitArgs {
    /// The name of the stack.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let file = self.objects.clone().unwrap_or_else(|| beside(Path::new(&self.template)));
        let given = edit::value(&file)?;
        let objects = given.get("objects").and_then(Value::as_map).cloned().unwrap_or_default();
        let mut confirmed: Vec<String> =
            given.get("confirmed").and_then(Value::as_list).into_iter().flatten().map(text::str).collect();
        confirmed.extend(self.confirm.iter().cloned());
        let mut request = self.content.request(connection, Some(&self.template)).await?;
        if self.accept {
            let plan = connection.client.plan_import(&self.name, &request, &objects, &confirmed).await?;
            if self.write(&plan)? {
                request = self.content.request(connection, Some(&self.template)).await?;
            }
        }
        if self.dry_run {
            let plan = connection.client.plan_import(&self.name, &request, &objects, &confirmed).await?;
            return self.show(&plan);
        }
        let id = connection.client.import_stack(&self.name, &request, &objects, &confirmed).await?;
        let waits = self.wait.waits(connection);
        if waits {
            let end = self.wait.follow(connection, Target::created(&self.name, &id), true).await?;
            ended(&self.name, &end, "ADOPT")?;
        }
        short(connection, &id, &self.output, waits).await
    }

    /// Writes the values of the objects into the file of the template. Returns whether there were any.
    fn write(&self, plan: &Value) -> Outcome<bool> {
        let actual = |difference: &Value| difference.get("actual").cloned().unwrap_or_default();
        let values: Vec<_> = resources(plan).iter().flat_map(differences).map(|(r, p, d)| (r, p, actual(d))).collect();
        if values.is_empty() {
            return Ok(false);
        }
        if let Some((resource, property, _)) = values.iter().find(|(.., value)| text::json(value).contains(HIDDEN)) {
            return Err(Failure::new(format!("{resource}.{property}: its value is hidden; nothing was changed")));
        }
        let file = Path::new(&self.template);
        whole_file::check(file).map_err(|error| Failure::unwritable(file, &error))?;
        let line =
            |(resource, property, value): &(&str, &str, Value)| format!("{resource}.{property}: {}", text::json(value));
        let written: Vec<String> = values.iter().map(line).collect();
        let page = edit::read(file)?;
        let words = page.release().dialect().words();
        let values = values.into_iter().map(|(resource, property, value)| {
            let place = PropertyPlace { resource: resource.to_owned(), within: None, property: property.to_owned() };
            NewValue { keys: place.keys(words), value }
        });
        let page = with(&page, values).map_err(|why| {
            Failure::new(format!("{}: {why}; nothing was changed", file.display())).hint("change it by hand")
        })?;
        whole_file::replace(file, page.as_bytes()).map_err(|error| Failure::unwritable(file, &error))?;
        for line in written {
            eprintln!("{} (in {})", visible(&line), file.display());
        }
        Ok(true)
    }

    /// Prints what differs.
    fn show(&self, plan: &Value) -> Outcome {
        let columns = ["resource_name", "property", "template", "object"].map(str::to_owned).to_vec();
        let row = |cells: [&str; 4]| -> Vec<Cell> { cells.map(Cell::from).to_vec() };
        let mut rows = Vec::new();
        for one in resources(plan) {
            for (name, property, difference) in differences(one) {
                let value = |key: &str| difference.get(key).map(text::json).unwrap_or_default();
                rows.push(row([name, property, &value("expected"), &value("actual")]));
            }
            let failure = one.str_at("failure");
            rows.extend(failure.map(|why| row([one.str_at("resource_name").unwrap_or_default(), "", "", why])));
        }
        let unconfirmed = plan.get("unconfirmed").and_then(Value::as_list).unwrap_or_default();
        for place in unconfirmed.iter().filter_map(Value::as_str) {
            let (name, property) = place.split_once('.').unwrap_or((place, ""));
            rows.push(row([name, property, "", "cannot be read: --confirm it"]));
        }
        let differ = rows.len();
        self.output.list(List { columns, rows }, Format::Table)?;
        if differ == 0 {
            eprintln!("{}: {} objects are as the template says", self.name, resources(plan).len());
            return Ok(());
        }
        Err(Failure::new(format!("{}: {differ} differences; nothing would be imported", self.name)))
    }
}

/// The resources in the comparison of an import.
fn resources(plan: &Value) -> &[Value] {
    plan.get("resources").and_then(Value::as_list).unwrap_or_default()
}

/// The differences of one of them, with its name and those of the properties.
fn differences(resource: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let name = resource.str_at("resource_name").unwrap_or_default();
    let differences = resource.get("differences").and_then(Value::as_list).unwrap_or_default();
    differences.iter().map(move |one| (name, one.str_at("property").unwrap_or_default(), one))
}
