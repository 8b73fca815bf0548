//! The operator's policy: `[oslo_policy] policy_file` and the files in `policy_dirs`, read as oslo.policy does.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use kiln_identity::Policy;
use kiln_value::{Map, Value};

use crate::config::Config;
use crate::failure::nearest;

/// Base directory for relative names of policy files.
const HERE: &str = "/etc/kiln";

/// The effective rules. Configured files must exist, default files may be missing.
pub(crate) fn policy(config: &Config) -> Result<Policy> {
    let policy = Policy::new(config.flag("oslo_policy", "enforce_new_defaults", true)?);
    let mut rules = Map::new();
    let named = config.text("oslo_policy", "policy_file");
    let file = place(named.as_deref().unwrap_or("policy.yaml"));
    if named.is_some() || file.is_file() {
        rules.extend(read(&file).context("[oslo_policy] policy_file")?);
    }
    let named = config.all("oslo_policy", "policy_dirs");
    let usual = [place("policy.d")];
    let folders: Vec<PathBuf> = named.iter().map(|name| place(name)).collect();
    for folder in if named.is_empty() { usual.as_slice() } else { folders.as_slice() } {
        if named.is_empty() && !folder.is_dir() {
            continue;
        }
        for file in files(folder).context("[oslo_policy] policy_dirs")? {
            rules.extend(read(&file).context("[oslo_policy] policy_dirs")?);
        }
    }
    let policy = policy.with_overrides(&rules).context("[oslo_policy]")?;
    for name in policy.unknown(&rules) {
        let near = nearest(name, policy.names().filter(|known| *known != name));
        let hint = near.map(|near| format!(": did you mean {near:?}?")).unwrap_or_default();
        tracing::warn!("policy rule {name:?} is not used{hint}");
    }
    for name in policy.missing() {
        tracing::warn!("policy rule {name:?} is referenced but not defined: it is always false");
    }
    Ok(policy)
}

fn place(name: &str) -> PathBuf {
    Path::new(HERE).join(name)
}

/// The files of a directory sorted by name, without hidden files.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files
        .retain(|file| file.is_file() && !file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    files.sort();
    Ok(files)
}

/// Reads the rules of a YAML or JSON file.
fn read(file: &Path) -> Result<Map> {
    let shown = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(shown)?;
    match kiln_yaml::parse(&text).map_err(|error| anyhow!("{error}")).with_context(shown)?.value {
        Value::Map(rules) => Ok(rules),
        Value::Null => Ok(Map::new()),
        _ => bail!("{}: a policy file must contain a map of rules", shown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(option: &'static str, value: &Path) -> Result<Policy> {
        policy(&Config::of_options(&[("oslo_policy", option, value.display().to_string())]))
    }

    #[test]
    fn a_file_that_is_named_must_be_right() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        let missing = with("policy_file", &file).unwrap_err();
        assert!(format!("{missing:#}").starts_with("[oslo_policy] policy_file: "), "{missing:#}");
        for wrong in ["stacks:index: [", "- a", "stacks:index: 'role:a and'"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(with("policy_file", &file).is_err(), "{wrong}");
        }
        std::fs::write(&file, "stacks:index: role:guest\n").unwrap();
        assert!(with("policy_file", &file).is_ok());
    }

    #[test]
    fn folders_count() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("10.yaml"), "stacks:index: role:a\nstacks:indx: '@'\n").unwrap();
        std::fs::write(folder.path().join("20.yaml"), "stacks:index: rule:gone\n").unwrap();
        let policy = with("policy_dirs", folder.path()).unwrap();
        assert_eq!(policy.missing(), ["gone"]);
        std::fs::write(folder.path().join("30.yaml"), "[").unwrap();
        assert!(with("policy_dirs", folder.path()).is_err());
        assert!(with("policy_dirs", &folder.path().join("nowhere")).is_err());
    }
}
