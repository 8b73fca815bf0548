//! The store in a SQL database: SQLite, PostgreSQL, MariaDB or MySQL.
//!
//! There is one file for each family of use cases; the differences between databases are in `dialect`. Times are
//! microseconds since 1970, data is JSON in text columns, and IDs are strings. Every use case is one transaction, which
//! is retried after a conflict with another one.

mod administration;
mod answers;
mod calls;
mod claims;
mod columns;
mod commit;
mod connection;
mod connection_url;
mod credentials;
mod default_file;
mod dialect;
mod drift;
mod durations;
mod engine_lock;
mod events;
mod foreign;
mod guards;
mod heat_fence;
mod heat_writing;
mod housekeeping;
mod inbox;
mod leases;
mod listing;
mod migrations;
mod operations;
mod options;
mod orphans;
mod outbox;
mod packet;
mod plans;
mod pool;
mod pulse;
mod quotas;
mod reading;
mod reencryption;
mod refactor;
mod requests;
mod row;
mod rows;
mod schema;
mod secrets;
mod settings;
mod shared_reads;
mod simulation;
mod snapshots;
mod software;
mod statement_retry;
mod take_over;
mod tls;
mod webhooks;
mod wires;
mod worksheets;
mod writing;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_value::Secret;
use sea_orm::{ConnectionTrait, DbBackend};

use self::calls::Calls;
use self::columns::Columns;
use self::connection::Place;
use self::dialect::Dialect;
use self::packet::Packet;
use self::pool::{Pool, Transaction};
use self::row::Row as _;
use self::secrets::Vault;
use self::shared_reads::SharedReads;
use self::simulation::Outside;
use self::statement_retry::{Fault, Losses, PATIENCE, REQUEST_PATIENCE};
use self::wires::Wires;
use crate::doorbell::{Hub, Reach};
use crate::duration::Durations;
use crate::quota::Quotas;
use crate::{
    Backlog, Batch, BriefResources, Census, Claimable, CredentialsId, Desired, DesiredText, Digest, Doorbell, EngineId,
    EngineInfo, Error, Event, EventId, EventPurge, EventQuery, EventSpan, Lease, Message, MessageId, NewStack,
    Refactor, Resource, Retention, Room, Silent, Snapshot, SnapshotId, Stack, StackId, StackQuery, StackRequest,
    StackSummary, Store, Summary, UnusedCredentials, UnusedUserProject,
};

pub use self::connection_url::{UrlParameter, url_parameters};
pub use self::engine_lock::EngineLock;
pub use self::foreign::{ForeignDatabase, ForeignKeys, ForeignRow, ForeignSnapshot};
pub use self::heat_fence::{HEAT_TABLES, HeatFence};
pub use self::heat_writing::{HeatColumns, HeatValue, HeatWriter};
pub use self::migrations::{SCHEMA, SchemaState, SchemaVersions};
pub(crate) use self::migrations::{WITH_GUARDS, WITH_PLANS};
pub use self::options::{Durability, Options};
pub use self::simulation::Simulation;

/// The store in a SQL database. Clones share the same connections.
#[derive(Clone, Debug)]
pub struct SqlStore {
    writer: Pool,
    /// For queries outside write transactions.
    reader: Pool,
    stack_reads: Arc<SharedReads>,
    dialect: Dialect,
    outside: Outside,
    vault: Arc<Vault>,
    hub: Arc<Hub>,
    losses: Losses,
    calls: Arc<Calls>,
    /// How long a transaction is retried while the database cannot be reached.
    patience: Duration,
    /// Whether there is a message bus: events of stacks are announced.
    notifications: bool,
    /// Whether projects can have webhooks.
    webhooks: bool,
    /// Only kept alive: the tasks end with the last clone.
    _wires: Arc<Wires>,
}

impl SqlStore {
    /// Connects to the database. The schema is not changed ([`Store::migrate`] does that).
    pub async fn open(options: Options) -> Result<Self, Error> {
        let vault = Arc::new(Vault::new(&options.key, &options.older_keys)?.with_values(options.encrypt_values));
        let losses = Losses::default();
        let (notifications, webhooks) = (options.notifications, options.webhooks);
        let (writer, reader) = options.connect(&losses).await?;
        let dialect = dialect_of(&writer).await?;
        let (hub, wires) = match writer.place() {
            Place::Postgres { hosts, .. } => wires::by_notifications(&writer, &reader, hosts.clone()),
            place if place.is_private() => (Hub::new(Reach::Alone), Wires::default()),
            _ => wires::by_table(&writer, &reader, dialect),
        };
        Ok(Self {
            writer,
            reader,
            stack_reads: Arc::default(),
            dialect,
            outside: Outside::new(dialect, options.simulation),
            vault,
            hub,
            losses,
            calls: Arc::default(),
            patience: PATIENCE,
            notifications,
            webhooks,
            _wires: Arc::new(wires),
        })
    }

    /// The same store for requests of clients: while the database cannot be reached, a call fails within 5 s.
    #[must_use]
    pub fn for_requests(&self) -> Self {
        Self { patience: REQUEST_PATIENCE, ..self.clone() }
    }

    /// Whether the connections to a server are encrypted, and how, as a text. `None`: the database is a file.
    pub async fn encryption(&self) -> Result<Option<String>, Error> {
        self.retry(|| async { tls::encryption(&self.writer, self.dialect).await }).await
    }

    /// Begins a write transaction.
    async fn begin(&self) -> Result<Transaction, Fault> {
        Transaction::begin(&self.writer).await
    }
}

async fn dialect_of(db: &Pool) -> Result<Dialect, Error> {
    let backend = db.get_database_backend();
    let version = match backend {
        DbBackend::MySql => {
            let query = sea_orm::Statement::from_string(backend, "SELECT VERSION()");
            match db.query_one_raw(query).await.map_err(Fault::from)? {
                Some(row) => Columns::of(&row).text()?,
                None => String::new(),
            }
        }
        _ => String::new(),
    };
    Ok(Dialect::of(backend, &version))
}

#[async_trait]
impl Store for SqlStore {
    fn connections(&self) -> Vec<(&'static str, u32, usize)> {
        let (writer, reader) = (self.writer.count(), self.reader.count());
        vec![("writes", writer.0, writer.1), ("reads", reader.0, reader.1)]
    }

    fn oldest_call(&self) -> Duration {
        self.calls.oldest()
    }

    async fn migrate(&self) -> Result<(), Error> {
        self.bring_up_to_date().await
    }

    async fn create_stack(&self, stack: NewStack) -> Result<Stack, Error> {
        self.make_stack(&stack).await
    }

    async fn request(&self, stack: StackId, request: StackRequest) -> Result<Stack, Error> {
        self.ask(stack, &request).await
    }

    async fn refactor(&self, refactor: &Refactor) -> Result<Vec<Stack>, Error> {
        self.move_rows(refactor).await
    }

    async fn send(&self, message: &Message) -> Result<(), Error> {
        self.put_message(message).await
    }

    async fn stack(&self, id: StackId) -> Result<Option<Stack>, Error> {
        self.read_stack(id).await
    }

    async fn stack_by_name(&self, project: &str, name: &str) -> Result<Option<Stack>, Error> {
        self.read_stack_by_name(project, name).await
    }

    async fn stacks(&self, query: &StackQuery) -> Result<Vec<Stack>, Error> {
        self.list_stacks(query).await
    }

    async fn stack_summaries(&self, query: &StackQuery) -> Result<Vec<StackSummary>, Error> {
        self.list_summaries(query).await
    }

    async fn count_stacks(&self, query: &StackQuery) -> Result<u64, Error> {
        self.count_listed(query).await
    }

    async fn room(&self, project: &str, name: &str, counts: bool) -> Result<Room, Error> {
        self.read_room(project, name, counts).await
    }

    async fn desired(&self, desired: &Desired) -> Result<DesiredText, Error> {
        self.read_desired(desired).await
    }

    async fn quotas(&self, project: &str) -> Result<Quotas, Error> {
        self.read_quotas(project).await
    }

    async fn add_durations(&self, more: &Durations) -> Result<(), Error> {
        self.write_durations(more).await
    }

    async fn durations(&self, types: &BTreeSet<String>) -> Result<Durations, Error> {
        self.read_durations(types).await
    }

    async fn content(&self, digest: &Digest) -> Result<String, Error> {
        self.read_content(digest).await
    }

    async fn resources(&self, stack: StackId) -> Result<Vec<Resource>, Error> {
        self.read_resources(&[stack]).await
    }

    async fn resources_and_writes(&self, stack: StackId) -> Result<(Option<i64>, Vec<Resource>), Error> {
        self.read_resources_and_writes(stack).await
    }

    async fn resources_in_brief(
        &self,
        stack: StackId,
        after: Option<u64>,
        limit: u64,
    ) -> Result<BriefResources, Error> {
        self.read_resources_in_brief(stack, after, limit).await
    }

    async fn resources_of(&self, stacks: &[StackId]) -> Result<Vec<Resource>, Error> {
        self.read_resources(stacks).await
    }

    async fn resources_named(&self, stack: StackId, name: &str) -> Result<Vec<Resource>, Error> {
        self.read_resources_named(stack, name).await
    }

    async fn count_resources(&self, root: StackId) -> Result<u64, Error> {
        self.read_resource_count(root).await
    }

    async fn ended_children(&self, parent: StackId, also: &[StackId]) -> Result<Vec<Summary>, Error> {
        self.read_ended_children(parent, also).await
    }

    async fn children(&self, parent: StackId) -> Result<Vec<Summary>, Error> {
        self.read_children(parent).await
    }

    async fn snapshot(&self, stack: StackId, id: SnapshotId) -> Result<Option<Snapshot>, Error> {
        self.read_snapshot(stack, id).await
    }

    async fn snapshots(&self, stack: StackId) -> Result<Vec<Snapshot>, Error> {
        self.read_snapshots(stack).await
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        self.list_events(query).await
    }

    async fn numbered_events(&self, span: &EventSpan, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error> {
        self.list_numbered_events(span, query).await
    }

    async fn last_events(&self, query: &EventQuery, up_to: u64) -> Result<Vec<(StackId, u64)>, Error> {
        self.list_last_events(query, up_to).await
    }

    async fn event_number(&self, id: EventId) -> Result<u64, Error> {
        self.retry(|| self.number_of(id)).await
    }

    async fn event(&self, stack: StackId, id: EventId) -> Result<Option<Event>, Error> {
        self.read_event(stack, id).await
    }

    async fn claim_each(
        &self,
        owner: EngineId,
        ttl: Duration,
        claimable: Claimable<'_>,
        limit: usize,
        won: &mut (dyn FnMut(Lease) + Send),
    ) -> Result<(), Error> {
        self.claim_from(claimable, owner, ttl, limit, won).await
    }

    async fn renew(&self, owner: EngineId, ttl: Duration, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.extend(owner, ttl, leases).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<(), Error> {
        self.give_back(leases).await
    }

    async fn commit(&self, lease: Lease, batch: Batch) -> Result<Stack, Error> {
        self.commit_batch(lease, &batch).await
    }

    fn check_size(&self, row: &Resource) -> Result<(), Error> {
        let packet = self.writer.packet();
        if packet == Packet::default() {
            return Ok(());
        }
        let row = row.write(&self.vault)?;
        packet.check_row(&row).map_err(|error| Error::Invalid(error.into()))
    }

    fn check_texts(&self, texts: &DesiredText) -> Result<(), Error> {
        let packet = self.writer.packet();
        for text in [&texts.template, &texts.environment, &texts.files] {
            // Encryption adds a third and some bytes.
            if packet.check_size(text.len() * 2).is_err() {
                let stored = self.vault.seal_value("", text.clone())?;
                packet.check_size(stored.len()).map_err(|error| Error::Invalid(error.into()))?;
            }
        }
        Ok(())
    }

    fn limits_sizes(&self) -> bool {
        self.writer.packet().0.is_some()
    }

    fn check_snapshot(&self, snapshot: &Snapshot) -> Result<(), Error> {
        let row = snapshot.write(&self.vault)?;
        self.writer.packet().check_row(&row).map_err(|error| Error::Invalid(error.into()))
    }

    async fn due_messages(&self, stack: StackId, now: Timestamp) -> Result<Vec<MessageId>, Error> {
        self.read_due(stack, now).await
    }

    async fn messages(&self, stack: StackId, ids: &[MessageId]) -> Result<Vec<Message>, Error> {
        self.read_messages(stack, ids).await
    }

    async fn backlog(&self, stack: StackId, sizes: bool) -> Result<Backlog, Error> {
        self.read_backlog(stack, sizes).await
    }

    async fn plan_credentials(&self, plan: &Secret<String>) -> Result<CredentialsId, Error> {
        self.put_plan(plan).await
    }

    async fn keep_credentials(&self, id: CredentialsId, credentials: &Secret<String>) -> Result<(), Error> {
        self.put_credentials(id, credentials).await
    }

    async fn unused_credentials(&self, older_than: Duration, limit: usize) -> Result<Vec<UnusedCredentials>, Error> {
        self.list_unused_credentials(older_than, limit).await
    }

    async fn credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error> {
        self.get_credentials(id).await
    }

    async fn retire_credentials(&self, unused: &UnusedCredentials) -> Result<bool, Error> {
        self.reserve_credentials(unused).await
    }

    async fn delete_credentials(&self, id: CredentialsId) -> Result<(), Error> {
        self.drop_credentials(id).await
    }

    async fn unused_user_projects(&self, limit: usize) -> Result<Vec<UnusedUserProject>, Error> {
        self.list_unused_user_projects(limit).await
    }

    async fn forget_user_project(&self, stack: StackId) -> Result<(), Error> {
        self.drop_user_project(stack).await
    }

    async fn report(&self, engine: &EngineInfo) -> Result<(), Error> {
        self.put_engine(engine).await
    }

    async fn now(&self) -> Result<Timestamp, Error> {
        self.read_clock().await
    }

    async fn engines(&self) -> Result<Vec<EngineInfo>, Error> {
        self.list_engines().await
    }

    async fn is_full(&self) -> bool {
        if !self.losses.is_full() && self.losses.may_probe() {
            // Why it fails is noted.
            _ = self.write_for_nothing().await;
        }
        self.losses.is_full()
    }

    async fn lock_engines(&self) -> Result<EngineLock, Error> {
        self.take_engine_lock().await
    }

    async fn forget_engine(&self, silent: &Silent) -> Result<(), Error> {
        self.drop_engine(silent).await
    }

    async fn forget(&self, retention: &Retention) -> Result<u64, Error> {
        self.forget_some(retention).await
    }

    async fn forget_events(&self, keep: u64, after: u64) -> Result<EventPurge, Error> {
        self.purge_events(keep, after).await
    }

    async fn census(&self) -> Result<Census, Error> {
        self.count_everything().await
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.hub.bell()
    }

    fn news(&self) -> Arc<dyn Doorbell> {
        self.hub.news()
    }
}
