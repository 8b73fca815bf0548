//! Access to the clouds of stacks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
pub use kiln_resource::NoCloud;
use kiln_resource::{Cloud, Failure};
use kiln_store::{Stack, UnusedCredentials};

/// Time after which unused credentials are revoked: a request may be about to attach them, and an engine may have
/// started an operation with replaced credentials. Those of a deleted stack are revoked immediately.
pub const UNUSED_AFTER: Duration = Duration::from_hours(1);

/// Provides the cloud of a stack, with the credentials that are stored for its tree.
#[async_trait]
pub trait Clouds: Send + Sync {
    /// The cloud of a stack; the stacks of a tree share sessions.
    async fn cloud(&self, stack: &Stack) -> Result<Arc<dyn Cloud>, Failure>;

    /// The region of the cloud of a stack, if one is configured.
    fn region(&self, stack: &Stack) -> Option<String> {
        let _ = stack;
        None
    }

    /// Revokes credentials that no live stack uses (deletes their trust). Succeeds if they no longer exist. After an
    /// error they remain recorded, to be retried. If credentials have no trust, there is nothing to do.
    async fn revoke(&self, unused: &UnusedCredentials) -> Result<(), Failure> {
        let _ = unused;
        Ok(())
    }

    /// Deletes the project of the users of a deleted stack. Succeeds if it no longer exists.
    async fn delete_user_project(&self, project: &str) -> Result<(), Failure> {
        let _ = project;
        Ok(())
    }
}

#[async_trait]
impl Clouds for NoCloud {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::new(Self))
    }
}
