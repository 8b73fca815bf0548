//! Requests with an idempotency key, and settings of all processes.

use std::sync::Arc;

use kiln_store::{AnswerStore as _, KeyedRequest, SqlStore};
use kiln_value::Secret;

use crate::bed::{beds, options};

fn keyed(request: &str) -> KeyedRequest {
    KeyedRequest { id: "key".to_owned(), body: "body".to_owned(), request: request.to_owned() }
}

#[tokio::test]
async fn one_of_many_requests_with_a_key_begins() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let store = Arc::new(SqlStore::open(options(bed.url())).await.unwrap());
            let names: Vec<String> = (0..8).map(|number| format!("req-{number}")).collect();
            let requests: Vec<KeyedRequest> = names.iter().map(|name| keyed(name)).collect();
            let tasks: Vec<_> = requests
                .iter()
                .map(|request| {
                    let (store, request) = (Arc::clone(&store), request.clone());
                    tokio::spawn(async move { store.begin_keyed(&request).await.unwrap() })
                })
                .collect();
            let mut begun = Vec::new();
            for task in tasks {
                begun.push(task.await.unwrap());
            }
            let first = begun.iter().position(Option::is_none).unwrap();
            assert_eq!(begun.iter().filter(|earlier| earlier.is_none()).count(), 1);
            let (winner, other) = (&requests[first], &requests[(first + 1) % 8]);
            // A repetition after a lost response begins too.
            assert_eq!(store.begin_keyed(winner).await.unwrap(), None);
            let earlier = store.begin_keyed(other).await.unwrap().unwrap();
            assert_eq!(
                (&earlier.request, &earlier.body, &earlier.answer),
                (&winner.request, &"body".to_owned(), &None)
            );
            assert!(earlier.age.as_secs() < 60);
            // The request that was replaced stores no answer.
            assert!(store.take_over_keyed(other, &winner.request).await.unwrap());
            assert!(!store.take_over_keyed(&keyed("req-late"), &winner.request).await.unwrap());
            store.answer_keyed(winner, "of the replaced").await.unwrap();
            store.forget_keyed(winner).await.unwrap();
            store.answer_keyed(other, "pässwörd").await.unwrap();
            let answered = store.begin_keyed(winner).await.unwrap().unwrap();
            assert_eq!(answered.answer.as_deref(), Some("pässwörd"));
            assert!(!store.take_over_keyed(winner, &other.request).await.unwrap(), "it has an answer");
            // It is not readable in the database.
            let stored = bed.texts("SELECT answer FROM kiln_answer").await;
            assert!(stored[0].starts_with("k1:") && !stored[0].contains("pässwörd"), "{stored:?}");
            store.forget_keyed(other).await.unwrap();
            assert_eq!(store.begin_keyed(winner).await.unwrap(), None);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn settings_are_shared_and_the_key_is_noted_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let store = SqlStore::open(options(bed.url())).await.unwrap();
            assert_eq!(store.setting("text").await.unwrap(), None);
            store.set("text", Some("one ä")).await.unwrap();
            store.set("text", Some("two")).await.unwrap();
            let other = SqlStore::open(options(bed.url())).await.unwrap();
            assert_eq!(other.setting("text").await.unwrap().as_deref(), Some("two"));
            other.set("text", None).await.unwrap();
            other.set("text", None).await.unwrap();
            assert_eq!(store.setting("text").await.unwrap(), None);
            assert_eq!((store.note_key().await.unwrap(), other.note_key().await.unwrap()), (None, None));
            let own = options(bed.url());
            let mut new = options(bed.url());
            new.key = Secret::new("another key another key another!".to_owned());
            let stranger = SqlStore::open(new.clone()).await.unwrap();
            let noted = stranger.note_key().await.unwrap().unwrap();
            assert_eq!(stranger.note_key().await.unwrap(), Some(noted), "it does not become the noted one");
            // The key is changed: both are known until all is encrypted again.
            new.older_keys = vec![own.key];
            let changed = SqlStore::open(new).await.unwrap();
            assert_eq!(changed.note_key().await.unwrap(), None);
            changed.reencrypt().await.unwrap();
            assert!(store.note_key().await.unwrap().is_some() && stranger.note_key().await.unwrap().is_none());
        }
        bed.end().await;
    }
}
