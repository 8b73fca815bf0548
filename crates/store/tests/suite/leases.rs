//! Leases: claims, fences, take-overs.

use std::collections::BTreeSet;
use std::time::Duration;

use kiln_resource::{Action, Status};
use kiln_store::{Batch, Claimable, EngineId, EngineInfo, Error, Lease, Silent, StackId, StackRequest, Store};

use crate::bed::beds;
use crate::make::{TTL, at, claim, claim_as, claimed, deleting, engine, event, resource, settle, settling, stack};

/// Longer than some statements take on a database with much to do.
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_stack_with_work_is_claimed_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let made = bed.store.create_stack(stack("web")).await.unwrap();
        let (one, other) = (engine(), engine());
        let leases = bed.store.claim(one, TTL, &[], 10).await.unwrap();
        let (silence, idle) = Default::default();
        let first = Lease { stack: made.id, owner: one, epoch: 1, clean: true, silence, idle };
        assert_eq!(leases, [first]);
        assert!(bed.store.claim(other, TTL, &[], 10).await.unwrap().is_empty());
        assert!(bed.store.claim(one, TTL, &[made.id], 10).await.unwrap().is_empty());

        bed.store.release(&leases).await.unwrap();
        let leases = bed.store.claim(other, TTL, &[made.id], 10).await.unwrap();
        assert_eq!(leases, [Lease { owner: other, epoch: 2, ..first }]);
        bed.end().await;
    }
}

#[tokio::test]
async fn claims_take_the_oldest_request_and_only_what_is_asked_for() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let mut ids = Vec::new();
        for (name, second) in [("c", 30), ("a", 10), ("b", 20)] {
            let new = kiln_store::NewStack { now: at(second), ..stack(name) };
            ids.push(bed.store.create_stack(new).await.unwrap().id);
        }
        let owner = engine();
        let only = bed.store.claim(owner, TTL, &[ids[0]], 10).await.unwrap();
        assert_eq!(only.iter().map(|lease| lease.stack).collect::<Vec<_>>(), [ids[0]]);
        let oldest = bed.store.claim(owner, TTL, &[], 1).await.unwrap();
        assert_eq!(oldest.iter().map(|lease| lease.stack).collect::<Vec<_>>(), [ids[1]]);
        let unknown = bed.store.claim(owner, TTL, &[stack("x").id], 10).await.unwrap();
        assert!(unknown.is_empty());
        assert!(bed.store.claim(owner, TTL, &[], 0).await.unwrap().is_empty());
        bed.end().await;
    }
}

#[tokio::test]
async fn each_lease_is_known_as_soon_as_it_is_claimed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        // Only SQLite has such triggers.
        if bed.file().is_some() {
            let mut ids = Vec::new();
            for (name, second) in [("a", 10), ("b", 20)] {
                let new = kiln_store::NewStack { now: at(second), ..stack(name) };
                ids.push(bed.store.create_stack(new).await.unwrap().id);
            }
            let when = format!("BEFORE UPDATE ON kiln_lease WHEN NEW.stack = '{}'", ids[1]);
            bed.execute(&format!("CREATE TRIGGER refuse {when} BEGIN SELECT RAISE(ABORT, 'refused'); END")).await;
            let mut won = Vec::new();
            let mut know = |lease: Lease| won.push(lease.stack);
            let refused = bed.store.claim_each(engine(), TTL, Claimable::Free, 10, &mut know).await.unwrap_err();
            assert!(refused.to_string().contains("refused"), "{refused}");
            assert_eq!(won, ids[..1], "the claim before the error");
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn stacks_of_other_projects_can_be_claimed_first() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let mut ids = Vec::new();
        for (name, project, second) in [("a", "big", 10), ("b", "big", 20), ("c", "small", 30), ("d", "other", 40)] {
            let new = kiln_store::NewStack { now: at(second), project: project.to_owned(), ..stack(name) };
            ids.push(bed.store.create_stack(new).await.unwrap().id);
        }
        let stacks = |leases: Vec<kiln_store::Lease>| leases.iter().map(|lease| lease.stack).collect::<Vec<_>>();
        let big = ["big".to_owned()];
        let others = claim_as(&*bed.store, engine(), Claimable::OfOtherProjects(&big), 1).await;
        assert_eq!(stacks(others), [ids[2]]);
        let both = ["big".to_owned(), "other".to_owned()];
        assert!(claim_as(&*bed.store, engine(), Claimable::OfOtherProjects(&both), 9).await.is_empty());
        let others = claim_as(&*bed.store, engine(), Claimable::OfOtherProjects(&[]), 9).await;
        assert_eq!(stacks(others), [ids[0], ids[1], ids[3]]);
        // A message to a stack without a request is work, too.
        let (settled, lease) = claimed(&*bed.store, "settled").await;
        bed.store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        bed.store.release(&[lease]).await.unwrap();
        bed.store.send(&crate::inbox::signal(settled.id, 1)).await.unwrap();
        assert_eq!(stacks(claim_as(&*bed.store, engine(), Claimable::OfOtherProjects(&both), 9).await), [settled.id]);
        bed.end().await;
    }
}

#[tokio::test]
async fn engines_that_race_never_hold_the_same_stack() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let mut all = BTreeSet::new();
        for number in 0..40 {
            all.insert(bed.store.create_stack(stack(&format!("s{number}"))).await.unwrap().id);
        }
        let mut engines = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let store = bed.another().await;
            engines.spawn(async move {
                let owner = engine();
                let mut held: Vec<StackId> = Vec::new();
                loop {
                    // None expires meanwhile, however busy the machine is.
                    let leases = store.claim(owner, Duration::from_hours(1), &[], 3).await.unwrap();
                    if leases.is_empty() {
                        return held;
                    }
                    held.extend(leases.iter().map(|lease| lease.stack));
                }
            });
        }
        let claimed: Vec<StackId> = engines.join_all().await.into_iter().flatten().collect();
        assert_eq!(claimed.len(), all.len(), "each once");
        assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), all);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_silent_engine_is_taken_over_and_can_write_no_more() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let made = bed.store.create_stack(stack("web")).await.unwrap();
        let (dead, heir) = (engine(), engine());
        let old = bed.store.claim(dead, SHORT, &[], 1).await.unwrap()[0];
        assert!(bed.store.claim(heir, TTL, &[], 1).await.unwrap().is_empty(), "it is not dead yet");
        tokio::time::sleep(SHORT * 2).await;
        let new = bed.another().await.claim(heir, TTL, &[], 1).await.unwrap()[0];
        assert!(new.epoch > old.epoch);
        assert!(old.clean && !new.clean, "nobody knows what the dead one was calling");
        assert_eq!(new.idle, Duration::ZERO, "the database's clock may have jumped");

        let row = resource(made.id, "late");
        let batch = Batch {
            save: vec![row].into(),
            events: vec![event(&made, "late", 3)],
            settle: Some(settle(1, Action::Create, Status::Complete)),
            ..Batch::default()
        };
        let before = bed.store.stack(made.id).await.unwrap();
        let late = bed.store.commit(old, batch.clone()).await;
        assert!(matches!(late, Err(Error::Stale(id)) if id == made.id));
        assert_eq!(bed.store.stack(made.id).await.unwrap(), before);
        assert!(bed.store.resources(made.id).await.unwrap().is_empty());
        assert!(bed.store.renew(dead, TTL, &[old, new]).await.unwrap().is_empty());
        bed.store.release(&[old]).await.unwrap();

        let held = bed.store.renew(heir, TTL, &[old, new]).await.unwrap();
        assert_eq!(held, [new], "the dead one's release is not the heir's");
        bed.store.commit(new, batch).await.unwrap();
        bed.end().await;
    }
}

#[tokio::test]
async fn renewed_leases_do_not_run_out() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        for name in ["a", "b"] {
            bed.store.create_stack(stack(name)).await.unwrap();
        }
        let owner = engine();
        let leases = bed.store.claim(owner, SHORT, &[], 2).await.unwrap();
        assert_eq!(bed.store.renew(owner, TTL, &leases).await.unwrap(), leases);
        tokio::time::sleep(SHORT * 2).await;
        assert!(bed.store.claim(engine(), TTL, &[], 2).await.unwrap().is_empty());
        assert!(bed.store.renew(engine(), TTL, &leases).await.unwrap().is_empty());
        bed.end().await;
    }
}

fn report(id: EngineId) -> EngineInfo {
    EngineInfo {
        id,
        hostname: "host".to_owned(),
        pid: 1,
        started: at(0),
        seen: at(0),
        interval: 5,
        schema: kiln_store::SCHEMA,
    }
}

/// The last report of an engine, as another one that finds it silent has read it.
async fn silent(store: &dyn Store, engine: EngineId) -> Silent {
    let engines = store.engines().await.unwrap();
    let seen = engines.iter().find(|found| found.id == engine).unwrap().seen;
    Silent { engine, seen, silence: Duration::from_secs(22), idle: Duration::from_secs(7) }
}

#[tokio::test]
async fn a_lease_of_an_engine_that_reports_is_claimed_only_when_another_finds_it_silent() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let made = store.create_stack(stack("web")).await.unwrap();
        let (owner, heir) = (engine(), engine());
        store.report(&report(owner)).await.unwrap();
        store.report(&report(heir)).await.unwrap();
        let lease = store.claim(owner, SHORT, &[], 1).await.unwrap()[0];
        let seen = silent(store, owner).await;
        tokio::time::sleep(SHORT * 2).await;
        // As after a jump of the database's clock: the lease has ended by it, but its owner may live.
        assert_eq!(store.claim(heir, TTL, &[], 1).await.unwrap(), []);
        assert_eq!(store.claim(heir, TTL, &[made.id], 1).await.unwrap(), []);
        assert_eq!(claim_as(store, heir, Claimable::LeftBehind { silent: &[], held: &[] }, 1).await, []);
        store.report(&report(owner)).await.unwrap();
        assert_eq!(
            claim_as(store, heir, Claimable::LeftBehind { silent: &[seen], held: &[] }, 1).await,
            [],
            "it has reported since"
        );
        store.forget_engine(&seen).await.unwrap();
        store.renew(owner, TTL, &[lease]).await.unwrap();
        let seen = silent(store, owner).await;
        let taken = claim_as(store, heir, Claimable::LeftBehind { silent: &[seen], held: &[] }, 1).await[0];
        assert_eq!((taken.epoch, taken.clean), (lease.epoch + 1, false));
        assert_eq!((taken.silence, taken.idle), (seen.silence, seen.idle));
        assert_eq!(store.renew(owner, TTL, &[lease]).await.unwrap(), []);
        store.forget_engine(&seen).await.unwrap();
        assert_eq!(store.engines().await.unwrap().iter().map(|engine| engine.id).collect::<Vec<_>>(), [heir]);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_process_that_is_alone_on_a_file_knows_that_the_engines_before_are_gone() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let dead = engine();
        bed.store.report(&report(dead)).await.unwrap();
        let is_file = bed.file().is_some();
        let first = bed.store.lock_engines().await.unwrap();
        assert_eq!(first.gone, [], "an engine of a version without the lock may live");
        let second = bed.another().await.lock_engines().await.unwrap();
        assert_eq!(second.gone, [], "the first one lives");
        drop(first);
        assert_eq!(bed.another().await.lock_engines().await.unwrap().gone, [], "the second one lives");
        drop(second);
        let last = bed.another().await.lock_engines().await.unwrap();
        assert_eq!(last.gone, if is_file { vec![dead] } else { Vec::new() });
        bed.end().await;
    }
}

#[tokio::test]
async fn an_engine_claims_its_own_lease_again_if_it_does_not_know_it() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let made = store.create_stack(stack("web")).await.unwrap();
        let owner = engine();
        store.report(&report(owner)).await.unwrap();
        let first = store.claim(owner, SHORT, &[], 1).await.unwrap()[0];
        assert_eq!(
            claim_as(store, owner, Claimable::LeftBehind { silent: &[], held: &[] }, 1).await,
            [],
            "not before it ends"
        );
        tokio::time::sleep(SHORT * 2).await;
        assert_eq!(
            claim_as(store, owner, Claimable::LeftBehind { silent: &[], held: &[made.id] }, 1).await,
            [],
            "it works under it"
        );
        let second = claim_as(store, owner, Claimable::LeftBehind { silent: &[], held: &[] }, 1).await[0];
        assert_eq!((second.epoch, second.clean, second.idle), (first.epoch + 1, false, Duration::ZERO));
        bed.end().await;
    }
}

/// So a claim whose response was lost, or a failed release, blocks a stack only for the time to live.
#[tokio::test]
async fn only_the_named_leases_are_renewed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        for number in 0..2 {
            bed.store.create_stack(stack(&format!("s{number}"))).await.unwrap();
        }
        let owner = engine();
        let leases = bed.store.claim(owner, SHORT, &[], 2).await.unwrap();
        assert_eq!(bed.store.renew(owner, TTL, &leases[..1]).await.unwrap(), leases[..1]);
        assert!(bed.store.renew(owner, TTL, &[]).await.unwrap().is_empty());
        let older = Lease { epoch: 0, ..leases[1] };
        assert!(bed.store.renew(owner, TTL, &[older]).await.unwrap().is_empty());
        tokio::time::sleep(SHORT * 2).await;
        let free = bed.store.claim(engine(), TTL, &[], 2).await.unwrap();
        assert_eq!(free.iter().map(|lease| lease.stack).collect::<Vec<_>>(), [leases[1].stack]);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_lease_tells_how_the_one_before_ended() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, first) = claimed(&*bed.store, "web").await;
        bed.store.release(&[first]).await.unwrap();
        let second = bed.store.claim(engine(), SHORT, &[], 1).await.unwrap()[0];
        assert_eq!((second.clean, second.idle), (true, Duration::ZERO), "given back in order");
        tokio::time::sleep(SHORT * 2).await;
        let third = claim(&*bed.store, engine(), made.id).await;
        assert!(!third.clean, "ran out");
        bed.store.release(&[second]).await.unwrap();
        bed.store.release(&[third]).await.unwrap();
        let fourth = claim(&*bed.store, engine(), made.id).await;
        assert_eq!((fourth.clean, fourth.idle), (true, Duration::ZERO), "given back in order");
        bed.end().await;
    }
}

/// Simulates that the clock was set back by an hour after the claim.
#[tokio::test]
async fn a_lease_of_a_clock_that_was_set_back_runs_out() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let (made, lease) = claimed(&*bed.store, "web").await;
            bed.execute("UPDATE kiln_lease SET expires = expires + 3600000000").await;
            assert!(bed.store.claim(engine(), SHORT, &[], 1).await.unwrap().is_empty(), "its owner may live");
            bed.store.commit(lease, Batch::default()).await.expect("the owner may go on");
            tokio::time::sleep(SHORT * 2).await;
            let next = claim(&*bed.store, engine(), made.id).await;
            assert!(!next.clean);
            assert!(matches!(bed.store.commit(lease, Batch::default()).await, Err(Error::Stale(_))));
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_lease_given_back_is_no_right_to_write() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        bed.store.release(&[lease]).await.unwrap();
        let batch = Batch { save: vec![resource(made.id, "a")].into(), ..Batch::default() };
        assert!(matches!(bed.store.commit(lease, batch).await, Err(Error::Stale(_))));
        let forged = Lease { owner: engine(), ..claim(&*bed.store, engine(), made.id).await };
        assert!(matches!(bed.store.commit(forged, Batch::default()).await, Err(Error::Stale(_))));
        bed.end().await;
    }
}

#[tokio::test]
async fn settled_and_deleted_stacks_are_not_claimed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (done, lease) = claimed(&*bed.store, "done").await;
        let (gone, other) = claimed(&*bed.store, "gone").await;
        bed.store.commit(lease, settling(settle(1, Action::Create, Status::Failed))).await.unwrap();
        bed.store.request(gone.id, StackRequest::new(Action::Delete, at(1))).await.unwrap();
        bed.store.commit(other, deleting(2)).await.unwrap();
        bed.store.release(&[lease, other]).await.unwrap();
        assert!(bed.store.claim(engine(), TTL, &[], 10).await.unwrap().is_empty());
        assert!(bed.store.claim(engine(), TTL, &[done.id, gone.id], 10).await.unwrap().is_empty());
        bed.end().await;
    }
}
