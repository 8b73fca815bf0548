//! The configuration of a service: Heat's option names, from files and the environment.
//!
//! As with oslo.config, the environment variable `OS_<GROUP>__<OPTION>` takes precedence over files
//! (`OS_DATABASE__CONNECTION`), and later files over earlier ones. All options are in the table of [`options`]. Names
//! and Heat's defaults: reference `config_options.json`.

pub mod account;
pub mod check;
mod differences;
pub mod heats_own;
pub mod option;
pub mod options;
pub mod paste;
pub mod reference;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use kiln_ini::{Given, Ini};
use kiln_template::YaqlLimits;
use kiln_value::Secret;

pub use self::account::Account;
use self::check::Level;
pub use self::differences::differences;
use self::option::{ACCOUNTS, At, Kind, Place, as_flag};
use crate::option::ConfigOption;

/// Where the configuration is.
#[derive(Args, Clone, Debug, Default)]
pub struct ConfigArgs {
    /// INI file with Heat's option names; may be repeated, later files take precedence [default: ~/.kiln/kiln.conf,
    /// ~/kiln.conf, /etc/kiln/kiln.conf, /etc/kiln.conf]
    #[arg(long, value_name = "FILE")]
    pub config_file: Vec<PathBuf>,
    /// Folder with *.conf files, read after the other files; may be repeated
    #[arg(long, value_name = "FOLDER")]
    pub config_dir: Vec<PathBuf>,
}

/// The options from files and the environment.
pub struct Config {
    ini: Ini,
    files: Vec<PathBuf>,
    env: fn(&str) -> Option<String>,
    /// Options of the command line.
    arguments: Vec<(&'static ConfigOption, String)>,
    /// Secrets in files of their own, by section and name.
    secrets: SecretFiles,
}

/// The values of secrets in files of their own and these files, by section and name.
type SecretFiles = HashMap<(&'static str, &'static str), (String, PathBuf)>;

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An environment variable.
    Environment(String),
    /// A file and a line, from 1.
    File(PathBuf, usize),
    /// The program itself: `kiln demo`.
    Program,
    /// The default.
    Default,
}

impl Source {
    /// The file and the line, if it is one.
    fn place(self) -> Option<(PathBuf, usize)> {
        match self {
            Self::File(file, line) => Some((file, line)),
            _ => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "{name}"),
            Self::File(file, line) => write!(f, "{}:{line}", file.display()),
            Self::Program => write!(f, "program"),
            Self::Default => write!(f, "default"),
        }
    }
}

impl Config {
    /// Reads the files on the command line, or the default files.
    pub fn load(args: &ConfigArgs) -> Result<Self> {
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
        Self::read(files, variable)
    }

    /// As [`Config::load`], for commands with a name of Heat: without a file of Kiln, they read Heat's.
    pub fn load_as_heat(args: &ConfigArgs) -> Result<Self> {
        let config = Self::load(args)?;
        if !config.files.is_empty() {
            return Ok(config);
        }
        let places = ["/etc/heat/heat.conf", "/etc/heat.conf"].map(PathBuf::from);
        Self::read(places.into_iter().filter(|path| path.is_file()).take(1).collect(), variable)
    }

    /// Reads these files, without the environment.
    pub fn of_files(files: Vec<PathBuf>) -> Result<Self> {
        Self::read(files, |_| None)
    }

    fn read(files: Vec<PathBuf>, env: fn(&str) -> Option<String>) -> Result<Self> {
        let mut ini = Ini::default();
        for (number, file) in files.iter().enumerate() {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            ini.read(&text, number).with_context(|| file.display().to_string())?;
        }
        let mut config = Self { ini, files, env, arguments: Vec::new(), secrets: HashMap::new() };
        config.secrets = config.secrets_in_files()?;
        Ok(config)
    }

    /// Only these options, as `(group, option, value)`.
    pub fn of_options(options: &[(&str, &str, String)]) -> Self {
        let mut ini = Ini::default();
        for (group, option, value) in options {
            // Values are literal: escape dollar signs.
            ini.add(group, option, value.replace('$', "$$"));
        }
        Self { ini, files: vec![], env: |_| None, arguments: Vec::new(), secrets: HashMap::new() }
    }

    /// The options of a file's text, without the environment; errors name it `kiln.conf`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut ini = Ini::default();
        ini.read(text, 0)?;
        let files = vec!["kiln.conf".into()];
        Ok(Self { ini, files, env: |_| None, arguments: Vec::new(), secrets: HashMap::new() })
    }

    /// All options in all sections with a fixed name.
    pub fn places() -> impl Iterator<Item = At<'static>> {
        options::all().flat_map(|option| {
            let sections: Vec<&'static str> = match option.place() {
                Place::Section(section) => vec![section],
                Place::Account => ACCOUNTS.to_vec(),
                Place::Clients => option::client_sections().collect(),
            };
            sections.into_iter().map(|section| option.of(section))
        })
    }

    /// This configuration with the options of another that can change while a service runs.
    #[must_use]
    pub fn with_mutable_of(mut self, new: &Self) -> Self {
        for option in options::all().filter(|option| option.is_mutable()) {
            let value = new.ini.all(option.section(), option.name()).last().cloned();
            self.ini.set(option.section(), option.name(), value);
        }
        self
    }

    /// This configuration with more options, which take precedence.
    #[must_use]
    pub fn with(&self, options: Vec<(&'static ConfigOption, String)>) -> Self {
        let (ini, files) = (self.ini.clone(), self.files.clone());
        let arguments = self.arguments.iter().cloned().chain(options).collect();
        Self { ini, files, env: self.env, arguments, secrets: self.secrets.clone() }
    }

    /// Sets an option of the command line, which takes precedence.
    pub fn set(&mut self, option: &'static ConfigOption, value: String) {
        self.arguments.push((option, value));
    }

    /// The files that were read.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The place of a relative name: beside the last configuration file that has such a neighbour, as by oslo.config,
    /// otherwise in `/etc/kiln`.
    pub fn beside(&self, name: &str) -> PathBuf {
        let beside = self.files.iter().filter_map(|file| file.parent()).map(|folder| folder.join(name));
        beside.rev().find(|path| path.exists()).unwrap_or_else(|| Path::new("/etc/kiln").join(name))
    }

    /// A value that is set, and where; an empty value counts as not set.
    pub fn given<'a>(&self, at: impl Into<At<'a>>) -> Option<(String, Source)> {
        let At { section, option } = at.into();
        let argument = self.arguments.iter().rev().find(|(given, _)| std::ptr::eq(*given, option));
        if let Some((_, value)) = argument {
            return Some((value.clone(), Source::Program));
        }
        let mut names = Self::names_of(At { section, option });
        let variable = names.find_map(|(group, name)| self.in_environment(group, name));
        let given = variable
            .or_else(|| Self::names_of(At { section, option }).find_map(|(group, name)| self.in_files(group, name)));
        given.or_else(|| {
            let (value, file) = self.secrets.get(&(section, option.name()))?;
            Some((value.clone(), Source::File(file.clone(), 1)))
        })
    }

    /// As [`Config::given`], for an option that Kiln does not read.
    fn given_as(&self, section: &str, name: &str) -> Option<(String, Source)> {
        self.in_environment(section, name).or_else(|| self.in_files(section, name))
    }

    /// Section and name of an option, then the older ones.
    fn names_of(At { section, option }: At<'_>) -> impl Iterator<Item = (&str, &str)> {
        std::iter::once((section, option.name())).chain(option.older_in(section))
    }

    fn in_environment(&self, section: &str, name: &str) -> Option<(String, Source)> {
        let variable = format!("OS_{}__{}", section.to_uppercase(), name.to_uppercase());
        let value = (self.env)(&variable).filter(|value| !value.is_empty())?;
        Some((value, Source::Environment(variable)))
    }

    fn in_files(&self, section: &str, name: &str) -> Option<(String, Source)> {
        let given = self.ini.all(section, name).last()?;
        let value = self.ini.replaced(section, given);
        (!value.is_empty()).then(|| (value, self.source(given)))
    }

    /// Section and name of all options in the files.
    fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ini.options().map(|(section, name, _)| (section, name))
    }

    fn source(&self, given: &Given) -> Source {
        match given.place {
            Some((file, line)) => Source::File(self.files.get(file).cloned().unwrap_or_default(), line),
            None => Source::Program,
        }
    }

    /// The secrets that are in files of their own: `NAME_file = PATH`, `OS_<GROUP>__<OPTION>_FILE`, or a credential of systemd
    /// with the name `GROUP.OPTION`.
    fn secrets_in_files(&self) -> Result<SecretFiles> {
        let credentials = (self.env)("CREDENTIALS_DIRECTORY").filter(|folder| !folder.is_empty());
        let mut secrets = HashMap::new();
        for At { section, option } in Self::places().filter(|at| at.option.is_secret()) {
            let name = format!("{}_file", option.name());
            let named = self.in_environment(section, &name).or_else(|| self.in_files(section, &name));
            let credential =
                credentials.as_ref().map(|folder| Path::new(folder).join(format!("{section}.{}", option.name())));
            let file = match named {
                Some((file, _)) => PathBuf::from(file),
                None => match credential.filter(|file| file.exists()) {
                    Some(file) => file,
                    None => continue,
                },
            };
            if self.in_files(section, option.name()).is_some() {
                bail!("[{section}] {} is set, and it is in the file {} too", option.name(), file.display());
            }
            let text = std::fs::read_to_string(&file);
            let text = text.with_context(|| format!("[{section}] {name}: {}", file.display()))?;
            secrets.insert((section, option.name()), (text.trim_end_matches(['\r', '\n']).to_owned(), file));
        }
        Ok(secrets)
    }

    /// Whether an option is set.
    pub fn is_set<'a>(&self, at: impl Into<At<'a>>) -> bool {
        self.given(at).is_some()
    }

    /// An option as text, or its default.
    pub fn text<'a>(&self, at: impl Into<At<'a>>) -> Option<String> {
        let at = at.into();
        let default = || Some(at.option.default_text()).filter(|text| !text.is_empty()).map(str::to_owned);
        self.given(at).map(|(value, _)| value).or_else(default)
    }

    /// A value that is set, checked with the type of its option. Without it, the default, unless that is computed.
    fn checked<'a>(&self, at: impl Into<At<'a>>) -> Result<Option<String>> {
        let at = at.into();
        let Some(text) = self.text(at) else { return Ok(None) };
        match at.option.kind().check(&text) {
            Ok(()) => Ok(Some(text.trim().to_owned())),
            Err(problem) if at.option.is_secret() => bail!("{at}: {problem}"),
            Err(problem) => bail!("{at}: {text:?} is {problem}"),
        }
    }

    /// One of the allowed texts.
    pub fn choice<'a>(&self, at: impl Into<At<'a>>) -> Result<Option<String>> {
        self.checked(at)
    }

    /// A number.
    pub fn number<'a, T: std::str::FromStr>(&self, at: impl Into<At<'a>>) -> Result<T> {
        let at = at.into();
        match self.given_number(at)? {
            Some(number) => Ok(number),
            None => bail!("{at} is not set"),
        }
    }

    /// A number; `None`: it is not set and has no default of its own.
    pub fn given_number<'a, T: std::str::FromStr>(&self, at: impl Into<At<'a>>) -> Result<Option<T>> {
        let at = at.into();
        let Some(text) = self.checked(at)? else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => bail!("{at}: {text:?} is not in the allowed range"),
        }
    }

    /// A duration in seconds, with optional fraction.
    pub fn seconds<'a>(&self, at: impl Into<At<'a>>) -> Result<Duration> {
        let at = at.into();
        Duration::try_from_secs_f64(self.number(at)?).with_context(|| at.to_string())
    }

    /// A duration with a computed default.
    pub fn seconds_or<'a>(&self, at: impl Into<At<'a>>, default: Duration) -> Result<Duration> {
        let at = at.into();
        if self.is_set(at) { self.seconds(at) } else { Ok(default) }
    }

    /// A number; negative values mean no limit.
    pub fn limit<'a>(&self, at: impl Into<At<'a>>) -> Result<Option<u64>> {
        Ok(u64::try_from(self.number::<i64>(at)?).ok())
    }

    /// A boolean.
    pub fn flag<'a>(&self, at: impl Into<At<'a>>) -> Result<bool> {
        Ok(self.flag_if_set(at)?.unwrap_or_default())
    }

    /// A boolean; `None`: it is not set and has no default of its own.
    pub fn flag_if_set<'a>(&self, at: impl Into<At<'a>>) -> Result<Option<bool>> {
        Ok(self.checked(at)?.as_deref().and_then(as_flag))
    }

    /// A comma-separated list.
    pub fn list<'a>(&self, at: impl Into<At<'a>>) -> Vec<String> {
        let text = self.text(at).unwrap_or_default();
        let items = text.split(',').map(|item| item.trim().trim_matches(['"', '\'']));
        items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// A secret value.
    pub fn secret<'a>(&self, at: impl Into<At<'a>>) -> Option<Secret<String>> {
        self.text(at).map(Secret::new)
    }

    /// All values of an option that may be repeated, in order; a value in the environment replaces them all.
    pub fn all<'a>(&self, at: impl Into<At<'a>>) -> Vec<String> {
        let at = at.into();
        debug_assert!(at.option.kind() == Kind::Repeated, "{at}");
        let argument = self.arguments.iter().rev().find(|(given, _)| std::ptr::eq(*given, at.option));
        if let Some((_, value)) = argument {
            return vec![value.clone()];
        }
        match self.given(at) {
            None => Vec::new(),
            Some((value, Source::Environment(_))) => vec![value],
            Some(_) => {
                let is_set = |(section, name): &(&str, &str)| self.in_files(section, name).is_some();
                let Some((section, name)) = Self::names_of(at).find(is_set) else { return Vec::new() };
                self.ini.all(section, name).iter().map(|given| self.ini.replaced(section, given)).collect()
            }
        }
    }

    /// The limits of YAQL expressions: `[yaql] limit_iterators` and `memory_quota`.
    pub fn yaql_limits(&self) -> Result<YaqlLimits> {
        let limit = |option| {
            let limit = self.limit(option)?;
            Ok::<_, anyhow::Error>(limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)))
        };
        Ok(YaqlLimits {
            iterations: limit(&options::stacks::LIMIT_ITERATORS)?,
            // In yaql, a quota of 0 bytes also means no limit.
            memory: limit(&options::stacks::MEMORY_QUOTA)?.filter(|bytes| *bytes > 0),
            ..YaqlLimits::default()
        })
    }

    /// Logs the files that were read, and warns about unknown options: first about likely misspellings.
    pub fn tell(&self) {
        for file in &self.files {
            tracing::info!(file = %file.display(), "read configuration file");
        }
        let findings = check::findings(self);
        for finding in findings.iter().filter(|finding| finding.level != Level::Note) {
            tracing::warn!("{finding}");
        }
        let notes = findings.iter().filter(|finding| finding.level == Level::Note);
        let without: Vec<String> = notes.map(check::Finding::shown).collect();
        if !without.is_empty() {
            tracing::info!("options without effect in Kiln: {}; 'kiln config check' says why", without.join(", "));
        }
    }
}

/// The host name of this machine.
pub fn hostname() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    named.ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
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
    use kiln_cloud::Named;

    use super::options::{clouds, kiln, messages, server, stacks};
    use super::*;

    #[test]
    fn secrets_may_be_in_files_of_their_own() {
        let folder = std::env::temp_dir().join(format!("kiln-config-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let password = write("password", "s3cret\n");
        let text = format!("[keystone_authtoken]\npassword_file = {}\n", password.display());
        let config = Config::of_files(vec![write("one.conf", &text)]).unwrap();
        let at = clouds::PASSWORD.of("keystone_authtoken");
        assert_eq!(config.given(at), Some(("s3cret".to_owned(), Source::File(password.clone(), 1))));
        assert_eq!(check::findings(&config), []);
        let both = write("two.conf", &format!("{text}password = other\n"));
        let error = Config::of_files(vec![both]).err().unwrap().to_string();
        assert_eq!(
            error,
            format!("[keystone_authtoken] password is set, and it is in the file {} too", password.display())
        );
        let missing = write("three.conf", "[database]\nconnection_file = /no/such/file\n");
        let error = format!("{:#}", Config::of_files(vec![missing]).err().unwrap());
        assert!(error.starts_with("[database] connection_file: /no/such/file: "), "{error}");
        // Only secrets are read from files.
        let other = write("four.conf", "[DEFAULT]\nhost_file = /etc/hostname\n");
        let told: Vec<_> = check::findings(&Config::of_files(vec![other]).unwrap());
        assert!(told[0].to_string().contains("host_file is not an option of Kiln or Heat"), "{told:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn options_have_types() {
        let config = Config::parse(
            "[DEFAULT]\nmax_nested_stack_depth = 4\ntrusts_delegated_roles = a, b,,\"c\"\naction_retry_limit = x\n\
             max_stacks_per_tenant = -1\nenable_stack_adopt = Yes\nobserve_on_update = maybe\n\
             [database]\nmax_pool_size = 0\n",
        )
        .unwrap();
        assert_eq!(config.number::<u32>(&stacks::MAX_NESTED_STACK_DEPTH).unwrap(), 4);
        assert_eq!(config.list(&stacks::TRUSTS_DELEGATED_ROLES), ["a", "b", "c"]);
        assert!(config.number::<u16>(&stacks::ACTION_RETRY_LIMIT).is_err());
        assert_eq!(config.limit(&stacks::MAX_STACKS_PER_TENANT).unwrap(), None);
        assert_eq!(config.limit(&stacks::MAX_RESOURCES_PER_STACK).unwrap(), Some(1000));
        assert!(config.flag(&stacks::ENABLE_STACK_ADOPT).unwrap());
        assert!(config.flag(&stacks::OBSERVE_ON_UPDATE).unwrap_err().to_string().contains("boolean"));
        let range = config.number::<u32>(&server::MAX_POOL_SIZE).unwrap_err().to_string();
        assert_eq!(range, "[database] max_pool_size: \"0\" is not a whole number from 1 to 10000");
    }

    #[test]
    fn times_are_seconds() {
        let config = Config::parse("[kiln]\nlease = 0.5\ndrain = -1\n").unwrap();
        let second = Duration::from_secs(1);
        assert_eq!(config.seconds(&kiln::LEASE).unwrap(), Duration::from_millis(500));
        assert_eq!(config.seconds_or(&kiln::CALL_LIMIT, second).unwrap(), second);
        assert!(config.seconds_or(&kiln::DRAIN, second).is_err());
    }

    #[test]
    fn yaql_has_limits() {
        assert_eq!(Config::parse("").unwrap().yaql_limits().unwrap(), YaqlLimits::default());
        let set = Config::parse("[yaql]\nlimit_iterators = 0\nmemory_quota = 500000\n").unwrap().yaql_limits().unwrap();
        assert_eq!((set.iterations, set.memory), (Some(0), Some(500_000)));
        let none = Config::parse("[yaql]\nlimit_iterators = -1\nmemory_quota = 0\n").unwrap().yaql_limits().unwrap();
        assert_eq!((none.iterations, none.memory), (None, None));
        assert!(Config::parse("[yaql]\nmemory_quota = much\n").unwrap().yaql_limits().is_err());
    }

    #[test]
    fn accounts_may_share_a_section() {
        let config = Config::parse(
            "[keystone_authtoken]\nauth_url = http://k\nuser-name = heat\npassword = pw\nproject_name = service\n\
             user_domain_name = D\n[trustee]\nauth_section = keystone_authtoken\n",
        )
        .unwrap();
        let trustee = config.account("trustee").unwrap();
        let named = |name: &str| Named::Name { name: name.to_owned(), domain: None };
        assert_eq!((trustee.username.as_deref(), trustee.user_domain), (Some("heat"), named("D")));
        assert_eq!(trustee.project_domain, named("Default"));
        let by_id = Config::parse("[trustee]\nuser_domain_id = default\n").unwrap().account("trustee").unwrap();
        assert_eq!(by_id.user_domain, Named::id("default"));
        let other =
            Config::parse("[trustee]\nauth_type = v3token\n").unwrap().account("trustee").unwrap_err().to_string();
        assert_eq!(other, "[trustee] auth_type: \"v3token\" is not one of password, v3password");
    }

    #[test]
    fn values_have_sources() {
        let config =
            Config::parse("[DEFAULT]\n\nhost =\n  one\n[database]\nconnection = x\nconnection = $host\n").unwrap();
        let file = |line| Source::File("kiln.conf".into(), line);
        assert_eq!(config.given(&stacks::HOST), Some(("\none".to_owned(), file(3))));
        assert_eq!(config.given(&server::CONNECTION).unwrap().1, file(7));
        assert_eq!(config.given(&stacks::ENVIRONMENT_DIR), None);
        let environment = Config { env: |name| (name == "OS_TRUSTEE__USER_NAME").then(|| "t".to_owned()), ..config };
        let (value, source) = environment.given(clouds::USERNAME.of("trustee")).unwrap();
        assert_eq!((value.as_str(), source.to_string().as_str()), ("t", "OS_TRUSTEE__USER_NAME"));
    }

    #[test]
    fn repeated_options_have_all_values() {
        let config = Config::parse("[oslo_messaging_notifications]\ndriver = messagingv2\ndriver = noop\n").unwrap();
        assert_eq!(config.all(&messages::DRIVER), ["messagingv2", "noop"]);
    }
}
