//! The clouds that stacks live in.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure};
use kiln_store::{Stack, UnusedCredentials};

/// Gives the cloud to act in for a stack, with the credentials stored for its tree.
#[async_trait]
pub trait Clouds: Send + Sync {
    /// The cloud for a stack; sessions are shared between the stacks of a tree.
    async fn cloud(&self, stack: &Stack) -> Result<Arc<dyn Cloud>, Failure>;

    /// Takes back credentials that no live stack uses (their trust); done if they are gone already. After an error they
    /// stay recorded, to be tried again. Where nothing is made for credentials there is nothing to take back.
    async fn revoke(&self, unused: &UnusedCredentials) -> Result<(), Failure> {
        let _ = unused;
        Ok(())
    }
}

/// No cloud: for types that need none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCloud;

impl NoCloud {
    fn refuse<T>() -> Result<T, Failure> {
        Err(Failure::other("NotSupported", "this resource type has no cloud"))
    }
}

#[async_trait]
impl Cloud for NoCloud {
    async fn call(&self, _: CloudRequest) -> Result<CloudResponse, Failure> {
        Self::refuse()
    }

    async fn find(&self, _: &str, _: &str) -> Result<String, Failure> {
        Self::refuse()
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Self::refuse()
    }
}

#[async_trait]
impl Clouds for NoCloud {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::new(Self))
    }
}
