//! The configuration of a service: Heat's option names, from files and the environment.
//!
//! As with oslo.config, the environment variable `OS_<GROUP>__<OPTION>` takes precedence over files
//! (`OS_DATABASE__CONNECTION`), and later files over earlier ones. Names and defaults: reference `config_options.json`.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kiln_template::YaqlLimits;
use kiln_value::Secret;

use crate::cli::ConfigArgs;
use crate::failure::{Failure, nearest};
use crate::ini::{DEFAULT, Ini};

/// The options from files and the environment.
pub(crate) struct Config {
    ini: Ini,
    files: Vec<PathBuf>,
    env: fn(&str) -> Option<String>,
    /// Options that Kiln has read, used to find unknown options in files.
    asked: Mutex<HashSet<(String, String)>>,
}

/// Valid options of Heat that Kiln ignores and that look like misspelled options of Kiln.
const HEATS_OWN: &[&str] = &["workers", "heat_metadata_server_url", "host_href"];

/// A Keystone user that is configured in a section: `[keystone_authtoken]`, `[trustee]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// URL of Keystone.
    pub(crate) auth_url: Option<String>,
    /// User name.
    pub(crate) username: Option<String>,
    /// Password.
    pub(crate) password: Option<Secret<String>>,
    /// Domain of the user.
    pub(crate) user_domain: String,
    /// Project.
    pub(crate) project: Option<String>,
    /// Domain of the project.
    pub(crate) project_domain: String,
    /// Region.
    pub(crate) region: Option<String>,
    /// File with CA certificates.
    pub(crate) cafile: Option<String>,
    /// File with the client certificate.
    pub(crate) certfile: Option<String>,
    /// File with the key of the client certificate.
    pub(crate) keyfile: Option<String>,
    /// Do not verify certificates.
    pub(crate) insecure: bool,
}

impl Config {
    /// Reads the files on the command line, or the default files.
    pub(crate) fn load(args: &ConfigArgs) -> Result<Self> {
        let mut files = args.config_file.clone();
        if files.is_empty() && args.config_dir.is_empty() {
            files = usual_places(variable).into_iter().filter(|path| path.is_file()).take(1).collect();
        }
        for folder in &args.config_dir {
            let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
            let mut inside: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            inside.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
            inside.sort();
            files.extend(inside);
        }
        let mut ini = Ini::default();
        for file in &files {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            ini.read(&text).with_context(|| file.display().to_string())?;
        }
        Ok(Self { ini, files, env: variable, asked: Mutex::default() })
    }

    /// Only these options, as `(group, option, value)`.
    pub(crate) fn of_options(options: &[(&str, &str, String)]) -> Self {
        let mut ini = Ini::default();
        for (group, option, value) in options {
            // Values are literal: escape dollar signs.
            ini.add(group, option, value.replace('$', "$$"));
        }
        Self { ini, files: vec![], env: |_| None, asked: Mutex::default() }
    }

    /// The options of a text, without the environment.
    #[cfg(test)]
    fn of(text: &str) -> Self {
        let mut ini = Ini::default();
        ini.read(text).unwrap();
        Self { ini, files: vec![], env: |_| None, asked: Mutex::default() }
    }

    /// An option as text; an empty value counts as not set.
    pub(crate) fn text(&self, group: &str, option: &str) -> Option<String> {
        if let Ok(mut asked) = self.asked.lock() {
            asked.insert((group.to_owned(), option.to_owned()));
        }
        let name = format!("OS_{}__{}", group.to_uppercase(), option.to_uppercase());
        (self.env)(&name).or_else(|| self.ini.get(group, option)).filter(|value| !value.is_empty())
    }

    /// A number.
    pub(crate) fn number<T: std::str::FromStr>(&self, group: &str, option: &str, default: T) -> Result<T> {
        match self.text(group, option) {
            None => Ok(default),
            Some(text) => match text.trim().parse() {
                Ok(number) => Ok(number),
                Err(_) => bail!("[{group}] {option}: {text:?} is not a number in the allowed range"),
            },
        }
    }

    /// A duration in seconds, with optional fraction.
    pub(crate) fn seconds(&self, group: &str, option: &str, default: Duration) -> Result<Duration> {
        let seconds = self.number(group, option, default.as_secs_f64())?;
        Duration::try_from_secs_f64(seconds).with_context(|| format!("[{group}] {option}"))
    }

    /// A number; negative values mean no limit.
    pub(crate) fn limit(&self, group: &str, option: &str, default: u64) -> Result<Option<u64>> {
        let default = i64::try_from(default).unwrap_or(i64::MAX);
        Ok(u64::try_from(self.number(group, option, default)?).ok())
    }

    /// The limits of YAQL expressions: `[yaql] limit_iterators` and `memory_quota`.
    pub(crate) fn yaql_limits(&self) -> Result<YaqlLimits> {
        let usual = YaqlLimits::default();
        let limit = |option, usual: Option<usize>| {
            let usual = usual.and_then(|usual| u64::try_from(usual).ok()).unwrap_or(u64::MAX);
            let limit = self.limit("yaql", option, usual)?;
            Ok::<_, anyhow::Error>(limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)))
        };
        Ok(YaqlLimits {
            iterations: limit("limit_iterators", usual.iterations)?,
            // In yaql, a quota of 0 bytes also means no limit.
            memory: limit("memory_quota", usual.memory)?.filter(|bytes| *bytes > 0),
            ..usual
        })
    }

    /// A boolean in the notation of oslo.config.
    pub(crate) fn flag(&self, group: &str, option: &str, default: bool) -> Result<bool> {
        let Some(text) = self.text(group, option) else { return Ok(default) };
        match text.to_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(true),
            "false" | "0" | "off" | "no" => Ok(false),
            _ => bail!("[{group}] {option}: {text:?} is not a boolean"),
        }
    }

    /// A comma-separated list.
    pub(crate) fn list(&self, group: &str, option: &str) -> Vec<String> {
        let text = self.text(group, option).unwrap_or_default();
        let items = text.split(',').map(|item| item.trim().trim_matches(['"', '\'']));
        items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// A secret value.
    pub(crate) fn secret(&self, group: &str, option: &str) -> Option<Secret<String>> {
        self.text(group, option).map(Secret::new)
    }

    /// The user that a section configures; `auth_section` refers to another section.
    pub(crate) fn account(&self, group: &str) -> Result<Account> {
        let section = self.text(group, "auth_section").unwrap_or_else(|| group.to_owned());
        let get = |option: &str| self.text(&section, option);
        let domain = |what: &str| {
            let by_id = get(&format!("{what}_domain_id"));
            by_id.or_else(|| get(&format!("{what}_domain_name"))).unwrap_or_else(|| "Default".to_owned())
        };
        if let Some(kind) = get("auth_type").or_else(|| get("auth_plugin"))
            && !matches!(kind.as_str(), "password" | "v3password")
        {
            bail!("[{section}] auth_type: only password is supported, not {kind:?}");
        }
        Ok(Account {
            auth_url: get("auth_url").or_else(|| get("identity_uri")),
            username: get("username").or_else(|| get("user_name")),
            password: self.secret(&section, "password"),
            user_domain: domain("user"),
            project: get("project_name").or_else(|| get("tenant_name")),
            project_domain: domain("project"),
            region: get("region_name"),
            cafile: get("cafile"),
            certfile: get("certfile"),
            keyfile: get("keyfile"),
            insecure: self.flag(&section, "insecure", false)?,
        })
    }

    /// Logs the files that were read, and warns about unknown options: first about likely misspellings.
    pub(crate) fn tell(&self) {
        for file in &self.files {
            tracing::info!(file = %file.display(), "read configuration file");
        }
        let (misspelt, others) = self.unknown();
        for (option, near) in misspelt {
            tracing::warn!("unknown option {option}: did you mean {near}?");
        }
        if !others.is_empty() {
            tracing::warn!("options without effect in Kiln: {}", others.join(", "));
        }
    }

    /// The options in files that Kiln does not use: likely misspellings with suggestions, and the others.
    fn unknown(&self) -> (Vec<(String, String)>, Vec<String>) {
        let asked = self.asked.lock().map(|asked| asked.clone()).unwrap_or_default();
        let (mut misspelt, mut others) = (Vec::new(), Vec::new());
        let given: BTreeSet<(&str, &str)> = self.ini.options().collect();
        for (group, option) in given.iter().copied() {
            if asked.contains(&(group.to_owned(), option.to_owned())) {
                continue;
            }
            let shown = format!("[{group}] {option}");
            let beside = asked.iter().filter(|(known, name)| known == group && !given.contains(&(group, name)));
            // The same name in another section, or a similar name in this section.
            let elsewhere = asked.iter().find(|(known, name)| name == option && !given.contains(&(known, name)));
            let near = nearest(option, beside.map(|(_, name)| name.as_str()));
            match (near, elsewhere) {
                (Some(near), _) if !HEATS_OWN.contains(&option) => misspelt.push((shown, format!("[{group}] {near}"))),
                (None, Some((section, name)))
                    if !HEATS_OWN.contains(&option) && section.eq_ignore_ascii_case(group) =>
                {
                    misspelt.push((shown, format!("[{section}] {name}")));
                }
                _ => others.push(shown),
            }
        }
        (misspelt, others)
    }

    /// Adds the names of the configuration files to an error.
    pub(crate) fn refused(&self, error: anyhow::Error) -> Failure {
        let failure = Failure::from(error);
        match self.files.as_slice() {
            [] => failure.hint("no configuration file was found: use --config-file to specify one"),
            files => {
                let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                failure.hint(format!("configuration files: {}", names.join(", ")))
            }
        }
    }

    /// All values of an option that may be repeated, in order; a value in the environment replaces them all.
    pub(crate) fn all(&self, group: &str, option: &str) -> Vec<String> {
        let Some(last) = self.text(group, option) else { return Vec::new() };
        let values = self.ini.all(group, option);
        if values.last().is_some_and(|value| value.replace("$$", "$") == last) {
            values.iter().map(|value| value.replace("$$", "$")).collect()
        } else {
            vec![last]
        }
    }

    /// An option of the group `[DEFAULT]`.
    pub(crate) fn default(&self, option: &str) -> Option<String> {
        self.text(DEFAULT, option)
    }
}

/// The default places of configuration files in oslo.config, with Kiln's name.
fn usual_places(env: fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(home) = env("HOME").filter(|home| !home.is_empty()) {
        places.push(Path::new(&home).join(".kiln/kiln.conf"));
        places.push(Path::new(&home).join("kiln.conf"));
    }
    places.push("/etc/kiln/kiln.conf".into());
    places.push("/etc/kiln.conf".into());
    places
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_types() {
        let config = Config::of(
            "[DEFAULT]\nnum_engine_workers = 4\nroles = a, b,,\"c\"\nbad = x\nmax = -1\n[heat_api]\nworkers=0\nflag = Yes\n",
        );
        assert_eq!(config.number(DEFAULT, "num_engine_workers", 1).unwrap(), 4);
        assert_eq!(config.list(DEFAULT, "roles"), ["a", "b", "c"]);
        assert!(config.number(DEFAULT, "bad", 1_u16).is_err());
        assert_eq!(config.limit(DEFAULT, "max", 5).unwrap(), None);
        assert_eq!(config.limit(DEFAULT, "none", 5).unwrap(), Some(5));
        assert!(config.flag("heat_api", "flag", false).unwrap());
    }

    #[test]
    fn misspelt_options_are_told_of() {
        let config = Config::of(
            "[DEFAULT]\nmax_stack_per_tenant = 1\nlog_dir = /x\n[keystone_authtoken]\npasword = x\nusername = u\n\
             [heat_Api]\nbind_port = 1\n",
        );
        config.default("max_stacks_per_tenant");
        config.account("keystone_authtoken").unwrap();
        config.text("heat_api", "bind_port");
        let (misspelt, others) = config.unknown();
        let told = |wrong: &str, right: &str| misspelt.contains(&(wrong.to_owned(), right.to_owned()));
        assert!(told("[DEFAULT] max_stack_per_tenant", "[DEFAULT] max_stacks_per_tenant"), "{misspelt:?}");
        assert!(told("[keystone_authtoken] pasword", "[keystone_authtoken] password"), "{misspelt:?}");
        assert!(told("[heat_Api] bind_port", "[heat_api] bind_port"), "{misspelt:?}");
        assert_eq!(others, ["[DEFAULT] log_dir"]);
    }

    #[test]
    fn times_are_seconds() {
        let config = Config::of("[kiln]\nlease = 0.5\ndrain = -1\n");
        let second = Duration::from_secs(1);
        assert_eq!(config.seconds("kiln", "lease", second).unwrap(), Duration::from_millis(500));
        assert_eq!(config.seconds("kiln", "call_limit", second).unwrap(), second);
        assert!(config.seconds("kiln", "drain", second).is_err());
    }

    #[test]
    fn yaql_has_limits() {
        assert_eq!(Config::of("").yaql_limits().unwrap(), YaqlLimits::default());
        let set = Config::of("[yaql]\nlimit_iterators = 0\nmemory_quota = 500000\n").yaql_limits().unwrap();
        assert_eq!((set.iterations, set.memory), (Some(0), Some(500_000)));
        let none = Config::of("[yaql]\nlimit_iterators = -1\nmemory_quota = 0\n").yaql_limits().unwrap();
        assert_eq!((none.iterations, none.memory), (None, None));
        assert!(Config::of("[yaql]\nmemory_quota = much\n").yaql_limits().is_err());
    }

    #[test]
    fn accounts_may_share_a_section() {
        let config = Config::of(
            "[keystone_authtoken]\nauth_url = http://k\nusername = heat\npassword = pw\nproject_name = service\n\
             user_domain_name = D\n[trustee]\nauth_section = keystone_authtoken\n",
        );
        let trustee = config.account("trustee").unwrap();
        assert_eq!((trustee.username.as_deref(), trustee.user_domain.as_str()), (Some("heat"), "D"));
        assert_eq!(trustee.project_domain, "Default");
    }
}
