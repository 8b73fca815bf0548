//! Receivers of webhooks.
//!
//! The events of a webhook are one lane. Those of one stack are sent in order, those of several stacks beside each other. An event
//! that the receiver refuses is tried again for some minutes and then given up, so that the next ones can go. A receiver that cannot
//! be reached gets its events when it is back; after three days, the webhook is disabled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use kiln_store::webhook::{Attempt, Outcome, Webhook};
use kiln_store::{Destination, Error, Lane, OutboxEntry, WebhookStore};
use kiln_value::{Map, Secret, Value};
use uuid::Uuid;

use super::{Courier, ENTRIES, numbers};

/// Pauses after an event was refused; then it is given up.
const REFUSED: [Duration; 5] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
];
/// The first pause after a receiver could not be reached; each is four times as long …
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// … up to this one.
const LAST_PAUSE: Duration = Duration::from_hours(1);
/// A webhook that could deliver nothing for so long is disabled.
const DISABLED_AFTER: SignedDuration = SignedDuration::from_hours(3 * 24);
/// Stacks whose events are sent to one receiver at the same time.
const STACKS: usize = 4;

/// Webhooks, and what calls their receivers.
#[derive(Clone)]
pub struct Webhooks {
    /// Their store.
    pub store: Arc<dyn WebhookStore>,
    /// Calls receivers.
    pub sender: Arc<dyn WebhookSender>,
}

/// An event for a receiver.
#[derive(Clone, Debug)]
pub struct SignedEvent<'a> {
    /// The URL of the receiver.
    pub url: &'a Secret<String>,
    /// The keys that sign it.
    pub keys: Vec<&'a Secret<String>>,
    /// The ID of the delivery; one that is sent again has the same one.
    pub id: Uuid,
    /// The time of the signature.
    pub time: Timestamp,
    /// The `CloudEvent` in JSON.
    pub body: &'a str,
}

/// The answer of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// Calls the receivers of webhooks, within a time limit of its own.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Asks a receiver whether it takes events from Kiln; how many in a minute, if it says that. The error is for the user.
    async fn ask(&self, url: &Secret<String>) -> Result<Option<u32>, String>;
    /// Sends an event. The error says, for the user, why there is no answer.
    async fn send(&self, event: SignedEvent<'_>) -> Result<ReceiverAnswer, String>;
}

/// A claimed entry with its place among the events of the webhook, and how often it was refused.
struct Posted<'a> {
    entry: &'a OutboxEntry,
    place: i64,
    refused: u32,
}

/// What is left of the entries of a stack.
struct Rest<'a> {
    entries: &'a [Posted<'a>],
    /// The pause before the first of them.
    pause: Duration,
}

/// A claim of entries of a webhook.
struct Claim<'a> {
    courier: &'a Courier,
    webhooks: &'a Webhooks,
    webhook: &'a Webhook,
    mark: Uuid,
    /// When no more calls may begin.
    end: Duration,
}

/// Sends the entries of a webhook until there are no more, or some are left.
pub(super) async fn send_lane(courier: &Courier, webhooks: &Webhooks, lane: &Lane) -> Result<(), Error> {
    let (store, clock) = (&courier.backends.store, &courier.backends.clock);
    loop {
        let mark = courier.backends.chance.uuid();
        let end = clock.monotonic() + courier.limit;
        let claimed = store.claim_lane(&lane.name, mark, 2 * courier.limit, ENTRIES).await?;
        let Some(delivery) = claimed else { return Ok(()) };
        let Destination::Webhook { id } = delivery.destination else { return Ok(()) };
        let webhook = webhooks.store.webhook(id).await?;
        let places = match &webhook {
            Some(_) => webhooks.store.begin_deliveries(id, &delivery.entries).await?,
            None => Vec::new(),
        };
        let Some(mut webhook) = webhook.filter(|_| places.len() == delivery.entries.len()) else {
            tracing::info!(webhook = %id, events = delivery.entries.len(), "a webhook was removed, its events are dropped");
            store.remove_entries(mark, &numbers(&delivery.entries)).await?;
            continue;
        };
        let posted = delivery.entries.iter().zip(places);
        let posted: Vec<Posted<'_>> =
            posted.map(|(entry, (place, refused))| Posted { entry, place, refused }).collect();
        if let Some(why) = &webhook.terms.disabled {
            let why = format!("the webhook is disabled: {why}");
            let claim = Claim { courier, webhooks, webhook: &webhook, mark, end };
            for one in &posted {
                claim.end_without(one, Outcome::Failed, &why).await?;
            }
            continue;
        }
        if webhook.terms.handshake && webhook.receiver.allowed.is_none() {
            match within(courier, webhooks.sender.ask(&webhook.terms.url)).await {
                Ok(rate) => {
                    webhooks.store.allow_webhook(id, rate).await?;
                    webhook.receiver.rate = rate;
                }
                Err(why) => {
                    let claim = Claim { courier, webhooks, webhook: &webhook, mark, end };
                    return claim.not_allowed(&posted, &why).await;
                }
            }
        }
        let claim = Claim { courier, webhooks, webhook: &webhook, mark, end };
        if claim.send_all(posted).await? {
            return Ok(());
        }
    }
}

impl Claim<'_> {
    /// Sends entries; returns whether some are left.
    async fn send_all(&self, posted: Vec<Posted<'_>>) -> Result<bool, Error> {
        let mut stacks: BTreeMap<&str, Vec<Posted<'_>>> = BTreeMap::new();
        for one in posted {
            stacks.entry(one.entry.body.str_at("source").unwrap_or_default()).or_default().push(one);
        }
        // With a rate, one request follows the other.
        let beside = if self.webhook.receiver.rate.is_some() { 1 } else { STACKS };
        let sending: Vec<BoxFuture<'_, _>> =
            stacks.values().map(|entries| self.send_in_order(entries).boxed()).collect();
        let ended: Vec<Result<Rest<'_>, Error>> = futures::stream::iter(sending).buffered(beside).collect().await;
        let (mut later, mut at_once) = (Vec::new(), Vec::new());
        for rest in ended {
            let rest = rest?;
            let waits = usize::from(!rest.pause.is_zero()).min(rest.entries.len());
            let (first, others) = rest.entries.split_at(waits);
            later.extend(first.iter().map(|one| (one.entry.number, rest.pause)));
            at_once.extend(others.iter().map(|one| one.entry.number));
        }
        let is_left = !later.is_empty() || !at_once.is_empty();
        let store = &self.courier.backends.store;
        // Those that may go at once wait for the others, which come before them in the lane.
        if !at_once.is_empty() {
            store.postpone_entries(self.mark, &at_once, Duration::ZERO).await?;
        }
        for (number, pause) in later {
            store.postpone_entries(self.mark, &[number], pause).await?;
        }
        Ok(is_left)
    }

    /// Sends the entries of a stack until one fails.
    async fn send_in_order<'p>(&self, entries: &'p [Posted<'p>]) -> Result<Rest<'p>, Error> {
        let clock = &self.courier.backends.clock;
        let mut left = entries;
        while let Some((one, rest)) = left.split_first() {
            if clock.monotonic() >= self.end {
                return Ok(Rest { entries: left, pause: Duration::ZERO });
            }
            if let Some(pause) = self.send(one).await? {
                return Ok(Rest { entries: left, pause });
            }
            left = rest;
            if let Some(rate) = self.webhook.receiver.rate {
                let pause = Duration::from_mins(1) / rate.max(1);
                if clock.monotonic() + pause >= self.end {
                    return Ok(Rest { entries: left, pause });
                }
                clock.sleep(pause).await;
            }
        }
        Ok(Rest { entries: left, pause: Duration::ZERO })
    }

    /// Sends an entry. Returns the pause before it is sent again; `None`: it is delivered, or given up.
    async fn send(&self, one: &Posted<'_>) -> Result<Option<Duration>, Error> {
        let (clock, terms) = (&self.courier.backends.clock, &self.webhook.terms);
        let (now, begun) = (clock.now(), clock.monotonic());
        let keys = terms.keys.iter().filter(|key| key.until.is_none_or(|until| now < until));
        let (keys, body) = (keys.map(|key| &key.secret).collect(), cloud_event(one));
        let event = SignedEvent { url: &terms.url, keys, id: one.entry.id, time: now, body: &body };
        let answer = within(self.courier, self.webhooks.sender.send(event)).await;
        let status = answer.as_ref().ok().map(|answer| answer.status);
        let is_delivered = status.is_some_and(|status| (200..300).contains(&status));
        // Without an answer of the application itself, it says nothing about the event.
        let was_refused = !is_delivered && status.is_some_and(|status| !matches!(status, 429 | 502..=504));
        let pause = if was_refused {
            REFUSED.get(usize::try_from(one.refused).unwrap_or(usize::MAX)).copied()
        } else {
            Some(pause(one.entry.attempts))
        };
        let outcome = match pause {
            _ if is_delivered => Outcome::Delivered,
            Some(_) if status != Some(410) => Outcome::Pending,
            _ => Outcome::Failed,
        };
        let error = match &answer {
            _ if is_delivered => None,
            Ok(answer) => Some(format!("the receiver has answered with status {}", answer.status)),
            Err(why) => Some(why.clone()),
        };
        self.webhooks
            .store
            .end_attempt(
                self.webhook.id,
                &Attempt {
                    mark: self.mark,
                    number: one.entry.number,
                    id: one.entry.id,
                    outcome,
                    was_sent: true,
                    was_refused,
                    status,
                    error: error.clone(),
                    took: clock.monotonic().saturating_sub(begun),
                },
            )
            .await?;
        tracing::trace!(target: "kiln::metric", metric = "webhook_attempts", outcome = outcome.as_str());
        let Some(error) = error else { return Ok(None) };
        let (webhook, project, delivery) = (self.webhook.id, &self.webhook.project, one.entry.id);
        if outcome == Outcome::Failed {
            tracing::warn!(%webhook, project, %delivery, error, "an event could not be delivered and is given up");
        } else {
            tracing::info!(%webhook, project, %delivery, error, "an event could not be delivered, retrying later");
        }
        if status == Some(410) {
            self.disable("the receiver has answered with status 410 (Gone)").await?;
        } else {
            self.disable_after_long_failure().await?;
        }
        if outcome == Outcome::Failed {
            return Ok(None);
        }
        let asked = answer.ok().and_then(|answer| answer.retry_after).unwrap_or_default().min(LAST_PAUSE);
        Ok(pause.map(|pause| self.courier.backends.chance.jitter(pause).max(asked)))
    }

    /// The receiver does not allow Kiln to send, or cannot be asked.
    async fn not_allowed(&self, posted: &[Posted<'_>], why: &str) -> Result<(), Error> {
        tracing::info!(webhook = %self.webhook.id, project = self.webhook.project, error = why, "a receiver does not take events");
        self.webhooks.store.note_failure(self.webhook.id).await?;
        self.disable_after_long_failure().await?;
        for one in posted {
            self.end_without(one, Outcome::Pending, why).await?;
        }
        let attempts = posted.first().map_or(0, |one| one.entry.attempts);
        let all: Vec<i64> = posted.iter().map(|one| one.entry.number).collect();
        let pause = self.courier.backends.chance.jitter(pause(attempts));
        self.courier.backends.store.postpone_entries(self.mark, &all, pause).await
    }

    /// Stores why an entry was not sent.
    async fn end_without(&self, one: &Posted<'_>, outcome: Outcome, why: &str) -> Result<(), Error> {
        let attempt = Attempt {
            mark: self.mark,
            number: one.entry.number,
            id: one.entry.id,
            outcome,
            was_sent: false,
            was_refused: false,
            status: None,
            error: Some(why.to_owned()),
            took: Duration::ZERO,
        };
        self.webhooks.store.end_attempt(self.webhook.id, &attempt).await
    }

    async fn disable_after_long_failure(&self) -> Result<(), Error> {
        let now = self.courier.backends.clock.now();
        // As it is after this failure.
        let webhook = self.webhooks.store.webhook(self.webhook.id).await?;
        let since = webhook.and_then(|webhook| webhook.receiver.failing_since);
        if since.is_some_and(|since| now.duration_since(since) >= DISABLED_AFTER) {
            self.disable("no event could be delivered for 3 days").await?;
        }
        Ok(())
    }

    async fn disable(&self, why: &str) -> Result<(), Error> {
        tracing::warn!(webhook = %self.webhook.id, project = self.webhook.project, why, "a webhook is disabled");
        tracing::trace!(target: "kiln::metric", metric = "webhooks_disabled");
        self.webhooks.store.disable_webhook(self.webhook.id, why).await
    }
}

/// A call of a receiver ends before its claim does.
async fn within<T>(courier: &Courier, call: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::select! {
        biased;
        ended = call => ended,
        () = courier.backends.clock.sleep(courier.limit) => Err("no answer in time".to_owned()),
    }
}

/// The pause after a receiver could not be reached.
fn pause(attempts: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(4_u32.saturating_pow(attempts)).min(LAST_PAUSE)
}

/// The event in the JSON format of `CloudEvents` 1.0, with its extension `sequence`.
fn cloud_event(one: &Posted<'_>) -> String {
    let mut event = Map::new();
    event.insert("specversion".to_owned(), "1.0".into());
    event.insert("id".to_owned(), one.entry.id.to_string().into());
    // Ordered as texts too.
    event.insert("sequence".to_owned(), format!("{:019}", one.place).into());
    event.insert("datacontenttype".to_owned(), "application/json".into());
    if let Value::Map(stored) = &one.entry.body {
        event.extend(stored.clone());
    }
    serde_json::to_string(&Value::Map(event)).unwrap_or_default()
}
