//! Support status of types, properties and attributes.

use kiln_value::{Map, Value};

/// How far a thing may be relied on; spelt as Heat's API spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Support {
    /// To be used.
    #[default]
    Supported,
    /// Works, but something better is there.
    Deprecated,
    /// Still accepted, shown nowhere.
    Hidden,
    /// Not (or no longer) supported.
    Unsupported,
}

impl Support {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Supported, Self::Deprecated, Self::Hidden, Self::Unsupported];

    /// Heat's word: `SUPPORTED`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Supported => "SUPPORTED",
            Self::Deprecated => "DEPRECATED",
            Self::Hidden => "HIDDEN",
            Self::Unsupported => "UNSUPPORTED",
        }
    }

    /// The status of a word in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name().eq_ignore_ascii_case(name))
    }
}

/// A status, since when it holds, and what was before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupportStatus {
    /// The status now.
    pub status: Support,
    /// The release that brought it: `6.0.0`, `2014.1`.
    pub version: Option<String>,
    /// What to do instead.
    pub message: Option<String>,
    /// The status before.
    pub previous: Option<Box<SupportStatus>>,
}

impl SupportStatus {
    /// Supported since a release.
    pub fn since(version: impl Into<String>) -> Self {
        Self { version: Some(version.into()), ..Self::default() }
    }

    /// Whether this is [`Support::Hidden`].
    pub fn is_hidden(&self) -> bool {
        self.status == Support::Hidden
    }

    /// As `GET /resource_types/{name}` shows it.
    pub fn view(&self) -> Value {
        let mut view = Map::new();
        view.insert("status".into(), self.status.name().into());
        view.insert("message".into(), self.message.as_deref().into());
        view.insert("version".into(), self.version.as_deref().into());
        view.insert("previous_status".into(), self.previous.as_ref().map(|p| p.view()).into());
        view.into()
    }
}
