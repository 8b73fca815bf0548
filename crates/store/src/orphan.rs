//! Orphans: objects in the cloud whose resource was forgotten, so that its stack can be deleted.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{Error, ResourceId, StackId};

/// An object that its stack no longer knows. The entry outlives the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The row of the resource.
    pub id: ResourceId,
    /// Project of the stack.
    pub project: String,
    /// The root stack.
    pub stack: StackId,
    /// Its name.
    pub stack_name: String,
    /// Names of the resources from the root stack to this one, joined with slashes (`group/0/server`).
    pub path: String,
    /// Type name in the template.
    pub resource_type: String,
    /// The object's ID; `None`: a create was lost, so that it is unknown whether there is an object.
    pub physical_id: Option<String>,
    /// Region of the cloud, if one is configured.
    pub region: Option<String>,
    /// ID of the user who forgot the resource.
    pub user_id: String,
    /// Name of that user.
    pub username: String,
    /// The reason that the user gave, and why the delete had failed.
    pub reason: String,
    /// Time at which the row was removed.
    pub time: Timestamp,
}

/// Filters of a list of orphans, newest first.
#[derive(Clone, Debug, Default)]
pub struct OrphanQuery {
    /// Project; `None`: all projects.
    pub project: Option<String>,
    /// Only those of this root stack.
    pub stack: Option<StackId>,
    /// Only orphans after this one; [`Error::NotFound`] if it does not exist.
    pub marker: Option<ResourceId>,
    /// Maximum number.
    pub limit: Option<u64>,
}

/// Reads orphans. They are written with [`crate::Batch::orphans`].
#[async_trait]
pub trait OrphanStore: Send + Sync {
    /// Orphans.
    async fn orphans(&self, query: &OrphanQuery) -> Result<Vec<Orphan>, Error>;
    /// Removes an entry of a project, because its object is dealt with. Returns whether there was one.
    async fn delete_orphan(&self, project: &str, id: ResourceId) -> Result<bool, Error>;
}
