//! A store and a transport in which every step may fail, or be the last of the process.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kiln_cloud::{HttpRequest, HttpResponse, Transport, TransportError};
use kiln_resource::{
    CredentialsId, EngineId, EventId, Resource, ResourceId, SoftwareChange, SoftwareConfig, SoftwareDeployment, StackId,
};
use kiln_store::{
    Approval, Author, Backlog, Batch, BriefResources, Census, Claimable, ConfigQuery, Delivery, DeploymentQuery,
    Desired, DesiredText, Digest, Doorbell, EngineInfo, Error, Event, EventPurge, EventQuery, EventSpan, Guard,
    GuardId, GuardStore, Lane, Lease, MemoryStore, Message, MessageId, NewPlan, NewStack, Operation, OperationId,
    OperationQuery, OperationStore, Orphan, OrphanQuery, OrphanStore, OutboxStore, Plan, PlanId, PlanQuery, PlanStore,
    Refactor, Retention, Room, Silent, Snapshot, SnapshotId, SoftwareStore, Stack, StackQuery, StackRequest, Store,
    Summary, UnusedCredentials, UnusedUserProject,
};
use kiln_value::Secret;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

/// The effect on a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The process is killed.
    Kill,
    /// The step fails: before its execution, or after it without a response.
    Fail,
    /// The step waits for [`Steps::go_on`].
    Hold,
}

/// Counts steps: two for each call of the store and of the cloud, before and after its execution.
#[derive(Default)]
pub(super) struct Steps {
    state: Mutex<State>,
    killed: Notify,
    held: Notify,
    goes_on: Notify,
}

#[derive(Default)]
struct State {
    taken: usize,
    armed: Option<(Range<usize>, Cut)>,
}

impl Steps {
    /// Interrupts the steps with these numbers, counted from 0.
    pub(super) fn arm(&self, steps: Range<usize>, how: Cut) {
        *self.state.lock().expect("whole") = State { taken: 0, armed: Some((steps, how)) };
    }

    /// Stops interrupting steps; returns the number of steps.
    pub(super) fn disarm(&self) -> usize {
        std::mem::take(&mut *self.state.lock().expect("whole")).taken
    }

    /// Runs until it ends or is killed.
    pub(super) async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.killed.notified() => None,
            done = work => Some(done),
        }
    }

    /// Runs until it is held; false if it ends before.
    pub(super) async fn run_until_held(&self, work: &mut (impl Future + Unpin)) -> bool {
        tokio::select! {
            biased;
            () = self.held.notified() => true,
            _ = work => false,
        }
    }

    /// The step that is held goes on.
    pub(super) fn go_on(&self) {
        self.goes_on.notify_one();
    }

    /// Executes a step; false if it fails.
    async fn step(&self) -> bool {
        let cut = {
            let mut state = self.state.lock().expect("whole");
            let at = state.taken;
            state.taken += 1;
            state.armed.as_ref().filter(|(steps, _)| steps.contains(&at)).map(|(_, how)| *how)
        };
        match cut {
            None => true,
            Some(Cut::Fail) => false,
            Some(Cut::Hold) => {
                self.held.notify_one();
                self.goes_on.notified().await;
                true
            }
            Some(Cut::Kill) => {
                self.killed.notify_one();
                std::future::pending().await
            }
        }
    }
}

/// The transport.
pub(super) struct CutTransport(pub(super) Arc<dyn Transport>, pub(super) Arc<Steps>);

#[async_trait]
impl Transport for CutTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if !self.1.step().await {
            return Err(TransportError::Connect("refused".to_owned()));
        }
        let answer = self.0.send(request).await;
        if self.1.step().await { answer } else { Err(TransportError::Broken("the reply is lost".to_owned())) }
    }
}

/// The store.
pub(super) struct CutStore(pub(super) MemoryStore, pub(super) Arc<Steps>);

/// Each call of the store is two steps. Behind the methods stand those that are no steps.
macro_rules! cut {
    ($store:ident { $(fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)* } $($others:item)*) => {
        #[async_trait]
        impl $store for CutStore {
            $(async fn $name(&self, $($argument: $kind),*) -> Result<$answer, Error> {
                let lost = || Error::Database(format!("{} was cut", stringify!($name)).into());
                if !self.1.step().await {
                    return Err(lost());
                }
                let answer = self.0.$name($($argument),*).await;
                if self.1.step().await { answer } else { Err(lost()) }
            })*

            $($others)*
        }
    };
}

cut! { Store {
    fn migrate() -> ();
    fn create_stack(stack: NewStack) -> Stack;
    fn request(stack: StackId, request: StackRequest) -> Stack;
    fn refactor(refactor: &Refactor) -> Vec<Stack>;
    fn send(message: &Message) -> ();
    fn stack(id: StackId) -> Option<Stack>;
    fn stack_by_name(project: &str, name: &str) -> Option<Stack>;
    fn stacks(query: &StackQuery) -> Vec<Stack>;
    fn count_stacks(query: &StackQuery) -> u64;
    fn room(project: &str, name: &str, counts: bool) -> Room;
    fn desired(desired: &Desired) -> DesiredText;
    fn content(digest: &Digest) -> String;
    fn resources(stack: StackId) -> Vec<Resource>;
    fn resources_and_writes(stack: StackId) -> (Option<i64>, Vec<Resource>);
    fn resources_in_brief(stack: StackId, after: Option<u64>, limit: u64) -> BriefResources;
    fn resources_of(stacks: &[StackId]) -> Vec<Resource>;
    fn resources_named(stack: StackId, name: &str) -> Vec<Resource>;
    fn count_resources(root: StackId) -> u64;
    fn ended_children(parent: StackId, also: &[StackId]) -> Vec<Summary>;
    fn children(parent: StackId) -> Vec<Summary>;
    fn events(query: &EventQuery) -> Vec<Event>;
    fn numbered_events(span: &EventSpan, query: &EventQuery) -> Vec<(u64, Event)>;
    fn last_events(query: &EventQuery, up_to: u64) -> Vec<(StackId, u64)>;
    fn event_number(id: EventId) -> u64;
    fn event(stack: StackId, id: EventId) -> Option<Event>;
    fn claim_each(owner: EngineId, ttl: Duration, claimable: Claimable<'_>, limit: usize, won: &mut (dyn FnMut(Lease) + Send)) -> ();
    fn renew(owner: EngineId, ttl: Duration, leases: &[Lease]) -> Vec<Lease>;
    fn release(leases: &[Lease]) -> ();
    fn commit(lease: Lease, batch: Batch) -> Stack;
    fn due_messages(stack: StackId, now: Timestamp) -> Vec<MessageId>;
    fn messages(stack: StackId, ids: &[MessageId]) -> Vec<Message>;
    fn backlog(stack: StackId, sizes: bool) -> Backlog;
    fn plan_credentials(plan: &Secret<String>) -> CredentialsId;
    fn keep_credentials(id: CredentialsId, credentials: &Secret<String>) -> ();
    fn credentials(id: CredentialsId) -> Secret<String>;
    fn unused_credentials(older_than: Duration, limit: usize) -> Vec<UnusedCredentials>;
    fn retire_credentials(unused: &UnusedCredentials) -> bool;
    fn delete_credentials(id: CredentialsId) -> ();
    fn unused_user_projects(limit: usize) -> Vec<UnusedUserProject>;
    fn forget_user_project(stack: StackId) -> ();
    fn report(engine: &EngineInfo) -> ();
    fn now() -> Timestamp;
    fn engines() -> Vec<EngineInfo>;
    fn forget_engine(silent: &Silent) -> ();
    fn snapshot(stack: StackId, id: SnapshotId) -> Option<Snapshot>;
    fn snapshots(stack: StackId) -> Vec<Snapshot>;
    fn forget(retention: &Retention) -> u64;
    fn forget_events(keep: u64, after: u64) -> EventPurge;
    fn census() -> Census;
}
    fn news(&self) -> Arc<dyn Doorbell> {
        self.0.news()
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.0.doorbell()
    }
}

cut! { SoftwareStore {
    fn change_software(change: &SoftwareChange) -> ();
    fn resources_by_physical_id(project: &str, id: &str) -> Vec<Resource>;
    fn creates_without_object(project: &str, implementation: &str) -> Vec<Resource>;
    fn software_config(id: &str) -> Option<SoftwareConfig>;
    fn software_configs(query: &ConfigQuery) -> Vec<SoftwareConfig>;
    fn count_software_configs(project: &str) -> u64;
    fn software_deployment(id: &str) -> Option<SoftwareDeployment>;
    fn software_deployments(query: &DeploymentQuery) -> Vec<SoftwareDeployment>;
    fn count_software_deployments(project: &str) -> u64;
    fn deployed_configs(query: &DeploymentQuery) -> Vec<SoftwareConfig>;
    fn is_config_referenced(id: &str) -> bool;
} }

cut! { OutboxStore {
    fn next_lane(after: &str) -> Option<Lane>;
    fn claim_lane(lane: &str, mark: Uuid, ttl: Duration, limit: usize) -> Option<Delivery>;
    fn remove_entries(mark: Uuid, numbers: &[i64]) -> ();
    fn postpone_entries(mark: Uuid, numbers: &[i64], delay: Duration) -> ();
}
    fn outbox_news(&self) -> watch::Receiver<()> {
        self.0.outbox_news()
    }
}

cut! { OrphanStore {
    fn orphans(query: &OrphanQuery) -> Vec<Orphan>;
    fn delete_orphan(project: &str, id: ResourceId) -> bool;
} }

cut! { OperationStore {
    fn operations(query: &OperationQuery) -> Vec<Operation>;
    fn operation(root: StackId, id: OperationId) -> Option<Operation>;
    fn revision(stack: StackId, generation: i64) -> Option<Operation>;
} }

cut! { PlanStore {
    fn save_plan(new: &NewPlan) -> ();
    fn plan(project: &str, id: PlanId) -> Option<Plan>;
    fn plans(query: &PlanQuery) -> Vec<Plan>;
    fn count_plans(project: &str) -> u64;
    fn plan_parts(plan: PlanId, path: Option<&str>) -> Vec<String>;
    fn reject_plan(plan: PlanId) -> bool;
    fn approve_plan(approval: &Approval) -> ();
    fn approvals(plan: PlanId) -> Vec<Approval>;
    fn delete_plans(ids: &[PlanId]) -> Vec<PlanId>;
} }

cut! { GuardStore {
    fn add_guard(guard: &Guard) -> ();
    fn lift_guard(project: &str, id: GuardId, by: &Author) -> bool;
    fn guards(project: &str) -> Vec<Guard>;
} }

/// In how many of the runs an engine was killed. Two at the same time: they wait most of the time.
pub(super) async fn killed_in(runs: impl Iterator<Item = impl Future<Output = bool>>) -> usize {
    stream::iter(runs).buffer_unordered(2).filter(|killed| ready(*killed)).count().await
}
