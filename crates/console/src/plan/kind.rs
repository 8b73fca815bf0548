//! The kinds of changes in a plan.

use anstyle::{AnsiColor, Style};
use kiln_plan_document::{Bounds, Decision};

/// The change of a resource or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Added,
    Updated,
    Replaced,
    Deleted,
    Refused,
    /// The change depends on values that are known only after other resources are changed.
    MayUpdate,
    MayReplace,
    MayDelete,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Added,
        Self::Updated,
        Self::Replaced,
        Self::Deleted,
        Self::MayUpdate,
        Self::MayReplace,
        Self::MayDelete,
        Self::Refused,
    ];

    /// The kind of a decision; `None` if nothing changes.
    pub(super) fn of(decision: Bounds) -> Option<Self> {
        let is_certain = decision.is_certain();
        Some(match decision.at_most {
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
            Self::MayUpdate => ("update in place or not, known later", "may be updated"),
            Self::MayReplace => ("replace or not, known later", "may be replaced"),
            Self::MayDelete => ("delete or not, known later", "may be deleted"),
        }
    }

    pub(super) fn style(self) -> Style {
        let colour = match self {
            Self::Added => AnsiColor::Green,
            Self::Updated | Self::MayUpdate => AnsiColor::Yellow,
            Self::Replaced | Self::Deleted | Self::Refused | Self::MayReplace | Self::MayDelete => AnsiColor::Red,
        };
        Style::new().fg_color(Some(colour.into()))
    }

    /// Its class on a page.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated | Self::MayUpdate => "updated",
            Self::Replaced | Self::Deleted | Self::Refused | Self::MayReplace | Self::MayDelete => "destroyed",
        }
    }
}
