//! A store whose commits take a second.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{
    CredentialsId, EngineId, EventId, Resource, ResourceId, SoftwareChange, SoftwareConfig, SoftwareDeployment, StackId,
};
use kiln_store::{
    Backlog, Batch, BriefResources, Census, ChangeSet, ChangeSetId, ConfigQuery, Delivery, DeploymentQuery, Desired,
    DesiredText, Digest, Doorbell, EngineInfo, Error, Event, EventQuery, Lane, Lease, MemoryStore, Message, NewStack,
    Orphan, OrphanQuery, OrphanStore, OutboxStore, Retention, Silent, Snapshot, SnapshotId, SoftwareStore, Stack,
    StackQuery, StackRequest, Store, Summary, UnusedCredentials, UnusedUserProject,
};
use kiln_value::Secret;
use tokio::sync::watch;
use uuid::Uuid;

/// A model of the store that answers to a commit after a second.
pub(crate) struct SlowStore(pub(crate) MemoryStore);

macro_rules! slow {
    ($({ $(fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)* } for $trait:ident { $($rest:tt)* })*) => {
        $(#[async_trait]
        impl $trait for SlowStore {
            $(async fn $name(&self, $($argument: $kind),*) -> Result<$answer, Error> {
                if stringify!($name) == "commit" {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                self.0.$name($($argument),*).await
            })*
            $($rest)*
        })*
    };
}

slow! {
{
    fn migrate() -> ();
    fn create_stack(stack: NewStack) -> Stack;
    fn request(stack: StackId, request: StackRequest) -> Stack;
    fn send(message: &Message) -> ();
    fn stack(id: StackId) -> Option<Stack>;
    fn stack_by_name(project: &str, name: &str) -> Option<Stack>;
    fn stacks(query: &StackQuery) -> Vec<Stack>;
    fn count_stacks(query: &StackQuery) -> u64;
    fn desired(desired: &Desired) -> DesiredText;
    fn content(digest: &Digest) -> String;
    fn resources(stack: StackId) -> Vec<Resource>;
    fn resources_and_writes(stack: StackId) -> (Option<i64>, Vec<Resource>);
    fn resources_in_brief(stack: StackId, after: Option<u64>, limit: u64) -> BriefResources;
    fn resources_of(stacks: &[StackId]) -> Vec<Resource>;
    fn count_resources(root: StackId) -> u64;
    fn children(parent: StackId) -> Vec<Summary>;
    fn events(query: &EventQuery) -> Vec<Event>;
    fn event(stack: StackId, id: EventId) -> Option<Event>;
    fn claim(owner: EngineId, ttl: Duration, only: &[StackId], limit: usize) -> Vec<Lease>;
    fn claim_for_others(owner: EngineId, ttl: Duration, projects: &[String], limit: usize) -> Vec<Lease>;
    fn take_over(owner: EngineId, ttl: Duration, silent: &[Silent], held: &[StackId], limit: usize) -> Vec<Lease>;
    fn renew(owner: EngineId, ttl: Duration, leases: &[Lease]) -> Vec<Lease>;
    fn release(leases: &[Lease]) -> ();
    fn commit(lease: Lease, batch: Batch) -> Stack;
    fn inbox(stack: StackId, now: Timestamp) -> Vec<Message>;
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
    fn save_change_set(set: &ChangeSet) -> ();
    fn change_sets(project: &str, stack_name: &str) -> Vec<ChangeSet>;
    fn count_change_sets(project: &str) -> u64;
    fn delete_change_sets(ids: &[ChangeSetId]) -> ();
    fn snapshot(stack: StackId, id: SnapshotId) -> Option<Snapshot>;
    fn snapshots(stack: StackId) -> Vec<Snapshot>;
    fn forget(retention: &Retention) -> u64;
    fn census() -> Census;
} for Store {
    fn news(&self) -> Arc<dyn Doorbell> {
        self.0.news()
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.0.doorbell()
    }
}
{
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
} for SoftwareStore {}
{
    fn next_lane(after: &str) -> Option<Lane>;
    fn claim_lane(lane: &str, mark: Uuid, ttl: Duration, limit: usize) -> Option<Delivery>;
    fn remove_entries(mark: Uuid, numbers: &[i64]) -> ();
    fn postpone_entries(mark: Uuid, numbers: &[i64], delay: Duration) -> ();
} for OutboxStore {
    fn outbox_news(&self) -> watch::Receiver<()> {
        self.0.outbox_news()
    }
}
{
    fn orphans(query: &OrphanQuery) -> Vec<Orphan>;
    fn delete_orphan(project: &str, id: ResourceId) -> bool;
} for OrphanStore {}
}
