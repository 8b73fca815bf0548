//! Plug-ins with resource types and constraints: `[kiln] plugins` and `plugin_timeout`, `--plugin`.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use kiln_plan::ResourceTypes;
use kiln_plugin::{Plugins, Program};
use kiln_resource::Registry;

use kiln_config::Config;
use kiln_config::options::kiln;

/// Longest time of a call without a service.
const LOCAL_LIMIT: Duration = Duration::from_mins(1);
/// Longest time that a tool for templates waits for the schemas.
const SCHEMA_LIMIT: Duration = Duration::from_secs(5);

/// The configured programs, in their order.
pub fn programs(config: &Config) -> Result<Vec<Program>> {
    parsed(&config.list(&kiln::PLUGINS)).context("[kiln] plugins")
}

/// Starts the configured programs.
pub async fn of_config(config: &Config) -> Result<Plugins> {
    let limit = config.seconds(&kiln::PLUGIN_TIMEOUT)?;
    let plugins = kiln_plugin::start(programs(config)?, limit).await;
    plugins.map_err(|error| anyhow!(error)).context("[kiln] plugins")
}

/// Starts the programs of a command line.
pub async fn of_command_line(lines: &[String]) -> Result<Plugins> {
    let started = async { kiln_plugin::start(parsed(lines)?, LOCAL_LIMIT).await.map_err(|error| anyhow!(error)) };
    started.await.context("--plugin")
}

/// The schemas of the programs of a command line, and why some are unknown: a program that hangs or ends does not keep a
/// tool from its work.
pub async fn schemas_of_command_line(lines: &[String]) -> (Plugins, Vec<String>) {
    let (programs, wrong): (Vec<_>, Vec<_>) = lines.iter().map(|line| Program::parse(line)).partition(Result::is_ok);
    let mut problems: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
    let (plugins, silent) = kiln_plugin::schemas(programs.into_iter().flatten().collect(), SCHEMA_LIMIT).await;
    problems.extend(silent);
    (plugins, problems.iter().map(|why| format!("--plugin {why}; its resource types are unknown")).collect())
}

fn parsed(lines: &[String]) -> Result<Vec<Program>> {
    lines.iter().map(|line| Program::parse(line).map_err(|error| anyhow!(error))).collect()
}

/// These types and those of plug-ins, which take precedence, with the constraints and scheduler hints of
/// plug-ins.
pub fn catalog(mut registry: Registry, plugins: Plugins) -> ResourceTypes {
    for offered in plugins.types {
        registry.insert(offered.resource_type, offered.driver);
    }
    let mut catalog = ResourceTypes::new(registry);
    catalog.constraints = catalog.constraints.with(plugins.constraints);
    catalog.scheduler_hints = plugins.scheduler_hints;
    catalog
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_refused_at_the_start() {
        let of = |text: &str| programs(&Config::parse(&format!("[kiln]\nplugins = {text}\n")).unwrap());
        assert_eq!(of("").unwrap(), []);
        let two: Vec<String> = of("/bin/sh -c true, /bin/true").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(two, ["/bin/sh -c true", "/bin/true"]);
        let told = format!("{:#}", of("/no/such/program x").unwrap_err());
        assert!(told.starts_with("[kiln] plugins: /no/such/program: No such file"), "{told}");
    }
}
