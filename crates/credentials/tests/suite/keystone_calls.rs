//! What Keystone is asked for a stack, from its create to the end of its trust.

use std::collections::BTreeMap;

use super::users::{quiet_world, world_of};
use super::*;

const STACKS: u64 = 5;

/// Real time, in which the engine waits a tenth as long: unused credentials are revoked after some seconds.
struct ShortSleeps;

#[async_trait]
impl Clock for ShortSleeps {
    fn now(&self) -> Timestamp {
        kiln_stack::SystemClock.now()
    }

    fn monotonic(&self) -> Duration {
        kiln_stack::SystemClock.monotonic()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time / 10).await;
    }
}

async fn world() -> World {
    let mut world = quiet_world().await;
    world.service.backends.clock = Arc::new(ShortSleeps);
    world_of(world)
}

impl World {
    fn keystone_calls(&self) -> BTreeMap<String, u64> {
        let counts = self.cloud.journal().counts();
        counts.into_iter().filter(|(call, _)| call.contains(" identity ")).collect()
    }
}

/// Creates stacks, then deletes them; returns what Keystone is asked for both.
async fn create_and_delete(world: &World, callers: &[Arc<Caller>]) -> [BTreeMap<String, u64>; 2] {
    let resources = "resources: {net: {type: OS::Neutron::Net}, other: {type: OS::Neutron::Net}}";
    let text = format!("heat_template_version: 2018-08-31\n{resources}\n");
    let template = || TemplateText::parse(&text, &Limits::default()).expect("a template");
    let before = world.trusts().len();
    world.cloud.journal().clear();
    let mut stacks = Vec::new();
    for (number, caller) in callers.iter().enumerate() {
        stacks.push(world.create_of(caller, &format!("s{number}"), template()).await.expect("a stack").id);
    }
    for id in &stacks {
        let stack = world.settled(*id).await;
        assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    }
    let created = world.keystone_calls();
    world.cloud.journal().clear();
    for id in &stacks {
        let request = StackRequest::new(Action::Delete, kiln_stack::SystemClock.now());
        world.service.backends.store.request(*id, request).await.expect("asked");
    }
    for id in &stacks {
        assert!(world.settled(*id).await.state.is_complete(Action::Delete));
    }
    for _ in 0..500 {
        if world.trusts().len() == before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Two sweeps would meet at a trust.
    if world.trusts().len() > before {
        world.sweep().round().await;
    }
    assert_eq!(world.trusts().len(), before);
    [created, world.keystone_calls()]
}

fn times(count: u64, calls: &[&str]) -> BTreeMap<String, u64> {
    calls.iter().map(|call| ((*call).to_owned(), count)).collect()
}

const TRUST: &str = "POST identity /OS-TRUST/trusts";
const TOKEN: &str = "POST identity /auth/tokens";
const END: &str = "DELETE identity /OS-TRUST/trusts/{id}";

#[tokio::test]
async fn keystone_is_asked_for_a_trust_and_a_token_and_to_end_the_trust() {
    let world = world().await;
    let alice = async || world.caller(world.cloud.users().demo, "demo").await;
    // The tokens of the service itself are shared by all stacks.
    create_and_delete(&world, &[alice().await]).await;
    let mut callers = Vec::new();
    for _ in 0..STACKS {
        callers.push(alice().await);
    }
    let [created, deleted] = create_and_delete(&world, &callers).await;
    assert_eq!(created, times(STACKS, &[TRUST, TOKEN]));
    assert_eq!(deleted, times(STACKS, &[END]));
}

/// Stacks that are created with the same token at about the same time share a trust, and so a token.
#[tokio::test]
async fn many_stacks_of_a_token_need_one_trust() {
    let world = world().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    create_and_delete(&world, std::slice::from_ref(&alice)).await;
    let callers = vec![Arc::clone(&alice); usize::try_from(STACKS).expect("few")];
    for round in 0..2 {
        // The trust of the round before was revoked with its last stack.
        let [created, deleted] = create_and_delete(&world, &callers).await;
        assert_eq!((created, deleted), (times(1, &[TRUST, TOKEN]), times(1, &[END])), "round {round}");
    }
}

/// A trust is not shared for long, in case that somebody has revoked it, nor with another token or project.
#[tokio::test]
async fn a_trust_is_shared_for_a_minute() {
    let world = World::new().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let credentials =
        async |caller: &Caller, name: &str| world.create(caller, name).await.unwrap().credentials.unwrap();
    let first = credentials(&alice, "a").await;
    world.time.advance(Duration::from_secs(59));
    assert_eq!(credentials(&alice, "b").await, first);
    let again = world.caller(world.cloud.users().demo, "demo").await;
    assert_ne!(credentials(&again, "c").await, first);
    world.time.advance(Duration::from_secs(1));
    let next = credentials(&alice, "d").await;
    assert_ne!(next, first);
    assert_eq!(credentials(&alice, "e").await, next);
    let elsewhere = Caller { project_id: "other".to_owned(), ..Caller::clone(&alice) };
    assert_ne!(credentials(&elsewhere, "f").await, next, "an administrator may use the project of others");
}
