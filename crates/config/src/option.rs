//! What an option is: its place, type, default and meaning.

use std::fmt;

/// The version of Kiln in which the present options were added.
const FIRST: &str = "0.1";

/// An option of the configuration. All are in [`super::options::all`]: the fields are private, so that no other
/// module can define one, and [`super::Config`] reads only these.
#[derive(Debug)]
pub struct ConfigOption {
    place: Place,
    name: &'static str,
    older: &'static [&'static str],
    kind: Kind,
    unit: &'static str,
    default: &'static str,
    computed: &'static str,
    is_secret: bool,
    is_mutable: bool,
    since: &'static str,
    help: &'static str,
}

/// The sections that an option may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One section.
    Section(&'static str),
    /// A section with a Keystone user: [`ACCOUNTS`], `[ec2authtoken.CLOUD]` and those named by `auth_section`.
    Account,
    /// A section with the client of a service: `[clients]`, `[clients_nova]` ….
    Clients,
}

/// The sections with a Keystone user.
pub const ACCOUNTS: [&str; 3] = ["keystone_authtoken", "trustee", "ec2authtoken"];

/// The section with the options of all clients.
pub const CLIENTS: &str = "clients";

/// The sections of the clients of single services, with their official service type.
pub const SERVICES: [(&str, &str); 17] = [
    ("clients_aodh", "alarm"),
    ("clients_barbican", "key-manager"),
    ("clients_cinder", "block-storage"),
    ("clients_designate", "dns"),
    ("clients_glance", "image"),
    ("clients_heat", "orchestration"),
    ("clients_keystone", "identity"),
    ("clients_magnum", "container-infrastructure-management"),
    ("clients_manila", "shared-file-system"),
    ("clients_mistral", "workflow"),
    ("clients_neutron", "network"),
    ("clients_nova", "compute"),
    ("clients_octavia", "load-balancer"),
    ("clients_swift", "object-store"),
    ("clients_trove", "database"),
    ("clients_zaqar", "message"),
    ("clients_zun", "application-container"),
];

/// The sections with options of clients.
pub fn client_sections() -> impl Iterator<Item = &'static str> {
    std::iter::once(CLIENTS).chain(SERVICES.iter().map(|(section, _)| *section))
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// The path of a file or folder.
    Path,
    /// A URL.
    Url,
    /// true or false, as oslo.config writes it: also 1, yes, on and 0, no, off.
    Flag,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A whole number; a negative one means no limit.
    Limit,
    /// A number of seconds, with an optional fraction.
    Seconds,
    /// A number of seconds that may not be zero, because nothing would work: a tenth at least.
    Span,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// Texts separated by commas.
    List,
    /// A text; the option may be repeated.
    Repeated,
}

impl Kind {
    /// Checks a value; the error says what is expected.
    pub fn check(self, value: &str) -> Result<(), String> {
        let value = value.trim();
        match self {
            Self::Text | Self::Path | Self::List | Self::Repeated => Ok(()),
            Self::Url => match url::Url::parse(value) {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("not a URL ({error})")),
            },
            Self::Flag => as_flag(value).map(|_| ()).ok_or_else(|| "not a boolean: use true or false".to_owned()),
            Self::Whole(min, max) => match value.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(()),
                _ if max == i64::MAX => Err(format!("not a whole number from {min}")),
                _ => Err(format!("not a whole number from {min} to {max}")),
            },
            Self::Limit => value.parse::<i64>().map(|_| ()).map_err(|_| "not a whole number".to_owned()),
            Self::Seconds => match value.parse::<f64>() {
                Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(()),
                _ => Err("not a number of seconds from 0".to_owned()),
            },
            Self::Span => match value.parse::<f64>() {
                Ok(seconds) if seconds.is_finite() && seconds >= 0.1 => Ok(()),
                _ => Err("not a number of seconds from 0.1".to_owned()),
            },
            Self::Choice(choices) if choices.contains(&value) => Ok(()),
            Self::Choice(choices) => Err(format!("not one of {}", choices.join(", "))),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => write!(f, "text"),
            Self::Path => write!(f, "path"),
            Self::Url => write!(f, "URL"),
            Self::Flag => write!(f, "boolean"),
            Self::Whole(min, max) if *max == i64::MAX => write!(f, "integer from {min}"),
            Self::Whole(min, max) => write!(f, "integer from {min} to {max}"),
            Self::Limit => write!(f, "integer, negative: no limit"),
            Self::Seconds => write!(f, "number"),
            Self::Span => write!(f, "number from 0.1"),
            Self::Choice(choices) => write!(f, "one of {}", choices.join(", ")),
            Self::List => write!(f, "list, separated by commas"),
            Self::Repeated => write!(f, "text, may be repeated"),
        }
    }
}

/// A boolean in the notation of oslo.config.
pub fn as_flag(value: &str) -> Option<bool> {
    match value.trim().to_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

impl ConfigOption {
    pub(super) const fn new(place: Place, name: &'static str, kind: Kind, help: &'static str) -> Self {
        let unit = match kind {
            Kind::Seconds | Kind::Span => "seconds",
            _ => "",
        };
        Self {
            place,
            name,
            older: &[],
            kind,
            unit,
            default: "",
            computed: "",
            is_secret: false,
            is_mutable: false,
            since: FIRST,
            help,
        }
    }

    /// The default, as it would be in a file.
    pub(super) const fn default(mut self, value: &'static str) -> Self {
        self.default = value;
        self
    }

    /// The default is computed: how, in a few words.
    pub(super) const fn computed(mut self, how: &'static str) -> Self {
        self.computed = how;
        self
    }

    /// The unit of a number.
    pub(super) const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Older names: `name` in the same section, or `section/name`.
    pub(super) const fn older(mut self, names: &'static [&'static str]) -> Self {
        self.older = names;
        self
    }

    /// The value is never printed.
    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// The value is read again on SIGHUP.
    pub(super) const fn mutable(mut self) -> Self {
        self.is_mutable = true;
        self
    }

    /// The sections.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The section; of several, the main one.
    pub fn section(&self) -> &'static str {
        match self.place {
            Place::Section(section) => section,
            Place::Account => ACCOUNTS[0],
            Place::Clients => "clients",
        }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The older names, as `(section, name)`, for this option in `section`.
    pub fn older_in<'a>(&'a self, section: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.older.iter().map(move |older| older.split_once('/').unwrap_or((section, older)))
    }

    /// The type.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The unit; empty: none.
    pub fn unit_name(&self) -> &'static str {
        self.unit
    }

    /// The default as it would be in a file; empty: not set.
    pub fn default_text(&self) -> &'static str {
        self.default
    }

    /// How the default is computed; empty: it is not.
    pub fn computed_default(&self) -> &'static str {
        self.computed
    }

    /// Whether the value is never printed.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// Whether the value is read again on SIGHUP.
    pub fn is_mutable(&self) -> bool {
        self.is_mutable
    }

    /// Whether it is an option of Heat.
    pub fn is_heats(&self) -> bool {
        self.section() != "kiln"
    }

    /// The first version of Kiln that has it.
    pub fn since(&self) -> &'static str {
        self.since
    }

    /// What it is for.
    pub fn help(&self) -> &'static str {
        self.help
    }

    /// This option in one of its sections.
    pub fn of<'a>(&'static self, section: &'a str) -> At<'a> {
        At { section, option: self }
    }
}

/// An option in a section.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The section.
    pub section: &'a str,
    /// The option.
    pub option: &'static ConfigOption,
}

impl From<&'static ConfigOption> for At<'_> {
    fn from(option: &'static ConfigOption) -> Self {
        At { section: option.section(), option }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.section, self.option.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a lease of zero no stack went on, and without a timeout for headers no request was answered.
    #[test]
    fn times_that_may_not_be_zero_are_refused() {
        for value in ["0", "0.01", "-1", "nan", "inf", "x"] {
            assert!(Kind::Span.check(value).is_err(), "{value}");
        }
        assert_eq!((Kind::Span.check("0.5"), Kind::Seconds.check("0")), (Ok(()), Ok(())));
    }
}
