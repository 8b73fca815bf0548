//! Encryption of values: disabled, enabled, and changed with another key.

use std::sync::Arc;

use kiln_resource::{Operation, OperationState, Phase, Running, StoredDefinition};
use kiln_store::{
    Batch, DesiredText, EventQuery, Message, MessageBody, MessageId, NewStack, Options, Resource, SqlStore, Store,
};
use kiln_value::{Map, Secret, Value, value};
use uuid::Uuid;

use crate::bed::{Bed, beds};
use crate::make::{at, claim, engine, event, resource, stack};

const FIRST: &str = "0123456789abcdef0123456789abcdef";
const SECOND: &str = "another key with thirty-two byte";
/// A text that must not appear in the database.
const HIDDEN: &str = "geheimnis";
/// The columns that may contain it, with one query for each table.
const COLUMNS: [&str; 5] = [
    "SELECT CONCAT_WS(' ', body) FROM kiln_content",
    "SELECT CONCAT_WS(' ', step, definition, metadata, data, attributes) FROM kiln_resource",
    "SELECT CONCAT_WS(' ', properties) FROM kiln_event",
    "SELECT CONCAT_WS(' ', body) FROM kiln_message",
    "SELECT CONCAT_WS(' ', envelope, plan) FROM kiln_credentials",
];

async fn open(bed: &Bed, key: &str, older: &[&str], encrypt_values: bool) -> SqlStore {
    let secret = |key: &str| Secret::new(key.to_owned());
    let older_keys = older.iter().copied().map(secret).collect();
    let options = Options { older_keys, encrypt_values, ..Options::new(bed.url(), secret(key)) };
    SqlStore::open(options).await.unwrap()
}

fn hidden() -> Map {
    [("password".into(), Value::from(HIDDEN))].into_iter().collect()
}

fn row(of: &kiln_store::Stack) -> Resource {
    let mut definition = StoredDefinition::of_type("T");
    definition.properties = hidden();
    Resource {
        operation: Running {
            operation: Operation::Create,
            definition: None,
            phase: Phase::Wait(value!({"password": HIDDEN})),
            token: "t".to_owned(),
            attempt: 1,
            requires: Vec::new(),
            afterwards: OperationState::Idle,
        }
        .into(),
        definition: Some(Arc::new(definition)),
        metadata: value!({"password": HIDDEN}),
        data: hidden(),
        attributes: hidden(),
        ..resource(of.id, "server")
    }
}

/// Stores the secret in all places for user data.
async fn fill(store: &dyn Store) -> (kiln_store::Stack, Vec<Resource>) {
    let desired = DesiredText {
        template: format!("template {HIDDEN}"),
        environment: format!("environment {HIDDEN}"),
        files: format!("files {HIDDEN}"),
    };
    let credentials = store.save_credentials(&Secret::new(HIDDEN.to_owned())).await.unwrap();
    let new = NewStack { desired, credentials: Some(credentials), ..stack("web") };
    let made = store.create_stack(new).await.unwrap();
    let lease = claim(store, engine(), made.id).await;
    let rows = vec![row(&made)];
    let told = kiln_store::Event { properties: value!({"password": HIDDEN}), ..event(&made, "server", 1) };
    let batch = Batch { save: rows.clone().into(), events: vec![told], ..Batch::default() };
    store.commit(lease, batch).await.unwrap();
    let message = Message {
        id: MessageId(Uuid::new_v4()),
        stack: made.id,
        resource: Some("server".into()),
        body: MessageBody::Signal(value!({"password": HIDDEN})),
        due: at(0),
        sent: at(0),
    };
    store.send(&message).await.unwrap();
    (made, rows)
}

/// Checks that all data is returned unchanged.
async fn reads(store: &dyn Store, made: &kiln_store::Stack, rows: &[Resource]) {
    assert_eq!(store.resources(made.id).await.unwrap(), rows);
    let desired = store.desired(&made.desired).await.unwrap();
    for text in [&desired.template, &desired.environment, &desired.files] {
        assert!(text.ends_with(HIDDEN), "{text}");
    }
    assert!(store.content(&made.desired.files).await.unwrap().ends_with(HIDDEN));
    let events = store.events(&EventQuery { stacks: vec![made.id], ..EventQuery::default() }).await.unwrap();
    let seen = events.iter().find(|event| event.resource_name == "server").unwrap();
    assert_eq!(seen.properties, value!({"password": HIDDEN}));
    let inbox = store.inbox(made.id, at(10)).await.unwrap();
    assert_eq!(inbox[0].body, MessageBody::Signal(value!({"password": HIDDEN})));
    assert_eq!(store.credentials(made.credentials.unwrap()).await.unwrap().expose(), HIDDEN);
}

/// Number of rows that contain the secret.
async fn shown(bed: &Bed) -> usize {
    let mut shown = 0;
    for query in COLUMNS {
        shown += bed.texts(query).await.iter().filter(|text| text.contains(HIDDEN)).count();
    }
    shown
}

#[tokio::test]
async fn values_are_encrypted_if_the_option_says_so() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let clear = open(&bed, FIRST, &[], false).await;
            let encrypted = open(&bed, FIRST, &[], true).await;
            let (made, rows) = fill(&encrypted).await;
            assert_eq!(shown(&bed).await, 0);
            reads(&encrypted, &made, &rows).await;
            reads(&clear, &made, &rows).await;

            assert_eq!(clear.reencrypt().await.unwrap(), 7, "three texts, a resource, two events and a message");
            assert_eq!(shown(&bed).await, 6);
            reads(&clear, &made, &rows).await;
            reads(&encrypted, &made, &rows).await;
            assert_eq!(clear.reencrypt().await.unwrap(), 0);
            assert_eq!(encrypted.reencrypt().await.unwrap(), 7);
            assert_eq!(shown(&bed).await, 0);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn after_a_change_of_the_key_the_old_one_is_needed_no_more() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            for (values, written) in [(false, 2), (true, 8)] {
                let (made, rows) = fill(&open(&bed, FIRST, &[], values).await).await;
                let turned = open(&bed, SECOND, &[FIRST], values).await;
                reads(&turned, &made, &rows).await;
                assert_eq!(turned.reencrypt().await.unwrap(), written);
                reads(&open(&bed, SECOND, &[], values).await, &made, &rows).await;
                open(&bed, FIRST, &[], values).await.resources(made.id).await.unwrap_err();
                bed.execute("DELETE FROM kiln_stack").await;
                for table in ["content", "resource", "event", "message", "credentials", "lease"] {
                    bed.execute(&format!("DELETE FROM kiln_{table}")).await;
                }
            }
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn the_file_of_sqlite_keeps_no_former_texts() {
    let folder = std::env::temp_dir().join(format!("kiln-former-texts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("stacks.db");
    let open = |encrypt_values| {
        let url = format!("sqlite://{}?mode=rwc", file.display());
        SqlStore::open(Options { encrypt_values, ..Options::new(url, Secret::new(FIRST.to_owned())) })
    };
    let store = open(false).await.unwrap();
    store.migrate().await.unwrap();
    fill(&store).await;
    let contains = || {
        let files = ["stacks.db", "stacks.db-wal"].map(|name| std::fs::read(folder.join(name)).unwrap_or_default());
        files.iter().any(|bytes| bytes.windows(HIDDEN.len()).any(|text| text == HIDDEN.as_bytes()))
    };
    assert!(contains());
    open(true).await.unwrap().reencrypt().await.unwrap();
    assert!(!contains());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A user's text that looks like encrypted data does not make the stack unreadable.
#[tokio::test]
async fn a_text_that_looks_encrypted_comes_back() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let desired = DesiredText { template: "k1:00000000:AAAA".to_owned(), ..stack("web").desired };
        let made = bed.store.create_stack(NewStack { desired, ..stack("web") }).await.unwrap();
        assert_eq!(bed.store.desired(&made.desired).await.unwrap().template, "k1:00000000:AAAA");
        bed.end().await;
    }
}
