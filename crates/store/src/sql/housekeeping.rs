//! Engine reports and purging, in small steps so that nobody waits long for a lock.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Func, OnConflict, Order, Query, SelectStatement, UnionType};
use uuid::Uuid;

use super::columns::{Columns, micros, micros_of, plain};
use super::drift::{count_drifted, remove_drift_of};
use super::guards::remove_guards_of;
use super::leases::is_still;
use super::migrations::{SCHEMA, WITH_PLANS};
use super::plans::remove_plans_of;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::limits::{CONTENT_KEPT, CONTENTS, EVENTS, HANDLED_KEPT, LOOKED_AT, STACKS};
use crate::outbox::WEBHOOK;
use crate::{Census, EngineId, EngineInfo, Error, EventPurge, Retention, Silent};

/// The columns of an engine, in reading and writing order.
const ENGINE_COLUMNS: [&str; 8] =
    ["id", "hostname", "pid", "started", "seen", "report_interval", "plans", "known_schema"];

impl SqlStore {
    pub(super) async fn read_clock(&self) -> Result<Timestamp, Error> {
        let now = Query::select().expr(self.outside.now()).to_owned();
        self.retry(|| async {
            let row = self.reader.query_one(&now).await?;
            Ok(row.map(|row| Columns::of(&row).time()).transpose()?.unwrap_or_default())
        })
        .await
    }

    pub(super) async fn count_everything(&self) -> Result<Census, Error> {
        let states = Query::select()
            .columns(["action", "status"])
            .expr(Func::count(Expr::col("id")))
            .from(schema::STACK)
            .and_where(Expr::col("deleted").is_null())
            .group_by_columns(["action", "status"])
            .to_owned();
        let leases = Query::select()
            .expr(Func::count(Expr::col("stack")))
            .from(schema::LEASE)
            .and_where(Expr::col("expires").gt(self.outside.now()))
            .to_owned();
        let pending = Query::select()
            .expr(Func::count(Expr::col("id")))
            .from(schema::STACK)
            .and_where(Expr::col("due").is_not_null())
            .to_owned();
        let oldest = Query::select()
            .expr(self.outside.now().sub(Expr::col("due").min()))
            .from(schema::STACK)
            .and_where(Expr::col("due").is_not_null())
            .to_owned();
        let outbox = Query::select()
            .expr(Func::count(Expr::col("id")))
            .expr(self.outside.now().sub(Expr::col("created").min()))
            .from(schema::OUTBOX)
            .and_where(Expr::col("lane").not_like(format!("{WEBHOOK}%")))
            .to_owned();
        let webhook_entries = Query::select()
            .expr(Func::count(Expr::col("id")))
            .from(schema::OUTBOX)
            .and_where(Expr::col("lane").like(format!("{WEBHOOK}%")))
            .to_owned();
        let drifted = count_drifted();
        self.retry(|| async {
            let mut census = Census::default();
            for row in self.reader.query_all(&states).await? {
                let mut columns = Columns::of(&row);
                census.stacks.push((columns.text()?, columns.text()?, columns.count()?));
            }
            census.stacks.sort();
            if let Some(row) = self.reader.query_one(&outbox).await? {
                let mut columns = Columns::of(&row);
                census.outbox = columns.count()?;
                census.outbox_oldest = columns.optional_int()?.map(|age| u64::try_from(age).unwrap_or(0));
            }
            for (query, count) in [
                (&leases, &mut census.leases),
                (&pending, &mut census.pending),
                (&webhook_entries, &mut census.webhook_entries),
                (&drifted, &mut census.drifted),
            ] {
                if let Some(row) = self.reader.query_one(query).await? {
                    *count = Columns::of(&row).count()?;
                }
            }
            if let Some(row) = self.reader.query_one(&oldest).await?
                && let Some(waits) = Columns::of(&row).optional_int()?
            {
                // A clock may have been set back.
                census.oldest = Some(u64::try_from(waits).unwrap_or(0));
            }
            Ok(census)
        })
        .await
    }

    pub(super) async fn put_engine(&self, engine: &EngineInfo) -> Result<(), Error> {
        let interval = i64::from(engine.interval);
        self.retry(|| async {
            let insert = Query::insert()
                .into_table(schema::ENGINE)
                .columns(ENGINE_COLUMNS)
                .values([
                    engine.id.to_string().into(),
                    plain(&engine.hostname).into(),
                    i64::from(engine.pid).into(),
                    micros(engine.started).into(),
                    self.outside.now(),
                    interval.into(),
                    // The release before reads only this.
                    i64::from(engine.keeps_plans()).into(),
                    i64::try_from(engine.schema).unwrap_or(i64::MAX).into(),
                ])?
                .on_conflict(OnConflict::column("id").update_columns(["seen", "report_interval"]).to_owned())
                .to_owned();
            self.writer.execute(&insert).await?;
            let ended = Expr::col("report_interval").eq(0);
            self.writer.execute(Query::delete().from_table(schema::ENGINE).and_where(ended)).await?;
            Ok(())
        })
        .await
    }

    /// Writes something small that nobody reads: the end of an engine that never was.
    pub(super) async fn write_for_nothing(&self) -> Result<(), Error> {
        let (id, time) = (EngineId(Uuid::nil()), Timestamp::UNIX_EPOCH);
        self.put_engine(&EngineInfo {
            id,
            hostname: String::new(),
            pid: 0,
            started: time,
            seen: time,
            interval: 0,
            schema: SCHEMA,
        })
        .await
    }

    pub(super) async fn drop_engine(&self, silent: &Silent) -> Result<(), Error> {
        let delete = Query::delete().from_table(schema::ENGINE).cond_where(is_still(silent)).to_owned();
        self.retry(|| async { Ok(self.writer.execute(&delete).await.map(drop)?) }).await
    }

    pub(super) async fn list_engines(&self) -> Result<Vec<EngineInfo>, Error> {
        let select = Query::select()
            .columns(ENGINE_COLUMNS)
            .from(schema::ENGINE)
            .order_by("started", Order::Asc)
            .order_by("id", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| engine(&mut Columns::of(row))).collect()
        })
        .await
    }

    pub(super) async fn forget_some(&self, retention: &Retention) -> Result<u64, Error> {
        let gone = self.forget_stacks(retention.deleted_before, None, STACKS as u64).await?;
        let mut gone = gone + self.forget_handled().await? + self.forget_plans().await? + self.forget_answers().await?;
        gone += self.forget_worksheets().await?;
        if gone == 0 {
            gone = self.forget_deliveries().await?;
        }
        // Last, because they read all operations, and all stacks.
        if gone == 0 && retention.operations > 0 {
            gone = self.forget_operations(retention.operations).await?;
        }
        if gone > 0 { Ok(gone) } else { self.forget_contents().await }
    }

    /// Deletes the stacks that a query finds, or some of their events if there are many.
    pub(super) async fn forget_these(&self, select: &SelectStatement) -> Result<u64, Error> {
        self.retry(|| async {
            let ids = texts(&self.reader, select).await?;
            if ids.is_empty() {
                return Ok(0);
            }
            let mut gone = 0;
            for id in &ids {
                gone += self.forget_oldest(schema::EVENT, "stack", id, 1).await?.0;
                if gone >= EVENTS as u64 {
                    return Ok(gone);
                }
            }
            let tx = self.begin().await?;
            gone += remove_plans_of(&tx, &ids, false).await? + remove_guards_of(&tx, &ids).await?;
            gone += remove_drift_of(&tx, &ids).await?;
            for (table, column) in [
                (schema::EVENT, "stack"),
                (schema::EVENT_ORDER, "stack"),
                (schema::RESOURCE, "stack"),
                (schema::TAG, "stack"),
                (schema::SNAPSHOT, "stack"),
                (schema::OPERATION, "stack"),
                (schema::LEASE, "stack"),
                (schema::STACK, "id"),
            ] {
                let delete = Query::delete()
                    .from_table(table)
                    .and_where(Expr::col(column).is_in(ids.iter().cloned()))
                    .to_owned();
                gone += tx.execute(&delete).await?.rows_affected();
            }
            tx.commit().await?;
            Ok(gone)
        })
        .await
    }

    pub(super) async fn purge_events(&self, keep: u64, after: u64) -> Result<EventPurge, Error> {
        let select = Query::select()
            .columns(["seq", "stack"])
            .from(schema::EVENT)
            .and_where(Expr::col("seq").gt(i64::try_from(after).unwrap_or(i64::MAX)))
            .order_by("seq", Order::Asc)
            .limit(LOOKED_AT as u64)
            .to_owned();
        let events: Vec<(u64, String)> = self
            .retry(|| async {
                let rows = self.reader.query_all(&select).await?;
                let read = rows.iter().map(|row| {
                    let mut columns = Columns::of(row);
                    Ok::<_, Fault>((columns.count()?, columns.text()?))
                });
                read.collect()
            })
            .await?;
        let mut purge = EventPurge {
            looked_at: events.len() as u64,
            deleted: 0,
            after: events.last().map_or(after, |(seq, _)| *seq),
            has_more: events.len() >= LOOKED_AT,
        };
        let stacks: BTreeSet<String> = events.into_iter().map(|(_, stack)| stack).collect();
        for stack in stacks {
            let (deleted, is_all) = self.retry(|| self.forget_oldest(schema::EVENT, "stack", &stack, keep)).await?;
            purge.deleted += deleted;
            if !is_all || purge.deleted >= EVENTS as u64 {
                (purge.after, purge.has_more) = (after, true);
                break;
            }
        }
        Ok(purge)
    }

    /// Deletes the oldest rows with a value in a column, or some of them, so that `keep` remain; with whether these are all.
    pub(super) async fn forget_oldest(
        &self,
        table: &'static str,
        column: &'static str,
        value: &str,
        keep: u64,
    ) -> Result<(u64, bool), Fault> {
        let row_at = |below: i64, order: Order, offset: u64| {
            let mut select = Query::select();
            select.column("seq").from(table).and_where(Expr::col(column).eq(value));
            select.and_where(Expr::col("seq").lt(below)).order_by("seq", order).offset(offset).limit(1).to_owned()
        };
        let first_kept = row_at(i64::MAX, Order::Desc, keep.saturating_sub(1));
        let Some(row) = self.reader.query_one(&first_kept).await? else { return Ok((0, true)) };
        let first_kept = Columns::of(&row).int()?;
        let rest = self.reader.query_one(&row_at(first_kept, Order::Asc, EVENTS as u64)).await?;
        let rest = rest.map(|row| Columns::of(&row).int()).transpose()?;
        let delete = Query::delete()
            .from_table(table)
            .and_where(Expr::col(column).eq(value))
            .and_where(Expr::col("seq").lt(rest.unwrap_or(first_kept)))
            .to_owned();
        Ok((self.writer.execute(&delete).await?.rows_affected(), rest.is_none()))
    }

    /// Messages that were handled so long ago that nobody sends them again.
    async fn forget_handled(&self) -> Result<u64, Error> {
        let select = Query::select()
            .column("id")
            .from(schema::MESSAGE)
            .and_where(Expr::col("handled").lt(self.outside.now().sub(micros_of(HANDLED_KEPT))))
            .limit(EVENTS as u64)
            .to_owned();
        self.retry(|| async {
            let ids = texts(&self.reader, &select).await?;
            if ids.is_empty() {
                return Ok(0);
            }
            let delete = Query::delete().from_table(schema::MESSAGE).and_where(Expr::col("id").is_in(ids)).to_owned();
            Ok(self.writer.execute(&delete).await?.rows_affected())
        })
        .await
    }

    /// Texts without references. A text that is referenced again meanwhile has a new time and is kept.
    async fn forget_contents(&self) -> Result<u64, Error> {
        let old = || Expr::col("used").lt(self.outside.now().sub(micros_of(CONTENT_KEPT)));
        let select = Query::select()
            .column("digest")
            .from(schema::CONTENT)
            .and_where(old())
            .and_where(Expr::col("digest").not_in_subquery(named_digests()))
            .limit(CONTENTS as u64)
            .to_owned();
        self.retry(|| async {
            let digests = texts(&self.reader, &select).await?;
            if digests.is_empty() {
                return Ok(0);
            }
            let delete = Query::delete()
                .from_table(schema::CONTENT)
                .and_where(Expr::col("digest").is_in(digests))
                .and_where(old())
                .to_owned();
            Ok(self.writer.execute(&delete).await?.rows_affected())
        })
        .await
    }
}

/// Entries of the outbox for the stack of the outer query, whose credentials they need.
fn unsent() -> SelectStatement {
    Query::select()
        .expr(Expr::val(1))
        .from(schema::OUTBOX)
        .and_where(Expr::col((schema::OUTBOX, "root")).equals((schema::STACK, "id")))
        .to_owned()
}

/// All digests that stacks, operations and plans refer to: three in each of these columns, 64 characters each, separated by a space.
fn named_digests() -> SelectStatement {
    let columns = [
        (schema::STACK, "desired"),
        (schema::STACK, "previous"),
        (schema::OPERATION, "desired"),
        (schema::PLAN, "desired"),
    ];
    let mut parts = columns
        .into_iter()
        .flat_map(|(table, column)| [1, 66, 131].map(|start| (table, column, start)))
        .map(|(table, column, start)| {
            Query::select()
                .expr(Expr::cust(format!("SUBSTR({column}, {start}, 64)")))
                .from(table)
                .and_where(Expr::col(column).is_not_null())
                .to_owned()
        });
    let mut all = parts.next().unwrap_or_default();
    all.unions(parts.map(|part| (UnionType::Distinct, part)));
    all
}

/// The IDs of up to `limit` stacks that were deleted before a time and have nothing left to send: the oldest deletions
/// first.
pub(super) fn forgettable(before: i64, limit: u64) -> SelectStatement {
    Query::select()
        .column("id")
        .from(schema::STACK)
        .and_where(Expr::col("deleted").lt(before))
        .and_where(Expr::exists(unsent()).not())
        .order_by("deleted", Order::Asc)
        .limit(limit)
        .to_owned()
}

async fn texts(db: &impl ConnectionTrait, select: &SelectStatement) -> Result<Vec<String>, Fault> {
    db.query_all(select).await?.iter().map(|row| Columns::of(row).text()).collect()
}

fn engine(columns: &mut Columns<'_>) -> Result<EngineInfo, Fault> {
    let damaged = |_| Error::Damaged("row of an engine".into());
    let (id, hostname, pid) = (columns.parsed()?, columns.text()?, columns.int()?);
    let (started, seen, interval) = (columns.time()?, columns.time()?, columns.int()?);
    let keeps_plans = columns.optional_int()? == Some(1);
    let schema = columns.optional_int()?.map(|known| usize::try_from(known).map_err(damaged)).transpose()?;
    Ok(EngineInfo {
        id,
        hostname,
        pid: u32::try_from(pid).map_err(damaged)?,
        started,
        seen,
        interval: u32::try_from(interval).map_err(damaged)?,
        schema: schema.unwrap_or(if keeps_plans { WITH_PLANS } else { 0 }),
    })
}
