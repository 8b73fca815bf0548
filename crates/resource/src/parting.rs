//! Resources that are forgotten.

use serde::{Deserialize, Serialize};

/// Who forgets a resource, and what its entry in the list of orphans says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parting {
    /// ID of the user.
    pub user_id: String,
    /// Name of the user.
    pub username: String,
    /// The reason that the user gave; may be empty.
    pub reason: String,
    /// Names of the resources from the root stack to this one, joined with slashes.
    pub path: String,
    /// Region of the cloud, if one is configured.
    pub region: Option<String>,
}
