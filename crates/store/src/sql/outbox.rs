//! The outbox.

use std::time::Duration;

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Order, Query};
use tokio::sync::watch;
use uuid::Uuid;

use super::columns::{self, Columns, micros_of};
use super::pool::Transaction;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::outbox::{NewEntry, announced, entries_for, runs, sinks_of};
use crate::{Batch, Delivery, Destination, Error, Event, Lane, OutboxStore, Stack, WebhookMessage};

impl SqlStore {
    /// Writes entries for new events of a stack, if anybody is to get them.
    pub(super) async fn post(&self, tx: &Transaction, stack: &Stack, events: &[Event]) -> Result<(), Fault> {
        if events.is_empty() || !self.is_posted(stack) {
            return Ok(());
        }
        let sinks = if stack.desired.sinks { self.sinks(tx, stack).await? } else { Vec::new() };
        let mut entries = entries_for(stack, events, &sinks, self.notifications);
        if self.webhooks {
            let messages = events.iter().map(|event| WebhookMessage::of_event(stack, event));
            entries.extend(self.entries_of_webhooks(tx, &stack.project, messages).await?);
        }
        self.write_entries(tx, &entries).await
    }

    /// Writes entries for announcements, if there is a message bus, and for runs of plug-ins.
    pub(super) async fn announce(&self, tx: &Transaction, stack: &Stack, batch: &Batch) -> Result<(), Fault> {
        let mut entries = runs(stack, &batch.plugin_runs);
        if self.notifications {
            entries.extend(announced(stack, &batch.announcements));
        }
        self.write_entries(tx, &entries).await
    }

    /// Tells the couriers of this process after a commit with events of a stack, or with runs of plug-ins.
    pub(super) fn tell_couriers(&self, stack: &Stack, has_runs: bool) {
        if has_runs || self.is_posted(stack) {
            self.hub.posted();
        }
    }

    fn is_posted(&self, stack: &Stack) -> bool {
        self.notifications || self.webhooks || stack.desired.sinks
    }

    async fn sinks(&self, tx: &Transaction, stack: &Stack) -> Result<Vec<Destination>, Fault> {
        let digest = &stack.desired.environment.0;
        let select = Query::select()
            .column("body")
            .from(schema::CONTENT)
            .and_where(Expr::col("digest").eq(digest.as_str()))
            .to_owned();
        let Some(row) = tx.query_one(&select).await? else { return Ok(Vec::new()) };
        Ok(sinks_of(&self.vault.open_value(digest, Columns::of(&row).text()?)?))
    }

    pub(super) async fn write_entries(&self, tx: &Transaction, entries: &[NewEntry]) -> Result<(), Fault> {
        let row = |entry: &NewEntry| {
            let mut row = columns::of_entry(entry, &self.vault)?;
            row.extend([self.outside.now(), 0.into(), 0.into()]);
            Ok::<_, Fault>(row)
        };
        let rows = entries.iter().map(row).collect::<Result<_, _>>()?;
        let columns = ["id", "lane", "root", "destination", "body", "created", "due", "attempts"];
        // One that is sent again may still be there.
        let there = OnConflict::column("id").do_nothing_on(["id"]).to_owned();
        insert(tx, schema::OUTBOX, &columns, rows, Some(there)).await
    }

    async fn claim_once(&self, lane: &str, mark: &str, ttl: Duration, limit: usize) -> Result<Option<Delivery>, Fault> {
        let select = Query::select()
            .column("seq")
            .expr(self.outside.now())
            .columns(["due", "created", "attempts", "id", "root", "destination", "body"])
            .from(schema::OUTBOX)
            .and_where(Expr::col("lane").eq(lane))
            .order_by("seq", Order::Asc)
            .limit(limit as u64)
            .to_owned();
        let tx = self.begin().await?;
        let mut claimed: Option<Delivery> = None;
        for row in tx.query_all(&select).await? {
            let (entry, root, destination, wait) = Columns::opening(&row, &self.vault).entry()?;
            if wait > 0 {
                break;
            }
            claimed.get_or_insert_with(|| Delivery { root, destination, entries: Vec::new() }).entries.push(entry);
        }
        let Some(delivery) = claimed else { return Ok(None) };
        let update = Query::update()
            .table(schema::OUTBOX)
            .value("mark", mark)
            .value("due", self.outside.now().add(micros_of(ttl)))
            .and_where(Expr::col("seq").is_in(delivery.entries.iter().map(|entry| entry.number)))
            .and_where(Expr::col("due").lte(self.outside.now()))
            .to_owned();
        if tx.execute(&update).await?.rows_affected() != delivery.entries.len() as u64 {
            // Another courier was faster.
            tx.rollback().await?;
            return Ok(None);
        }
        tx.commit().await?;
        Ok(Some(delivery))
    }
}

#[async_trait]
impl OutboxStore for SqlStore {
    async fn next_lane(&self, after: &str) -> Result<Option<Lane>, Error> {
        let select = Query::select()
            .columns(["lane", "due", "attempts"])
            .expr(self.outside.now())
            .from(schema::OUTBOX)
            .and_where(Expr::col("lane").gt(after))
            .order_by("lane", Order::Asc)
            .order_by("seq", Order::Asc)
            .limit(1)
            .to_owned();
        self.retry(|| async {
            let Some(row) = self.reader.query_one(&select).await? else { return Ok(None) };
            let mut columns = Columns::of(&row);
            let (name, due, attempts, now) = (columns.text()?, columns.int()?, columns.int()?, columns.int()?);
            let wait = Duration::from_micros(u64::try_from(due - now).unwrap_or_default());
            Ok(Some(Lane { name, wait, attempts: u32::try_from(attempts).unwrap_or(u32::MAX) }))
        })
        .await
    }

    /// If the connection is lost during the commit, the entries may be claimed: then they wait for the end of the claim.
    async fn claim_lane(&self, lane: &str, mark: Uuid, ttl: Duration, limit: usize) -> Result<Option<Delivery>, Error> {
        let mark = mark.to_string();
        self.retry(|| self.claim_once(lane, &mark, ttl, limit)).await
    }

    async fn remove_entries(&self, mark: Uuid, numbers: &[i64]) -> Result<(), Error> {
        let delete = Query::delete()
            .from_table(schema::OUTBOX)
            .and_where(Expr::col("seq").is_in(numbers.iter().copied()))
            .and_where(Expr::col("mark").eq(mark.to_string()))
            .to_owned();
        self.retry(|| async {
            self.writer.execute(&delete).await?;
            Ok(())
        })
        .await
    }

    async fn postpone_entries(&self, mark: Uuid, numbers: &[i64], delay: Duration) -> Result<(), Error> {
        let update = Query::update()
            .table(schema::OUTBOX)
            .value("mark", None::<String>)
            .value("due", self.outside.now().add(micros_of(delay)))
            .value("attempts", Expr::col("attempts").add(i64::from(delay > Duration::ZERO)))
            .and_where(Expr::col("seq").is_in(numbers.iter().copied()))
            .and_where(Expr::col("mark").eq(mark.to_string()))
            .to_owned();
        self.retry(|| async {
            self.writer.execute(&update).await?;
            Ok(())
        })
        .await
    }

    fn outbox_news(&self) -> watch::Receiver<()> {
        self.hub.outbox()
    }
}
