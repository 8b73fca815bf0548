//! The connection between a process and the database: latency, outages, lost responses, partitions. All writes are
//! checked here.

mod guards;
mod operations;
mod orphans;
mod outbox;
mod plans;
mod software;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_store::{
    Backlog, Batch, BriefResources, Census, Claimable, CredentialsId, Desired, DesiredText, Digest, Doorbell, EngineId,
    EngineInfo, Error, Event, EventId, EventPurge, EventQuery, EventSpan, Lease, Message, MessageId, NewStack,
    Refactor, Resource, Retention, Room, Silent, Snapshot, SnapshotId, Stack, StackId, StackQuery, StackRequest, Store,
    Summary, UnusedCredentials, UnusedUserProject,
};
use kiln_value::Secret;
use tokio::sync::oneshot;
use tokio::task::unconstrained;

use crate::bell::SimBell;
use crate::crashes;
use crate::gate::Gate;
use crate::sabotage::Sabotage;
use crate::simulation::{Label, Simulation};

/// Timeout of the database client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The database as a process sees it. A use case runs to its end without a break (`unconstrained`), as in one transaction.
pub(crate) struct StoreLink {
    sim: Arc<Simulation>,
    label: Label,
    gate: Arc<Gate>,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Refused,
    LostReply,
    Cut,
}

/// A claim on its way to the database.
enum AskedClaim {
    Free,
    Named(Vec<StackId>),
    OfOtherProjects(Vec<String>),
    LeftBehind(Vec<Silent>, Vec<StackId>),
}

impl AskedClaim {
    fn of(claimable: Claimable<'_>) -> Self {
        match claimable {
            Claimable::Free => Self::Free,
            Claimable::Named(stacks) => Self::Named(stacks.to_vec()),
            Claimable::OfOtherProjects(projects) => Self::OfOtherProjects(projects.to_vec()),
            Claimable::LeftBehind { silent, held } => Self::LeftBehind(silent.to_vec(), held.to_vec()),
        }
    }

    fn claimable(&self) -> Claimable<'_> {
        match self {
            Self::Free => Claimable::Free,
            Self::Named(stacks) => Claimable::Named(stacks),
            Self::OfOtherProjects(projects) => Claimable::OfOtherProjects(projects),
            Self::LeftBehind(silent, held) => Claimable::LeftBehind { silent, held },
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Free => "claim",
            Self::Named(_) => "claim some",
            Self::OfOtherProjects(_) => "claim for others",
            Self::LeftBehind(..) => "take over",
        }
    }
}

fn lost() -> Error {
    Error::Database("connection lost".into())
}

impl StoreLink {
    /// The connection of a process.
    pub(crate) fn new(sim: Arc<Simulation>, label: Label, gate: Arc<Gate>) -> Self {
        Self { sim, label, gate }
    }

    fn fate(&self, name: &'static str, write: bool) -> Fate {
        let sim = &self.sim;
        {
            let switches = sim.switches();
            if switches.store_cut.contains(&self.label.slot) {
                return Fate::Cut;
            }
            if switches.store_out {
                return Fate::Refused;
            }
        }
        let Some(noise) = sim.noise() else { return Fate::Done };
        let key = (name, self.label.slot);
        if sim.dice.chance(("store refused", key), noise.store_refused) {
            Fate::Refused
        } else if write && sim.dice.chance(("store lost", key), noise.store_lost_reply) {
            Fate::LostReply
        } else {
            Fate::Done
        }
    }

    async fn read<T, F>(&self, name: &'static str, effect: F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>> + Send,
    {
        self.sim.ledger.count_query(name);
        crashes::panic(&self.sim, self.label, name);
        let (there, back) = self.ways(name);
        let fate = self.fate(name, false);
        tokio::time::sleep(there).await;
        let result = match fate {
            Fate::Cut => {
                tokio::time::sleep(CLIENT_TIMEOUT).await;
                Err(lost())
            }
            Fate::Refused | Fate::LostReply => Err(lost()),
            Fate::Done => unconstrained(effect).await,
        };
        tokio::time::sleep(back).await;
        self.gate.pass().await;
        result
    }

    /// A write is executed even if its process dies.
    async fn write<T, F>(&self, name: &'static str, effect: F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.sim.ledger.count_query(name);
        crashes::panic(&self.sim, self.label, name);
        let triggers = matches!(name, "commit" | "release" | "claim some");
        if triggers {
            self.sim.before_call(self.label, &self.gate).await;
        }
        let (there, back) = self.ways(name);
        let fate = self.fate(name, true);
        if fate != Fate::Done {
            self.sim.trace.note(&self.label.to_string(), || format!("store {name} [{fate:?}]"));
        }
        let (reply, answer) = oneshot::channel();
        tokio::spawn(async move {
            tokio::time::sleep(there).await;
            let result = match fate {
                Fate::Refused => Err(lost()),
                Fate::Cut => {
                    tokio::time::sleep(CLIENT_TIMEOUT).await;
                    Err(lost())
                }
                Fate::Done => unconstrained(effect).await,
                Fate::LostReply => unconstrained(effect).await.and_then(|_| Err(lost())),
            };
            tokio::time::sleep(back).await;
            drop(reply.send(result));
        });
        if triggers {
            self.sim.after_send(self.label, &self.gate).await;
        }
        let result = answer.await.unwrap_or_else(|_| Err(lost()));
        self.gate.pass().await;
        crashes::panic(&self.sim, self.label, name);
        result
    }

    fn ways(&self, name: &'static str) -> (Duration, Duration) {
        let sim = &self.sim;
        let way = |what: &'static str| {
            let most = sim.scenario.noise.store_latency_ms;
            Duration::from_millis(1 + sim.dice.up_to((what, name, self.label.slot), most))
        };
        (way("there"), way("back"))
    }

    fn inner(&self) -> Arc<dyn Store> {
        Arc::clone(&self.sim.store)
    }
}

#[async_trait]
impl Store for StoreLink {
    async fn migrate(&self) -> Result<(), Error> {
        self.inner().migrate().await
    }

    async fn create_stack(&self, stack: NewStack) -> Result<Stack, Error> {
        let (sim, label) = (Arc::clone(&self.sim), self.label);
        self.write("create_stack", async move {
            let made = sim.store.create_stack(stack.clone()).await?;
            sim.ledger.created(&sim, label, &stack);
            Ok(made)
        })
        .await
    }

    async fn request(&self, stack: StackId, request: StackRequest) -> Result<Stack, Error> {
        let (sim, label) = (Arc::clone(&self.sim), self.label);
        self.write("request", async move {
            let asked = sim.store.request(stack, request).await?;
            sim.ledger.asked(&sim, label, &asked);
            Ok(asked)
        })
        .await
    }

    async fn refactor(&self, refactor: &Refactor) -> Result<Vec<Stack>, Error> {
        let (sim, refactor) = (Arc::clone(&self.sim), refactor.clone());
        self.write("refactor", async move { sim.store.refactor(&refactor).await }).await
    }

    async fn send(&self, message: &Message) -> Result<(), Error> {
        let (sim, message) = (Arc::clone(&self.sim), message.clone());
        self.write("send", async move {
            sim.store.send(&message).await?;
            sim.ledger.sent(&sim, &message);
            Ok(())
        })
        .await
    }

    async fn stack(&self, id: StackId) -> Result<Option<Stack>, Error> {
        self.sim.ledger.count_read(&self.sim, self.label, id);
        let stack = self.read("stack", self.inner().stack(id)).await?;
        Ok(stack.map(|stack| self.sim.ledger.hide(&self.sim, self.label, stack)))
    }

    async fn stack_by_name(&self, project: &str, name: &str) -> Result<Option<Stack>, Error> {
        self.read("stack_by_name", self.inner().stack_by_name(project, name)).await
    }

    async fn stacks(&self, query: &StackQuery) -> Result<Vec<Stack>, Error> {
        self.read("stacks", self.inner().stacks(query)).await
    }

    async fn count_stacks(&self, query: &StackQuery) -> Result<u64, Error> {
        self.read("count_stacks", self.inner().count_stacks(query)).await
    }

    async fn room(&self, project: &str, name: &str, counts: bool) -> Result<Room, Error> {
        self.read("room", self.inner().room(project, name, counts)).await
    }

    async fn desired(&self, desired: &Desired) -> Result<DesiredText, Error> {
        self.read("desired", self.inner().desired(desired)).await
    }

    async fn content(&self, digest: &Digest) -> Result<String, Error> {
        self.read("content", self.inner().content(digest)).await
    }

    async fn resources(&self, stack: StackId) -> Result<Vec<Resource>, Error> {
        self.sim.ledger.count_load(&self.sim, self.label, stack);
        self.read("resources", self.inner().resources(stack)).await
    }

    async fn resources_and_writes(&self, stack: StackId) -> Result<(Option<i64>, Vec<Resource>), Error> {
        self.read("resources_and_writes", self.inner().resources_and_writes(stack)).await
    }

    async fn resources_in_brief(
        &self,
        stack: StackId,
        after: Option<u64>,
        limit: u64,
    ) -> Result<BriefResources, Error> {
        self.read("resources_in_brief", self.inner().resources_in_brief(stack, after, limit)).await
    }

    async fn resources_of(&self, stacks: &[StackId]) -> Result<Vec<Resource>, Error> {
        self.read("resources_of", self.inner().resources_of(stacks)).await
    }

    async fn resources_named(&self, stack: StackId, name: &str) -> Result<Vec<Resource>, Error> {
        self.read("resources_named", self.inner().resources_named(stack, name)).await
    }

    async fn count_resources(&self, root: StackId) -> Result<u64, Error> {
        self.read("count_resources", self.inner().count_resources(root)).await
    }

    async fn ended_children(&self, parent: StackId, also: &[StackId]) -> Result<Vec<Summary>, Error> {
        self.read("ended_children", self.inner().ended_children(parent, also)).await
    }

    async fn children(&self, parent: StackId) -> Result<Vec<Summary>, Error> {
        self.read("children", self.inner().children(parent)).await
    }

    async fn snapshot(&self, stack: StackId, id: SnapshotId) -> Result<Option<Snapshot>, Error> {
        self.read("snapshot", self.inner().snapshot(stack, id)).await
    }

    async fn snapshots(&self, stack: StackId) -> Result<Vec<Snapshot>, Error> {
        self.read("snapshots", self.inner().snapshots(stack)).await
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        self.read("events", self.inner().events(query)).await
    }

    async fn numbered_events(&self, span: &EventSpan, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error> {
        self.read("numbered_events", self.inner().numbered_events(span, query)).await
    }

    async fn last_events(&self, query: &EventQuery, up_to: u64) -> Result<Vec<(StackId, u64)>, Error> {
        self.read("last_events", self.inner().last_events(query, up_to)).await
    }

    async fn event_number(&self, id: EventId) -> Result<u64, Error> {
        self.read("event_number", self.inner().event_number(id)).await
    }

    async fn event(&self, stack: StackId, id: EventId) -> Result<Option<Event>, Error> {
        self.read("event", self.inner().event(stack, id)).await
    }

    async fn claim_each(
        &self,
        owner: EngineId,
        ttl: Duration,
        claimable: Claimable<'_>,
        limit: usize,
        won: &mut (dyn FnMut(Lease) + Send),
    ) -> Result<(), Error> {
        let (sim, label, asked) = (Arc::clone(&self.sim), self.label, AskedClaim::of(claimable));
        let leases = self.write(asked.name(), async move {
            let is_free = matches!(asked, AskedClaim::Free | AskedClaim::Named(_));
            if is_free && sim.has(Sabotage::StuckLeases) && !sim.store_clock.back().is_zero() {
                return Ok(Vec::new());
            }
            let mut leases = Vec::new();
            sim.store.claim_each(owner, ttl, asked.claimable(), limit, &mut |lease| leases.push(lease)).await?;
            for lease in &mut leases {
                sim.ledger.claimed(&sim, label, *lease);
                if sim.has(Sabotage::CrashIsClean) {
                    (lease.clean, lease.idle) = (true, Duration::from_hours(1));
                }
            }
            Ok(leases)
        });
        leases.await?.into_iter().for_each(won);
        Ok(())
    }

    async fn forget_engine(&self, silent: &Silent) -> Result<(), Error> {
        let (sim, silent) = (Arc::clone(&self.sim), *silent);
        self.write("forget engine", async move { sim.store.forget_engine(&silent).await }).await
    }

    async fn renew(&self, owner: EngineId, ttl: Duration, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        let (sim, label, leases) = (Arc::clone(&self.sim), self.label, leases.to_vec());
        self.write("renew", async move {
            if sim.has(Sabotage::LeaseForEver) {
                let all = sim.ledger.ever_claimed(label);
                sim.store.renew(owner, ttl, &all).await?;
            }
            let held = sim.store.renew(owner, ttl, &leases).await?;
            Ok(if sim.has(Sabotage::RenewLies) { leases } else { crashes::renewed(&sim, label, held) })
        })
        .await
    }

    async fn release(&self, leases: &[Lease]) -> Result<(), Error> {
        let (sim, label, leases) = (Arc::clone(&self.sim), self.label, leases.to_vec());
        self.write("release", async move {
            if sim.has(Sabotage::LeaseForEver) {
                return Ok(());
            }
            sim.store.release(&leases).await?;
            sim.ledger.released(&leases);
            sim.trace.note(&label.to_string(), || format!("gave back {} leases", leases.len()));
            Ok(())
        })
        .await
    }

    async fn commit(&self, lease: Lease, batch: Batch) -> Result<Stack, Error> {
        let (sim, label) = (Arc::clone(&self.sim), self.label);
        let stack = self
            .write("commit", async move {
                let batch = crate::tamper::spoil(&sim, batch);
                if sim.has(Sabotage::LoseCommit) && sim.dice.chance("lost commit", 50) {
                    let stack = sim.store.stack(lease.stack).await?;
                    return stack.ok_or_else(|| Error::NotFound(lease.stack.to_string()));
                }
                crashes::accept(&sim, &batch)?;
                let before = sim.ledger.before_commit(&sim, lease.stack).await;
                let result = match sim.store.commit(lease, batch.clone()).await {
                    Err(Error::Stale(_)) if sim.has(Sabotage::SkipFence) => {
                        let current = sim.ledger.current(lease);
                        sim.store.commit(current, batch.clone()).await
                    }
                    other => other,
                };
                match &result {
                    Ok(stack) => {
                        if let Some(settle) = &batch.settle {
                            crate::plugins::settled(&sim, stack, settle);
                        }
                        sim.ledger.committed(&sim, label, lease, &batch, &before, stack).await;
                    }
                    Err(error) => {
                        sim.trace.note(&label.to_string(), || format!("commit on {}: {error}", lease.stack));
                    }
                }
                result
            })
            .await?;
        Ok(self.sim.ledger.hide(&self.sim, self.label, stack))
    }

    async fn due_messages(&self, stack: StackId, now: Timestamp) -> Result<Vec<MessageId>, Error> {
        self.read("due_messages", self.inner().due_messages(stack, now)).await
    }

    async fn messages(&self, stack: StackId, ids: &[MessageId]) -> Result<Vec<Message>, Error> {
        let mut messages = self.read("messages", self.inner().messages(stack, ids)).await?;
        if self.sim.has(Sabotage::InboxBackwards) {
            messages.reverse();
        }
        if self.sim.has(Sabotage::LoseMessage) && messages.len() > 1 {
            self.sim.ledger.lose(messages.drain(1..));
        }
        Ok(messages)
    }

    async fn backlog(&self, stack: StackId, sizes: bool) -> Result<Backlog, Error> {
        self.read("backlog", self.inner().backlog(stack, sizes)).await
    }

    async fn plan_credentials(&self, plan: &Secret<String>) -> Result<CredentialsId, Error> {
        let (sim, plan) = (Arc::clone(&self.sim), plan.clone());
        self.write("plan_credentials", async move { sim.store.plan_credentials(&plan).await }).await
    }

    async fn keep_credentials(&self, id: CredentialsId, credentials: &Secret<String>) -> Result<(), Error> {
        let (sim, credentials) = (Arc::clone(&self.sim), credentials.clone());
        self.write("keep_credentials", async move { sim.store.keep_credentials(id, &credentials).await }).await
    }

    async fn credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error> {
        self.read("credentials", self.inner().credentials(id)).await
    }

    async fn unused_credentials(&self, older_than: Duration, limit: usize) -> Result<Vec<UnusedCredentials>, Error> {
        self.read("unused_credentials", self.inner().unused_credentials(older_than, limit)).await
    }

    async fn retire_credentials(&self, unused: &UnusedCredentials) -> Result<bool, Error> {
        let (sim, unused) = (Arc::clone(&self.sim), unused.clone());
        self.write("retire_credentials", async move { sim.store.retire_credentials(&unused).await }).await
    }

    async fn unused_user_projects(&self, limit: usize) -> Result<Vec<UnusedUserProject>, Error> {
        self.read("unused_user_projects", self.inner().unused_user_projects(limit)).await
    }

    async fn forget_user_project(&self, stack: StackId) -> Result<(), Error> {
        let sim = Arc::clone(&self.sim);
        self.write("forget_user_project", async move { sim.store.forget_user_project(stack).await }).await
    }

    async fn delete_credentials(&self, id: CredentialsId) -> Result<(), Error> {
        let sim = Arc::clone(&self.sim);
        self.write("delete_credentials", async move { sim.store.delete_credentials(id).await }).await
    }

    async fn report(&self, engine: &EngineInfo) -> Result<(), Error> {
        let (sim, engine) = (Arc::clone(&self.sim), engine.clone());
        self.write("report", async move { sim.store.report(&engine).await }).await
    }

    async fn now(&self) -> Result<Timestamp, Error> {
        self.read("now", self.inner().now()).await
    }

    async fn engines(&self) -> Result<Vec<EngineInfo>, Error> {
        self.read("engines", self.inner().engines()).await
    }

    async fn forget(&self, retention: &Retention) -> Result<u64, Error> {
        let (sim, retention) = (Arc::clone(&self.sim), retention.clone());
        self.write("forget", async move { sim.store.forget(&retention).await }).await
    }

    async fn forget_events(&self, keep: u64, after: u64) -> Result<EventPurge, Error> {
        let sim = Arc::clone(&self.sim);
        self.write("forget_events", async move { sim.store.forget_events(keep, after).await }).await
    }

    async fn census(&self) -> Result<Census, Error> {
        let sim = Arc::clone(&self.sim);
        self.read("census", async move { sim.store.census().await }).await
    }

    fn news(&self) -> Arc<dyn Doorbell> {
        Arc::new(SimBell::new(Arc::clone(&self.sim), self.label, Arc::clone(&self.gate), self.inner().news()))
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(SimBell::new(Arc::clone(&self.sim), self.label, Arc::clone(&self.gate), self.inner().doorbell()))
    }
}
