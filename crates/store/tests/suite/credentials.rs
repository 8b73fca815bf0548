//! Credentials: planned, known, attached, unused.

use std::time::Duration;

use kiln_resource::Action;
use kiln_store::{
    Batch, CredentialsId, Error, NewStack, Options, SqlStore, StackQuery, StackRequest, Store, UnusedUserProject,
};
use kiln_value::Secret;
use uuid::Uuid;

use crate::bed::{Bed, beds};
use crate::make::{at, child, claim, deleting, engine, resource, stack};

const HOUR: Duration = Duration::from_hours(1);

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

async fn unused(bed: &Bed, older_than: Duration) -> Vec<CredentialsId> {
    let found = bed.store.unused_credentials(older_than, 100).await.unwrap();
    found.iter().map(|credentials| credentials.id).collect()
}

#[tokio::test]
async fn credentials_are_kept_and_forgotten() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let secret = Secret::new("{\"trust\":\"t\u{f6}p\"}".to_owned());
        let id = bed.store.save_credentials(&secret).await.unwrap();
        assert_eq!(bed.store.credentials(id).await.unwrap(), secret);
        let new = NewStack { credentials: Some(id), ..stack("web") };
        let made = bed.store.create_stack(new).await.unwrap();
        assert_eq!(bed.store.stack(made.id).await.unwrap().unwrap().credentials, Some(id));
        let other = bed.store.save_credentials(&secret).await.unwrap();
        let request = StackRequest { credentials: Some(other), ..StackRequest::new(Action::Update, at(1)) };
        assert_eq!(bed.store.request(made.id, request).await.unwrap().credentials, Some(other));

        if bed.is_shared() {
            let key = Secret::new("another key with thirty-two byte".to_owned());
            let stranger = SqlStore::open(Options::new(bed.url(), key)).await.unwrap();
            assert!(matches!(stranger.credentials(id).await, Err(Error::Damaged(_))));
            let moved = format!("UPDATE kiln_credentials SET id = '{}' WHERE id = '{other}'", Uuid::nil());
            bed.execute(&moved).await;
            let moved = bed.store.credentials(CredentialsId(Uuid::nil())).await;
            assert!(matches!(moved, Err(Error::Damaged(_))));
        }
        bed.store.delete_credentials(id).await.unwrap();
        assert!(matches!(bed.store.credentials(id).await, Err(Error::NotFound(_))));
        bed.end().await;
    }
}

#[tokio::test]
async fn planned_credentials_are_found_until_they_are_used() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let id = bed.store.plan_credentials(&secret("{\"mark\": \"m\u{fc}\"}")).await.unwrap();
        assert!(matches!(bed.store.credentials(id).await, Err(Error::NotFound(_))), "not known yet");
        assert!(unused(&bed, HOUR).await.is_empty(), "not yet forgotten by anybody");
        let found = bed.store.unused_credentials(Duration::ZERO, 100).await.unwrap();
        let [planned] = found.as_slice() else { panic!("one, not {found:?}") };
        assert_eq!((planned.id, planned.plan.expose().as_str()), (id, "{\"mark\": \"m\u{fc}\"}"));
        assert_eq!(planned.credentials, None);

        bed.store.keep_credentials(id, &secret("{\"trust\": 1}")).await.unwrap();
        assert_eq!(bed.store.credentials(id).await.unwrap(), secret("{\"trust\": 1}"));
        let known = bed.store.unused_credentials(Duration::ZERO, 100).await.unwrap();
        assert_eq!(known[0].credentials, Some(secret("{\"trust\": 1}")));
        assert_eq!(known[0].plan.expose(), "{\"mark\": \"m\u{fc}\"}");

        bed.store.create_stack(NewStack { credentials: Some(id), ..stack("web") }).await.unwrap();
        assert!(unused(&bed, Duration::ZERO).await.is_empty());
        let second = bed.store.plan_credentials(&secret("{}")).await.unwrap();
        let third = bed.store.save_credentials(&secret("{}")).await.unwrap();
        assert_eq!(unused(&bed, Duration::ZERO).await.len(), 2);
        assert_eq!(bed.store.unused_credentials(Duration::ZERO, 1).await.unwrap().len(), 1);
        bed.store.delete_credentials(second).await.unwrap();
        assert_eq!(unused(&bed, Duration::ZERO).await, [third]);
        let late = bed.store.keep_credentials(second, &secret("{}")).await;
        assert!(matches!(late, Err(Error::NotFound(_))), "given up meanwhile");
        bed.end().await;
    }
}

#[tokio::test]
async fn credentials_of_a_deleted_stack_are_unused_at_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let id = bed.store.save_credentials(&secret("{}")).await.unwrap();
        let made = bed.store.create_stack(NewStack { credentials: Some(id), ..stack("web") }).await.unwrap();
        let lease = claim(&*bed.store, engine(), made.id).await;
        bed.store.request(made.id, StackRequest::new(Action::Delete, at(1))).await.unwrap();
        assert!(unused(&bed, Duration::ZERO).await.is_empty(), "its deletion needs them");
        bed.store.commit(lease, deleting(2)).await.unwrap();
        assert_eq!(unused(&bed, HOUR).await, [id]);
        bed.end().await;
    }
}

#[tokio::test]
async fn replaced_credentials_are_unused_after_a_while() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let old = bed.store.save_credentials(&secret("{}")).await.unwrap();
        let made = bed.store.create_stack(NewStack { credentials: Some(old), ..stack("web") }).await.unwrap();
        let new = bed.store.save_credentials(&secret("{}")).await.unwrap();
        if bed.is_shared() {
            bed.execute("UPDATE kiln_credentials SET created = 0, touched = 0").await;
        }
        let update = |id| StackRequest { credentials: Some(id), ..StackRequest::new(Action::Update, at(1)) };
        bed.store.request(made.id, update(new)).await.unwrap();
        assert_eq!(unused(&bed, Duration::ZERO).await, [old]);
        assert!(unused(&bed, HOUR).await.is_empty(), "an engine may be using them");
        bed.store.request(made.id, update(new)).await.unwrap();
        assert_eq!(unused(&bed, Duration::ZERO).await, [old]);
        bed.end().await;
    }
}

#[tokio::test]
async fn credentials_that_are_gone_cannot_be_attached() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let gone = bed.store.save_credentials(&secret("{}")).await.unwrap();
        bed.store.delete_credentials(gone).await.unwrap();
        let refused = bed.store.create_stack(NewStack { credentials: Some(gone), ..stack("web") }).await;
        assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
        let made = bed.store.create_stack(stack("web")).await.unwrap();
        let update = StackRequest { credentials: Some(gone), ..StackRequest::new(Action::Update, at(1)) };
        assert!(matches!(bed.store.request(made.id, update).await, Err(Error::NotFound(_))));
        assert_eq!(bed.store.stack(made.id).await.unwrap(), Some(made));
        bed.end().await;
    }
}

/// A new stack can get the credentials of a deleted one until they are reserved for the revocation.
#[tokio::test]
async fn shared_credentials_are_unused_after_the_last_stack() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let id = bed.store.save_credentials(&secret("{}")).await.unwrap();
        let new = |name| NewStack { credentials: Some(id), ..stack(name) };
        let mut made = Vec::new();
        for name in ["one", "two"] {
            let stack = bed.store.create_stack(new(name)).await.unwrap();
            made.push((claim(&*bed.store, engine(), stack.id).await, stack));
        }
        bed.store.commit(made[0].0, deleting(1)).await.unwrap();
        assert!(unused(&bed, Duration::ZERO).await.is_empty(), "the other one needs them");
        bed.store.commit(made[1].0, deleting(1)).await.unwrap();
        let listed = bed.store.unused_credentials(HOUR, 100).await.unwrap();
        assert_eq!(listed.len(), 1);
        let third = bed.store.create_stack(new("three")).await.unwrap();
        assert!(!bed.store.retire_credentials(&listed[0]).await.unwrap(), "a stack has got them");
        let lease = claim(&*bed.store, engine(), third.id).await;
        bed.store.commit(lease, deleting(1)).await.unwrap();
        assert!(!bed.store.retire_credentials(&listed[0]).await.unwrap(), "and was deleted, after the list");

        let listed = bed.store.unused_credentials(HOUR, 100).await.unwrap();
        for _ in 0..2 {
            assert!(bed.store.retire_credentials(&listed[0]).await.unwrap());
        }
        let late = bed.store.create_stack(new("four")).await;
        assert!(matches!(late, Err(Error::NotFound(_))), "{late:?}");
        assert!(matches!(bed.store.keep_credentials(id, &secret("{}")).await, Err(Error::NotFound(_))));
        assert_eq!(unused(&bed, HOUR).await, [id], "until the trust is deleted");
        bed.end().await;
    }
}

/// The project of a stack's users is found once the tree of the stack is deleted, until it is forgotten.
#[tokio::test]
async fn user_projects_are_found_after_their_stacks() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let id = bed.store.save_credentials(&secret("{}")).await.unwrap();
        let new = NewStack { credentials: Some(id), ..stack("web") };
        let root = bed.store.create_stack(new).await.unwrap();
        let lease = claim(&*bed.store, engine(), root.id).await;
        let row = resource(root.id, "inner");
        let inner = child(&root, &row);
        let batch = Batch { children: vec![inner.clone()], save: vec![row].into(), ..Batch::default() };
        assert_eq!(bed.store.commit(lease, batch).await.unwrap().user_project, None);
        let made = |project: &str| Batch { user_project: Some(project.to_owned()), ..Batch::default() };
        let inner_lease = claim(&*bed.store, engine(), inner.id).await;
        let changed = bed.store.commit(inner_lease, made("p\u{fc}1")).await.unwrap();
        assert_eq!(changed.user_project.as_deref(), Some("p\u{fc}1"));
        assert_eq!(bed.store.stack(root.id).await.unwrap().unwrap().user_project, None);
        let of_users = |project: &str| StackQuery {
            user_project: Some(project.to_owned()),
            names: vec![inner.name.clone()],
            nested: true,
            ..StackQuery::default()
        };
        assert_eq!(bed.store.stacks(&of_users("p\u{fc}1")).await.unwrap(), [changed]);
        assert_eq!(bed.store.stacks(&of_users("p2")).await.unwrap(), []);
        let projects = async || bed.store.unused_user_projects(100).await.unwrap();
        assert_eq!(projects().await, [], "in use");
        bed.store.commit(inner_lease, deleting(1)).await.unwrap();
        assert_eq!(projects().await, [], "the root is in use");
        bed.store.commit(lease, deleting(1)).await.unwrap();
        let project = "p\u{fc}1".to_owned();
        assert_eq!(projects().await, [UnusedUserProject { stack: inner.id, project }]);
        assert!(bed.store.unused_user_projects(0).await.unwrap().is_empty());
        bed.store.forget_user_project(inner.id).await.unwrap();
        assert_eq!(projects().await, []);
        bed.end().await;
    }
}
