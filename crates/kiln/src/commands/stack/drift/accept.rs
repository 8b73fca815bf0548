//! `kiln stack drift --accept`: takes what others have changed into the template.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln_authoring::Page;
use kiln_client::{Bundle, SavedPlan, address};
use kiln_server::whole_file;
use kiln_value::{Value, text};

use super::DriftArgs;
use crate::commands::edit::{NewValue, read, with};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

impl DriftArgs {
    /// Saves the plan, and writes the values into the files.
    pub(super) async fn accept(&self, connection: &Connection) -> Outcome {
        let pages = match &self.template {
            Some(file) => pages(connection, file).await?,
            None => BTreeMap::new(),
        };
        let (plan, accepted) = match connection.client.plan_acceptance(&self.stack, &self.resource).await {
            Ok(Some(planned)) => planned,
            Ok(None) => {
                self.nothing();
                return Ok(());
            }
            Err(error) => return Err(self.failure(connection, error).await),
        };
        if let Some(file) = &self.template
            && let Err((file, why)) = write(&pages, &accepted, file)
        {
            return Err(self.unwritten(connection, &plan, &file, &why).await);
        }
        for one in &accepted {
            let said = |key: &str| one.str_at(key).unwrap_or_default();
            let value = one.get("value").map(text::json).unwrap_or_default();
            let place = match (one.str_at("parameter"), &self.template) {
                (Some(parameter), _) => format!("parameter {parameter}, which your environment may give another value"),
                (None, Some(_)) => pages[&file_of(one)].0.display().to_string(),
                (None, None) => "the template of the stack; your file is as before".to_owned(),
            };
            eprintln!("{}.{}: {value} (in {place})", said("resource_name"), said("property"));
        }
        self.planned(&plan)
    }

    /// A file that cannot be edited: the plan is of no use without it.
    async fn unwritten(&self, connection: &Connection, plan: &SavedPlan, file: &Path, why: &str) -> Failure {
        // It expires if it cannot be deleted.
        _ = connection.client.delete_plan(plan.id()).await;
        let failure = Failure::new(format!("{}: {why}; nothing was changed", file.display()));
        failure.hint(format!("compare it with 'kiln stack template show {}'", self.stack))
    }
}

/// The files that may be edited, by their names in the files of the stack; `None`: the template. Only those that the template
/// uses: the service must not choose files of this machine.
type Pages = BTreeMap<Option<String>, (PathBuf, Page)>;

async fn pages(connection: &Connection, file: &Path) -> Outcome<Pages> {
    whole_file::check(file).map_err(|error| Failure::unwritable(file, &error))?;
    let bundle = Bundle::read(&connection.source, file.to_str(), &[]).await?;
    let mut pages = Pages::from([(None, (file.to_owned(), read(file)?))]);
    for name in bundle.files.keys() {
        if let Some(path) = address::file_of(name)
            && let Ok(page) = read(&path)
        {
            let shown = std::env::current_dir().ok().and_then(|here| Some(path.strip_prefix(here).ok()?.to_owned()));
            pages.insert(Some(name.clone()), (shown.unwrap_or(path), page));
        }
    }
    Ok(pages)
}

/// The name of the file in which a value is written.
fn file_of(accepted: &Value) -> Option<String> {
    accepted.str_at("file").map(str::to_owned)
}

/// Writes the values into the files. On an error, no file is changed: the one that cannot be changed, and why.
fn write(pages: &Pages, accepted: &[Value], template: &Path) -> Result<(), (PathBuf, String)> {
    let mut values: BTreeMap<Option<String>, Vec<NewValue>> = BTreeMap::new();
    for one in accepted.iter().filter(|one| one.str_at("parameter").is_none()) {
        let keys = one.get("keys").and_then(Value::as_list).unwrap_or_default();
        let keys = keys.iter().filter_map(|key| key.as_str().map(str::to_owned)).collect();
        let value = one.get("value").cloned().unwrap_or_default();
        values.entry(file_of(one)).or_default().push(NewValue { keys, value });
    }
    let mut texts = Vec::new();
    for (name, values) in values {
        let Some((file, page)) = pages.get(&name) else {
            let why = format!("it does not use {}, where a value is to be written", name.unwrap_or_default());
            return Err((template.to_owned(), why));
        };
        whole_file::check(file).map_err(|error| (file.clone(), error.to_string()))?;
        texts.push((file, with(page, values).map_err(|why| (file.clone(), why))?));
    }
    for (file, text) in texts {
        whole_file::replace(file, text.as_bytes()).map_err(|error| (file.clone(), error.to_string()))?;
    }
    Ok(())
}
