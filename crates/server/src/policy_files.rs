//! The operator's policy: `[oslo_policy] policy_file` and the files in `policy_dirs`, read as oslo.policy does, and again
//! when they change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow, bail};
use kiln_identity::Policy;
use kiln_value::{Chain, Map, Value};

use kiln_config::Config;
use kiln_config::options::server;
use kiln_template::hint::nearest;

/// The default file.
const FILE: &str = "policy.yaml";
/// The default directory.
const FOLDER: &str = "policy.d";
/// Interval at which the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Where the policy is.
#[derive(Clone, Debug)]
pub struct PolicyFiles {
    new_defaults: bool,
    file: PathBuf,
    folders: Vec<PathBuf>,
    /// Whether the file and the directories are configured: then they must exist.
    named: (bool, bool),
}

impl PolicyFiles {
    /// The files of a configuration.
    pub fn of(config: &Config) -> Result<Self> {
        let (file, folders) = (config.text(&server::POLICY_FILE), config.all(&server::POLICY_DIRS));
        // The defaults of oslo.policy may be missing.
        let named = (
            file.as_deref().is_some_and(|name| name != FILE),
            !folders.is_empty() && folders.iter().any(|name| name != FOLDER),
        );
        let folders = if folders.is_empty() { vec![FOLDER.to_owned()] } else { folders };
        Ok(Self {
            new_defaults: config.flag(&server::ENFORCE_NEW_DEFAULTS)?,
            file: config.beside(file.as_deref().unwrap_or(FILE)),
            folders: folders.iter().map(|name| config.beside(name)).collect(),
            named,
        })
    }

    /// The rules of the operator.
    pub(crate) fn rules(&self) -> Result<Map> {
        let mut rules = Map::new();
        if self.named.0 || self.file.is_file() {
            rules.extend(read(&self.file).context("[oslo_policy] policy_file")?);
        }
        for folder in self.folders.iter().filter(|folder| self.named.1 || folder.is_dir()) {
            for file in files(folder).context("[oslo_policy] policy_dirs")? {
                rules.extend(read(&file).context("[oslo_policy] policy_dirs")?);
            }
        }
        Ok(rules)
    }

    /// The effective rules.
    pub fn read(&self) -> Result<Policy> {
        let rules = self.rules()?;
        let policy = kiln_api::policy(self.new_defaults).with_overrides(&rules).context("[oslo_policy]")?;
        for problem in doubts(&policy, &rules) {
            tracing::warn!("policy {problem}");
        }
        Ok(policy)
    }

    /// Reads the files again when they change, for ever. Invalid rules are only logged: the former ones stay in use.
    pub async fn follow(&self, policy: &Policy) {
        let mut seen = self.state();
        loop {
            tokio::time::sleep(LOOK).await;
            let now = self.state();
            if now == seen {
                continue;
            }
            seen = now;
            match self.read() {
                Ok(changed) => {
                    policy.replace(&changed);
                    tracing::info!("the policy files have changed: the new rules are in use");
                }
                Err(error) => {
                    let error = Chain(&*error).to_string();
                    tracing::error!(
                        error,
                        "the policy files have changed and are not valid: the former rules stay in use"
                    );
                }
            }
        }
    }

    /// Times and sizes of all files.
    fn state(&self) -> BTreeMap<PathBuf, (Option<SystemTime>, u64)> {
        let inside = self.folders.iter().filter_map(|folder| files(folder).ok()).flatten();
        let all = inside.chain([self.file.clone()]);
        let state = all.filter_map(|file| {
            let about = std::fs::metadata(&file).ok()?;
            Some((file, (about.modified().ok(), about.len())))
        });
        state.collect()
    }
}

/// Rules that are valid, but not what was meant.
fn doubts(policy: &Policy, rules: &Map) -> Vec<String> {
    let names = policy.names();
    let unknown = policy.unknown(rules).into_iter().map(|name| {
        let near = nearest(name, names.iter().map(String::as_str).filter(|known| *known != name));
        let hint = near.map(|near| format!(": did you mean {near:?}?")).unwrap_or_default();
        format!("rule {name:?} is not used{hint}")
    });
    let missing = policy.missing().into_iter();
    unknown
        .chain(missing.map(|name| format!("rule {name:?} is referenced but not defined: it is always false")))
        .collect()
}

/// The number of rules in a file, and all problems with them.
pub fn check(file: &Path) -> Result<(usize, Vec<String>)> {
    let rules = read(file)?;
    let mut problems = Vec::new();
    let mut valid = Map::new();
    for (name, rule) in &rules {
        let one = Map::from([(name.clone(), rule.clone())]);
        match kiln_api::policy(true).with_overrides(&one) {
            Ok(_) => valid.extend(one),
            Err(error) => problems.push(error.to_string()),
        }
    }
    let policy = kiln_api::policy(true).with_overrides(&valid)?;
    // A rule that is not valid is not missing.
    let is_known =
        |problem: &String| !rules.keys().any(|name| problem.starts_with(&format!("rule {name:?} is referenced")));
    problems.extend(doubts(&policy, &valid).into_iter().filter(is_known));
    Ok((rules.len(), problems))
}

/// A policy file with all rules and their defaults, as `oslopolicy-sample-generator` writes it: in YAML they are comments with
/// what they decide about, in JSON they are values.
pub fn sample(json: bool) -> String {
    let rules = kiln_api::policy_rules();
    if json {
        let rules = rules.iter().map(|rule| (rule.name.clone(), rule.check.to_string().into()));
        let rules = Value::Map(rules.collect());
        return serde_json::to_string_pretty(&rules).unwrap_or_default() + "\n";
    }
    let mut sample = String::new();
    for rule in rules {
        if !rule.summary.is_empty() {
            _ = writeln!(sample, "# {}", rule.summary);
        }
        for (method, path) in &rule.operations {
            _ = writeln!(sample, "# {method}  {path}");
        }
        if let Some(older) = rule.check.of_older_releases() {
            _ = writeln!(sample, "# Also sufficient without enforce_new_defaults: {older}");
        }
        _ = writeln!(sample, "#\"{}\": \"{}\"\n", rule.name, rule.check);
    }
    sample
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
        PolicyFiles::of(&Config::of_options(&[("oslo_policy", option, value.display().to_string())]))?.read()
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

    #[tokio::test(start_paused = true)]
    async fn files_are_read_again_when_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, "stacks:index: rule:one\n").unwrap();
        let value = file.display().to_string();
        let files = PolicyFiles::of(&Config::of_options(&[("oslo_policy", "policy_file", value)])).unwrap();
        let policy = files.read().unwrap();
        let passed = async |seconds| {
            drop(tokio::time::timeout(Duration::from_secs(seconds), files.follow(&policy)).await);
        };
        let write_after = async |text: &str| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            std::fs::write(&file, text).unwrap();
        };
        assert_eq!(policy.missing(), ["one"]);
        tokio::join!(passed(10), write_after("stacks:index: rule:another\n"));
        assert_eq!(policy.missing(), ["another"]);
        tokio::join!(passed(10), write_after("stacks:index: 'role:a and'\n"));
        assert_eq!(policy.missing(), ["another"], "the former rules stay");
    }

    #[test]
    fn a_check_finds_every_problem() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        let text = "stacks:index: 'role:a and'\nstacks:crate: role:a\nstacks:show: rule:gone\nstacks:delete: rule:own\n\
                    own: role:b\nstacks:update: [a]\n";
        std::fs::write(&file, text).unwrap();
        let (rules, problems) = check(&file).unwrap();
        assert_eq!((rules, problems.len()), (6, 4), "{problems:?}");
        let problems = problems.join("\n");
        for part in ["stacks:index", "stacks:update\" is not a string", "did you mean \"stacks:create\"?", "\"gone\""] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        std::fs::write(&file, "stacks:index: role:a\n").unwrap();
        assert_eq!(check(&file).unwrap(), (1, vec![]));
    }
}
