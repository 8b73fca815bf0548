//! What Keystone is asked for a stack, from its create to the end of its trust.

use std::collections::BTreeMap;

use super::users::world;
use super::*;

const STACKS: u64 = 5;

impl World {
    fn keystone_calls(&self) -> BTreeMap<String, u64> {
        let counts = self.cloud.journal().counts();
        counts.into_iter().filter(|(call, _)| call.contains(" identity ")).collect()
    }
}

#[tokio::test]
async fn keystone_is_asked_for_a_trust_and_a_token_and_to_end_the_trust() {
    let world = world().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let resources = "resources: {net: {type: OS::Neutron::Net}, other: {type: OS::Neutron::Net}}";
    let text = format!("heat_template_version: 2018-08-31\n{resources}\n");
    let template = || TemplateText::parse(&text, &Limits::default()).expect("a template");
    // The tokens of the service itself are shared by all stacks.
    let first = world.create_of(&alice, "first", template()).await.expect("a stack").id;
    assert!(world.settled(first).await.state.is_complete(Action::Create));
    world.cloud.journal().clear();
    let mut stacks = Vec::new();
    for number in 0..STACKS {
        stacks.push(world.create_of(&alice, &format!("s{number}"), template()).await.expect("a stack").id);
    }
    for id in &stacks {
        let stack = world.settled(*id).await;
        assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    }
    let created = world.keystone_calls();
    let one_each = |calls: &[&str]| calls.iter().map(|call| ((*call).to_owned(), STACKS)).collect::<BTreeMap<_, _>>();
    assert_eq!(created, one_each(&["POST identity /OS-TRUST/trusts", "POST identity /auth/tokens"]));

    world.cloud.journal().clear();
    for id in &stacks {
        let request = StackRequest::new(Action::Delete, kiln_engine::SystemClock.now());
        world.service.backends.store.request(*id, request).await.expect("asked");
    }
    for id in &stacks {
        assert!(world.settled(*id).await.state.is_complete(Action::Delete));
    }
    for _ in 0..500 {
        if world.trusts().len() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Two sweeps would meet at a trust.
    if world.trusts().len() > 1 {
        world.sweep().round().await;
    }
    assert_eq!(world.trusts().len(), 1, "that of the first stack");
    assert_eq!(world.keystone_calls(), one_each(&["DELETE identity /OS-TRUST/trusts/{id}"]));
}
