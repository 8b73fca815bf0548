//! `kiln stack drift --accept`: takes what others have changed into the template.

use std::path::Path;

use kiln_client::SavedPlan;
use kiln_server::whole_file;
use kiln_value::text;

use super::DriftArgs;
use crate::commands::edit::{NewValue, read, with};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

impl DriftArgs {
    /// Saves the plan, and writes the values into the file.
    pub(super) async fn accept(&self, connection: &Connection) -> Outcome {
        let page = match &self.template {
            Some(file) => {
                whole_file::check(file).map_err(|error| Failure::unwritable(file, &error))?;
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
            let written = accepted.iter().filter(|one| one.str_at("parameter").is_none()).map(|one| NewValue {
                resource: one.str_at("resource_name").unwrap_or_default(),
                property: one.str_at("property").unwrap_or_default(),
                value: one.get("value").cloned().unwrap_or_default(),
            });
            let text = match with(&page, written) {
                Ok(text) => text,
                Err(why) => return Err(self.unwritten(connection, &plan, file, &why).await),
            };
            whole_file::replace(file, text.as_bytes()).map_err(|error| Failure::unwritable(file, &error))?;
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
