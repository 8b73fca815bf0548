//! `kiln import write`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use kiln_authoring::generated;
use kiln_client::ObjectToWrite;
use kiln_console::output::{json_text, visible};
use kiln_server::whole_file;
use kiln_value::{Map, Value, value};

use super::objects::{Named, beside, of_export, of_state};
use super::selection::SelectionArgs;
use crate::commands::edit;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

/// Write a template for objects of the project
#[derive(Args, Debug)]
#[command(add = Effect::Changes("it writes the files that it is given"))]
#[command(after_help = "\
Writes the template, and beside it a file (web.import.json) that says which object each resource becomes: \
'kiln import commit' needs both. IDs of other objects of the template are references, IDs of all others are \
parameters. The ports of a server, the members of a pool, and what connects chosen objects, such as the attachment of \
a volume, come with them.

Examples:
  kiln import write --all -t everything.yaml
  kiln import write --name 'web*' --related -t web.yaml
  kiln import write 4ab3b2a4-4b85-4d4a-9a79-e5b0c2a5b9de -t server.yaml
  kiln import write --terraform-state terraform.tfstate -t web.yaml
  kiln import write --export released.json -t web.yaml")]
pub(crate) struct WriteArgs {
    /// IDs of objects
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All objects that are in no stack
    #[arg(long, conflicts_with_all = ["ids", "types", "name", "tag"])]
    all: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    /// The objects in a state file of Terraform or OpenTofu, with their names
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ids", "all", "types", "name", "tag", "export"])]
    terraform_state: Option<PathBuf>,
    /// The objects in the data that 'kiln stack release', 'stack export' or a Heat has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ids", "all", "types", "name", "tag"])]
    export: Option<PathBuf>,
    /// Also the objects that belong together with these, as far as they are in no stack
    #[arg(long)]
    related: bool,
    /// File for the template
    #[arg(short, long, value_name = "FILE")]
    template: PathBuf,
}

impl WriteArgs {
    pub(super) async fn run(self, connection: &Connection) -> Outcome {
        let files = [self.template.clone(), beside(&self.template)];
        for file in &files {
            if file.exists() {
                return Err(Failure::new(format!("{} exists: name another file", file.display())));
            }
            whole_file::check(file).map_err(|error| Failure::unwritable(file, &error))?;
        }
        let objects = self.objects(connection).await?;
        if objects.is_empty() {
            return Err(
                Failure::new("no object fits").hint("'kiln import scan --unmanaged' lists what can be imported")
            );
        }
        let written = connection.client.write_import(&objects, self.related).await?;
        let resources = written.get("resources").and_then(Value::as_list).unwrap_or_default();
        let (mut comments, mut adopted) = (BTreeMap::new(), Map::new());
        for resource in resources {
            let text = |key: &str| resource.str_at(key).unwrap_or_default();
            let name = text("resource_name");
            let (named, id) = (text("object_name"), text("physical_resource_id"));
            let title = if named == id { id.to_owned() } else { format!("{named} {id}") }.replace('\n', " ");
            let mut lines = vec![visible(title.trim()).into_owned()];
            let left_out = resource.get("left_out").and_then(Value::as_list).unwrap_or_default();
            let left_out: Vec<&str> = left_out.iter().filter_map(Value::as_str).collect();
            if !left_out.is_empty() {
                lines.push(visible(&format!("cannot be read: {}", left_out.join(", "))).into_owned());
            }
            comments.insert(name.to_owned(), lines);
            let object = value!({ "type": (text("resource_type")), "resource_id": (text("physical_resource_id")) });
            adopted.insert(name.to_owned(), object);
        }
        let template = written.get("template").cloned().unwrap_or_default();
        let text = generated::template(&template, &comments);
        let text = text.ok_or_else(|| Failure::new("the template cannot be written as YAML"))?;
        let objects = value!({ "objects": adopted });
        let [template, beside] = &files;
        whole_file::replace(beside, format!("{}\n", json_text(&objects)).as_bytes())
            .map_err(|error| Failure::unwritable(beside, &error))?;
        whole_file::replace(template, text.as_bytes()).map_err(|error| Failure::unwritable(template, &error))?;
        let shown = template.display();
        eprintln!("{} resources in {shown}, their objects in {}", resources.len(), beside.display());
        eprintln!("next: 'kiln import commit -t {shown} --dry-run STACK-NAME'");
        Ok(())
    }

    /// The objects that are meant.
    async fn objects(&self, connection: &Connection) -> Outcome<Vec<ObjectToWrite>> {
        let named = match (&self.export, &self.terraform_state) {
            (Some(file), _) => Some((of_export(&edit::value(file)?), Vec::new())),
            (None, Some(file)) => Some(of_state(&edit::value(file)?)),
            (None, None) => None,
        };
        if named.is_none() && self.ids.is_empty() && self.selection.is_empty() && !self.all {
            let failure = Failure::new("no objects are chosen");
            return Err(failure.hint("name IDs, or use --all, --type, --name, --tag, --terraform-state or --export"));
        }
        let scanned = connection.client.scan_project().await?;
        let objects = scanned.get("objects").and_then(Value::as_list).unwrap_or_default();
        match named {
            Some((named, unknown)) => {
                for address in unknown {
                    left_out(&address, "Kiln has no type for it");
                }
                Ok(found(named, objects))
            }
            None => self.chosen(objects),
        }
    }

    /// The objects of a scan that the options choose.
    fn chosen(&self, objects: &[Value]) -> Outcome<Vec<ObjectToWrite>> {
        let ids: BTreeSet<&str> = objects.iter().map(|one| key_of(one).1).collect();
        if let Some(id) = self.ids.iter().find(|id| !ids.contains(id.as_str())) {
            let failure = Failure::new(format!("the project has no object {id} that can be imported"));
            return Err(failure.hint("'kiln import scan --unmanaged' lists what can be imported"));
        }
        let is_meant = |one: &&Value| {
            // The service refuses an object of a stack that a user names.
            let is_named = match self.ids.as_slice() {
                [] => !one.get("owner").is_some_and(Value::is_truthy),
                ids => ids.iter().any(|id| id == key_of(one).1),
            };
            is_named && self.selection.has(one)
        };
        let object = |one: &Value| {
            let (resource_type, id) = key_of(one);
            ObjectToWrite { resource_type: resource_type.to_owned(), id: id.to_owned(), name: None }
        };
        Ok(objects.iter().filter(is_meant).map(object).collect())
    }
}

/// The type and the ID of an object of a scan.
fn key_of(object: &Value) -> (&str, &str) {
    (object.str_at("resource_type").unwrap_or_default(), object.str_at("physical_resource_id").unwrap_or_default())
}

/// The objects that another tool names, as far as a scan has them.
fn found(named: Vec<Named>, objects: &[Value]) -> Vec<ObjectToWrite> {
    let keys: BTreeSet<(&str, &str)> = objects.iter().map(key_of).collect();
    let is_found = |one: &Named| {
        let is_found = keys.contains(&(one.resource_type.as_str(), one.id.as_str()));
        if !is_found {
            left_out(&one.name, &format!("{} {} is not in 'kiln import scan'", one.resource_type, one.id));
        }
        is_found
    };
    let object = |Named { resource_type, id, name }| ObjectToWrite { resource_type, id, name: Some(name) };
    named.into_iter().filter(is_found).map(object).collect()
}

fn left_out(name: &str, why: &str) {
    anstream::eprintln!("warning: {} is left out: {}", visible(name), visible(why));
}
