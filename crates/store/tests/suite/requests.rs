//! Creation of stacks and requests to them.

use kiln_resource::{Action, State, Status};
use kiln_store::{Batch, DesiredText, Digest, Error, EventQuery, NewStack, StackRequest};
use kiln_value::value;

use crate::bed::beds;
use crate::make::{at, child, claim, claimed, deleting, engine, event, resource, settle, settling, stack, text};

#[tokio::test]
async fn a_new_stack_is_in_progress_with_an_event() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let new = NewStack {
            tags: vec!["b".into(), "a".into()],
            timeout_mins: Some(7),
            user_project: Some("p".into()),
            adopt: None,
            ..stack("web")
        };
        let made = bed.store.create_stack(new.clone()).await.unwrap();
        assert_eq!(made.state, State::new(Action::Create, Status::InProgress));
        assert_eq!(made.reason, "Stack CREATE started");
        assert_eq!((made.generation, made.settled), (1, 0));
        assert!(made.is_pending());
        assert_eq!(bed.store.stack(new.id).await.unwrap(), Some(made.clone()));
        assert_eq!(bed.store.stack_by_name(&new.project, "web").await.unwrap(), Some(made.clone()));
        assert_eq!(bed.store.stack_by_name("other", "web").await.unwrap(), None);
        assert_eq!(bed.store.desired(&made.desired).await.unwrap(), new.desired);

        let query = EventQuery { stacks: vec![new.id], ..EventQuery::default() };
        let events = bed.store.events(&query).await.unwrap();
        let [event] = events.as_slice() else { panic!("one event, not {events:?}") };
        assert!(event.is_of_stack());
        assert_eq!(event.resource_name, "web");
        assert_eq!(event.resource_type, "OS::Heat::Stack");
        assert_eq!((event.action.as_str(), event.status), ("CREATE", Status::InProgress));
        assert_eq!(event.reason, "Stack CREATE started");
        assert_eq!(event.properties, value!({}));
        assert_eq!(event.time, at(0));
        bed.end().await;
    }
}

#[tokio::test]
async fn names_of_live_root_stacks_are_unique_in_a_project() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (first, lease) = claimed(&*bed.store, "web").await;
        let taken = bed.store.create_stack(stack("web")).await;
        assert!(matches!(taken, Err(Error::NameTaken(name)) if name == "web"));
        bed.store.create_stack(NewStack { project: "another".into(), ..stack("web") }).await.unwrap();
        bed.store.create_stack(stack("Web")).await.unwrap();

        bed.store.request(first.id, StackRequest::new(Action::Delete, at(5))).await.unwrap();
        bed.store.create_stack(stack("web")).await.expect_err("still being deleted");
        let gone = bed.store.commit(lease, deleting(2)).await.unwrap();
        assert_eq!(gone.deleted, Some(at(100)));
        let second = bed.store.create_stack(stack("web")).await.unwrap();
        assert_eq!(bed.store.stack_by_name(&first.project, "web").await.unwrap().unwrap().id, second.id);
        assert_eq!(bed.store.stack(first.id).await.unwrap(), Some(gone));
        bed.end().await;
    }
}

#[tokio::test]
async fn a_refused_stack_leaves_nothing() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        bed.store.create_stack(stack("web")).await.unwrap();
        let refused = NewStack { desired: text("only here"), ..stack("web") };
        bed.store.create_stack(refused.clone()).await.unwrap_err();
        assert_eq!(bed.store.stack(refused.id).await.unwrap(), None);
        let content = bed.store.content(&refused.desired.digests().template).await;
        assert!(matches!(content, Err(Error::NotFound(_))));
        bed.end().await;
    }
}

#[tokio::test]
async fn a_request_raises_the_generation_and_changes_what_it_names() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, _) = claimed(&*bed.store, "web").await;
        let request = StackRequest {
            desired: Some(text("v2")),
            disable_rollback: Some(false),
            timeout_mins: Some(3),
            tags: Some(vec!["x".into()]),
            if_generation: Some(1),
            ..StackRequest::new(Action::Update, at(9))
        };
        let asked = bed.store.request(made.id, request.clone()).await.unwrap();
        assert_eq!(asked.state, State::new(Action::Update, Status::InProgress));
        assert_eq!(asked.reason, "Stack UPDATE started");
        assert_eq!((asked.generation, asked.settled), (2, 0));
        assert_eq!(asked.desired, text("v2").digests());
        assert_eq!((asked.disable_rollback, asked.timeout_mins), (false, Some(3)));
        assert_eq!(asked.tags, ["x"]);
        assert_eq!((asked.created, asked.updated), (at(0), Some(at(9))));
        assert_eq!(bed.store.stack(made.id).await.unwrap(), Some(asked.clone()));

        let late = bed.store.request(made.id, request).await;
        assert!(matches!(late, Err(Error::Changed(id)) if id == made.id));
        let again = bed.store.request(made.id, StackRequest::new(Action::Check, at(10))).await.unwrap();
        assert_eq!((again.generation, &again.desired, &again.tags), (3, &asked.desired, &asked.tags));

        let query = EventQuery { stacks: vec![made.id], ..EventQuery::default() };
        let reasons: Vec<String> =
            bed.store.events(&query).await.unwrap().into_iter().map(|event| event.reason).collect();
        assert_eq!(reasons, ["Stack CREATE started", "Stack UPDATE started", "Stack CHECK started"]);
        bed.end().await;
    }
}

#[tokio::test]
async fn what_is_gone_takes_no_requests() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let nobody = bed.store.request(stack("x").id, StackRequest::new(Action::Update, at(1))).await;
        assert!(matches!(nobody, Err(Error::NotFound(_))));
        let (made, lease) = claimed(&*bed.store, "web").await;
        bed.store.commit(lease, deleting(1)).await.unwrap();
        let gone = bed.store.request(made.id, StackRequest::new(Action::Update, at(1))).await;
        assert!(matches!(gone, Err(Error::NotFound(_))));
        bed.end().await;
    }
}

#[tokio::test]
async fn texts_are_kept_whole_and_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let large = format!("{{\"a\":\"{}\"}}", "ünï\u{1F600}".repeat(120_000));
        assert!(large.len() > 1_000_000);
        let desired = DesiredText { template: large.clone(), environment: large.clone(), files: "{ }".into() };
        let first = bed.store.create_stack(NewStack { desired: desired.clone(), ..stack("one") }).await.unwrap();
        let second = bed.store.create_stack(NewStack { desired: desired.clone(), ..stack("two") }).await.unwrap();
        assert_eq!(first.desired, second.desired);
        assert_eq!(bed.store.desired(&second.desired).await.unwrap(), desired);
        assert_eq!(bed.store.content(&Digest::of(&large)).await.unwrap(), large);
        bed.end().await;
    }
}

#[tokio::test]
async fn names_are_compared_exactly() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        for name in ["a", "A", "ä", "a "] {
            bed.store.create_stack(stack(name)).await.unwrap();
        }
        for name in ["a", "A", "ä", "a "] {
            let found = bed.store.stack_by_name(crate::make::PROJECT, name).await.unwrap().unwrap();
            assert_eq!(found.name, name);
        }
        assert_eq!(bed.store.stack_by_name(crate::make::PROJECT, "Ä").await.unwrap(), None);
        bed.end().await;
    }
}

#[tokio::test]
async fn nested_stacks_take_no_names() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let parent = bed.store.create_stack(stack("web")).await.unwrap();
        let (one, two) = (resource(parent.id, "a"), resource(parent.id, "a"));
        let nested = bed.store.create_stack(child(&parent, &one)).await.unwrap();
        bed.store.create_stack(child(&parent, &two)).await.unwrap();
        assert_eq!(bed.store.stack_by_name(crate::make::PROJECT, "web-a").await.unwrap(), None);
        assert_eq!(bed.store.stack(nested.id).await.unwrap().unwrap().parent.unwrap().resource, one.id);
        bed.end().await;
    }
}

#[tokio::test]
async fn a_settled_stack_can_be_asked_again() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let done = settling(settle(1, Action::Create, Status::Complete));
        let settled = bed.store.commit(lease, done).await.unwrap();
        assert!(!settled.is_pending());
        bed.store.release(&[lease]).await.unwrap();
        assert!(bed.store.claim(engine(), crate::make::TTL, &[], 10).await.unwrap().is_empty());
        bed.store.request(made.id, StackRequest::new(Action::Update, at(5))).await.unwrap();
        let next = claim(&*bed.store, engine(), made.id).await;
        assert!(next.epoch > lease.epoch);
        bed.end().await;
    }
}

#[tokio::test]
async fn an_update_of_what_never_was_rolls_back_to_what_was_asked_first() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "v1").await;
        let update =
            |version| StackRequest { desired: Some(text(version)), ..StackRequest::new(Action::Update, at(2)) };
        assert_eq!(made.previous, None);
        let checked = bed.store.request(made.id, StackRequest::new(Action::Check, at(2))).await.unwrap();
        assert_eq!(checked.previous, None, "only an update has something to return to");
        let first = bed.store.request(made.id, update("v2")).await.unwrap();
        assert_eq!((first.desired, first.previous), (text("v2").digests(), Some(text("v1").digests())));
        let second = bed.store.request(made.id, update("v3")).await.unwrap();
        assert_eq!((second.desired, second.previous), (text("v3").digests(), Some(text("v1").digests())));
        let reached = settling(settle(4, Action::Update, Status::Complete));
        assert_eq!(bed.store.commit(lease, reached).await.unwrap().previous, Some(text("v3").digests()));
        let third = bed.store.request(made.id, update("v4")).await.unwrap();
        assert_eq!(third.previous, Some(text("v3").digests()));
        bed.end().await;
    }
}

/// Data that the database can hold is stored completely; other data is permanently rejected.
#[tokio::test]
async fn long_names_are_stored_or_refused_for_good() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let long = "ü".repeat(3_000);
        let row = resource(made.id, &long);
        let nested = child(&made, &row);
        let nested = NewStack { name: "nested".into(), username: long.clone(), ..nested };
        let event = event(&made, &long, 1);
        let batch = Batch {
            save: vec![row.clone()].into(),
            events: vec![event.clone()],
            children: vec![nested.clone()],
            ..Batch::default()
        };
        bed.store.commit(lease, batch).await.unwrap();
        assert_eq!(bed.store.resources(made.id).await.unwrap(), [row]);
        let query = EventQuery { stacks: vec![made.id], resource: Some(long.clone()), ..EventQuery::default() };
        assert_eq!(bed.store.events(&query).await.unwrap(), [event]);
        let found = bed.store.stack(nested.id).await.unwrap().unwrap();
        assert_eq!((found.parent.unwrap().resource_name, found.username), (long.clone(), long.clone()));

        let named = bed.store.create_stack(stack(&long)).await;
        let tagged = bed.store.create_stack(NewStack { tags: vec![long.clone()], ..stack("tagged") }).await;
        let request = StackRequest { tags: Some(vec![long.clone()]), ..StackRequest::new(Action::Update, at(1)) };
        let asked = bed.store.request(made.id, request).await;
        // The model in memory is as strict as the servers; SQLite does not limit the length.
        if bed.is_server() || !bed.is_sql() {
            assert!(matches!(named, Err(Error::Invalid(_))), "{named:?}");
            assert!(matches!(tagged, Err(Error::Invalid(_))), "{tagged:?}");
            assert!(matches!(asked, Err(Error::Invalid(_))), "{asked:?}");
        } else {
            assert_eq!(asked.unwrap().tags, std::slice::from_ref(&long));
            assert_eq!(named.unwrap().name, long);
            assert_eq!(tagged.unwrap().tags, [long]);
        }
        bed.store.commit(lease, Batch::default()).await.expect("nothing is left behind");
        bed.end().await;
    }
}

#[tokio::test]
async fn a_stack_is_made_once_for_each_id() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let new = stack("web");
        let made = bed.store.create_stack(new.clone()).await.unwrap();
        assert_eq!(bed.store.create_stack(new.clone()).await.unwrap(), made, "asked again, as after a lost answer");
        let asked = bed.store.request(made.id, StackRequest::new(Action::Check, at(3))).await.unwrap();
        assert_eq!(bed.store.create_stack(new).await.unwrap(), asked, "as it is");
        let query = EventQuery { stacks: vec![made.id], ..EventQuery::default() };
        assert_eq!(bed.store.events(&query).await.unwrap().len(), 2);
        bed.end().await;
    }
}
