//! Guards: engines know them, and programs that do not know them cannot start.

use std::collections::BTreeSet;

use kiln_resource::{GuardRule, Verb};
use kiln_store::{
    Author, Batch, Guard, GuardId, GuardStore as _, GuardTerms, Retention, SqlStore, StackId, StackRequest,
};
use uuid::Uuid;

use crate::bed::{beds, options};
use crate::make::{PROJECT, at, claimed, deleting};

pub(crate) fn author() -> Author {
    Author { user_id: "u1".to_owned(), username: "Jürgen".to_owned() }
}

pub(crate) fn guard(stack: Option<StackId>) -> Guard {
    let from = BTreeSet::from([Verb::Delete]);
    let rule = GuardRule::Protect { from, resources: Some("größe/*".to_owned()), lock: true };
    let terms = GuardTerms { rule, until: Some(at(99)), reason: "the yearly report".to_owned() };
    let (id, project) = (GuardId(Uuid::new_v4()), PROJECT.to_owned());
    Guard { id, project, stack, terms, author: author(), created: at(1) }
}

#[tokio::test]
async fn an_engine_sees_with_each_commit_that_the_guards_have_changed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (stack, lease) = claimed(store, "web").await;
        assert_eq!((stack.guards, store.room(PROJECT, "x", false).await.unwrap().guards), (0, 0));
        let (first, second) = (guard(None), guard(Some(stack.id)));
        let mut seen = vec![0];
        for step in 0..5 {
            match step {
                0 => store.add_guard(&first).await.unwrap(),
                1 => store.add_guard(&second).await.unwrap(),
                2 => assert!(store.lift_guard(PROJECT, second.id, &author()).await.unwrap()),
                3 => store.add_guard(&guard(None)).await.unwrap(),
                _ => store.add_guard(&guard(Some(stack.id))).await.unwrap(),
            }
            let committed = store.commit(lease, Batch::default()).await.unwrap();
            assert_eq!(store.stack(stack.id).await.unwrap().unwrap().guards, committed.guards);
            assert_eq!(store.room(PROJECT, "web", true).await.unwrap().guards, committed.guards);
            assert!(!seen.contains(&committed.guards), "step {step}: {seen:?}");
            seen.push(committed.guards);
        }
        // The lost answer of an add.
        store.add_guard(&first).await.unwrap();
        assert_eq!(store.stack(stack.id).await.unwrap().unwrap().guards, seen[5]);
        let room = store.room(PROJECT, "web", true).await.unwrap();
        assert!(room.is_taken && room.stacks == 1 && !store.room(PROJECT, "other", false).await.unwrap().is_taken);
        bed.end().await;
    }
}

#[tokio::test]
async fn guards_are_listed_until_they_are_lifted_or_their_stack_is_purged() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (stack, lease) = claimed(store, "web").await;
        let (first, second) = (guard(None), guard(Some(stack.id)));
        store.add_guard(&first).await.unwrap();
        store.add_guard(&second).await.unwrap();
        assert_eq!(store.guards(PROJECT).await.unwrap(), [first.clone(), second.clone()]);
        assert_eq!(store.guards("other").await.unwrap(), []);
        assert!(!store.lift_guard("other", first.id, &author()).await.unwrap());
        assert!(store.lift_guard(PROJECT, first.id, &author()).await.unwrap());
        assert!(!store.lift_guard(PROJECT, first.id, &author()).await.unwrap(), "it is lifted");
        assert_eq!(store.guards(PROJECT).await.unwrap(), [second]);

        store.request(stack.id, StackRequest::delete(&stack, at(2))).await.unwrap();
        store.commit(lease, deleting(2)).await.unwrap();
        let all = Retention { deleted_before: at(1_000_000_000), operations: 0 };
        while store.forget(&all).await.unwrap() > 0 {}
        assert_eq!(store.guards(PROJECT).await.unwrap(), []);
        bed.end().await;
    }
}

/// A program of the release before would delete what is protected.
#[tokio::test]
async fn while_there_are_guards_programs_that_do_not_know_them_cannot_use_the_database() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_shared() {
            continue;
        }
        let store = SqlStore::open(options(bed.url())).await.unwrap();
        let floor = async || store.schema_versions().await.unwrap().floor;
        let before = floor().await;
        let (first, second) = (guard(None), guard(None));
        store.add_guard(&first).await.unwrap();
        store.add_guard(&second).await.unwrap();
        assert_eq!(floor().await, 16);
        store.lift_guard(PROJECT, first.id, &author()).await.unwrap();
        assert_eq!(floor().await, 16);
        store.lift_guard(PROJECT, second.id, &author()).await.unwrap();
        assert_eq!(floor().await, before);
        drop(store);
        bed.end().await;
    }
}
