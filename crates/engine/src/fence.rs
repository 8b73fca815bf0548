//! No call to a cloud without a lease: the database fences writes, the monotonic clock of the engine fences calls.
//!
//! A [`Fence`] is open until the lease may have expired, by the monotonic clock of the engine and counted from before
//! the request for the lease. A call waits at a closed fence until the lease is renewed. When the lease is lost, the
//! actor is aborted together with the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    Access, AccountNames, Cloud, CloudRequest, CloudResponse, Failure, Gate, RemoteCloud, SignalEndpoints, UserDomain,
};
use kiln_value::Secret;
use tokio::sync::watch;

use crate::clock::Clock;

/// The fraction of a lease that is reserved for the transmission of a call.
const MARGIN: u32 = 10;

/// The time until which calls for a stack are allowed. Clones share the same fence.
#[derive(Clone, Debug)]
pub(crate) struct Fence(Arc<watch::Sender<Duration>>);

impl Fence {
    /// A fence for a lease of `ttl` that was requested at `asked`, by the monotonic clock.
    pub(crate) fn new(asked: Duration, ttl: Duration) -> Self {
        Self(Arc::new(watch::Sender::new(end(asked, ttl))))
    }

    /// Extends the fence after a renewal that was requested at `asked`.
    pub(crate) fn extend(&self, asked: Duration, ttl: Duration) {
        self.0.send_if_modified(|open_until| {
            let later = end(asked, ttl).max(*open_until);
            std::mem::replace(open_until, later) != later
        });
    }

    /// Waits until a call is allowed.
    async fn pass(&self, clock: &dyn Clock) {
        let mut open_until = self.0.subscribe();
        // `self` owns the sender, so waiting cannot fail.
        let _ = open_until.wait_for(|open_until| clock.monotonic() < *open_until).await;
    }
}

fn end(asked: Duration, ttl: Duration) -> Duration {
    asked + ttl.saturating_sub(ttl / MARGIN)
}

/// The fence of a request, which may still wait for a token or for the concurrency limit.
struct FenceGate {
    fence: Fence,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for FenceGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fence.fmt(f)
    }
}

impl Gate for FenceGate {
    fn is_open(&self) -> bool {
        self.clock.monotonic() < *self.fence.0.borrow()
    }
}

/// A cloud behind a fence.
pub(crate) struct FencedCloud {
    cloud: Arc<dyn Cloud>,
    fence: Fence,
    clock: Arc<dyn Clock>,
}

impl FencedCloud {
    pub(crate) fn new(cloud: Arc<dyn Cloud>, fence: Fence, clock: Arc<dyn Clock>) -> Self {
        Self { cloud, fence, clock }
    }
}

#[async_trait]
impl Cloud for FencedCloud {
    async fn call(&self, mut request: CloudRequest) -> Result<CloudResponse, Failure> {
        self.fence.pass(&*self.clock).await;
        request.gate = Some(Arc::new(FenceGate { fence: self.fence.clone(), clock: Arc::clone(&self.clock) }));
        self.cloud.call(request).await
    }

    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure> {
        self.fence.pass(&*self.clock).await;
        self.cloud.find(finder, name_or_id).await
    }

    async fn has_service(&self, service: &str) -> Result<bool, Failure> {
        self.cloud.has_service(service).await
    }

    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        self.cloud.has_extension(service, alias).await
    }

    async fn endpoint(&self, service: &str) -> Result<Option<String>, Failure> {
        self.cloud.endpoint(service).await
    }

    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        let domain = self.cloud.user_domain().await?;
        Ok(domain.map(|domain| {
            let cloud = Self::new(domain.cloud, self.fence.clone(), Arc::clone(&self.clock));
            UserDomain { cloud: Arc::new(cloud), ..domain }
        }))
    }

    async fn signal_endpoints(&self) -> Result<SignalEndpoints, Failure> {
        self.cloud.signal_endpoints().await
    }

    async fn account_names(&self) -> Result<AccountNames, Failure> {
        self.cloud.account_names().await
    }

    /// Waits at the fence: the caller gets the token to make a call.
    async fn access(&self, refused: Option<&Secret<String>>) -> Result<Access, Failure> {
        let access = self.cloud.access(refused).await?;
        self.fence.pass(&*self.clock).await;
        Ok(access)
    }

    async fn remote(&self, remote: &RemoteCloud) -> Result<Arc<dyn Cloud>, Failure> {
        self.fence.pass(&*self.clock).await;
        let cloud = self.cloud.remote(remote).await?;
        Ok(Arc::new(Self::new(cloud, self.fence.clone(), Arc::clone(&self.clock))))
    }

    async fn time(&self, service: &str) -> Option<i64> {
        self.cloud.time(service).await
    }

    async fn project_id(&self) -> Result<String, Failure> {
        self.cloud.project_id().await
    }
}
