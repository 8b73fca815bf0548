//! Futures that are dropped before their end: a client goes away, an operation is aborted. Each future of the store is
//! dropped at each of its polls. Afterwards no transaction is open, no lock is held, and what was acknowledged is stored.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use kiln_resource::{Action, ResourceId, SoftwareChange, SoftwareConfig, Status};
use kiln_store::{
    Approval, Author, Batch, Claimable, ConfigQuery, CredentialsId, Durations, EngineInfo, Error, EventQuery, GuardId,
    Histogram, Lease, Message, MessageBody, MessageId, NewPlan, NewStack, Options, OrphanQuery, Plan, PlanId, PlanPart,
    PlanState, Retention, Silent, SqlStore, Stack, StackId, StackQuery, StackRequest, Store, UnusedCredentials,
};
use kiln_value::{Secret, Value};
use uuid::Uuid;

use crate::bed::{Bed, beds, options, transactions};
use crate::make::{PROJECT, TTL, at, child, claimed, engine, event, resource, settle, stack, text};

/// How long a database with much to do may take. What this finds lasts for ever.
const LIMIT: Duration = Duration::from_mins(1);

type Work<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;
type Start<'a> = Box<dyn Fn() -> Work<'a> + Send + Sync + 'a>;

/// What the futures work on.
struct Ground<'a> {
    store: &'a dyn Store,
    made: Stack,
    lease: Lease,
    credentials: CredentialsId,
}

impl<'a> Ground<'a> {
    async fn of(store: &'a dyn Store) -> Self {
        let (made, lease) = claimed(store, &format!("s-{}", Uuid::new_v4())).await;
        let credentials = store.plan_credentials(&Secret::new("{}".to_owned())).await.unwrap();
        Self { store, made, lease, credentials }
    }

    fn batch(&self) -> Batch {
        let row = resource(self.made.id, &format!("r-{}", Uuid::new_v4()));
        Batch {
            children: vec![child(&self.made, &row)],
            events: vec![event(&self.made, &row.name, 1)],
            save: vec![row].into(),
            send: vec![self.message()],
            settle: Some(settle(1, Action::Create, Status::Complete)),
            ..Batch::default()
        }
    }

    fn message(&self) -> Message {
        let (id, body) = (MessageId(Uuid::new_v4()), MessageBody::Signal(Value::Null));
        Message { id, stack: self.made.id, resource: None, body, due: at(-9), sent: at(-9) }
    }

    fn plan(&self) -> NewPlan {
        let plan = Plan {
            id: PlanId(Uuid::new_v4()),
            project: PROJECT.to_owned(),
            stack: self.made.id,
            stack_name: self.made.name.clone(),
            name: Some(Uuid::new_v4().to_string()),
            action: Action::Update,
            generation: 1,
            author: None,
            desired: None,
            digest: String::new(),
            state: PlanState::Ready,
            body: Value::Null,
            created: at(0),
            expires: None,
        };
        let parts = vec![PlanPart { path: String::new(), body: "{}".to_owned() }];
        NewPlan { plan, desired: Some(text(&Uuid::new_v4().to_string())), parts }
    }

    fn durations() -> Durations {
        let mut histogram = Histogram::default();
        histogram.add(TTL);
        Durations::from([(("OS::Nova::Server".to_owned(), Action::Create), histogram)])
    }

    fn approval(&self) -> Approval {
        let author = Author { user_id: Uuid::new_v4().to_string(), username: String::new() };
        Approval { plan: self.plan().plan.id, author, time: at(0) }
    }

    fn config(&self) -> SoftwareConfig {
        SoftwareConfig {
            id: Uuid::new_v4().to_string(),
            project: self.made.project.clone(),
            name: None,
            group: None,
            body: kiln_resource::ConfigBody::default(),
            created: at(0),
        }
    }

    fn engine(&self) -> EngineInfo {
        let (id, hostname) = (self.lease.owner, self.made.name.clone());
        EngineInfo { id, hostname, pid: 1, started: at(0), seen: at(0), interval: 5, schema: kiln_store::SCHEMA }
    }

    fn silent() -> Silent {
        Silent { engine: engine(), seen: at(0), silence: TTL, idle: TTL }
    }

    /// Credentials that have been touched since.
    fn unused(&self) -> UnusedCredentials {
        UnusedCredentials { id: self.credentials, plan: Secret::new("{}".to_owned()), credentials: None, touched: 0 }
    }

    /// Each use case that writes, and the kinds of reads.
    fn works(&'a self) -> Vec<(&'static str, Start<'a>)> {
        macro_rules! works {
            ($($name:ident: $future:expr;)*) => {
                vec![$((stringify!($name), Box::new(move || Box::pin(async move { $future.await.map(drop) }) as Work<'a>) as Start<'a>),)*]
            };
        }
        let (store, id) = (self.store, self.made.id);
        works! {
            migrate: store.migrate();
            create_stack: store.create_stack(NewStack {
                credentials: Some(self.credentials), ..stack(&Uuid::new_v4().to_string())
            });
            request: store.request(id, StackRequest::new(Action::Update, at(1)));
            refactor: store.refactor(&crate::refactor::nothing(&self.made));
            send: store.send(&self.message());
            commit: store.commit(self.lease, self.batch());
            claim: store.claim(engine(), TTL, &[], 1);
            claim_each: async {
                let claimable = Claimable::LeftBehind { silent: &[Self::silent()], held: &[] };
                store.claim_each(engine(), TTL, claimable, 1, &mut drop).await
            };
            renew: store.renew(self.lease.owner, TTL, &[self.lease]);
            release: store.release(&[Lease { epoch: 0, ..self.lease }]);
            save_plan: store.save_plan(&self.plan());
            reject_plan: store.reject_plan(self.plan().plan.id);
            approve_plan: store.approve_plan(&self.approval());
            delete_plans: store.delete_plans(&[self.plan().plan.id]);
            add_durations: store.add_durations(&Self::durations());
            add_guard: store.add_guard(&crate::guards::guard(None));
            lift_guard: store.lift_guard(PROJECT, GuardId(Uuid::new_v4()), &crate::guards::author());
            change_software: store.change_software(&SoftwareChange::PutConfig(self.config()));
            plan_credentials: store.plan_credentials(&Secret::new("{}".to_owned()));
            keep_credentials: store.keep_credentials(self.credentials, &Secret::new("{}".to_owned()));
            save_credentials: store.save_credentials(&Secret::new("{}".to_owned()));
            retire_credentials: store.retire_credentials(&self.unused());
            delete_credentials: store.delete_credentials(CredentialsId(Uuid::new_v4()));
            forget_user_project: store.forget_user_project(StackId(Uuid::new_v4()));
            forget_engine: store.forget_engine(&Self::silent());
            report: store.report(&self.engine());
            forget: store.forget(&Retention { deleted_before: at(9), operations: 1 });
            forget_events: store.forget_events(1, 0);
            next_lane: store.next_lane("");
            claim_lane: store.claim_lane("x", Uuid::new_v4(), TTL, 1);
            remove_entries: store.remove_entries(Uuid::new_v4(), &[1]);
            postpone_entries: store.postpone_entries(Uuid::new_v4(), &[1], TTL);
            delete_orphan: store.delete_orphan(PROJECT, ResourceId(Uuid::new_v4()));
            stack: store.stack(id);
            stacks: store.stacks(&StackQuery::default());
            desired: store.desired(&self.made.desired);
            resources: store.resources(id);
            inbox: store.inbox(id, at(0));
            events: store.events(&EventQuery { stacks: vec![id], ..EventQuery::default() });
            census: store.census();
            orphans: store.orphans(&OrphanQuery::default());
            software_configs: store.software_configs(&ConfigQuery::default());
            now: store.now();
        }
    }
}

/// What is not dropped: it reads with one statement, as others that are dropped do, or has no transaction.
const READS: [&str; 47] = [
    "approvals",
    "backlog",
    "children",
    "content",
    "count_plans",
    "count_resources",
    "count_software_configs",
    "count_software_deployments",
    "count_stacks",
    "creates_without_object",
    "credentials",
    "deployed_configs",
    "due_messages",
    "durations",
    "ended_children",
    "engines",
    "event",
    "event_number",
    "guards",
    "is_config_referenced",
    "is_full",
    "last_events",
    "lock_engines",
    "messages",
    "numbered_events",
    "operation",
    "operations",
    "plan",
    "plan_parts",
    "plans",
    "quotas",
    "resources_and_writes",
    "resources_by_physical_id",
    "resources_in_brief",
    "resources_named",
    "resources_of",
    "snapshot",
    "snapshots",
    "revision",
    "room",
    "software_config",
    "software_deployment",
    "software_deployments",
    "stack_by_name",
    "stack_summaries",
    "unused_credentials",
    "unused_user_projects",
];

/// A new method of the store has a work, or only reads.
#[tokio::test]
async fn every_method_that_writes_is_dropped() {
    let bed = beds().next().await.unwrap();
    let ground = Ground::of(&*bed.store).await;
    let mut known: Vec<&str> = ground.works().iter().map(|(name, _)| *name).chain(READS).collect();
    known.sort_unstable();
    let sources = [
        include_str!("../../src/store.rs").split_once("pub trait Store:").unwrap().1,
        include_str!("../../src/software_store.rs"),
        include_str!("../../src/outbox.rs"),
        include_str!("../../src/orphan.rs"),
        include_str!("../../src/operation.rs"),
        include_str!("../../src/plan.rs"),
        include_str!("../../src/guard.rs"),
    ];
    let method = |line: &'static str| line.strip_prefix("    async fn ")?.split('(').next();
    let mut methods: Vec<&str> = sources.iter().flat_map(|source| source.lines()).filter_map(method).collect();
    methods.sort_unstable();
    assert_eq!(known, methods);
    bed.end().await;
}

/// Polls a future up to a number of times; false if that was not its end.
async fn ends_within(polls: usize, work: Work<'_>) -> bool {
    let mut work = pin!(work);
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        match work.as_mut().poll(context) {
            // Some of them are refused, because an earlier attempt has done it or because nothing is left to do.
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// What another session sees of the store's transactions: connection and start of each.
async fn open_transactions(bed: &Bed) -> Vec<String> {
    let query = match bed.url().split_once(':').unwrap().0 {
        "sqlite" => {
            // It waits for a while, and fails if another connection is in a write transaction.
            bed.execute("BEGIN IMMEDIATE").await;
            return Vec::new();
        }
        "postgres" => {
            "SELECT concat(pid, ' ', xact_start) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        }
        // A node of Galera goes on to show a statement that has ended in a session that sleeps: no table is in use there.
        _ => {
            "SELECT CAST(CONCAT_WS(' ', id, trx_started) AS CHAR) FROM information_schema.innodb_trx \
             JOIN information_schema.processlist ON id = trx_mysql_thread_id \
             WHERE db = DATABASE() AND NOT (command = 'Sleep' AND trx_tables_in_use > 0)"
        }
    };
    let db = bed.connection().await;
    let rows = transactions(&db, query).await;
    db.close().await.unwrap();
    rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
}

/// Waits until the transactions that are open now have ended. Others begin meanwhile: rings are written in tasks of their
/// own, and on a cluster with much to do, there are some for minutes.
async fn until_none_is_open(bed: &Bed, what: &str) {
    let start = Instant::now();
    let mut left = open_transactions(bed).await;
    while !left.is_empty() {
        assert!(start.elapsed() < LIMIT, "{what}: {left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        let open = open_transactions(bed).await;
        left.retain(|one| open.contains(one));
    }
}

/// What is acknowledged on the only connection that writes is stored: another process sees it.
async fn acknowledged_is_stored(store: &dyn Store, other: &dyn Store, what: &str) {
    let secret = Secret::new("{}".to_owned());
    let write = async {
        loop {
            let written = async {
                let id = store.plan_credentials(&secret).await?;
                store.keep_credentials(id, &secret).await?;
                other.credentials(id).await
            };
            match written.await {
                // A cluster with much to do may be silent for longer than a request waits.
                Err(Error::Unavailable { .. }) => {}
                written => return written,
            }
        }
    };
    let written = tokio::time::timeout(LIMIT, write).await;
    written
        .unwrap_or_else(|_| panic!("{what}: writes wait for ever"))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
}

#[tokio::test]
async fn what_is_dropped_leaves_no_transaction_and_loses_no_write() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_sql() {
            bed.end().await;
            continue;
        }
        // Of a database that others can use: one connection that writes, so that each work gets the one before it.
        let narrow = Options { max_connections: 2, ..options(bed.url()) };
        let own = if bed.is_shared() { Some(SqlStore::open(narrow).await.unwrap()) } else { None };
        let store = own.as_ref().map_or(&*bed.store, |own| own as &dyn Store);
        let other = bed.another().await;
        let ground = Ground::of(store).await;
        for (name, work) in ground.works() {
            let mut polls = 1;
            while !ends_within(polls, work()).await {
                let what = format!("{name} dropped after {polls} polls");
                acknowledged_is_stored(store, &*other, &what).await;
                polls += 1;
            }
            if bed.is_shared() {
                until_none_is_open(&bed, name).await;
            }
        }
        drop((own, other));
        bed.end().await;
    }
}
