//! Support status of types, properties and attributes.

use kiln_value::{Map, Value};

/// The support status, with the words of Heat's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Support {
    /// Supported.
    #[default]
    Supported,
    /// Works, but there is a replacement.
    Deprecated,
    /// Accepted, but not shown.
    Hidden,
    /// Not supported.
    Unsupported,
}

impl Support {
    /// All values.
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

    /// Parses a status, case-insensitively.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name().eq_ignore_ascii_case(name))
    }
}

/// A status with its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupportStatus {
    /// The current status.
    pub status: Support,
    /// The release since which it applies: `6.0.0`, `2014.1`.
    pub version: Option<String>,
    /// The recommended alternative.
    pub message: Option<String>,
    /// The previous status.
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

    /// The form of `GET /resource_types/{name}`.
    pub fn view(&self) -> Value {
        let mut view = Map::new();
        view.insert("status".into(), self.status.name().into());
        view.insert("message".into(), self.message.as_deref().into());
        view.insert("version".into(), self.version.as_deref().into());
        view.insert("previous_status".into(), self.previous.as_ref().map(|p| p.view()).into());
        view.into()
    }
}
