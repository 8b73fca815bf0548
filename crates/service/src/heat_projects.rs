//! The projects whose stacks belong to a Heat that Kiln has not replaced for them.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

/// These projects would look empty, and their users would create everything a second time: their requests are refused.
#[derive(Debug, Default)]
pub struct HeatProjects(RwLock<BTreeSet<String>>);

impl HeatProjects {
    /// Whether the stacks of a project belong to a Heat.
    pub fn has(&self, project: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(project)
    }

    /// The number of such projects.
    pub fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Sets the projects.
    pub fn set(&self, projects: BTreeSet<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = projects;
    }
}

/// What clients are told.
pub const OF_HEAT: &str =
    "The stacks of this project belong to another Orchestration service. Please try again at a later time.";
