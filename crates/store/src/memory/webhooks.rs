//! Webhooks.

use async_trait::async_trait;
use kiln_resource::WebhookId;
use kiln_value::Value;
use uuid::Uuid;

use super::MemoryStore;
use super::state::{State, micro, micros_of, time_of};
use crate::limits::FAILURE_PAUSE;
use crate::outbox::{NewEntry, lane_of_webhook};
use crate::webhook::{Attempt, DeliveryQuery, Outcome, Receiver, Webhook, WebhookDelivery, WebhookStore};
use crate::{Error, OutboxEntry, WebhookMessage};

/// A webhook with the place of its last delivery.
pub(super) struct StoredWebhook {
    webhook: Webhook,
    sequence: i64,
    /// The last failure.
    failed: i64,
}

/// A delivery.
pub(super) struct StoredDelivery {
    webhook: WebhookId,
    delivery: WebhookDelivery,
    refused: u32,
    body: Value,
}

impl State {
    /// The entries for messages about a project, one for each webhook that takes them.
    pub(super) fn entries_of_webhooks(
        &self,
        project: &str,
        messages: impl Iterator<Item = WebhookMessage>,
    ) -> Vec<NewEntry> {
        if self.webhooks.is_empty() {
            return Vec::new();
        }
        let webhooks = || self.webhooks.iter().map(|stored| &stored.webhook);
        let takes = |webhook: &&Webhook, message: &WebhookMessage| {
            let terms = &webhook.terms;
            let is_on = terms.disabled.is_none() && webhook.project == project;
            is_on && message.is_for(&terms.events, terms.stack)
        };
        let mut entries = Vec::new();
        for message in messages {
            let wanted = webhooks().filter(|webhook| takes(webhook, &message));
            entries.extend(wanted.map(|webhook| NewEntry::for_webhook(webhook.id, &message)));
        }
        entries
    }

    /// Tells the webhooks of a project.
    pub(super) fn tell_webhooks(&mut self, project: &str, message: WebhookMessage, now: i64) {
        let entries = self.entries_of_webhooks(project, std::iter::once(message));
        self.write_entries(entries, now);
    }

    /// Deletes deliveries that began before a time, and those of webhooks that are gone; returns their number.
    pub(super) fn forget_deliveries(&mut self, before: i64) -> usize {
        let there: Vec<WebhookId> = self.webhooks.iter().map(|stored| stored.webhook.id).collect();
        let count = self.deliveries.len();
        self.deliveries.retain(|stored| {
            let is_open = stored.delivery.outcome == Outcome::Pending && there.contains(&stored.webhook);
            is_open || stored.delivery.created.as_microsecond() >= before
        });
        count - self.deliveries.len()
    }

    fn webhook(&mut self, id: WebhookId) -> Option<&mut StoredWebhook> {
        self.webhooks.iter_mut().find(|stored| stored.webhook.id == id)
    }

    fn delivery(&mut self, id: Uuid) -> Option<&mut StoredDelivery> {
        self.deliveries.iter_mut().find(|stored| stored.delivery.id == id)
    }

    fn note_failure(&mut self, id: WebhookId, now: i64) {
        if let Some(stored) = self.webhook(id) {
            let known = stored.webhook.receiver.failing_since;
            let is_new = known.is_none() || stored.failed < now.saturating_sub(micros_of(FAILURE_PAUSE));
            stored.webhook.receiver.failing_since = if is_new { Some(time_of(now)) } else { known };
            stored.failed = now;
        }
    }
}

#[async_trait]
impl WebhookStore for MemoryStore {
    async fn add_webhook(&self, webhook: &Webhook) -> Result<(), Error> {
        let (mut state, _) = self.open();
        if state.webhook(webhook.id).is_none() {
            let receiver = Receiver::default();
            let webhook = Webhook { created: micro(webhook.created), receiver, ..webhook.clone() };
            state.webhooks.push(StoredWebhook { webhook, sequence: 0, failed: 0 });
        }
        Ok(())
    }

    async fn webhooks(&self, project: &str) -> Result<Vec<Webhook>, Error> {
        let (state, _) = self.open();
        let all = state.webhooks.iter().map(|stored| &stored.webhook);
        Ok(all.filter(|webhook| webhook.project == project).cloned().collect())
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>, Error> {
        Ok(self.open().0.webhook(id).map(|stored| stored.webhook.clone()))
    }

    async fn change_webhook(&self, webhook: &Webhook) -> Result<bool, Error> {
        let (mut state, _) = self.open();
        let Some(stored) = state.webhook(webhook.id).filter(|stored| stored.webhook.version == webhook.version) else {
            return Ok(false);
        };
        stored.webhook.terms = webhook.terms.clone();
        stored.webhook.receiver = Receiver::default();
        stored.webhook.version += 1;
        let lane = lane_of_webhook(webhook.id);
        for ((of, _), row) in &mut state.outbox {
            if *of == lane && row.mark.is_none() {
                row.due = 0;
            }
        }
        drop(state);
        self.hub.posted();
        Ok(true)
    }

    async fn remove_webhook(&self, project: &str, id: WebhookId) -> Result<bool, Error> {
        let (mut state, _) = self.open();
        let before = state.webhooks.len();
        state.webhooks.retain(|stored| stored.webhook.id != id || stored.webhook.project != project);
        Ok(state.webhooks.len() < before)
    }

    async fn send_to_webhook(&self, id: WebhookId, message: &WebhookMessage) -> Result<Uuid, Error> {
        let entry = NewEntry::for_webhook(id, message);
        let delivery = entry.id;
        let (mut state, now) = self.open();
        state.write_entries(vec![entry], now);
        drop(state);
        self.hub.posted();
        Ok(delivery)
    }

    async fn redeliver(&self, id: WebhookId, delivery: Uuid) -> Result<bool, Error> {
        let (mut state, now) = self.open();
        let Some(stored) = state.delivery(delivery).filter(|stored| stored.webhook == id) else { return Ok(false) };
        if stored.delivery.outcome != Outcome::Pending {
            stored.delivery.outcome = Outcome::Pending;
            stored.refused = 0;
            let entry = NewEntry::again(id, delivery, stored.body.clone());
            state.write_entries(vec![entry], now);
        }
        drop(state);
        self.hub.posted();
        Ok(true)
    }

    async fn deliveries(&self, id: WebhookId, query: &DeliveryQuery) -> Result<Vec<WebhookDelivery>, Error> {
        let (state, _) = self.open();
        let of_webhook: Vec<&WebhookDelivery> =
            state.deliveries.iter().filter(|stored| stored.webhook == id).map(|stored| &stored.delivery).collect();
        let end = match query.marker {
            None => of_webhook.len(),
            Some(marker) => of_webhook
                .iter()
                .position(|delivery| delivery.id == marker)
                .ok_or_else(|| Error::NotFound(format!("delivery {marker}")))?,
        };
        let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let older = of_webhook.into_iter().take(end).rev();
        let asked = older.filter(|delivery| query.outcome.is_none_or(|outcome| outcome == delivery.outcome));
        Ok(asked.take(limit).cloned().collect())
    }

    async fn begin_deliveries(&self, id: WebhookId, entries: &[OutboxEntry]) -> Result<Vec<(i64, u32)>, Error> {
        let (mut state, now) = self.open();
        let mut places = Vec::new();
        for entry in entries {
            if let Some(stored) = state.delivery(entry.id) {
                places.push((stored.delivery.sequence, stored.refused));
                continue;
            }
            let Some(webhook) = state.webhook(id) else { return Ok(Vec::new()) };
            webhook.sequence += 1;
            let delivery = WebhookDelivery {
                id: entry.id,
                event_type: entry.body.str_at("type").unwrap_or_default().to_owned(),
                sequence: webhook.sequence,
                outcome: Outcome::Pending,
                attempts: 0,
                status: None,
                error: None,
                took: None,
                created: time_of(now),
                tried: None,
            };
            places.push((delivery.sequence, 0));
            state.deliveries.push(StoredDelivery { webhook: id, delivery, refused: 0, body: entry.body.clone() });
        }
        Ok(places)
    }

    async fn end_attempt(&self, id: WebhookId, attempt: &Attempt) -> Result<(), Error> {
        let (mut state, now) = self.open();
        let is_it = |number: i64, mark: Option<Uuid>| number == attempt.number && mark == Some(attempt.mark);
        if !state.outbox.iter().any(|((_, number), row)| is_it(*number, row.mark)) {
            return Ok(());
        }
        if attempt.outcome != Outcome::Pending {
            state.outbox.retain(|(_, number), row| !is_it(*number, row.mark));
        }
        if let Some(stored) = state.delivery(attempt.id) {
            stored.delivery.outcome = attempt.outcome;
            stored.delivery.status = attempt.status;
            stored.delivery.error.clone_from(&attempt.error);
            if attempt.was_sent {
                stored.delivery.attempts += 1;
                stored.refused += u32::from(attempt.was_refused);
                stored.delivery.took = Some(attempt.took);
                stored.delivery.tried = Some(time_of(now));
            }
        }
        match attempt.outcome {
            Outcome::Delivered => {
                if let Some(stored) = state.webhook(id) {
                    stored.webhook.receiver.failing_since = None;
                }
            }
            _ if attempt.was_sent => state.note_failure(id, now),
            _ => {}
        }
        Ok(())
    }

    async fn allow_webhook(&self, id: WebhookId, rate: Option<u32>) -> Result<(), Error> {
        let (mut state, now) = self.open();
        if let Some(stored) = state.webhook(id) {
            stored.webhook.receiver.allowed = Some(time_of(now));
            stored.webhook.receiver.rate = rate;
        }
        Ok(())
    }

    async fn disable_webhook(&self, id: WebhookId, why: &str) -> Result<(), Error> {
        let (mut state, _) = self.open();
        if let Some(stored) = state.webhook(id).filter(|stored| stored.webhook.terms.disabled.is_none()) {
            stored.webhook.terms.disabled = Some(why.to_owned());
            stored.webhook.version += 1;
        }
        Ok(())
    }

    async fn note_failure(&self, id: WebhookId) -> Result<(), Error> {
        let (mut state, now) = self.open();
        state.note_failure(id, now);
        Ok(())
    }
}
