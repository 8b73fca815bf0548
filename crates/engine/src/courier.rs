//! Couriers send the entries of the outbox. Every engine has one.
//!
//! An entry is removed after it was sent, so that none is lost: one that was sent shortly before an engine failed is sent
//! again, with the same ID. A lane is claimed for a limited time, its entries are sent in order, and a failure holds back
//! only its own lane, with growing pauses, for up to an hour. Calls have a time limit, and lanes that failed before may
//! use only half of the slots, so that destinations that do not answer do not delay the others. Webhooks have slots of their
//! own, because users decide how long their receivers take.

mod bus;
mod queue;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{Failure, FailureKind};
use kiln_stack::Backends;
use kiln_store::{Delivery, Destination, Error, Lane, OutboxEntry};
use kiln_value::Class;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::bus::{Message, MessageBus};
pub use self::webhook::{ReceiverAnswer, SignedEvent, WebhookSender, Webhooks};
use crate::lifecycle::Plugins;

/// How long an entry is retried.
const GIVE_UP_AFTER: Duration = Duration::from_hours(1);
/// Maximum number of lanes that are sent at the same time.
const SLOTS: usize = 32;
/// The same for lanes of webhooks.
const WEBHOOK_SLOTS: usize = 64;
/// Interval of looking for lanes without news: entries of other processes, expired claims.
const POLL: Duration = Duration::from_secs(2);
/// Maximum number of entries of one claim.
const ENTRIES: usize = 60;
/// The first pause after a failure; it doubles with each attempt …
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// … up to this one.
const LAST_PAUSE: Duration = Duration::from_mins(2);

/// Sends the entries of the outbox.
#[derive(Clone)]
pub(crate) struct Courier {
    backends: Backends,
    bus: Option<Arc<dyn MessageBus>>,
    plugins: Plugins,
    /// The receivers of users, if the service has webhooks.
    webhooks: Option<Webhooks>,
    /// The time limit of a call, and the time after which no more calls begin under a claim. A claim lasts for both.
    limit: Duration,
    /// Changes when all entries of a lane have been sent.
    emptied: watch::Sender<()>,
}

/// Which slots a lane takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Quick,
    /// It failed before, or it runs plug-ins.
    Slow,
    Webhook,
}

/// The lanes that are being sent, with their slots, and where the search goes on.
#[derive(Default)]
struct Round {
    busy: BTreeMap<String, Pace>,
    after: String,
    /// Until when the next search waits, so that searches take a small part of the time.
    next: Duration,
}

impl Round {
    fn takes(&self, lane: &Lane) -> bool {
        let count = |pace: Pace| self.busy.values().filter(|one| **one == pace).count();
        let (slow, webhooks) = (count(Pace::Slow), count(Pace::Webhook));
        let is_free = match pace(lane) {
            Pace::Quick => self.busy.len() - webhooks < SLOTS,
            Pace::Slow => self.busy.len() - webhooks < SLOTS && slow < SLOTS / 2,
            Pace::Webhook => webhooks < WEBHOOK_SLOTS,
        };
        is_free && !self.busy.contains_key(&lane.name)
    }
}

fn pace(lane: &Lane) -> Pace {
    if lane.is_of_webhook() {
        Pace::Webhook
    } else if lane.attempts > 0 || lane.is_of_plugins() {
        Pace::Slow
    } else {
        Pace::Quick
    }
}

impl Courier {
    /// `limit`: the time limit of a call.
    pub(crate) fn new(
        backends: Backends,
        bus: Option<Arc<dyn MessageBus>>,
        plugins: Plugins,
        webhooks: Option<Webhooks>,
        limit: Duration,
    ) -> Self {
        Self { backends, bus, plugins, webhooks, limit, emptied: watch::Sender::new(()) }
    }

    /// Changes when all entries of a lane have been sent.
    pub(crate) fn emptied_lanes(&self) -> watch::Receiver<()> {
        self.emptied.subscribe()
    }

    /// Runs until `closing` becomes true, and then until everything that can be sent at once has been sent.
    pub(crate) async fn run(self: Arc<Self>, mut closing: watch::Receiver<bool>) {
        let clock = Arc::clone(&self.backends.clock);
        let mut news = self.backends.store.outbox_news();
        let mut tasks: JoinSet<String> = JoinSet::new();
        let mut round = Round::default();
        loop {
            let begun = clock.monotonic();
            let wait = match self.start_lanes(&mut round, &mut tasks).await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::warn!(%error, "failed to read the outbox");
                    POLL
                }
            };
            let now = clock.monotonic();
            round.next = now + 4 * now.saturating_sub(begun);
            let is_closing = *closing.borrow_and_update();
            if is_closing && tasks.is_empty() {
                return;
            }
            tokio::select! {
                // In a fixed order, so that a simulation can be replayed.
                biased;
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => Self::ended(&mut round, ended),
                changed = closing.changed(), if !is_closing => if changed.is_err() { return },
                _ = news.changed() => {}
                () = clock.sleep(wait) => {}
            }
            while let Some(ended) = tasks.try_join_next() {
                Self::ended(&mut round, ended);
            }
            if round.next > clock.monotonic() {
                clock.sleep(round.next.saturating_sub(clock.monotonic())).await;
            }
        }
    }

    fn ended(round: &mut Round, ended: Result<String, tokio::task::JoinError>) {
        match ended {
            Ok(lane) => drop(round.busy.remove(&lane)),
            Err(error) => {
                // Its claim expires. Which lane it was is not known: the claims in the database decide.
                tracing::error!(%error, "sending events failed because of a bug in Kiln");
                round.busy.clear();
            }
        }
    }

    /// Starts to send the lanes that have entries, each in turn, from where the last search ended. Returns the time until
    /// the next lane may be sent.
    async fn start_lanes(&self, round: &mut Round, tasks: &mut JoinSet<String>) -> Result<Duration, Error> {
        let (first, mut wait) = (round.after.clone(), POLL);
        let mut from_the_start = first.is_empty();
        while round.busy.len() < SLOTS + WEBHOOK_SLOTS {
            let Some(lane) = self.backends.store.next_lane(&round.after).await? else {
                round.after.clear();
                if from_the_start {
                    break;
                }
                from_the_start = true;
                continue;
            };
            if from_the_start && !first.is_empty() && lane.name > first {
                break;
            }
            round.after.clone_from(&lane.name);
            // Another engine may send them.
            if lane.is_of_webhook() && self.webhooks.is_none() {
                continue;
            }
            if lane.wait > Duration::ZERO {
                wait = wait.min(lane.wait);
            } else if round.takes(&lane) {
                round.busy.insert(lane.name.clone(), pace(&lane));
                let courier = self.clone();
                tasks.spawn(async move {
                    if let Err(error) = courier.send_lane(&lane).await {
                        tracing::warn!(%error, "failed to change the outbox");
                    }
                    lane.name
                });
            }
        }
        Ok(wait)
    }

    /// Sends the entries of a lane until there are no more, or one fails.
    async fn send_lane(&self, lane: &Lane) -> Result<(), Error> {
        if let Some(webhooks) = self.webhooks.as_ref().filter(|_| lane.is_of_webhook()) {
            return webhook::send_lane(self, webhooks, lane).await;
        }
        let store = &self.backends.store;
        let limit = if lane.is_of_plugins() { self.limit + self.plugins.limit() } else { self.limit };
        loop {
            let mark = self.backends.chance.uuid();
            let claimed = self.backends.clock.monotonic();
            let Some(delivery) = store.claim_lane(&lane.name, mark, self.limit + limit, ENTRIES).await? else {
                self.emptied.send_replace(());
                return Ok(());
            };
            let mut left = delivery.entries.as_slice();
            let mut size = usize::MAX;
            while !left.is_empty() && self.backends.clock.monotonic() < claimed + self.limit {
                let (some, rest) = left.split_at(part(&delivery.destination, left).min(size));
                match self.send(&delivery, some, limit).await {
                    Ok(()) => {
                        store.remove_entries(mark, &numbers(some)).await?;
                        left = rest;
                    }
                    Err(failure) if is_rejected(&failure) && some.len() > 1 => size = 1,
                    Err(failure) if is_rejected(&failure) => {
                        tracing::warn!(root = %delivery.root, %failure, "an event was rejected and is not sent again");
                        store.remove_entries(mark, &numbers(some)).await?;
                        left = rest;
                    }
                    Err(failure) => {
                        self.postpone(&delivery, mark, left, &failure).await?;
                        return Ok(());
                    }
                }
            }
            if !left.is_empty() {
                return store.postpone_entries(mark, &numbers(left), Duration::ZERO).await;
            }
        }
    }

    /// Sends entries in one call, within a time limit.
    async fn send(&self, delivery: &Delivery, entries: &[OutboxEntry], limit: Duration) -> Result<(), Failure> {
        let sent = async {
            match &delivery.destination {
                Destination::ZaqarQueue { target, ttl } => {
                    queue::send(&self.backends, delivery.root, target, *ttl, entries).await
                }
                Destination::Notifications => bus::send(&self.backends, self.bus.as_deref(), entries).await,
                Destination::Plugins => {
                    for entry in entries {
                        self.plugins.after(&entry.body).await;
                    }
                    Ok(())
                }
                // Its lanes are sent by `webhook::send_lane`.
                Destination::Webhook { .. } => Err(Failure::new(
                    FailureKind::NotSent,
                    Class::NotConfigured,
                    "this engine sends nothing to webhooks",
                )),
            }
        };
        tokio::select! {
            biased;
            sent = sent => sent,
            () = self.backends.clock.sleep(limit) => {
                Err(Failure::new(FailureKind::Unavailable, Class::Timeout, "no answer in time"))
            }
        }
    }

    /// After a failure: entries that were retried for long enough are given up, the others wait.
    async fn postpone(
        &self,
        delivery: &Delivery,
        mark: uuid::Uuid,
        entries: &[OutboxEntry],
        failure: &Failure,
    ) -> Result<(), Error> {
        let attempts = entries.first().map_or(0, |entry| entry.attempts);
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempts)).min(LAST_PAUSE);
        let (old, kept): (Vec<&OutboxEntry>, _) = entries.iter().partition(|entry| entry.age >= GIVE_UP_AFTER);
        let (root, destination) = (delivery.root, &delivery.destination);
        if !old.is_empty() {
            let old: Vec<i64> = old.into_iter().map(|entry| entry.number).collect();
            tracing::warn!(%root, ?destination, %failure, events = old.len(), "events could not be sent and are given up");
            for _ in &old {
                tracing::trace!(target: "kiln::metric", metric = "notifications_lost");
            }
            self.backends.store.remove_entries(mark, &old).await?;
        }
        if kept.is_empty() {
            return Ok(());
        }
        let kept: Vec<i64> = kept.into_iter().map(|entry| entry.number).collect();
        tracing::info!(%root, ?destination, %failure, attempts, ?pause, "events could not be sent, retrying later");
        self.backends.store.postpone_entries(mark, &kept, self.backends.chance.jitter(pause)).await
    }
}

/// How many entries one call may send.
fn part(destination: &Destination, entries: &[OutboxEntry]) -> usize {
    match destination {
        Destination::ZaqarQueue { .. } => queue::part(entries),
        Destination::Notifications => entries.len(),
        Destination::Plugins | Destination::Webhook { .. } => 1,
    }
}

fn numbers(entries: &[OutboxEntry]) -> Vec<i64> {
    entries.iter().map(|entry| entry.number).collect()
}

/// Whether the destination refuses what was sent, so that sending it again is useless.
fn is_rejected(failure: &Failure) -> bool {
    failure.kind == FailureKind::Refused && matches!(failure.class, Class::BadRequest | Class::RequestEntityTooLarge)
}
