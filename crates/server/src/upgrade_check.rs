//! Whether this version can be started on a configuration and its database.

use kiln_config::Config;
use kiln_store::{SchemaState, SchemaVersions};
use kiln_value::Chain;

use crate::policy_files::PolicyFiles;
use crate::{database, runtime};

/// The result of a check; the numbers are exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Grade {
    /// All is well.
    Success = 0,
    /// It works, but something is to be done.
    Warning = 1,
    /// The service would not start.
    Failure = 2,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    /// How it is.
    pub grade: Grade,
    /// What was found.
    pub details: Option<String>,
}

/// All checks.
pub async fn checks(config: &Config) -> Vec<Check> {
    let failed =
        |name, error: &anyhow::Error| Check { name, grade: Grade::Failure, details: Some(Chain(&**error).to_string()) };
    let good = |name| Check { name, grade: Grade::Success, details: None };
    // The name of Heat's only check. Kiln reads policies in JSON too.
    let policy = "Policy File JSON to YAML Migration";
    let policy = match PolicyFiles::of(config).and_then(|files| files.read()) {
        Ok(_) => good(policy),
        Err(error) => failed(policy, &error),
    };
    let options = match runtime::check_options(config).first() {
        None => good("Configuration"),
        Some(error) => failed("Configuration", error),
    };
    let mut checks = vec![policy, options];
    match Box::pin(database::open_unchanged(config)).await {
        Err(error) => checks.push(failed("Database", &error)),
        Ok(store) => {
            checks.push(match Box::pin(crate::checks::stacks_of_heat(config, &store)).await {
                Ok(()) => good("Stacks of Heat"),
                Err(error) => failed("Stacks of Heat", &error),
            });
            let schema = Box::pin(store.schema_versions()).await;
            let is_current = schema.as_ref().is_ok_and(|versions| versions.state() == SchemaState::Current);
            checks.push(schema_check(schema));
            if is_current {
                checks.push(match crate::checks::key(&store).await {
                    Ok(()) => good("Encryption Key"),
                    Err(error) => failed("Encryption Key", &error),
                });
            }
        }
    }
    checks
}

fn schema_check(versions: Result<SchemaVersions, kiln_store::Error>) -> Check {
    let (grade, details) = match versions.map(|versions| (versions.state(), versions)) {
        Ok((SchemaState::Current | SchemaState::UsableNewer, _)) => (Grade::Success, None),
        Ok((SchemaState::Missing | SchemaState::Older, SchemaVersions { done, latest, .. })) => (
            Grade::Warning,
            Some(format!(
                "The schema has version {done}; this version of Kiln uses {latest}. Make a backup. The first service that \
                 starts upgrades it, or heat-manage db_sync; services of the former version continue to work."
            )),
        ),
        Ok((SchemaState::TooNew, SchemaVersions { done, latest, .. })) => (
            Grade::Failure,
            Some(format!("The schema has version {done}, from a newer Kiln; this version supports up to {latest}.")),
        ),
        Err(error) => (Grade::Failure, Some(error.to_string())),
    };
    Check { name: "Database Schema", grade, details }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_schema_is_a_warning() {
        let grade = |done, floor| schema_check(Ok(SchemaVersions { done, latest: 2, floor })).grade;
        assert_eq!([grade(2, 2), grade(3, 2), grade(1, 1)], [Grade::Success, Grade::Success, Grade::Warning]);
        assert_eq!(grade(3, 3), Grade::Failure);
    }
}
