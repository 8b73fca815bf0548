//! Lists of stacks and events: filters, sorting, paging.

use kiln_resource::{Action, OperationId, Status};
use kiln_store::{
    Batch, Census, Error, Event, EventQuery, NewStack, Sort, SortKey, Stack, StackQuery, StackRequest, StackSummary,
};

use crate::bed::{Bed, beds};
use crate::make::{at, child, claim, claimed, deleting, engine, event, resource, settle, settling, stack};

async fn names(bed: &Bed, query: StackQuery) -> Vec<String> {
    let listed = bed.store.stacks(&query).await.unwrap();
    if query.limit.is_none() && query.marker.is_none() {
        assert_eq!(bed.store.count_stacks(&query).await.unwrap(), listed.len() as u64);
    }
    let summaries: Vec<StackSummary> = listed.iter().cloned().map(Into::into).collect();
    assert_eq!(bed.store.stack_summaries(&query).await.unwrap(), summaries);
    listed.into_iter().map(|stack| stack.name).collect()
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// a: complete; b: failed; c and d: in progress, d being checked; e in another project.
async fn some_stacks(bed: &Bed) -> Vec<Stack> {
    let mut made = Vec::new();
    for (name, second, tags) in
        [("a", 10, &["x", "y"][..]), ("b", 20, &["x"]), ("c", 30, &["y", "ü"]), ("d", 40, &[]), ("e", 50, &["x"])]
    {
        let project = if name == "e" { "other" } else { crate::make::PROJECT };
        let username = if name == "c" { "carol" } else { "demo" };
        let new = NewStack {
            now: at(second),
            tags: texts(tags),
            project: project.into(),
            username: username.into(),
            ..stack(name)
        };
        made.push(bed.store.create_stack(new).await.unwrap());
    }
    for (index, status) in [(0, Status::Complete), (1, Status::Failed)] {
        let lease = claim(&*bed.store, engine(), made[index].id).await;
        bed.store.commit(lease, settling(settle(1, Action::Create, status))).await.unwrap();
    }
    bed.store.request(made[3].id, StackRequest::new(Action::Check, at(60))).await.unwrap();
    made
}

fn of_project() -> StackQuery {
    StackQuery { project: Some(crate::make::PROJECT.into()), ..StackQuery::default() }
}

#[tokio::test]
async fn filters_of_stacks() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let made = some_stacks(&bed).await;
        assert_eq!(names(&bed, of_project()).await, ["d", "c", "b", "a"]);
        assert_eq!(names(&bed, StackQuery::default()).await, ["e", "d", "c", "b", "a"]);
        let cases: [(StackQuery, &[&str]); 18] = [
            (StackQuery { ids: vec![made[0].id, made[2].id], ..of_project() }, &["c", "a"]),
            (StackQuery { names: texts(&["a", "b", "nobody"]), ..of_project() }, &["b", "a"]),
            (StackQuery { statuses: texts(&["COMPLETE"]), ..of_project() }, &["a"]),
            (StackQuery { statuses: texts(&["CREATE_FAILED", "COMPLETE"]), ..of_project() }, &["b", "a"]),
            (StackQuery { statuses: texts(&["CREATE_IN_PROGRESS"]), ..of_project() }, &["c"]),
            (StackQuery { statuses: texts(&["IN_PROGRESS"]), ..of_project() }, &["d", "c"]),
            (StackQuery { statuses: texts(&["NONSENSE", "UPDATE_FAILED"]), ..of_project() }, &[]),
            (StackQuery { actions: texts(&["CHECK"]), ..of_project() }, &["d"]),
            (StackQuery { usernames: texts(&["carol"]), ..of_project() }, &["c"]),
            (StackQuery { tags: texts(&["x"]), ..of_project() }, &["b", "a"]),
            (StackQuery { tags: texts(&["x", "y"]), ..of_project() }, &["a"]),
            (StackQuery { tags_any: texts(&["x", "ü"]), ..of_project() }, &["c", "b", "a"]),
            (StackQuery { not_tags: texts(&["x", "y"]), ..of_project() }, &["d", "c", "b"]),
            (StackQuery { not_tags_any: texts(&["x", "ü"]), ..of_project() }, &["d"]),
            (StackQuery { tags: texts(&["X"]), ..of_project() }, &[]),
            (StackQuery { names: texts(&["A"]), ..of_project() }, &[]),
            (StackQuery { tags: texts(&["x"]), statuses: texts(&["FAILED"]), ..of_project() }, &["b"]),
            (StackQuery { project: Some("none".into()), ..StackQuery::default() }, &[]),
        ];
        for (query, expected) in cases {
            assert_eq!(names(&bed, query.clone()).await, expected, "{query:?}");
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn changed_tags_are_the_ones_that_filter() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let made = bed.store.create_stack(NewStack { tags: texts(&["a", "b"]), ..stack("web") }).await.unwrap();
        let request = StackRequest { tags: Some(texts(&["b", "c"])), ..StackRequest::new(Action::Update, at(1)) };
        assert_eq!(bed.store.request(made.id, request).await.unwrap().tags, ["b", "c"]);
        assert!(names(&bed, StackQuery { tags: texts(&["a"]), ..of_project() }).await.is_empty());
        assert_eq!(names(&bed, StackQuery { tags: texts(&["b", "c"]), ..of_project() }).await, ["web"]);
        let request = StackRequest { tags: Some(Vec::new()), ..StackRequest::new(Action::Update, at(2)) };
        assert!(bed.store.request(made.id, request).await.unwrap().tags.is_empty());
        assert!(names(&bed, StackQuery { tags_any: texts(&["b", "c"]), ..of_project() }).await.is_empty());
        bed.end().await;
    }
}

#[tokio::test]
async fn nested_and_deleted_stacks_are_listed_when_asked_for() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let row = resource(made.id, "a");
        let batch = Batch { children: vec![child(&made, &row)], save: vec![row].into(), ..Batch::default() };
        bed.store.commit(lease, batch).await.unwrap();
        assert_eq!(names(&bed, of_project()).await, ["web"]);
        let mut all = names(&bed, StackQuery { nested: true, ..of_project() }).await;
        all.sort();
        assert_eq!(all, ["web", "web-a"]);
        bed.store.commit(lease, deleting(1)).await.unwrap();
        assert!(names(&bed, of_project()).await.is_empty());
        assert_eq!(names(&bed, StackQuery { deleted: true, ..of_project() }).await, ["web"]);
        bed.end().await;
    }
}

#[tokio::test]
async fn stacks_are_sorted_and_paged() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        some_stacks(&bed).await;
        let by = |keys: &[SortKey], descending| StackQuery {
            sort: Some(Sort { keys: keys.to_vec(), descending }),
            ..of_project()
        };
        assert_eq!(names(&bed, by(&[SortKey::Name], false)).await, ["a", "b", "c", "d"]);
        assert_eq!(names(&bed, by(&[SortKey::Name], true)).await, ["d", "c", "b", "a"]);
        assert_eq!(names(&bed, by(&[SortKey::Created], false)).await, ["a", "b", "c", "d"]);
        assert_eq!(names(&bed, by(&[], false)).await, ["d", "c", "b", "a"], "no key: newest first");
        assert_eq!(names(&bed, by(&[SortKey::Updated, SortKey::Name], false)).await, ["a", "b", "c", "d"]);
        assert_eq!(names(&bed, by(&[SortKey::Status, SortKey::Name], false)).await, ["a", "b", "c", "d"]);
        assert_eq!(names(&bed, by(&[SortKey::Status, SortKey::Name], true)).await, ["d", "c", "b", "a"]);

        for query in [
            of_project(),
            by(&[SortKey::Name], true),
            by(&[SortKey::Status], false),
            by(&[SortKey::Status], true),
            by(&[SortKey::Updated, SortKey::Status], true),
            by(&[SortKey::Updated], false),
        ] {
            let whole = bed.store.stacks(&query).await.unwrap();
            let mut pages = Vec::new();
            let mut marker = None;
            loop {
                let query = StackQuery { marker, limit: Some(1), ..query.clone() };
                let page = bed.store.stacks(&query).await.unwrap();
                let Some(last) = page.last() else { break };
                marker = Some(last.id);
                pages.extend(page);
            }
            assert_eq!(pages, whole, "{query:?}");
        }
        let lost = StackQuery { marker: Some(stack("x").id), ..of_project() };
        assert!(matches!(bed.store.stacks(&lost).await, Err(Error::NotFound(_))));
        bed.end().await;
    }
}

#[tokio::test]
async fn events_are_filtered_and_paged() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, lease) = claimed(&*bed.store, "web").await;
        let (other, _) = claimed(&*bed.store, "other").await;
        let signal = Event { action: "SIGNAL".into(), ..event(&made, "b", 3) };
        let failed = Event { status: Status::Failed, resource_type: "OS::Nova::Server".into(), ..event(&made, "c", 2) };
        let failed = Event { operation: Some(OperationId(uuid::Uuid::from_u128(7))), ..failed };
        let events = vec![event(&made, "a", 1), signal.clone(), failed.clone(), event(&made, "a", 1)];
        bed.store.commit(lease, Batch { events: events.clone(), ..Batch::default() }).await.unwrap();

        let (of_signal, of_failed) = (std::slice::from_ref(&signal), std::slice::from_ref(&failed));
        let of_stack = || EventQuery { stacks: vec![made.id], ..EventQuery::default() };
        let list = async |query: EventQuery| bed.store.events(&query).await.unwrap();
        let all = list(of_stack()).await;
        assert_eq!(all[1..], events, "in the order of writing");
        assert_eq!(
            list(EventQuery { descending: true, limit: Some(2), ..of_stack() }).await,
            [events[3].clone(), failed.clone()]
        );
        assert_eq!(list(EventQuery { resource: Some("a".into()), ..of_stack() }).await.len(), 2);
        assert_eq!(list(EventQuery { actions: texts(&["SIGNAL"]), ..of_stack() }).await, of_signal);
        assert_eq!(list(EventQuery { statuses: texts(&["FAILED"]), ..of_stack() }).await, of_failed);
        assert_eq!(list(EventQuery { operation: failed.operation, ..of_stack() }).await, of_failed);
        assert_eq!(list(EventQuery { types: texts(&["OS::Nova::Server"]), ..of_stack() }).await, of_failed);
        assert_eq!(list(EventQuery { ids: vec![signal.id.to_string()], ..of_stack() }).await, of_signal);
        assert_eq!(list(EventQuery { stacks: vec![made.id, other.id], ..EventQuery::default() }).await.len(), 6);
        assert!(list(EventQuery::default()).await.is_empty(), "of no stack");
        assert_eq!(list(EventQuery { marker: Some(signal.id), ..of_stack() }).await, events[2..]);
        let before = EventQuery { marker: Some(signal.id), descending: true, ..of_stack() };
        assert_eq!(list(before).await, [events[0].clone(), all[0].clone()]);
        let unknown = EventQuery { marker: Some(event(&made, "x", 1).id), ..of_stack() };
        assert!(matches!(bed.store.events(&unknown).await, Err(Error::NotFound(_))));

        assert_eq!(bed.store.event(made.id, failed.id).await.unwrap(), Some(failed.clone()));
        assert_eq!(bed.store.event(other.id, failed.id).await.unwrap(), None);
        bed.end().await;
    }
}

/// What the metrics count, and the events of trees and projects.
#[tokio::test]
async fn everything_is_counted() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        assert_eq!(bed.store.census().await.unwrap(), Census::default());
        let (made, lease) = claimed(&*bed.store, "web").await;
        let row = resource(made.id, "a");
        let nested = child(&made, &row);
        let batch = Batch { save: vec![row].into(), children: vec![nested.clone()], ..Batch::default() };
        bed.store.commit(lease, batch).await.unwrap();
        bed.store.create_stack(stack("other")).await.unwrap();
        let census = bed.store.census().await.unwrap();
        assert_eq!(census.stacks, [("CREATE".to_owned(), "IN_PROGRESS".to_owned(), 3)]);
        assert_eq!((census.leases, census.pending), (1, 3));
        assert!(census.oldest.is_some_and(|micros| micros < 60_000_000), "{census:?}");

        let stacks = async |query| {
            let events = bed.store.events(&query).await.unwrap();
            events.iter().map(|event| event.stack).collect::<Vec<_>>()
        };
        let tree = EventQuery { root: Some(made.id), ..EventQuery::default() };
        assert_eq!(stacks(tree).await, [made.id, nested.id]);
        let project = |name: &str| EventQuery { project: Some(name.to_owned()), ..EventQuery::default() };
        assert_eq!(stacks(project(&made.project)).await.len(), 3);
        assert!(stacks(project("nobody")).await.is_empty());
        let of_tree = StackQuery { root: Some(made.id), nested: true, ..StackQuery::default() };
        assert_eq!(bed.store.count_stacks(&of_tree).await.unwrap(), 2);
        bed.end().await;
    }
}
