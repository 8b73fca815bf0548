//! Resource types: the types of Kiln, those of the operator, and the operator's environment.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use kiln_drivers::driver_for;
use kiln_plan::ResourceTypes;
use kiln_resource::definition::{self, DefinitionError};
use kiln_resource::{DriverKind, Registry, ResourceType, shipped};
use kiln_template::environment;
use kiln_value::Value;

use crate::config::Config;

/// The types of Kiln and those of a directory, which take precedence.
pub(crate) fn shipped_and_own(own: Option<&Path>) -> Result<ResourceTypes> {
    let mut types = all(shipped::types())?;
    if let Some(folder) = own {
        // Later types replace earlier ones of the same name.
        types.extend(defined(folder)?);
    }
    Ok(ResourceTypes::new(Registry::build(types, driver_for)))
}

/// The catalog of a service: `[kiln] resource_types_dir` and `[DEFAULT] environment_dir`.
pub(crate) fn of_service(config: &Config) -> Result<ResourceTypes> {
    let own = config.text("kiln", "resource_types_dir");
    let mut catalog = shipped_and_own(own.as_deref().map(Path::new)).context("[kiln] resource_types_dir")?;
    read_environments(&mut catalog, config)?;
    catalog.yaql = config.yaql_limits()?;
    Ok(catalog)
}

/// The types of a directory of definition files. Each type must have a driver.
fn defined(folder: &Path) -> Result<Vec<ResourceType>> {
    let types = all(definition::load(folder))?;
    let idle = |this: &&ResourceType| this.driver == DriverKind::Code && driver_for(this).is_none();
    if let Some(ResourceType { name, .. }) = types.iter().find(idle) {
        let file = definition::file_of(name);
        bail!(
            "{}: Kiln has no driver for {name}: add a rest section, or driver: none to only show and validate the type",
            folder.join(file).display()
        );
    }
    Ok(types)
}

fn all(read: Result<Vec<ResourceType>, Vec<DefinitionError>>) -> Result<Vec<ResourceType>> {
    read.or_else(|errors| {
        let lines: Vec<String> = errors.iter().map(|error| format!("  {error}")).collect();
        bail!("invalid resource types:\n{}", lines.join("\n"))
    })
}

/// The operator's environment files.
fn read_environments(catalog: &mut ResourceTypes, config: &Config) -> Result<()> {
    let folder = config.default("environment_dir").unwrap_or_else(|| "/etc/kiln/environment.d".to_owned());
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(()) };
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        tell_unused(&file, &text);
        // Like Heat, ignore an invalid file.
        if let Err(error) = catalog.load(&text) {
            tracing::error!(file = %file.display(), %error, "ignoring invalid environment file");
        }
    }
    read_templates(catalog);
    Ok(())
}

/// Logs sections of an operator's environment that have no effect, as in Heat: only a stack has event sinks.
fn tell_unused(file: &Path, text: &str) {
    let Ok(sections) = environment::parse(text) else { return };
    if sections.get("event_sinks").is_some_and(Value::is_truthy) {
        tracing::warn!(file = %file.display(), "event_sinks have no effect here, only in the environment of a stack");
    }
}

/// Reads the templates that the operator's environment maps types to. Stacks that use a missing template fail.
fn read_templates(catalog: &mut ResourceTypes) {
    let urls: BTreeSet<String> = catalog.globals.templates().map(|(_, url)| url.to_owned()).collect();
    for url in urls {
        let Some(file) = kiln_client::address::file_of(&url) else { continue };
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                if let Err(error) = catalog.provide(&url, text) {
                    tracing::error!(file = %file.display(), %error, "invalid template of a resource type");
                }
            }
            Err(error) => {
                tracing::error!(file = %file.display(), %error, "cannot read the template of a resource type");
            }
        }
    }
}
