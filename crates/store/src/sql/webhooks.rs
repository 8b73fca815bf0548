//! Webhooks and their deliveries.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::WebhookId;
use kiln_value::{Secret, Value};
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Order, Query, SelectStatement, UpdateStatement};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::columns::{Columns, micros, micros_of, optional_id, plain};
use super::pool::Transaction;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::limits::{DELIVERY_KEPT, EVENTS, FAILURE_PAUSE};
use crate::outbox::{NewEntry, lane_of_webhook};
use crate::webhook::{
    Attempt, DeliveryQuery, EventPattern, Outcome, Receiver, Webhook, WebhookDelivery, WebhookKey, WebhookMessage,
    WebhookStore, WebhookTerms,
};
use crate::{Author, Error, OutboxEntry, StackId};

/// The columns of a webhook in reading order.
const COLUMNS: [&str; 13] = [
    "id", "project", "stack", "events", "body", "disabled", "user_id", "username", "created", "version", "allowed",
    "rate", "failing",
];
const NEW_DELIVERY_COLUMNS: [&str; 9] =
    ["id", "webhook", "type", "place", "body", "outcome", "attempts", "refused", "created"];

/// The number of the format of a body.
const FORMAT: u32 = 1;

/// The encrypted body of a row.
#[derive(Serialize, Deserialize)]
struct Body {
    format: u32,
    url: String,
    keys: Vec<Key>,
    description: String,
    handshake: bool,
}

#[derive(Serialize, Deserialize)]
struct Key {
    secret: String,
    until: Option<Timestamp>,
}

#[async_trait]
impl WebhookStore for SqlStore {
    async fn add_webhook(&self, webhook: &Webhook) -> Result<(), Error> {
        let (id, terms) = (webhook.id.to_string(), &webhook.terms);
        let insert = Query::insert()
            .into_table(schema::WEBHOOK)
            .columns(COLUMNS.into_iter().take(10).chain(["sequence"]))
            .values([
                id.as_str().into(),
                plain(&webhook.project).into(),
                optional_id(terms.stack.as_ref()),
                patterns(&terms.events).into(),
                self.vault.seal(&id, &body(terms)?)?.into(),
                terms.disabled.as_deref().map(plain).into(),
                plain(&webhook.author.user_id).into(),
                plain(&webhook.author.username).into(),
                micros(webhook.created).into(),
                webhook.version.into(),
                0.into(),
            ])
            .map_err(Fault::from)?
            .on_conflict(OnConflict::column("id").do_nothing_on(["id"]).to_owned())
            .to_owned();
        self.retry(|| async { Ok(self.writer.execute(&insert).await.map(drop)?) }).await
    }

    async fn webhooks(&self, project: &str) -> Result<Vec<Webhook>, Error> {
        let select = webhooks_where(Expr::col("project").eq(plain(project)));
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| self.webhook_of(&mut Columns::of(row))).collect()
        })
        .await
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>, Error> {
        let select = webhooks_where(Expr::col("id").eq(id.to_string()));
        self.retry(|| async {
            let row = self.reader.query_one(&select).await?;
            row.map(|row| self.webhook_of(&mut Columns::of(&row))).transpose()
        })
        .await
    }

    async fn change_webhook(&self, webhook: &Webhook) -> Result<bool, Error> {
        let (id, terms) = (webhook.id.to_string(), &webhook.terms);
        let update = Query::update()
            .table(schema::WEBHOOK)
            .value("stack", optional_id(terms.stack.as_ref()))
            .value("events", patterns(&terms.events))
            .value("body", self.vault.seal(&id, &body(terms)?)?)
            .value("disabled", terms.disabled.as_deref().map(plain))
            .value("version", webhook.version + 1)
            .value("allowed", None::<i64>)
            .value("rate", None::<i64>)
            .value("failing", None::<i64>)
            .and_where(Expr::col("id").eq(id.as_str()))
            .and_where(Expr::col("version").eq(webhook.version))
            .to_owned();
        let select = webhooks_where(Expr::col("id").eq(id.as_str()));
        let at_once = Query::update()
            .table(schema::OUTBOX)
            .value("due", 0)
            .and_where(Expr::col("lane").eq(lane_of_webhook(webhook.id)))
            .and_where(Expr::col("mark").is_null())
            .to_owned();
        let changed = self.retry_numbered(|attempt| {
            let (update, select, at_once) = (&update, &select, &at_once);
            async move {
                let tx = self.begin().await?;
                if tx.execute(update).await?.rows_affected() > 0 {
                    tx.execute(at_once).await?;
                    tx.commit().await?;
                    return Ok(true);
                }
                drop(tx);
                // An earlier attempt changed it and lost its connection.
                let Some(row) = self.writer.query_one(select).await?.filter(|_| attempt > 1) else { return Ok(false) };
                let there = self.webhook_of(&mut Columns::of(&row))?;
                Ok(there.version == webhook.version + 1 && there.terms == webhook.terms)
            }
        });
        let changed = changed.await?;
        self.hub.posted();
        Ok(changed)
    }

    async fn remove_webhook(&self, project: &str, id: WebhookId) -> Result<bool, Error> {
        let is_it = Expr::col("id").eq(id.to_string()).and(Expr::col("project").eq(plain(project)));
        let delete = Query::delete().from_table(schema::WEBHOOK).and_where(is_it).to_owned();
        self.retry_numbered(|attempt| {
            let delete = &delete;
            async move { Ok(self.writer.execute(delete).await?.rows_affected() > 0 || attempt > 1) }
        })
        .await
    }

    async fn send_to_webhook(&self, id: WebhookId, message: &WebhookMessage) -> Result<Uuid, Error> {
        let entry = NewEntry::for_webhook(id, message);
        self.retry(|| async {
            let tx = self.begin().await?;
            self.write_entries(&tx, std::slice::from_ref(&entry)).await?;
            tx.commit().await
        })
        .await?;
        self.hub.posted();
        Ok(entry.id)
    }

    async fn redeliver(&self, id: WebhookId, delivery: Uuid) -> Result<bool, Error> {
        let of_it = || Expr::col("id").eq(delivery.to_string()).and(Expr::col("webhook").eq(id.to_string()));
        let select = Query::select().columns(["body"]).from(schema::WEBHOOK_DELIVERY).and_where(of_it()).to_owned();
        let update = Query::update()
            .table(schema::WEBHOOK_DELIVERY)
            .value("outcome", Outcome::Pending.as_str())
            .value("refused", 0)
            .and_where(of_it())
            .and_where(Expr::col("outcome").ne(Outcome::Pending.as_str()))
            .to_owned();
        let found = self
            .retry(|| async {
                let tx = self.begin().await?;
                let Some(row) = tx.query_one(&select).await? else { return Ok(false) };
                let body = self.opened(&delivery.to_string(), Columns::of(&row).text()?)?;
                if tx.execute(&update).await?.rows_affected() > 0 {
                    self.write_entries(&tx, &[NewEntry::again(id, delivery, body)]).await?;
                }
                tx.commit().await?;
                Ok(true)
            })
            .await?;
        self.hub.posted();
        Ok(found)
    }

    async fn deliveries(&self, id: WebhookId, query: &DeliveryQuery) -> Result<Vec<WebhookDelivery>, Error> {
        let of_webhook = || Expr::col("webhook").eq(id.to_string());
        self.retry(|| async {
            let mut select = Query::select();
            select
                .columns(["id", "type", "place", "outcome", "attempts", "status", "error", "took", "created", "tried"])
                .from(schema::WEBHOOK_DELIVERY)
                .and_where(of_webhook())
                .order_by("seq", Order::Desc);
            if let Some(outcome) = query.outcome {
                select.and_where(Expr::col("outcome").eq(outcome.as_str()));
            }
            if let Some(marker) = query.marker {
                let place = Query::select()
                    .column("seq")
                    .from(schema::WEBHOOK_DELIVERY)
                    .and_where(of_webhook())
                    .and_where(Expr::col("id").eq(marker.to_string()))
                    .to_owned();
                let Some(row) = self.reader.query_one(&place).await? else {
                    return Err(Error::NotFound(format!("delivery {marker}")).into());
                };
                select.and_where(Expr::col("seq").lt(Columns::of(&row).int()?));
            }
            if let Some(limit) = query.limit {
                select.limit(limit);
            }
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| delivery(&mut Columns::of(row))).collect()
        })
        .await
    }

    async fn begin_deliveries(&self, id: WebhookId, entries: &[OutboxEntry]) -> Result<Vec<(i64, u32)>, Error> {
        let ids: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
        let stored = Query::select()
            .columns(["id", "place", "refused"])
            .from(schema::WEBHOOK_DELIVERY)
            .and_where(Expr::col("id").is_in(ids.iter().cloned()))
            .to_owned();
        let places = Query::select()
            .column("sequence")
            .from(schema::WEBHOOK)
            .and_where(Expr::col("id").eq(id.to_string()))
            .to_owned();
        self.retry(|| async {
            let mut known: BTreeMap<String, (i64, u32)> = BTreeMap::new();
            for row in self.writer.query_all(&stored).await? {
                let mut columns = Columns::of(&row);
                let (id, place, refused) = (columns.text()?, columns.int()?, columns.int()?);
                known.insert(id, (place, u32::try_from(refused).unwrap_or(u32::MAX)));
            }
            let new: Vec<(&String, &OutboxEntry)> =
                ids.iter().zip(entries).filter(|(id, _)| !known.contains_key(*id)).collect();
            if !new.is_empty() {
                let tx = self.begin().await?;
                let more = i64::try_from(new.len()).unwrap_or(i64::MAX);
                let count = of_webhook(id).value("sequence", Expr::col("sequence").add(more)).to_owned();
                tx.execute(&count).await?;
                // It was removed meanwhile.
                let Some(row) = tx.query_one(&places).await? else { return Ok(Vec::new()) };
                let first = Columns::of(&row).int()? - more + 1;
                let mut rows = Vec::with_capacity(new.len());
                for ((entry_id, entry), place) in new.into_iter().zip(first..) {
                    known.insert(entry_id.clone(), (place, 0));
                    let text = serde_json::to_string(&entry.body).map_err(|error| Error::Damaged(error.into()))?;
                    rows.push(vec![
                        entry_id.as_str().into(),
                        id.to_string().into(),
                        entry.body.str_at("type").unwrap_or_default().into(),
                        place.into(),
                        self.vault.seal_value(entry_id, text)?.into(),
                        Outcome::Pending.as_str().into(),
                        0.into(),
                        0.into(),
                        self.outside.now(),
                    ]);
                }
                insert(&tx, schema::WEBHOOK_DELIVERY, &NEW_DELIVERY_COLUMNS, rows, None).await?;
                tx.commit().await?;
            }
            Ok(ids.iter().filter_map(|id| known.get(id).copied()).collect())
        })
        .await
    }

    async fn end_attempt(&self, id: WebhookId, attempt: &Attempt) -> Result<(), Error> {
        let mut update = Query::update();
        update
            .table(schema::WEBHOOK_DELIVERY)
            .value("outcome", attempt.outcome.as_str())
            .value("status", attempt.status.map(i64::from))
            .value("error", attempt.error.as_deref().map(plain))
            .and_where(Expr::col("id").eq(attempt.id.to_string()));
        if attempt.was_sent {
            update
                .value("attempts", Expr::col("attempts").add(1))
                .value("refused", Expr::col("refused").add(i64::from(attempt.was_refused)))
                .value("took", micros_of(attempt.took))
                .value("tried", self.outside.now());
        }
        let is_claimed = Expr::col("seq").eq(attempt.number).and(Expr::col("mark").eq(attempt.mark.to_string()));
        let delete = Query::delete().from_table(schema::OUTBOX).and_where(is_claimed.clone()).to_owned();
        // Locks the entry.
        let keep = Query::update()
            .table(schema::OUTBOX)
            .value("mark", attempt.mark.to_string())
            .and_where(is_claimed)
            .to_owned();
        let noted = match attempt.outcome {
            Outcome::Delivered => {
                let mut works = of_webhook(id);
                Some(works.value("failing", None::<i64>).and_where(Expr::col("failing").is_not_null()).to_owned())
            }
            _ if attempt.was_sent => Some(self.failing(id)),
            _ => None,
        };
        self.retry(|| async {
            let tx = self.begin().await?;
            // First, because a courier that was too slow changes nothing.
            let claimed = match attempt.outcome {
                Outcome::Pending => tx.execute(&keep).await?,
                Outcome::Delivered | Outcome::Failed => tx.execute(&delete).await?,
            };
            if claimed.rows_affected() == 0 {
                return Ok(());
            }
            tx.execute(&update).await?;
            if let Some(noted) = &noted {
                tx.execute(noted).await?;
            }
            tx.commit().await
        })
        .await
    }

    async fn allow_webhook(&self, id: WebhookId, rate: Option<u32>) -> Result<(), Error> {
        let mut update = of_webhook(id);
        update.value("allowed", self.outside.now()).value("rate", rate.map(i64::from));
        self.retry(|| async { Ok(self.writer.execute(&update).await.map(drop)?) }).await
    }

    async fn disable_webhook(&self, id: WebhookId, why: &str) -> Result<(), Error> {
        let mut update = of_webhook(id);
        update
            .value("disabled", plain(why))
            .value("version", Expr::col("version").add(1))
            .and_where(Expr::col("disabled").is_null());
        self.retry(|| async { Ok(self.writer.execute(&update).await.map(drop)?) }).await
    }

    async fn note_failure(&self, id: WebhookId) -> Result<(), Error> {
        let update = self.failing(id);
        self.retry(|| async { Ok(self.writer.execute(&update).await.map(drop)?) }).await
    }
}

impl SqlStore {
    /// The entries for messages about a project, one for each webhook that takes them.
    pub(super) async fn entries_of_webhooks(
        &self,
        tx: &Transaction,
        project: &str,
        messages: impl Iterator<Item = WebhookMessage>,
    ) -> Result<Vec<NewEntry>, Fault> {
        let select = Query::select()
            .columns(["id", "stack", "events"])
            .from(schema::WEBHOOK)
            .and_where(Expr::col("project").eq(plain(project)))
            .and_where(Expr::col("disabled").is_null())
            .order_by("seq", Order::Asc)
            .to_owned();
        let mut webhooks: Vec<(WebhookId, Option<StackId>, Vec<EventPattern>)> = Vec::new();
        for row in tx.query_all(&select).await? {
            let mut columns = Columns::of(&row);
            webhooks.push((columns.parsed()?, columns.optional_parsed()?, patterns_of(&columns.text()?)));
        }
        if webhooks.is_empty() {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        for message in messages {
            let takers = webhooks.iter().filter(|(_, stack, events)| message.is_for(events, *stack));
            entries.extend(takers.map(|(id, ..)| NewEntry::for_webhook(*id, &message)));
        }
        Ok(entries)
    }

    /// Tells the webhooks of a project, if the service has webhooks.
    pub(super) async fn tell_webhooks(
        &self,
        tx: &Transaction,
        project: &str,
        message: WebhookMessage,
    ) -> Result<(), Fault> {
        if !self.webhooks {
            return Ok(());
        }
        let entries = self.entries_of_webhooks(tx, project, std::iter::once(message)).await?;
        self.write_entries(tx, &entries).await
    }

    /// Deletes old deliveries; returns their number.
    pub(super) async fn forget_deliveries(&self) -> Result<u64, Error> {
        let there = Query::select().column("id").from(schema::WEBHOOK).to_owned();
        let is_of_none = Expr::col("webhook").not_in_subquery(there);
        let select = Query::select()
            .column("seq")
            .from(schema::WEBHOOK_DELIVERY)
            .and_where(Expr::col("created").lt(self.outside.now().sub(micros_of(DELIVERY_KEPT))))
            .and_where(Expr::col("outcome").ne(Outcome::Pending.as_str()).or(is_of_none))
            .order_by("created", Order::Asc)
            .limit(EVENTS as u64)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let old = rows.iter().map(|row| Columns::of(row).int()).collect::<Result<Vec<_>, _>>()?;
            if old.is_empty() {
                return Ok(0);
            }
            let delete =
                Query::delete().from_table(schema::WEBHOOK_DELIVERY).and_where(Expr::col("seq").is_in(old)).to_owned();
            Ok(self.writer.execute(&delete).await?.rows_affected())
        })
        .await
    }

    fn failing(&self, id: WebhookId) -> UpdateStatement {
        let ended = Expr::col("failed").lt(self.outside.now().sub(micros_of(FAILURE_PAUSE)));
        let begins = Expr::col("failing").is_null().or(ended);
        let since = Expr::case(begins, self.outside.now()).finally(Expr::col("failing"));
        let mut update = of_webhook(id);
        // In this order: MariaDB reads what it has just written.
        update.value("failing", since).value("failed", self.outside.now());
        update
    }

    fn opened(&self, row: &str, stored: String) -> Result<Value, Fault> {
        let text = self.vault.open_value(row, stored)?;
        serde_json::from_str(&text).map_err(|error| Error::Damaged(error.into()).into())
    }

    fn webhook_of(&self, columns: &mut Columns<'_>) -> Result<Webhook, Fault> {
        let row = columns.text()?;
        let id = row.parse().map_err(|_| Error::Damaged(format!("ID {row:?}").into()))?;
        let (project, stack, events) = (columns.text()?, columns.optional_parsed()?, patterns_of(&columns.text()?));
        let body = self.vault.open(&row, &columns.text()?)?;
        let body: Body = serde_json::from_str(body.expose()).map_err(|error| Error::Damaged(error.into()))?;
        if body.format > FORMAT {
            return Err(Error::Damaged(format!("the webhook {id} is of a newer version of Kiln").into()).into());
        }
        let key = |key: Key| WebhookKey { secret: Secret::new(key.secret), until: key.until };
        let terms = WebhookTerms {
            url: Secret::new(body.url),
            keys: body.keys.into_iter().map(key).collect(),
            events,
            stack,
            description: body.description,
            handshake: body.handshake,
            disabled: columns.optional_text()?,
        };
        let author = Author { user_id: columns.text()?, username: columns.text()? };
        let (created, version) = (columns.time()?, columns.int()?);
        let receiver = Receiver {
            allowed: columns.optional_time()?,
            rate: columns.optional_int()?.and_then(|rate| u32::try_from(rate).ok()),
            failing_since: columns.optional_time()?,
        };
        Ok(Webhook { id, project, terms, receiver, author, created, version })
    }
}

fn webhooks_where(which: Expr) -> SelectStatement {
    Query::select().columns(COLUMNS).from(schema::WEBHOOK).and_where(which).order_by("seq", Order::Asc).to_owned()
}

fn of_webhook(id: WebhookId) -> UpdateStatement {
    Query::update().table(schema::WEBHOOK).and_where(Expr::col("id").eq(id.to_string())).to_owned()
}

fn body(terms: &WebhookTerms) -> Result<String, Error> {
    let key = |key: &WebhookKey| Key { secret: key.secret.expose().clone(), until: key.until };
    let body = Body {
        format: FORMAT,
        url: terms.url.expose().clone(),
        keys: terms.keys.iter().map(key).collect(),
        description: terms.description.clone(),
        handshake: terms.handshake,
    };
    serde_json::to_string(&body).map_err(|error| Error::Invalid(error.into()))
}

/// Patterns as a column: they contain no spaces.
fn patterns(patterns: &[EventPattern]) -> String {
    patterns.iter().map(EventPattern::as_str).collect::<Vec<_>>().join(" ")
}

/// The reverse of [`patterns`]. A pattern of a newer version matches nothing.
fn patterns_of(text: &str) -> Vec<EventPattern> {
    text.split(' ').filter_map(|pattern| EventPattern::new(pattern).ok()).collect()
}

fn delivery(columns: &mut Columns<'_>) -> Result<WebhookDelivery, Fault> {
    let (id, event_type, sequence) = (columns.parsed()?, columns.text()?, columns.int()?);
    let (outcome, attempts) = (columns.parsed()?, columns.int()?);
    let status = columns.optional_int()?.and_then(|status| u16::try_from(status).ok());
    let (error, took) = (columns.optional_text()?, columns.optional_int()?);
    let took = took.map(|took| Duration::from_micros(u64::try_from(took).unwrap_or_default()));
    let (created, tried) = (columns.time()?, columns.optional_time()?);
    let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    Ok(WebhookDelivery { id, event_type, sequence, outcome, attempts, status, error, took, created, tried })
}
