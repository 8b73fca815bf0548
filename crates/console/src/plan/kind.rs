//! The kinds of changes in a plan.

use anstyle::{AnsiColor, Style};
use kiln_plan_document::{Decision, Entry};

/// The change of a resource or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Added,
    Updated,
    Replaced,
    Deleted,
    Refused,
    /// It gets another name, and its object stays as it is.
    Moved,
    /// The change depends on values that are known only after other resources are changed.
    MayUpdate,
    MayReplace,
    MayDelete,
}

impl Kind {
    pub(super) const ALL: [Self; 9] = [
        Self::Moved,
        Self::Added,
        Self::Updated,
        Self::Replaced,
        Self::Deleted,
        Self::MayUpdate,
        Self::MayReplace,
        Self::MayDelete,
        Self::Refused,
    ];

    /// The kind of what happens to a resource; `None` if nothing changes.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        let decision = entry.decision;
        let is_certain = decision.is_certain();
        Some(match decision.at_most {
            Decision::Keep if entry.moved_from.is_some() => Self::Moved,
            Decision::Keep => return None,
            Decision::Refuse => Self::Refused,
            Decision::Replace if is_certain => Self::Replaced,
            Decision::Replace => Self::MayReplace,
            Decision::Delete if is_certain => Self::Deleted,
            Decision::Delete => Self::MayDelete,
            _ if !is_certain => Self::MayUpdate,
            Decision::Update => Self::Updated,
            Decision::Create => Self::Added,
        })
    }

    /// Whether it is known that the change happens.
    pub(super) fn is_certain(self) -> bool {
        !matches!(self, Self::MayUpdate | Self::MayReplace | Self::MayDelete)
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Added => "+",
            Self::Updated => "~",
            Self::Replaced => "-/+",
            Self::Deleted => "-",
            Self::Refused => "!",
            Self::Moved => "=>",
            Self::MayUpdate => "?~",
            Self::MayReplace => "?-+",
            Self::MayDelete => "?-",
        }
    }

    /// The words of the legend and of the summary.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Added => ("create", "to create"),
            Self::Updated => ("update in place", "to update"),
            Self::Replaced => ("create a new one, then delete the old one", "to replace"),
            Self::Deleted => ("delete", "to delete"),
            Self::Refused => ("fail", "refused"),
            Self::Moved => ("move to another name", "to move"),
            Self::MayUpdate => ("update in place or not, known later", "may be updated"),
            Self::MayReplace => ("replace or not, known later", "may be replaced"),
            Self::MayDelete => ("delete or not, known later", "may be deleted"),
        }
    }

    pub(super) fn style(self) -> Style {
        let colour = match self {
            Self::Added => AnsiColor::Green,
            Self::Updated | Self::MayUpdate | Self::Moved => AnsiColor::Yellow,
            Self::Replaced | Self::Deleted | Self::Refused | Self::MayReplace | Self::MayDelete => AnsiColor::Red,
        };
        Style::new().fg_color(Some(colour.into()))
    }

    /// Its class on a page.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated | Self::MayUpdate | Self::Moved => "updated",
            Self::Replaced | Self::Deleted | Self::Refused | Self::MayReplace | Self::MayDelete => "destroyed",
        }
    }
}
