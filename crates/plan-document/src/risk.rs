//! How much a change can harm.

use serde::{Deserialize, Serialize};

use crate::{Bounds, Decision};

/// The worst that a change does, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing changes.
    #[default]
    None,
    /// Something is created or updated, and what there is goes on.
    Change,
    /// An object is away for a time.
    Interruption,
    /// An object is deleted, and perhaps created anew.
    Replacement,
    /// Something is lost that cannot be created anew.
    DataLoss,
}

impl Risk {
    /// All, the highest first.
    pub const ALL: [Self; 5] = [Self::DataLoss, Self::Replacement, Self::Interruption, Self::Change, Self::None];

    /// The risk of a change; `has_object` is whether there is an object in the cloud that the change may delete.
    pub fn of(decision: Bounds, loses: bool, downtime: Downtime, has_object: bool) -> Self {
        match decision.at_most {
            _ if loses => Self::DataLoss,
            Decision::Keep => Self::None,
            Decision::Replace => Self::Replacement,
            Decision::Delete if has_object => Self::Replacement,
            Decision::Update if downtime > Downtime::None => Self::Interruption,
            Decision::Update | Decision::Create | Decision::Delete | Decision::Refuse => Self::Change,
        }
    }

    /// Its words in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Change => "change",
            Self::Interruption => "interruption",
            Self::Replacement => "replacement",
            Self::DataLoss => "data loss",
        }
    }
}

/// How an object is away while it changes, the shortest first. A deleted object does not come back, so it has no downtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Downtime {
    /// It is not away.
    #[default]
    None,
    /// It stops and starts again, with its data.
    Restart,
    /// It is built anew under its ID.
    Rebuild,
    /// Another object comes in its place.
    Replace,
}

impl Downtime {
    /// Its word in a sentence.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Restart => "restart",
            Self::Rebuild => "rebuild",
            Self::Replace => "replace",
        }
    }
}
