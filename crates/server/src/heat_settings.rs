//! What the configuration of a Heat, its policy and its environment say that Kiln does not do, or does otherwise.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use kiln_config::check::{Finding, finding_of, findings, warning};
use kiln_config::option::ConfigOption;
use kiln_config::options::{server, stacks};
use kiln_config::{Config, differences};
use kiln_template::environment::Globals;
use kiln_value::{Map, Value};

use crate::policy_files::PolicyFiles;
use crate::resource_types::environment_files;

/// Reads what an option names.
type Content = fn(&Config) -> Result<Map>;

/// All such findings; values that may be secret are not shown.
pub(crate) fn settings(heat: &Config, kiln: &Config) -> Vec<Finding> {
    let mut all = findings(heat);
    all.extend(differences(heat, kiln));
    let contents: [(&'static ConfigOption, Content); 2] =
        [(&stacks::ENVIRONMENT_DIR, environment), (&server::POLICY_FILE, policy)];
    for (option, content) in contents {
        let read = || Ok((content(heat)?, content(kiln).context("the configuration of Kiln")?));
        match read() {
            Ok((here, there)) => {
                all.extend(differing(&here, &there).into_iter().map(|text| warning(heat, option, text)));
            }
            Err(error) => all.push(finding_of(heat, &error)),
        }
    }
    all
}

/// The entries of the operator's environment, which apply to all stacks. Invalid files are ignored, as by Heat.
fn environment(config: &Config) -> Result<Map> {
    let mut globals = Globals::default().with_default_aliases();
    for (_, text) in environment_files(config).context("[DEFAULT] environment_dir")? {
        _ = globals.load(&text);
    }
    Ok(globals.to_value())
}

fn policy(config: &Config) -> Result<Map> {
    Ok(Map::from_iter([("rule".to_owned(), PolicyFiles::of(config)?.rules()?.into())]))
}

/// The entries that are not the same, by the names of their section and their own.
fn differing(heat: &Map, kiln: &Map) -> Vec<String> {
    let entries =
        |content: &Map, section: &str| content.get(section).and_then(Value::as_map).cloned().unwrap_or_default();
    let mut told = Vec::new();
    for section in heat.keys() {
        let (here, there) = (entries(heat, section), entries(kiln, section));
        let names: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
        for name in names {
            let how = match (here.get(name), there.get(name)) {
                (Some(one), Some(other)) if one == other => continue,
                (Some(_), Some(_)) => "is another one in Kiln",
                (Some(_), None) => "is only in Heat",
                (None, _) => "is only in Kiln",
            };
            told.push(format!("has another content: {section} {name} {how}"));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_and_policies_are_compared() {
        let [heat, kiln] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let write = |folder: &tempfile::TempDir, name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let told = || {
            let config = |folder: &tempfile::TempDir, name| Config::of_files(vec![folder.path().join(name)]).unwrap();
            let found = settings(&config(&heat, "heat.conf"), &config(&kiln, "kiln.conf"));
            let texts = found.iter().map(|one| one.to_string().split_once('[').unwrap().1.to_owned());
            texts.collect::<Vec<String>>()
        };
        write(&heat, "heat.conf", "[DEFAULT]\nnum_engine_workers = 4\n");
        write(&kiln, "kiln.conf", "");
        assert_eq!(told().len(), 1, "{:?}", told());
        write(
            &heat,
            "environment.d/a.yaml",
            "resource_registry: {'My::Server': 'file:///a.yaml'}\nparameters: {key: planted}\n",
        );
        write(&heat, "policy.yaml", "stacks:create: role:one\nstacks:delete: role:one\n");
        write(&kiln, "policy.yaml", "stacks:create: role:two\nstacks:delete: role:one\nstacks:show: role:two\n");
        assert_eq!(
            told()[1..],
            [
                "DEFAULT] environment_dir has another content: resource_registry My::Server is only in Heat",
                "DEFAULT] environment_dir has another content: parameters key is only in Heat",
                "oslo_policy] policy_file has another content: rule stacks:create is another one in Kiln",
                "oslo_policy] policy_file has another content: rule stacks:show is only in Kiln",
            ]
        );
        write(&heat, "policy.yaml", "[");
        assert!(told().iter().any(|text| text.starts_with("oslo_policy] policy_file") && text.contains("policy.yaml")));
    }
}
