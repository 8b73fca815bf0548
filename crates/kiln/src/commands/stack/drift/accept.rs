//! `kiln stack drift --accept`: takes what others have changed into the template.

use std::path::Path;

use kiln_authoring::{Page, patch};
use kiln_client::SavedPlan;
use kiln_server::whole_file;
use kiln_value::{Value, text};

use super::DriftArgs;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

impl DriftArgs {
    /// Saves the plan, and writes the values into the file.
    pub(super) async fn accept(&self, connection: &Connection) -> Outcome {
        let unwritable = |file: &Path, why: String| Failure::new(format!("cannot write {}: {why}", file.display()));
        let page = match &self.template {
            Some(file) => {
                whole_file::check(file).map_err(|error| unwritable(file, error.to_string()))?;
                Some((file, read(file)?))
            }
            None => None,
        };
        let (plan, accepted) = match connection.client.plan_acceptance(&self.stack, &self.resource).await {
            Ok(Some(planned)) => planned,
            Ok(None) => {
                self.nothing();
                return Ok(());
            }
            Err(error) => return Err(self.failure(connection, error).await),
        };
        if let Some((file, page)) = page {
            let text = match with(&page, &accepted) {
                Ok(text) => text,
                Err(why) => return Err(self.unwritten(connection, &plan, file, &why).await),
            };
            whole_file::replace(file, text.as_bytes()).map_err(|error| unwritable(file, error.to_string()))?;
        }
        for one in &accepted {
            let said = |key: &str| one.str_at(key).unwrap_or_default();
            let value = one.get("value").map(text::json).unwrap_or_default();
            let place = match (one.str_at("parameter"), &self.template) {
                (Some(parameter), _) => format!("parameter {parameter}, which your environment may give another value"),
                (None, Some(file)) => file.display().to_string(),
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

fn read(file: &Path) -> Outcome<Page> {
    let wrong = |why: String| Failure::new(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Page::read(text).map_err(|error| wrong(error.to_string()))
}

/// The text of a template with the accepted values in it.
fn with(page: &Page, accepted: &[Value]) -> Result<String, String> {
    let words = page.release().dialect().words();
    let mut template = page.value().clone();
    let written = accepted.iter().filter(|one| one.str_at("parameter").is_none());
    for one in written {
        let said = |key: &str| one.str_at(key).unwrap_or_default();
        let (resource, property) = (said("resource_name"), said("property"));
        let value = one.get("value").cloned().unwrap_or_default();
        let found = words.set_property(&mut template, resource, property, value);
        found.ok_or_else(|| format!("it has no resource {resource} whose properties can be changed"))?;
    }
    if template == *page.value() {
        return Ok(page.text.clone());
    }
    patch::patch(page, &template).ok_or_else(|| "it cannot be changed in place".to_owned())
}
