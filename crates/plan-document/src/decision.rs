//! What a plan decides about a resource.

use serde::{Deserialize, Serialize};

/// What is done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It does not change.
    Keep,
    /// It is updated in place: the object stays.
    Update,
    /// A new object is created, then the old one is deleted.
    Replace,
    /// It is created.
    Create,
    /// It is deleted.
    Delete,
    /// The change would fail here.
    Refuse,
}

/// The least and the most that is done with a resource. They differ if the decision depends on values that are known only
/// later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bounds {
    /// If the values that are not known turn out to be the current ones.
    pub at_least: Decision,
    /// If they do not.
    pub at_most: Decision,
}

impl Bounds {
    /// A decision that is certain.
    pub fn certain(decision: Decision) -> Self {
        Self { at_least: decision, at_most: decision }
    }

    /// Whether the decision is known.
    pub fn is_certain(self) -> bool {
        self.at_least == self.at_most
    }

    /// Whether the resource certainly stays as it is.
    pub fn is_kept(self) -> bool {
        self.at_most == Decision::Keep
    }
}
