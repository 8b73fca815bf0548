//! Trusts that stacks share, between processes of which each may end at any step.

use super::*;

impl World {
    /// The service of another process on the same store; it knows nothing of the trusts that others share.
    fn another_process(&self) -> Service {
        Service { shared: SharedCredentials::default(), ..self.service.clone() }
    }

    /// Creates a stack in a process, without interruptions.
    async fn create_in(&self, process: &Service, caller: &Caller, name: &str) -> Stack {
        self.try_create_in(process, caller, name).await.expect("a stack")
    }

    async fn try_create_in(
        &self,
        process: &Service,
        caller: &Caller,
        name: &str,
    ) -> Result<Stack, kiln_service::Error> {
        let (content, settings) = (StackContent::default(), Settings::default());
        let new = CreateStack { name: name.to_owned(), template: template(), content, settings, adopt: None };
        process.create_stack(caller, new).await
    }

    /// No live stack is without its trust.
    async fn has_trusts(&self, when: &str) {
        let (trusts, used) = (self.trusts(), self.used().await);
        assert!(used.is_subset(&trusts), "{when}: {used:?} of {trusts:?}");
    }

    /// After a while, all trusts are used, and none is left after the last stack.
    async fn ends_clean(&self, when: &str) {
        self.has_trusts(when).await;
        self.sweep_all().await;
        assert_eq!(self.trusts(), self.used().await, "{when}");
        self.delete_all().await;
        self.sweep_all().await;
        assert!(self.trusts().is_empty(), "{when}");
    }
}

/// Which create is interrupted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interrupted {
    /// That which makes the trust and offers it.
    First,
    /// That of a stack that is offered the trust.
    Second,
    /// The same after the delete of the first stack.
    SecondAlone,
}

/// A create is interrupted: its process ends, or calls fail. Two processes create stacks with the same token. Returns how
/// many stacks got the offered trust, and how many were not made.
async fn interrupt(interrupted: Interrupted) -> (usize, usize) {
    let world = World::new().await;
    let (mut shared, mut not_made) = (0, 0);
    for (how, length) in CUTS {
        for at in 0.. {
            let when = format!("{interrupted:?}, {how:?} of {length} at {at}");
            let alice = world.caller(world.cloud.users().demo, "demo").await;
            let (mut one, two) = (world.another_process(), world.another_process());
            world.create_in(&two, &alice, "elsewhere").await;
            let mut offered = None;
            if interrupted != Interrupted::First {
                let first = world.create_in(&one, &alice, "first").await;
                assert_eq!(world.trusts().len(), 2, "{when}");
                offered = first.credentials;
                if interrupted == Interrupted::SecondAlone {
                    world.commit_delete(&first).await;
                }
            }
            world.steps.arm(at..at + length, how);
            let created = world.steps.run(world.try_create_in(&one, &alice, "second")).await;
            let steps = world.steps.disarm();
            match created {
                None => one = world.another_process(),
                Some(Ok(second)) => shared += usize::from(second.credentials == offered),
                Some(Err(_)) => not_made += 1,
            }
            world.sweep().round().await;
            world.has_trusts(&when).await;
            world.create_in(&one, &alice, "third").await;
            world.create_in(&two, &alice, "fourth").await;
            world.ends_clean(&when).await;
            if steps <= at {
                break;
            }
        }
    }
    (shared, not_made)
}

#[tokio::test]
async fn a_create_that_breaks_off_while_it_offers_a_trust_leaves_none() {
    let (_, not_made) = interrupt(Interrupted::First).await;
    assert!(not_made > 20, "{not_made} not made: the steps are not cut any more");
}

#[tokio::test]
async fn a_create_that_breaks_off_leaves_the_offered_trust_to_the_others() {
    for interrupted in [Interrupted::Second, Interrupted::SecondAlone] {
        let (shared, not_made) = interrupt(interrupted).await;
        assert!(shared > 2 && not_made > 10, "{shared} shared, {not_made} not made: the steps are not cut any more");
    }
}

/// The sweep of an engine is interrupted while it revokes a trust that an API still offers.
#[tokio::test]
async fn a_sweep_that_breaks_off_anywhere_revokes_no_trust_of_a_new_stack() {
    let world = World::new().await;
    let (mut shared, mut own) = (0, 0);
    for (how, length) in CUTS {
        for at in 0.. {
            let when = format!("{how:?} of {length} at {at}");
            let alice = world.caller(world.cloud.users().demo, "demo").await;
            let api = world.another_process();
            let first = world.create_in(&api, &alice, "first").await;
            world.commit_delete(&first).await;
            world.steps.arm(at..at + length, how);
            world.steps.run(world.sweep().round()).await;
            let steps = world.steps.disarm();
            let second = world.create_in(&api, &alice, "second").await;
            if second.credentials == first.credentials {
                shared += 1;
            } else {
                own += 1;
            }
            world.has_trusts(&when).await;
            // The next sweep goes on where the one before ended.
            world.sweep().round().await;
            world.has_trusts(&when).await;
            world.create_in(&api, &alice, "third").await;
            world.ends_clean(&when).await;
            if steps <= at {
                break;
            }
        }
    }
    assert!(shared > 4 && own > 4, "{shared} shared, {own} own: the steps are not cut any more");
}

/// A stack gets a shared trust between two steps of the sweep that revokes it: one of both notices.
#[tokio::test]
async fn a_stack_gets_a_trust_during_the_sweep() {
    let world = World::new().await;
    let mut shared = BTreeSet::new();
    for at in 0.. {
        let when = format!("in the sweep at {at}");
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        let api = world.another_process();
        let first = world.create_in(&api, &alice, "first").await;
        world.commit_delete(&first).await;
        let mut sweep = world.sweep();
        let mut round = Box::pin(sweep.round());
        world.steps.arm(at..at + 1, Cut::Hold);
        let is_held = world.steps.run_until_held(&mut round).await;
        world.steps.disarm();
        let second = world.create_in(&api, &alice, "second").await;
        shared.insert(second.credentials == first.credentials);
        if is_held {
            world.steps.go_on();
            round.await;
        }
        world.has_trusts(&when).await;
        world.ends_clean(&when).await;
        if !is_held {
            break;
        }
    }
    assert_eq!(shared.len(), 2, "some stacks share the trust, others do not");
}
