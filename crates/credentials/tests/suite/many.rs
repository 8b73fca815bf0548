//! The sweep of many deleted stacks: in rounds of a limited size, and with the same number of calls for each.

use std::collections::BTreeMap;

use kiln_resource::StackId;
use kiln_store::{DesiredText, NewStack};

use super::users::quiet_world;
use super::*;

/// Stacks in one round of the sweep.
const ROUND: usize = 100;

impl World {
    /// A deleted stack whose users had a project.
    async fn deleted_stack(&self) {
        let project = self.service.backends.chance.uuid().simple().to_string();
        let id = StackId(self.service.backends.chance.uuid());
        let text = || "{}".to_owned();
        let new = NewStack {
            username: "demo".to_owned(),
            user_id: "demo".to_owned(),
            user_project: Some(project),
            ..NewStack::new(
                id,
                format!("s-{id}"),
                "demo".to_owned(),
                DesiredText { template: text(), environment: text(), files: text() },
                self.time.now(),
            )
        };
        let stack = self.memory.create_stack(new).await.expect("the store");
        self.commit_delete(&stack).await;
    }

    /// Sweeps until nothing is left: what the cloud was asked, the steps of the store, and the number of rounds. No round
    /// does more than its part.
    async fn sweep_in_rounds(&self, calls_of_one: usize) -> (BTreeMap<String, u64>, usize, usize) {
        let steps = Arc::<Steps>::default();
        let backends = self.backends_on(Arc::new(CutStore(self.memory.clone(), Arc::clone(&steps))));
        let mut sweep = CredentialsSweep::new(backends);
        let (mut asked, mut stored) = (BTreeMap::<String, u64>::new(), 0);
        for round in 1.. {
            self.cloud.journal().clear();
            let wait = sweep.round().await;
            let taken = steps.disarm();
            let calls = self.cloud.journal().counts();
            let sum: u64 = calls.values().sum();
            assert!(sum <= (calls_of_one * ROUND + 2) as u64, "round {round}: {calls:?}");
            assert!(taken <= 6 * ROUND + 4, "round {round}: {taken} steps");
            stored += taken;
            for (call, count) in calls {
                *asked.entry(call).or_default() += count;
            }
            if !wait.is_zero() {
                return (asked, stored, round);
            }
        }
        unreachable!()
    }
}

#[tokio::test]
async fn projects_of_users_are_deleted_in_rounds() {
    const GET: &str = "GET identity /projects/{id}";
    let world = quiet_world().await;
    let mut all = Vec::new();
    for count in [250, 1_000] {
        for _ in 0..count {
            world.deleted_stack().await;
        }
        let (asked, stored, rounds) = world.sweep_in_rounds(2).await;
        assert!(world.memory.unused_user_projects(1).await.expect("the store").is_empty());
        assert_eq!(asked.get(GET), Some(&(count as u64)), "{asked:?}");
        // A token at first; these projects are gone already.
        assert!(asked.values().sum::<u64>() <= count as u64 + 2, "{asked:?}");
        assert_eq!(rounds, count / ROUND + 1);
        all.push(stored);
    }
    // Two steps for each stack, and four to list what is left in each round.
    let expected = |count: usize| 2 * count + 4 * (count / ROUND + 1);
    assert_eq!(all, [expected(250), expected(1_000)]);
}

#[tokio::test]
async fn trusts_are_revoked_in_rounds() {
    const END: &str = "DELETE identity /OS-TRUST/trusts/{id}";
    let world = quiet_world().await;
    let count = 2 * ROUND + 10;
    for number in 0..count {
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        world.create(&alice, &format!("s{number}")).await.expect("a stack");
    }
    assert_eq!(world.trusts().len(), count);
    world.delete_all().await;
    let (asked, _, rounds) = world.sweep_in_rounds(2).await;
    assert!(world.trusts().is_empty());
    assert_eq!((asked.get(END), rounds), (Some(&(count as u64)), 3), "{asked:?}");
    // With a token of the trust, which an engine without work for the stack does not have.
    assert!(asked.values().sum::<u64>() <= 2 * count as u64 + 2, "{asked:?}");
}
