//! Test data.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kiln_resource::{Action, State, Status};
use kiln_store::{
    Batch, Claimable, DesiredText, Doorbell, EngineId, Event, EventId, Lease, NewStack, Parent, Resource, ResourceId,
    Settle, Stack, StackId, Store,
};
use kiln_value::value;
use uuid::Uuid;

pub(crate) const PROJECT: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const TTL: Duration = Duration::from_secs(15);

/// A time, in seconds since a fixed start.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(crate) fn text(template: &str) -> DesiredText {
    DesiredText {
        template: format!("{{\"resources\":\"{template}\"}}"),
        environment: "{}".to_owned(),
        files: "{}".to_owned(),
    }
}

pub(crate) fn stack(name: &str) -> NewStack {
    let id = StackId(Uuid::new_v4());
    NewStack {
        id,
        name: name.to_owned(),
        project: PROJECT.to_owned(),
        parent: None,
        root: id,
        depth: 0,
        action: Action::Create,
        desired: text(name),
        disable_rollback: true,
        timeout_mins: None,
        tags: Vec::new(),
        username: "demo".to_owned(),
        user_id: "u1".to_owned(),
        credentials: None,
        user_project: None,
        adopt: None,
        operation: None,
        preflight: false,
        planned: None,
        now: at(0),
    }
}

pub(crate) fn child(of: &Stack, resource: &Resource) -> NewStack {
    NewStack {
        parent: Some(Parent { stack: of.id, resource: resource.id, resource_name: resource.name.clone() }),
        root: of.root,
        depth: of.depth + 1,
        ..stack(&format!("{}-{}", of.name, resource.name))
    }
}

pub(crate) fn resource(stack: StackId, name: &str) -> Resource {
    let id = ResourceId(Uuid::new_v4());
    Resource { generation: 1, ..Resource::new(stack, id, name, "OS::Heat::TestResource", at(1)) }
}

pub(crate) fn event(stack: &Stack, resource_name: &str, second: i64) -> Event {
    Event {
        id: EventId(Uuid::new_v4()),
        stack: stack.id,
        root: stack.root,
        resource_name: resource_name.to_owned(),
        resource_type: "OS::Heat::TestResource".to_owned(),
        physical_id: Some("p1".to_owned()),
        action: "CREATE".to_owned(),
        status: Status::Complete,
        reason: "state changed".to_owned(),
        properties: value!({"value": "ä"}),
        operation: Some(stack.operation()),
        time: at(second),
    }
}

pub(crate) fn engine() -> EngineId {
    EngineId(Uuid::new_v4())
}

/// Creates a stack and claims it.
pub(crate) async fn claimed(store: &dyn Store, name: &str) -> (Stack, Lease) {
    let made = store.create_stack(stack(name)).await.unwrap();
    let lease = claim(store, engine(), made.id).await;
    (made, lease)
}

/// A quiet bell: the store receives rings of other processes, and no more rings for everything are pending.
pub(crate) async fn quiet_bell(store: &dyn Store) -> Arc<dyn Doorbell> {
    let bell = store.doorbell();
    while tokio::time::timeout(Duration::from_millis(700), bell.wait()).await.is_ok() {}
    bell
}

pub(crate) async fn claim(store: &dyn Store, owner: EngineId, stack: StackId) -> Lease {
    let leases = store.claim(owner, TTL, &[stack], 1).await.unwrap();
    assert_eq!(leases.len(), 1, "claim of {stack}");
    leases[0]
}

/// What an engine claims.
pub(crate) async fn claim_as(store: &dyn Store, owner: EngineId, claimable: Claimable<'_>, limit: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    store.claim_each(owner, TTL, claimable, limit, &mut |lease| leases.push(lease)).await.unwrap();
    leases
}

pub(crate) fn settle(generation: i64, action: Action, status: Status) -> Settle {
    Settle {
        generation,
        state: State::new(action, status),
        reason: format!("Stack {action} settled"),
        deleted: false,
        reached: status == Status::Complete,
        now: at(100),
    }
}

pub(crate) fn settling(settle: Settle) -> Batch {
    Batch { settle: Some(settle), ..Batch::default() }
}

pub(crate) fn deleting(generation: i64) -> Batch {
    settling(Settle { deleted: true, reached: false, ..settle(generation, Action::Delete, Status::Complete) })
}
