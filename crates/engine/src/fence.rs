//! No call to a cloud without a lease: the database fences writes, the monotonic clock of the engine fences calls.
//!
//! A [`Fence`] is open until others may find the engine silent, by the monotonic clock of the engine and counted from before
//! its last report. It closes when that clock and the wall clock have moved apart, because the host may have been suspended.
//! A call waits at a closed fence until the lease is renewed. When the lease is lost, the actor is aborted together with the
//! call.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::SignedDuration;
use kiln_resource::{
    Access, AccountNames, Cloud, CloudRequest, CloudResponse, Failure, Gate, RemoteCloud, SignalEndpoints, UserDomain,
};
use kiln_stack::{Clock, Clouds};
use kiln_store::{Stack, UnusedCredentials};
use kiln_value::Secret;
use tokio::sync::Notify;

/// The fraction of a lease that is reserved for the transmission of a call.
const MARGIN: u32 = 10;

/// How far the two clocks of a machine may move apart: more than a wall clock is corrected by within the life of a lease.
const APART: SignedDuration = SignedDuration::from_secs(1);

/// A moment by the clocks of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    pub(crate) monotonic: Duration,
    pub(crate) offset: SignedDuration,
}

impl Moment {
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self { monotonic: clock.monotonic(), offset: clock.offset() }
    }
}

/// The time until which calls for a stack are allowed. Clones share the same fence.
#[derive(Clone, Debug)]
pub(crate) struct Fence(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    open: Mutex<Open>,
    /// Wakes calls in the order in which they came, unlike a watch channel, so that a simulation can be replayed.
    extended: Notify,
}

/// How long a fence is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Open {
    /// The report after which the lease was renewed.
    pub(crate) reported: Duration,
    until: Duration,
    offset: SignedDuration,
}

impl Open {
    /// For a lease of `ttl` that is held from this moment, that of a report of the engine.
    pub(crate) fn since(reported: Moment, ttl: Duration) -> Self {
        let until = reported.monotonic + ttl.saturating_sub(ttl / MARGIN);
        Self { reported: reported.monotonic, until, offset: reported.offset }
    }

    pub(crate) fn is_at(self, now: Moment) -> bool {
        now.monotonic < self.until && now.offset.saturating_sub(self.offset).abs() < APART
    }

    /// As if the clocks had not moved apart.
    #[cfg(test)]
    pub(crate) fn shifted(self, apart: SignedDuration) -> Self {
        Self { offset: self.offset + apart, ..self }
    }

    /// After a renewal: the later end.
    pub(crate) fn or(self, new: Self) -> Self {
        if new.until > self.until { new } else { self }
    }
}

impl Fence {
    /// A fence for a lease of `ttl`, counted from a report of the engine before the claim was sent: since a
    /// later one, another engine may have taken the stack over.
    pub(crate) fn new(reported: Moment, ttl: Duration) -> Self {
        Self(Arc::new(Shared { open: Mutex::new(Open::since(reported, ttl)), extended: Notify::new() }))
    }

    /// Extends the fence after a renewal; `reported`: before the report that came before it was sent.
    pub(crate) fn extend(&self, reported: Moment, ttl: Duration) {
        let new = Open::since(reported, ttl);
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = open.or(new);
        self.0.extended.notify_waiters();
    }

    /// Before the last report was sent after which the lease was renewed, by the monotonic clock of the engine.
    pub(crate) fn reported(&self) -> Duration {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).reported
    }

    fn is_open(&self, clock: &dyn Clock) -> bool {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).is_at(Moment::now(clock))
    }

    /// Waits until a call is allowed.
    async fn pass(&self, clock: &dyn Clock) {
        loop {
            let mut extended = pin!(self.0.extended.notified());
            // From now on, so that no extension is missed.
            extended.as_mut().enable();
            if self.is_open(clock) {
                return;
            }
            extended.await;
        }
    }
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
        self.fence.is_open(&*self.clock)
    }
}

/// Clouds behind a fence. An actor has no others.
pub(crate) struct FencedClouds {
    pub(crate) clouds: Arc<dyn Clouds>,
    pub(crate) fence: Fence,
    pub(crate) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Clouds for FencedClouds {
    async fn cloud(&self, stack: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        let cloud = self.clouds.cloud(stack).await?;
        Ok(Arc::new(FencedCloud::new(cloud, self.fence.clone(), Arc::clone(&self.clock))))
    }

    fn region(&self, stack: &Stack) -> Option<String> {
        self.clouds.region(stack)
    }

    async fn revoke(&self, unused: &UnusedCredentials) -> Result<(), Failure> {
        self.clouds.revoke(unused).await
    }

    async fn delete_user_project(&self, project: &str) -> Result<(), Failure> {
        self.clouds.delete_user_project(project).await
    }
}

/// A cloud behind a fence.
struct FencedCloud {
    cloud: Arc<dyn Cloud>,
    fence: Fence,
    clock: Arc<dyn Clock>,
}

impl FencedCloud {
    fn new(cloud: Arc<dyn Cloud>, fence: Fence, clock: Arc<dyn Clock>) -> Self {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// A machine whose wall clock is set after a time that it does not know of.
    #[derive(Default)]
    struct Machine {
        monotonic: AtomicI64,
        wall: AtomicI64,
    }

    #[async_trait]
    impl Clock for Machine {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::from_second(self.wall.load(Ordering::SeqCst)).unwrap()
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.monotonic.load(Ordering::SeqCst).unsigned_abs())
        }

        async fn sleep(&self, _time: Duration) {
            std::future::pending::<()>().await;
        }
    }

    #[test]
    fn after_a_suspension_there_is_no_call_before_the_next_renewal() {
        let machine = Arc::new(Machine::default());
        let pass = |monotonic, wall| {
            machine.monotonic.fetch_add(monotonic, Ordering::SeqCst);
            machine.wall.fetch_add(wall, Ordering::SeqCst);
        };
        let reported = Moment::now(&*machine);
        let fence = Fence::new(reported, Duration::from_secs(15));
        let gate = FenceGate { fence: fence.clone(), clock: Arc::clone(&machine) as Arc<dyn Clock> };
        pass(10, 10);
        assert!(gate.is_open());
        pass(1, 40);
        assert!(!gate.is_open());
        // The reply to a renewal that was sent before.
        fence.extend(Moment { monotonic: Duration::from_secs(5), ..reported }, Duration::from_secs(15));
        assert!(!gate.is_open());
        fence.extend(Moment::now(&*machine), Duration::from_secs(15));
        assert!(gate.is_open());
        pass(14, 14);
        assert!(!gate.is_open(), "a tenth of the lease is reserved");
    }
}
