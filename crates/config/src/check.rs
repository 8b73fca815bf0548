//! What is wrong with configuration files, line by line: `kiln config check`, and warnings at the start of a service.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use kiln_ini::Given;
use kiln_template::hint::nearest;
use kiln_value::{Chain, Value, value};

use crate::option::{ACCOUNTS, At, ConfigOption, Place, client_sections};
use crate::{Config, heats_own, options};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The option has no meaning in Kiln.
    Note,
    /// The value is not that of the Heat whose stacks are taken over.
    Warning,
    /// The option is unknown, its value is not valid, or it means something in Heat that Kiln does not do.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Something to tell about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// File and line.
    place: Option<(PathBuf, usize)>,
    /// Section and name, if it is about an option.
    option: Option<(String, String)>,
    message: String,
    hint: Option<String>,
}

impl Finding {
    /// The option: `[section] name`.
    pub fn shown(&self) -> String {
        self.option.as_ref().map(|(section, name)| format!("[{section}] {name}")).unwrap_or_default()
    }

    /// As an object: `{level, file, line, section, option, message, hint}`; unknown ones are null.
    pub fn value(&self) -> Value {
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let (section, option) = self.option.as_ref().map(|(section, name)| (section.as_str(), name.as_str())).unzip();
        let file = self.place.as_ref().map(|(file, _)| file.display().to_string());
        let line = self.place.as_ref().and_then(|(_, line)| i64::try_from(*line).ok());
        value!({
            "level": (self.level.to_string()), "file": (text(file.as_deref())),
            "line": (line.map_or(Value::Null, Value::from)), "section": (text(section)), "option": (text(option)),
            "message": (self.message.as_str()), "hint": (text(self.hint.as_deref())),
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.place {
            write!(f, "{}:{line}: ", file.display())?;
        }
        write!(f, "{}: ", self.level)?;
        if self.option.is_some() {
            write!(f, "{} ", self.shown())?;
        }
        write!(f, "{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, ": {hint}"),
            None => Ok(()),
        }
    }
}

/// All findings about single options, in the order of files and lines. The environment is not looked at.
pub fn findings(config: &Config) -> Vec<Finding> {
    let sections = Sections::of(config);
    let mut all = Vec::new();
    for (section, name, given) in config.ini.options() {
        all.extend(given.iter().filter_map(|given| {
            let place = config.source(given).place();
            let option = Some((section.to_owned(), name.to_owned()));
            let (level, message, hint) = judge(config, &sections, (section, name), given)?;
            Some((given.place, Finding { level, place, option, message, hint }))
        }));
    }
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, finding)| finding).collect()
}

/// A problem that was found when the options were read: `[section] name …` at the start of the error is its option.
pub fn finding_of(config: &Config, error: &anyhow::Error) -> Finding {
    let text = Chain(&**error).to_string();
    let named = text.strip_prefix('[').and_then(|rest| {
        let (section, rest) = rest.split_once("] ")?;
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, message) = rest.split_at_checked(end)?;
        Some((section.to_owned(), name.to_owned(), message.trim_start_matches([':', ' ']).to_owned()))
    });
    let Some((section, name, message)) = named else {
        return Finding { level: Level::Error, place: None, option: None, message: text, hint: None };
    };
    let place = config.ini.all(&section, &name).last().and_then(|given| config.source(given).place());
    Finding { level: Level::Error, place, option: Some((section, name)), message, hint: None }
}

/// A warning about an option, with the place where it is set.
pub fn warning<'a>(config: &Config, at: impl Into<At<'a>>, message: String) -> Finding {
    let at = at.into();
    let place = config.given(at).and_then(|(_, source)| source.place());
    let option = Some((at.section.to_owned(), at.option.name().to_owned()));
    Finding { level: Level::Warning, place, option, message, hint: None }
}

/// The sections with options of Keystone users.
struct Sections(BTreeSet<String>);

impl Sections {
    fn of(config: &Config) -> Self {
        let mut accounts: BTreeSet<String> = ACCOUNTS.iter().map(|section| (*section).to_owned()).collect();
        for (section, name, given) in config.ini.options() {
            if section.starts_with("ec2authtoken.") {
                accounts.insert(section.to_owned());
            }
            if name == options::clouds::AUTH_SECTION.name() {
                accounts.extend(given.iter().map(|given| config.ini.replaced(section, given)));
            }
        }
        Self(accounts)
    }

    /// Whether an option may be in a section.
    fn allow(&self, option: &ConfigOption, section: &str) -> bool {
        match option.place() {
            Place::Section("ec2authtoken") => section.split('.').next() == Some("ec2authtoken"),
            Place::Section(known) => known == section,
            Place::Account => self.0.contains(section),
            Place::Clients => client_sections().any(|known| known == section),
        }
    }
}

type Judgement = (Level, String, Option<String>);

/// What to tell about one value; nothing if it is right.
fn judge(config: &Config, sections: &Sections, name: (&str, &str), given: &Given) -> Option<Judgement> {
    let (section, key) = name;
    let value = config.ini.replaced(section, given);
    let in_section = || options::all().filter(|option| sections.allow(option, section));
    if let Some(option) = in_section().find(|option| option.name() == key) {
        return invalid(option, &value);
    }
    let is_secret = |option: &ConfigOption| option.is_secret() && key.strip_suffix("_file") == Some(option.name());
    if in_section().any(is_secret) {
        return None;
    }
    let is_older = |option: &&ConfigOption| {
        // An older name may have been in another section.
        let is_here = |place: &str| if place.is_empty() { sections.allow(option, section) } else { place == section };
        option.older_in("").any(|(place, older)| older == key && is_here(place))
    };
    if let Some(option) = options::all().find(is_older) {
        let elsewhere = !sections.allow(option, section);
        let hint = if elsewhere { format!("use {}", At::from(option)) } else { format!("use {}", option.name()) };
        let hint = Some(hint);
        return invalid(option, &value).or_else(|| Some((Level::Note, "is an older name".to_owned(), hint)));
    }
    if let Some(fixed) = heats_own::fixed(section, key) {
        let what = Some(fixed.behaviour.to_owned());
        if fixed.allows(&value) {
            return Some((Level::Note, "has no effect".to_owned(), what));
        }
        return Some((Level::Error, format!("does not support the value {value:?}"), what));
    }
    if let Some(reason) = heats_own::reason(section, key) {
        return Some((Level::Note, "has no effect".to_owned(), Some(reason.to_owned())));
    }
    let near = nearest(key, in_section().map(ConfigOption::name)).map(str::to_owned);
    let elsewhere = || {
        let same = options::all().find(|option| option.name() == key && section.eq_ignore_ascii_case(option.section()));
        let other = || options::all().find(|option| option.name() == key);
        same.or_else(other).map(|option| format!("[{}] {key}", option.section()))
    };
    let hint = near.or_else(elsewhere).map(|near| format!("did you mean {near}?"));
    Some((Level::Error, "is not an option of Kiln or Heat".to_owned(), hint))
}

fn invalid(option: &ConfigOption, value: &str) -> Option<Judgement> {
    if value.is_empty() {
        return None;
    }
    let problem = option.kind().check(value).err()?;
    let message = if option.is_secret() { format!("is {problem}") } else { format!("= {value} is {problem}") };
    Some((Level::Error, message, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        findings(&Config::parse(text).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_kind_of_problem_has_its_line() {
        let told = told(
            "[DEFAULT]\nmax_stack_per_tenant = 1\nuse_syslog = true\nmax_template_size = 5x\nnum_engine_workers = 3\n\
             [keystone_authtoken]\npasword = x\nusername = u\nauth_uri = http://k\n\
             [heat_Api]\nbind_port = 1\n[trustee]\nauth_section = keys\n[keys]\nusername = u\nno_such_thing = 1\n\
             [healthcheck]\ndetailed = True\n[nothing]\nat_all = 1\n[clients_nova]\nendpoint_type = outside\n",
        );
        assert_eq!(
            told,
            [
                "kiln.conf:2: error: [DEFAULT] max_stack_per_tenant is not an option of Kiln or Heat: did you mean \
                 max_stacks_per_tenant?",
                "kiln.conf:3: note: [DEFAULT] use_syslog has no effect: logs go to standard error, a file or \
                 systemd-journald, which can pass them to syslog",
                "kiln.conf:4: error: [DEFAULT] max_template_size = 5x is not a whole number from 1 to 4294967295",
                "kiln.conf:5: note: [DEFAULT] num_engine_workers has no effect: one process uses all processors and \
                 serves all connections",
                "kiln.conf:7: error: [keystone_authtoken] pasword is not an option of Kiln or Heat: did you mean \
                 password?",
                "kiln.conf:9: note: [keystone_authtoken] auth_uri is an older name: use www_authenticate_uri",
                "kiln.conf:11: error: [heat_Api] bind_port is not an option of Kiln or Heat: did you mean [heat_api] \
                 bind_port?",
                "kiln.conf:16: error: [keys] no_such_thing is not an option of Kiln or Heat",
                "kiln.conf:18: error: [healthcheck] detailed does not support the value \"True\": /healthcheck is public and has no \
                 details; see kiln manage doctor",
                "kiln.conf:20: error: [nothing] at_all is not an option of Kiln or Heat",
                "kiln.conf:22: error: [clients_nova] endpoint_type = outside is not one of public, internal, admin, \
                 publicURL, internalURL, adminURL",
            ]
        );
    }

    #[test]
    fn every_option_with_values_that_are_not_built_is_told() {
        for fixed in heats_own::FIXED {
            let section = if fixed.section.contains(' ') { "trustee" } else { fixed.section };
            let told = |value: &str| told(&format!("[{section}]\n{} = {value}\n", fixed.name)).concat();
            for allowed in fixed.allowed {
                let expected =
                    format!("kiln.conf:2: note: [{section}] {} has no effect: {}", fixed.name, fixed.behaviour);
                assert_eq!(told(allowed), expected);
            }
            let (other, name) = ("something-else", fixed.name);

            let expected = format!(
                "kiln.conf:2: error: [{section}] {name} does not support the value {other:?}: {}",
                fixed.behaviour
            );
            assert_eq!(told(other), expected);
        }
    }

    #[test]
    fn errors_of_several_options_are_placed() {
        let config = Config::parse("[DEFAULT]\nhost = a\n").unwrap();
        let error = anyhow::anyhow!("[DEFAULT] host: must not be a");
        assert_eq!(finding_of(&config, &error).to_string(), "kiln.conf:2: error: [DEFAULT] host must not be a");
        let error = anyhow::anyhow!("something");
        assert_eq!(finding_of(&config, &error).to_string(), "error: something");
    }

    #[test]
    fn no_secret_is_told() {
        let config =
            Config::parse("[kiln]\nmax_connections = s3cret\n[keystone_authtoken]\npassword = s3cret\n").unwrap();
        let told: Vec<_> = findings(&config).iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
    }

    #[test]
    fn no_option_is_both_read_and_unread() {
        for option in options::all() {
            assert_eq!(heats_own::fixed(option.section(), option.name()).map(|fixed| fixed.name), None);
            let is_listed = |(section, names): &(&str, &str)| {
                *section == option.section() && names.split(' ').any(|name| name == option.name())
            };
            let unread = heats_own::UNREAD.iter().any(|unread| unread.options.iter().any(is_listed));
            assert!(!unread, "[{}] {}", option.section(), option.name());
        }
    }
}
