//! Migrations, credentials, engines, and purging.

use kiln_resource::Action;
use kiln_store::{
    Batch, EngineInfo, Error, EventPurge, EventQuery, NewStack, Options, Retention, SqlStore, StackRequest,
};
use kiln_value::Secret;

use crate::bed::{Bed, beds, options};
use crate::make::{at, claim, claimed, deleting, engine, event, resource, settle, settling, stack, text};

#[tokio::test]
async fn migrations_may_run_again_and_at_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        bed.store.migrate().await.unwrap();
        bed.store.create_stack(stack("web")).await.unwrap();
        bed.store.migrate().await.unwrap();
        assert!(bed.store.stack_by_name(crate::make::PROJECT, "web").await.unwrap().is_some());
        bed.end().await;
    }
}

#[tokio::test]
async fn processes_that_start_together_migrate_together() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            for table in bed.tables().await {
                bed.execute(&format!("DROP TABLE {table}")).await;
            }
            let mut starts = tokio::task::JoinSet::new();
            for _ in 0..4 {
                let store = bed.another().await;
                starts.spawn(async move { store.migrate().await });
            }
            for done in starts.join_all().await {
                done.unwrap();
            }
            bed.store.create_stack(stack("web")).await.unwrap();
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_key_of_the_wrong_length_is_refused() {
    let options = Options { key: Secret::new("short".to_owned()), ..options("sqlite::memory:") };
    assert!(matches!(SqlStore::open(options).await, Err(Error::Unusable(_))));
}

#[tokio::test]
async fn engines_report() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let info = EngineInfo {
            id: engine(),
            hostname: "höst".into(),
            pid: 4_294_967_295,
            started: at(1),
            seen: at(0),
            interval: 60,
            schema: kiln_store::SCHEMA,
        };
        bed.store.report(&info).await.unwrap();
        let first = bed.store.engines().await.unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(EngineInfo { seen: info.seen, ..first[0].clone() }, info);
        let now = jiff::Timestamp::now();
        assert!((now.as_second() - first[0].seen.as_second()).abs() < 60, "by the database's clock");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        bed.store.report(&info).await.unwrap();
        let second = bed.store.engines().await.unwrap();
        assert!(second[0].seen > first[0].seen);
        assert_eq!(second.len(), 1);

        let brief = EngineInfo { id: engine(), interval: 0, started: at(2), ..info.clone() };
        bed.store.report(&brief).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        bed.store.report(&info).await.unwrap();
        let left: Vec<_> = bed.store.engines().await.unwrap().into_iter().map(|engine| engine.id).collect();
        assert_eq!(left, [info.id], "one that is silent for long is forgotten");
        bed.end().await;
    }
}

fn keep(seconds: i64) -> Retention {
    Retention { deleted_before: at(seconds), operations: 0 }
}

async fn forget(bed: &Bed, retention: &Retention) -> u64 {
    let mut gone = 0;
    loop {
        match bed.store.forget(retention).await.unwrap() {
            0 => return gone,
            more => gone += more,
        }
    }
}

#[tokio::test]
async fn stacks_that_are_gone_long_enough_are_forgotten() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let tagged = NewStack { tags: vec!["t".into()], ..stack("gone") };
        let gone = bed.store.create_stack(tagged).await.unwrap();
        let lease = claim(&*bed.store, engine(), gone.id).await;
        bed.store.commit(lease, Batch { events: vec![event(&gone, "a", 1)], ..deleting(1) }).await.unwrap();
        let (live, other) = claimed(&*bed.store, "live").await;
        let live = bed
            .store
            .commit(other, Batch { save: vec![resource(live.id, "a")].into(), ..Batch::default() })
            .await
            .unwrap();

        assert_eq!(forget(&bed, &keep(100)).await, 0, "not before its time");
        assert_eq!(forget(&bed, &keep(101)).await, 7, "stack, operation, lease, tag, two events and their row");
        assert_eq!(bed.store.stack(gone.id).await.unwrap(), None);
        let query = EventQuery { stacks: vec![gone.id], ..EventQuery::default() };
        assert!(bed.store.events(&query).await.unwrap().is_empty());
        assert_eq!(bed.store.stack(live.id).await.unwrap(), Some(live.clone()));
        assert_eq!(bed.store.count_resources(live.id).await.unwrap(), 1);
        bed.store.commit(other, Batch::default()).await.expect("the lease of a live stack stays");
        bed.end().await;
    }
}

#[tokio::test]
async fn old_events_of_busy_stacks_are_forgotten() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (busy, lease) = claimed(&*bed.store, "busy").await;
        let (quiet, other) = claimed(&*bed.store, "quiet").await;
        let events: Vec<_> = (0..30).map(|number| event(&busy, &format!("r{number}"), number)).collect();
        bed.store.commit(lease, Batch { events: events.clone(), ..Batch::default() }).await.unwrap();
        let few = vec![event(&quiet, "a", 1), event(&quiet, "b", 1)];
        bed.store.commit(other, Batch { events: few, ..Batch::default() }).await.unwrap();
        assert_eq!(forget(&bed, &keep(0)).await, 0);
        let purge = bed.store.forget_events(10, 0).await.unwrap();
        assert_eq!((purge.deleted, purge.has_more), (21, false));
        let of = |id| EventQuery { stacks: vec![id], ..EventQuery::default() };
        assert_eq!(bed.store.events(&of(busy.id)).await.unwrap(), events[20..]);
        assert_eq!(bed.store.events(&of(quiet.id)).await.unwrap().len(), 3);
        bed.end().await;
    }
}

/// However many events there are, a step reads a bounded number of them, and none is read again.
#[tokio::test]
async fn a_purge_of_events_reads_each_event_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (busy, lease) = claimed(&*bed.store, "busy").await;
        let write = async |count: usize| {
            let events = (0..count).map(|number| event(&busy, &format!("r{number}"), 1)).collect();
            bed.store.commit(lease, Batch { events, ..Batch::default() }).await.unwrap();
        };
        write(8_499).await;
        let (mut steps, mut after) = (Vec::new(), 0);
        loop {
            let purge = bed.store.forget_events(500, after).await.unwrap();
            steps.push((purge.looked_at, purge.deleted));
            after = purge.after;
            if !purge.has_more {
                break;
            }
        }
        // The stack of the first events is looked at twice, because the first step did not delete all old ones.
        assert_eq!(steps, [(1000, 5000), (1000, 3000), (500, 0)], "of 8,500 events");
        assert_eq!(bed.store.forget_events(500, after).await.unwrap(), EventPurge { after, ..EventPurge::default() });
        write(1).await;
        let purge = bed.store.forget_events(500, after).await.unwrap();
        assert_eq!((purge.looked_at, purge.deleted, purge.has_more), (1, 1, false));
        bed.end().await;
    }
}

#[tokio::test]
async fn texts_that_nobody_names_are_forgotten_after_a_while() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let (made, lease) = claimed(&*bed.store, "v1").await;
            bed.store
                .commit(lease, settling(settle(1, Action::Create, kiln_resource::Status::Complete)))
                .await
                .unwrap();
            for version in ["v2", "v3"] {
                let request = StackRequest { desired: Some(text(version)), ..StackRequest::new(Action::Update, at(1)) };
                bed.store.request(made.id, request).await.unwrap();
            }
            assert_eq!(forget(&bed, &keep(0)).await, 0, "it was named just now");
            bed.execute("UPDATE kiln_content SET used = 0").await;
            assert_eq!(forget(&bed, &keep(0)).await, 0, "a revision has it");
            let last = Retention { operations: 1, ..keep(0) };
            assert_eq!(forget(&bed, &last).await, 3, "two operations and a text");
            let template = |version| text(version).digests().template;
            assert!(bed.store.content(&template("v1")).await.is_ok(), "a rollback returns to it");
            assert!(matches!(bed.store.content(&template("v2")).await, Err(Error::NotFound(_))));
            assert!(bed.store.content(&template("v3")).await.is_ok());

            // When it is referenced again, an old text is kept.
            bed.execute("UPDATE kiln_content SET used = 0").await;
            bed.store.create_stack(NewStack { desired: text("v3"), ..stack("w") }).await.unwrap();
            let request = StackRequest { desired: Some(text("v4")), ..StackRequest::new(Action::Update, at(1)) };
            bed.store.request(made.id, request).await.unwrap();
            assert_eq!(forget(&bed, &keep(0)).await, 0);
        }
        bed.end().await;
    }
}

/// An archive reads the stacks that a purge would delete, and deletes these.
#[tokio::test]
async fn only_the_named_deleted_stacks_are_purged() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let mut ids = Vec::new();
            for name in ["a", "b"] {
                let (made, lease) = claimed(&*bed.store, name).await;
                bed.store.commit(lease, Batch { events: vec![event(&made, "r", 1)], ..deleting(1) }).await.unwrap();
                ids.push(made.id);
            }
            let alive = bed.store.create_stack(stack("alive")).await.unwrap().id;
            let store = bed.again().await;
            let mut found = store.purgeable(at(1_000), 10).await.unwrap();
            assert_eq!(store.purgeable(at(1_000), 1).await.unwrap().len(), 1);
            assert!(store.purgeable(at(1), 10).await.unwrap().is_empty());
            found.sort();
            ids.sort();
            assert_eq!(found, ids);
            assert!(store.purge_these(&[ids[0], alive]).await.unwrap() > 1);
            let left = [
                bed.store.stack(ids[0]).await.unwrap(),
                bed.store.stack(ids[1]).await.unwrap(),
                bed.store.stack(alive).await.unwrap(),
            ];
            assert_eq!(left.map(|stack| stack.is_some()), [false, true, true]);
            assert_eq!(store.purge_these(&[alive]).await.unwrap(), 0);
            drop(store);
        }
        bed.end().await;
    }
}
