//! Guards: what nobody may do with stacks and their resources until they are lifted.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{GuardId, GuardRule, StackId};
use serde::{Deserialize, Serialize};

use crate::{Author, Error};

/// A guard. It does not change: another one is added, or it is lifted.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// Its ID.
    pub id: GuardId,
    /// Project ID.
    pub project: String,
    /// The root stack that it protects; `None`: all stacks of the project.
    pub stack: Option<StackId>,
    /// What it forbids, and until when.
    pub terms: GuardTerms,
    /// Who added it.
    pub author: Author,
    /// When.
    pub created: Timestamp,
}

/// What a guard forbids, until when, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardTerms {
    /// What it forbids.
    pub rule: GuardRule,
    /// When it ends by itself; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why it was added; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Guard {
    /// Whether it holds for the tree of a root stack.
    pub fn holds_for(&self, root: StackId, now: Timestamp) -> bool {
        self.stack.is_none_or(|stack| stack == root) && self.is_in_force(now)
    }

    /// Whether it has not ended by itself.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.terms.until.is_none_or(|until| now < until)
    }
}

/// Guards.
///
/// [`crate::Stack::guards`] tells engines that the guards of a project have changed. It is read with each commit of an engine, so
/// that a guard is known before a call whose operation was stored after the guard.
#[async_trait]
pub trait GuardStore: Send + Sync {
    /// Adds a guard. This is idempotent by ID. It waits for commits of engines that are in progress: what these begin can be
    /// read afterwards.
    ///
    /// Engines that do not know guards can no longer start, until all guards are lifted.
    async fn add_guard(&self, guard: &Guard) -> Result<(), Error>;
    /// Lifts a guard; returns whether there was one.
    async fn lift_guard(&self, project: &str, id: GuardId, by: &Author) -> Result<bool, Error>;
    /// The guards of a project that are not lifted, oldest first.
    async fn guards(&self, project: &str) -> Result<Vec<Guard>, Error>;
}
