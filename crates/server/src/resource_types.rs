//! Resource types: the types of Kiln, those of the operator, and the operator's environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kiln_config::Config;
use kiln_config::option::ConfigOption;
use kiln_config::options::{kiln, stacks};
use kiln_drivers::driver_for;
use kiln_plan::ResourceTypes;
use kiln_plugin::Plugins;
use kiln_resource::definition::{self, DefinitionError};
use kiln_resource::{DriverKind, Registry, ResourceType, shipped};
use kiln_template::environment;
use kiln_value::Value;

use crate::plugins;

/// The types of Kiln, those of a directory, and those of plug-ins, which take precedence in this order.
pub fn shipped_and_own(own: Option<&Path>, plugins: Plugins) -> Result<ResourceTypes> {
    let types = types(own).context("--resource-types-dir")?;
    Ok(plugins::catalog(Registry::build(types, driver_for), plugins))
}

fn types(own: Option<&Path>) -> Result<Vec<ResourceType>> {
    let mut types = all(shipped::types())?;
    if let Some(folder) = own {
        // Later types replace earlier ones of the same name.
        types.extend(defined(folder)?);
    }
    Ok(types)
}

/// The properties whose default is an option, by resource type.
static DEFAULTS: [(&str, &str, &ConfigOption); 9] = [
    ("OS::Nova::Server", "user_data_format", &stacks::DEFAULT_USER_DATA_FORMAT),
    ("OS::Nova::Server", "software_config_transport", &stacks::DEFAULT_SOFTWARE_CONFIG_TRANSPORT),
    ("OS::Heat::DeployedServer", "software_config_transport", &stacks::DEFAULT_SOFTWARE_CONFIG_TRANSPORT),
    ("OS::Heat::SoftwareDeployment", "signal_transport", &stacks::DEFAULT_DEPLOYMENT_SIGNAL_TRANSPORT),
    ("OS::Heat::SoftwareDeploymentGroup", "signal_transport", &stacks::DEFAULT_DEPLOYMENT_SIGNAL_TRANSPORT),
    ("OS::Heat::StructuredDeployment", "signal_transport", &stacks::DEFAULT_DEPLOYMENT_SIGNAL_TRANSPORT),
    ("OS::Heat::StructuredDeploymentGroup", "signal_transport", &stacks::DEFAULT_DEPLOYMENT_SIGNAL_TRANSPORT),
    ("OS::Heat::SoftwareDeployments", "signal_transport", &stacks::DEFAULT_DEPLOYMENT_SIGNAL_TRANSPORT),
    ("OS::Heat::StructuredDeployments", "signal_transport", &stacks::DEFAULT_DEPLOYMENT_SIGNAL_TRANSPORT),
];

/// Sets the defaults of properties that the operator has chosen.
fn set_defaults(types: &mut [ResourceType], config: &Config) -> Result<()> {
    for (name, property, option) in &DEFAULTS {
        let option: &'static ConfigOption = option;
        if !config.is_set(option) {
            continue;
        }
        let default = config.choice(option)?.map(Value::from);
        for known in types.iter_mut().filter(|known| known.name == *name) {
            if let Some(schema) = known.properties.get_mut(*property) {
                schema.default.clone_from(&default);
            }
        }
    }
    Ok(())
}

/// The catalog of a service: `[kiln] resource_types_dir`, the types of plug-ins, and `[DEFAULT] environment_dir`.
pub fn of_service(config: &Config, plugins: Plugins) -> Result<ResourceTypes> {
    let own = config.text(&kiln::RESOURCE_TYPES_DIR);
    let mut types = types(own.as_deref().map(Path::new)).context("[kiln] resource_types_dir")?;
    set_defaults(&mut types, config)?;
    let mut catalog = plugins::catalog(Registry::build(types, driver_for), plugins);
    read_environments(&mut catalog, config)?;
    catalog.yaql = config.yaql_limits()?;
    catalog.backups = config.flag(&stacks::BACKUPS_ENABLED)?;
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

/// The operator's environment files, with their texts.
pub(crate) fn environment_files(config: &Config) -> Result<Vec<(PathBuf, String)>> {
    let folder = config.text(&stacks::ENVIRONMENT_DIR).map_or_else(|| config.beside("environment.d"), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(Vec::new()) };
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok((file, text))
    };
    files.into_iter().map(read).collect()
}

/// Loads them.
fn read_environments(catalog: &mut ResourceTypes, config: &Config) -> Result<()> {
    for (file, text) in environment_files(config)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_chooses_defaults_of_properties() {
        let config = |text: &str| of_service(&Config::parse(text).unwrap(), Plugins::default()).unwrap();
        let default = |catalog: &ResourceTypes, name: &str, property: &str| {
            catalog.types.get(name).unwrap().resource_type.properties[property].default.clone()
        };
        let usual = config("");
        let chosen = config(
            "[DEFAULT]\ndefault_user_data_format = RAW\ndefault_software_config_transport = POLL_SERVER_HEAT\n\
             default_deployment_signal_transport = HEAT_SIGNAL\n",
        );
        for (name, property, option) in &DEFAULTS {
            let of_table = Some(Value::from(option.default_text()));
            assert_eq!(default(&usual, name, property), of_table, "{name} {property}");
            assert_ne!(default(&chosen, name, property), of_table, "{name} {property}");
        }
    }
}
