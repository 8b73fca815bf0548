//! Batches of the engine that holds a lease.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{Action, Operation, OperationState, Phase, Running, State, Status, StoredDefinition};
use kiln_store::{Batch, Error, EventQuery, NewStack, Resource, Settle, Stack, StackId, StackQuery, StackRequest};
use kiln_value::{Map, Value, value};

use crate::bed::beds;
use crate::make::{at, child, claim, claimed, deleting, engine, event, resource, settle, settling, text};

/// A definition with values that databases may change.
fn definition() -> StoredDefinition {
    let mut definition = StoredDefinition::of_type("T");
    let properties = value!({"big": 9_007_199_254_740_993_i64, "float": 1.0, "text": "\u{0}\u{1F600}"});
    definition.properties = properties.as_map().unwrap().clone();
    definition
}

/// A resource with a value in every column.
fn full(of: &kiln_store::Stack) -> Resource {
    let mut data = Map::new();
    data.insert("private_key".into(), "geheim".into());
    let mut attributes = Map::new();
    attributes.insert("show".into(), value!({"b": 1, "a": [1.0, null, true]}));
    Resource {
        physical_id: Some("9e8b".into()),
        state: State::new(Action::Create, Status::Complete),
        reason: "state changed: ü \u{1F680} 'quoted' \\".into(),
        operation: Running {
            operation: Operation::Create,
            definition: None,
            phase: Phase::Wait(value!({"polling": {"count": 3}})),
            token: "t".to_owned(),
            attempt: 1,
            requires: Vec::new(),
            afterwards: OperationState::Idle,
        }
        .into(),
        definition: Some(Arc::new(definition())),
        metadata: value!({"z": 1, "a": 2}),
        data,
        attributes,
        requires: vec![resource(of.id, "other").id],
        replaces: Some(resource(of.id, "old").id),
        replaced_by: Some(resource(of.id, "new").id),
        child: Some(of.id),
        generation: 7,
        updated: at(5),
        ..resource(of.id, "sérvèr")
    }
}

#[tokio::test]
async fn rows_come_back_as_they_were_saved() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let rows = vec![full(&made), resource(made.id, "bare")];
        let after = bed.store.commit(lease, Batch { save: rows.clone().into(), ..Batch::default() }).await.unwrap();
        assert_eq!(after, Stack { writes: 1, ..made.clone() });
        let found = bed.store.resources(made.id).await.unwrap();
        assert_eq!(found, rows);
        assert_eq!(bed.store.stack(made.id).await.unwrap(), Some(after));
        assert_eq!(bed.store.resources_and_writes(made.id).await.unwrap(), (Some(1), rows.clone()));
        let written = |rows: &[Resource]| serde_json::to_string(&rows[0].definition).unwrap();
        assert_eq!(written(&found), written(&rows), "1.0 is not 1");
        let order: Vec<&String> = found[0].metadata.as_map().unwrap().keys().collect();
        assert_eq!(order, ["z", "a"]);

        let mut changed = rows.clone();
        changed[0].physical_id = None;
        changed[0].data = Map::new();
        changed[0].state = State::new(Action::Update, Status::Failed);
        changed.push(resource(made.id, "third"));
        let save = vec![changed[2].clone(), changed[0].clone()].into();
        bed.store.commit(lease, Batch { save, ..Batch::default() }).await.unwrap();
        assert_eq!(bed.store.resources(made.id).await.unwrap(), changed, "in the order in which they were made");
        assert_eq!(bed.store.count_resources(made.root).await.unwrap(), 3);

        let remove = vec![changed[0].id, changed[2].id];
        bed.store.commit(lease, Batch { remove, ..Batch::default() }).await.unwrap();
        assert_eq!(bed.store.resources(made.id).await.unwrap(), changed[1..2]);
        assert_eq!(bed.store.resources_and_writes(made.id).await.unwrap(), (Some(3), changed[1..2].to_vec()));
        bed.end().await;
    }
}

#[tokio::test]
async fn data_of_resources_is_unreadable_in_the_database() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        bed.store.commit(lease, Batch { save: vec![full(&made)].into(), ..Batch::default() }).await.unwrap();
        if let Some(path) = bed.file() {
            drop(bed.another().await);
            let bytes = [std::fs::read(&path).unwrap(), std::fs::read(format!("{path}-wal")).unwrap()].concat();
            let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(holds("polling"), "the row is in the file");
            assert!(!holds("geheim"));
        }
        assert_eq!(bed.store.resources(made.id).await.unwrap()[0].data["private_key"], Value::from("geheim"));
        bed.end().await;
    }
}

#[tokio::test]
async fn a_settle_applies_to_its_generation_only() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let asked = bed
            .store
            .request(made.id, StackRequest { desired: Some(text("v2")), ..StackRequest::new(Action::Update, at(2)) })
            .await
            .unwrap();
        let batch = Batch {
            save: vec![resource(made.id, "a")].into(),
            settle: Some(settle(1, Action::Create, Status::Complete)),
            rollback: Some(StackRequest::rollback(1, true, at(9))),
            ..Batch::default()
        };
        let after = bed.store.commit(lease, batch).await.unwrap();
        let asked = Stack { writes: 1, ..asked };
        assert_eq!(after, asked, "the engine sees the newer request, nothing was settled");
        assert_eq!(bed.store.resources(made.id).await.unwrap().len(), 1, "the rest was written");
        let query = EventQuery { stacks: vec![made.id], ..EventQuery::default() };
        let begun = bed.store.events(&query).await.unwrap();
        assert!(begun.iter().all(|event| event.action != "ROLLBACK"), "{begun:?}");

        let done = bed.store.commit(lease, settling(settle(2, Action::Update, Status::Complete))).await.unwrap();
        assert_eq!((done.generation, done.settled), (2, 2));
        assert_eq!(done.state, State::new(Action::Update, Status::Complete));
        assert_eq!(done.reason, "Stack UPDATE settled");
        assert_eq!(done.previous, Some(text("v2").digests()));
        assert_eq!(done.deleted, None);
        assert_eq!(bed.store.stack(made.id).await.unwrap(), Some(done));
        bed.end().await;
    }
}

#[tokio::test]
async fn a_rollback_returns_to_what_was_reached() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let first = bed.store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        assert_eq!(first.previous, Some(made.desired.clone()));
        let update = StackRequest { desired: Some(text("v2")), ..StackRequest::new(Action::Update, at(2)) };
        bed.store.request(made.id, update).await.unwrap();
        let mut failed = settling(settle(2, Action::Update, Status::Failed));
        failed.events.push(event(&made, "a", 1));
        failed.rollback = Some(StackRequest::rollback(2, true, at(9)));
        let begun = bed.store.commit(lease, failed).await.unwrap();
        assert_eq!(begun.state, State::new(Action::Rollback, Status::InProgress));
        assert_eq!((begun.reason.as_str(), begun.updated), ("Stack ROLLBACK started", Some(at(9))));
        assert_eq!(begun.desired, made.desired);
        assert_eq!((begun.generation, begun.settled), (3, 2));
        assert!(begun.details.keep_objects && begun.details.only_adopted && begun.details.own_number);
        let query = EventQuery { stacks: vec![made.id], ..EventQuery::default() };
        let events = bed.store.events(&query).await.unwrap();
        let names: Vec<&str> = events.iter().rev().take(2).map(|event| event.reason.as_str()).collect();
        assert_eq!(names, ["Stack ROLLBACK started", "state changed"], "the end comes before the start");
        let back = bed.store.commit(lease, settling(settle(3, Action::Rollback, Status::Complete))).await.unwrap();
        assert_eq!(back.desired, made.desired);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_rollback_that_was_asked_for_returns_at_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        bed.store.commit(lease, settling(settle(1, Action::Create, Status::Complete))).await.unwrap();
        let update = StackRequest { desired: Some(text("v2")), ..StackRequest::new(Action::Update, at(2)) };
        bed.store.request(made.id, update).await.unwrap();
        let failed = bed.store.commit(lease, settling(settle(2, Action::Update, Status::Failed))).await.unwrap();
        assert_eq!(failed.desired, text("v2").digests());
        let back = bed.store.request(made.id, StackRequest::new(Action::Rollback, at(3))).await.unwrap();
        assert_eq!((back.desired, back.previous), (made.desired.clone(), Some(made.desired)));
        bed.end().await;
    }
}

#[tokio::test]
async fn with_nothing_reached_a_rollback_returns_to_nothing() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let settle = Some(Settle { reached: false, ..settle(1, Action::Create, Status::Failed) });
        let failed = Batch { settle, rollback: Some(StackRequest::rollback(1, true, at(9))), ..Batch::default() };
        let begun = bed.store.commit(lease, failed).await.unwrap();
        assert!(begun.is_pending());
        assert_eq!((begun.desired, begun.previous), (made.desired, None));
        bed.end().await;
    }
}

#[tokio::test]
async fn a_deleted_stack_keeps_its_row_and_events_only() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let batch =
            Batch { save: vec![resource(made.id, "a")].into(), events: vec![event(&made, "a", 1)], ..Batch::default() };
        bed.store.commit(lease, batch).await.unwrap();
        let gone = bed.store.commit(lease, deleting(1)).await.unwrap();
        assert_eq!(gone.deleted, Some(at(100)));
        assert!(bed.store.resources(made.id).await.unwrap().is_empty());
        assert_eq!(bed.store.stack_by_name(&made.project, "web").await.unwrap(), None);
        let query = EventQuery { stacks: vec![made.id], ..EventQuery::default() };
        assert_eq!(bed.store.events(&query).await.unwrap().len(), 2);
        assert_eq!(bed.store.desired(&gone.desired).await.unwrap(), text("web"));
        bed.end().await;
    }
}

#[tokio::test]
async fn nested_stacks_are_made_and_asked_within_the_fence() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let rows: Vec<Resource> = ["a", "b"].map(|name| resource(made.id, name)).to_vec();
        let children: Vec<NewStack> = rows.iter().map(|row| child(&made, row)).collect();
        let ids = [children[0].id, children[1].id];
        let batch = Batch { save: rows.clone().into(), children, ..Batch::default() };
        bed.store.commit(lease, batch).await.unwrap();

        let first = bed.store.stack(ids[0]).await.unwrap().unwrap();
        assert_eq!((first.root, first.depth, first.generation), (made.id, 1, 1));
        assert_eq!(first.reason, "Stack CREATE started");
        let summaries = bed.store.children(made.id).await.unwrap();
        assert_eq!(summaries.len(), 2);
        let one = summaries.iter().find(|summary| summary.id == ids[0]).unwrap();
        assert_eq!((one.resource, one.generation, one.settled, one.deleted), (rows[0].id, 1, 0, false));
        assert_eq!(one.state, State::new(Action::Create, Status::InProgress));
        assert_eq!(bed.store.ended_children(made.id, &ids).await.unwrap(), []);
        assert_eq!(bed.store.resources_named(made.id, "a").await.unwrap(), rows[..1]);

        let nested = claim(&*bed.store, engine(), ids[0]).await;
        bed.store.commit(nested, settling(settle(1, Action::Create, Status::Failed))).await.unwrap();
        let gone = claim(&*bed.store, engine(), ids[1]).await;
        bed.store.commit(gone, deleting(1)).await.unwrap();
        let ended = async |also: &[StackId]| {
            let ended = bed.store.ended_children(made.id, also).await.unwrap();
            ended.into_iter().map(|child| child.id).collect::<Vec<_>>()
        };
        assert_eq!(ended(&[]).await, [], "no operation waits for them");
        assert_eq!(ended(&ids[..1]).await, ids[..1]);
        let waits = Resource { operation: OperationState::MustReplace, ..rows[1].clone() };
        bed.store.commit(lease, Batch { save: vec![waits].into(), ..Batch::default() }).await.unwrap();
        assert_eq!(ended(&[]).await, ids[1..]);
        let delete = StackRequest::new(Action::Delete, at(9));
        let requests = vec![(ids[0], delete.clone()), (ids[1], delete)];
        bed.store.commit(lease, Batch { requests, ..Batch::default() }).await.unwrap();
        let asked = bed.store.stack(ids[0]).await.unwrap().unwrap();
        assert_eq!((asked.state.action, asked.generation), (Action::Delete, 2));
        assert_eq!(bed.store.stack(ids[1]).await.unwrap().unwrap().generation, 1, "what is gone is not asked");

        let old = kiln_store::Lease { epoch: 0, ..lease };
        let third = child(&made, &rows[0]);
        let batch = Batch { children: vec![third.clone()], ..Batch::default() };
        assert!(matches!(bed.store.commit(old, batch).await, Err(Error::Stale(_))));
        assert_eq!(bed.store.stack(third.id).await.unwrap(), None);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_deleted_nested_stack_is_seen_until_its_resource_is_gone() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let row = resource(made.id, "a");
        let nested = child(&made, &row);
        let batch = Batch { save: vec![row.clone()].into(), children: vec![nested.clone()], ..Batch::default() };
        bed.store.commit(lease, batch).await.unwrap();
        let inner = claim(&*bed.store, engine(), nested.id).await;
        bed.store.commit(inner, deleting(1)).await.unwrap();
        assert!(bed.store.children(made.id).await.unwrap()[0].deleted);
        // A later request: only the row shows that somebody is still waiting.
        bed.store.request(made.id, StackRequest::new(Action::Update, at(500))).await.unwrap();
        assert_eq!(bed.store.children(made.id).await.unwrap().len(), 1);
        bed.store.commit(lease, Batch { remove: vec![row.id], ..Batch::default() }).await.unwrap();
        assert!(bed.store.children(made.id).await.unwrap().is_empty());
        bed.end().await;
    }
}

#[tokio::test]
async fn trees_are_counted_and_read_at_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let row = resource(made.id, "a");
        let nested = child(&made, &row);
        bed.store
            .commit(lease, Batch { save: vec![row.clone()].into(), children: vec![nested.clone()], ..Batch::default() })
            .await
            .unwrap();
        let inner = claim(&*bed.store, engine(), nested.id).await;
        let inside = resource(nested.id, "x");
        bed.store.commit(inner, Batch { save: vec![inside.clone()].into(), ..Batch::default() }).await.unwrap();
        assert_eq!(bed.store.count_resources(made.id).await.unwrap(), 2);
        assert_eq!(bed.store.resources_of(&[made.id, nested.id]).await.unwrap(), [row, inside]);
        assert!(bed.store.resources_of(&[]).await.unwrap().is_empty());
        let query = StackQuery { parent: Some(made.id), ..StackQuery::default() };
        assert_eq!(bed.store.stacks(&query).await.unwrap().len(), 1);
        bed.end().await;
    }
}

#[tokio::test]
async fn large_batches_are_written_whole() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let rows: Vec<Resource> = (0..2_013).map(|number| resource(made.id, &format!("r{number}"))).collect();
        let events = (0..3_001).map(|number| event(&made, &format!("r{number}"), number)).collect();
        bed.store.commit(lease, Batch { save: rows.clone().into(), events, ..Batch::default() }).await.unwrap();
        let found = bed.store.resources(made.id).await.unwrap();
        assert!(found == rows, "{} rows, in order", found.len());
        let query = EventQuery { stacks: vec![made.id], ..EventQuery::default() };
        assert_eq!(bed.store.events(&query).await.unwrap().len(), 3_002);

        let heavy = "x".repeat(3 << 20);
        let rows: Vec<Resource> = (0..8)
            .map(|number| Resource { reason: heavy.clone(), ..resource(made.id, &format!("heavy{number}")) })
            .collect();
        bed.store.commit(lease, Batch { save: rows.into(), ..Batch::default() }).await.unwrap();
        assert_eq!(bed.store.count_resources(made.id).await.unwrap(), 2_021);
        let remove = found.iter().map(|row| row.id).collect();
        bed.store.commit(lease, Batch { remove, ..Batch::default() }).await.unwrap();
        assert_eq!(bed.store.count_resources(made.id).await.unwrap(), 8);
        bed.end().await;
    }
}

#[tokio::test]
async fn many_write_at_once_and_nothing_is_lost() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..6 {
            let (made, lease) = claimed(&*bed.store, &format!("s{number}")).await;
            let store = bed.another().await;
            writers.spawn(async move {
                for number in 0..15 {
                    let batch = Batch {
                        save: vec![resource(made.id, &format!("r{number}"))].into(),
                        events: vec![event(&made, "r", number)],
                        ..Batch::default()
                    };
                    store.commit(lease, batch).await.unwrap();
                    if number % 5 == 0 {
                        store.request(made.id, StackRequest::new(Action::Check, at(number))).await.unwrap();
                    }
                }
                made.id
            });
        }
        for id in writers.join_all().await {
            assert_eq!(bed.store.count_resources(id).await.unwrap(), 15);
            assert_eq!(bed.store.stack(id).await.unwrap().unwrap().generation, 4);
        }
        bed.end().await;
    }
}

/// Two transactions that lock two rows in opposite order: the database aborts one, which is retried.
#[tokio::test]
async fn a_deadlocked_transaction_is_done_again() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (parent, lease) = claimed(&*bed.store, "web").await;
        let rows = ["a", "b"].map(|name| resource(parent.id, name));
        let children: Vec<NewStack> = rows.iter().map(|row| child(&parent, row)).collect();
        let (one, two) = (children[0].id, children[1].id);
        bed.store.commit(lease, Batch { save: rows.to_vec().into(), children, ..Batch::default() }).await.unwrap();
        let (other, second) = claimed(&*bed.store, "other").await;
        let asks = |ids: [kiln_store::StackId; 2]| Batch {
            requests: ids.map(|id| (id, StackRequest::new(Action::Check, at(3)))).to_vec(),
            ..Batch::default()
        };
        let rounds = 60;
        let (left, right) = (bed.another().await, bed.another().await);
        let work = async |store: &dyn kiln_store::Store, lease, ids| {
            for _ in 0..rounds {
                store.commit(lease, asks(ids)).await.unwrap();
            }
        };
        let both = async { tokio::join!(work(&*left, lease, [one, two]), work(&*right, second, [two, one])) };
        // PostgreSQL looks for a deadlock after a second.
        tokio::time::timeout(Duration::from_mins(3), both).await.unwrap();
        for id in [one, two] {
            assert_eq!(bed.store.stack(id).await.unwrap().unwrap().generation, 1 + 2 * rounds);
        }
        assert_eq!(bed.store.stack(other.id).await.unwrap().unwrap().generation, 1);
        bed.end().await;
    }
}

/// PostgreSQL refuses a statement that writes a row twice.
#[tokio::test]
async fn a_row_that_is_saved_twice_in_a_batch_is_saved_as_it_was_last() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let rows: Vec<Resource> = ["a", "b", "c"].map(|name| resource(made.id, name)).into();
        let last = Resource { physical_id: Some("p1".to_owned()), ..rows[0].clone() };
        // So many that they are one statement.
        let save = rows.iter().chain([&last]).cloned().collect();
        bed.store.commit(lease, Batch { save, ..Batch::default() }).await.unwrap();
        assert_eq!(bed.store.resources(made.id).await.unwrap(), [last, rows[1].clone(), rows[2].clone()]);
        bed.end().await;
    }
}
