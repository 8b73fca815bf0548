//! How long a change takes.

use serde::{Deserialize, Serialize};

/// How long a change takes, from earlier operations of the same types of resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Seconds, if each resource takes as long as half of the earlier operations at most took.
    pub seconds: f64,
    /// Seconds, if each resource takes as long as nine of ten earlier operations at most took.
    pub seconds_at_most: f64,
    /// The number of earlier operations.
    pub operations: u64,
    /// The types of which there are no earlier operations: they are taken as if they needed no time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}
