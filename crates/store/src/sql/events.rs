//! Events: how they are appended and read.
//!
//! The events of a stack become visible in the order of their numbers, which [`crate::EventReader`] relies on. A number is given
//! before its transaction ends. Therefore two transactions with events of one stack must not overlap between their numbers
//! and their ends: each first changes a row that belongs to the events of the stack. That is a write, because a lock has no
//! effect on the other nodes of a multi-master cluster. Of two writes of one row on different nodes, one fails.

use std::collections::BTreeSet;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, OnConflict, Order, Query};

use super::columns::Columns;
use super::listing::{any_of, words};
use super::pool::Transaction;
use super::row::Row as _;
use super::statement_retry::Fault;
use super::writing::{insert, insert_each};
use super::{SqlStore, schema};
use crate::{Error, Event, EventId, EventQuery, EventSpan, Stack, StackId};

impl SqlStore {
    /// Appends events of stacks, in order, with entries of the outbox for them. A transaction does this when it will wait for
    /// no row of these stacks any more, so that two with events of one stack do not deadlock.
    pub(super) async fn append_events(&self, tx: &Transaction, new: &[(&Stack, &[Event])]) -> Result<(), Fault> {
        let events: Vec<&Event> = new.iter().flat_map(|(_, events)| *events).collect();
        self.insert_events(tx, &events).await?;
        for (stack, events) in new {
            self.post(tx, stack, events).await?;
        }
        Ok(())
    }

    /// Inserts events that nobody is told of.
    pub(super) async fn insert_events(&self, tx: &Transaction, events: &[&Event]) -> Result<(), Fault> {
        // In one order, so that two transactions with the same stacks do not deadlock.
        let stacks: BTreeSet<StackId> = events.iter().map(|event| event.stack).collect();
        let places = stacks.iter().map(|stack| vec![stack.to_string().into(), 1.into()]).collect();
        let count = Expr::col((schema::EVENT_ORDER, "commits")).add(1);
        let changed = OnConflict::column("stack").value("commits", count).to_owned();
        insert(tx, schema::EVENT_ORDER, &["stack", "commits"], places, Some(changed)).await?;
        let events = events.iter().map(|event| event.write(&self.vault));
        insert_each(tx, Event::TABLE, Event::COLUMNS, events, None).await
    }

    pub(super) async fn read_event(&self, stack: StackId, id: EventId) -> Result<Option<Event>, Error> {
        let select = Query::select()
            .columns(Event::columns())
            .from(schema::EVENT)
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .to_owned();
        self.retry(|| async {
            self.reader.query_one(&select).await?.map(|row| Columns::opening(&row, &self.vault).read()).transpose()
        })
        .await
    }

    pub(super) async fn list_events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        self.retry(|| async {
            let mut select = Query::select();
            select.columns(Event::columns()).from(schema::EVENT);
            select.cond_where(events_of(query));
            if let Some(marker) = query.marker {
                let seq = number(self.number_of(marker).await?);
                let behind = Expr::col("seq");
                select.and_where(if query.descending { behind.lt(seq) } else { behind.gt(seq) });
            }
            select.order_by("seq", if query.descending { Order::Desc } else { Order::Asc });
            if let Some(limit) = query.limit {
                select.limit(limit);
            }
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).read()).collect()
        })
        .await
    }

    pub(super) async fn number_of(&self, event: EventId) -> Result<u64, Fault> {
        let select = Query::select()
            .column("seq")
            .from(schema::EVENT)
            .and_where(Expr::col("id").eq(event.to_string()))
            .to_owned();
        match self.reader.query_one(&select).await? {
            Some(row) => Columns::of(&row).count(),
            None => Err(Error::NotFound(format!("event {event}")).into()),
        }
    }

    pub(super) async fn list_numbered_events(
        &self,
        span: &EventSpan,
        query: &EventQuery,
    ) -> Result<Vec<(u64, Event)>, Error> {
        let mut select = Query::select();
        select.columns(Event::columns()).column("seq").from(schema::EVENT).cond_where(is_asked_for(query));
        match span {
            EventSpan::After(seq) => select.cond_where(of_stacks("stack", query)).and_where(after(*seq)),
            EventSpan::Between(stacks, last) => {
                let of_one = |(stack, seq): &(StackId, u64)| Expr::col("stack").eq(stack.to_string()).and(after(*seq));
                select
                    .cond_where(stacks.iter().map(of_one).fold(Cond::any(), Cond::add))
                    .and_where(Expr::col("seq").lte(number(*last)))
            }
        };
        select.order_by("seq", Order::Asc);
        if let Some(limit) = query.limit {
            select.limit(limit);
        }
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let numbered = rows.iter().map(|row| {
                let mut columns = Columns::opening(row, &self.vault);
                let event = columns.read()?;
                Ok((columns.count()?, event))
            });
            numbered.collect()
        })
        .await
    }

    /// One look into an index for each stack.
    pub(super) async fn list_last_events(&self, query: &EventQuery, up_to: u64) -> Result<Vec<(StackId, u64)>, Error> {
        let last = Query::select()
            .expr(Expr::col("seq").max())
            .from(schema::EVENT)
            .and_where(Expr::col((schema::EVENT, "stack")).equals((schema::STACK, "id")))
            .and_where(Expr::col("seq").lte(number(up_to)))
            .to_owned();
        let select = Query::select()
            .column("id")
            .expr(Expr::SubQuery(None, Box::new(last.into())))
            .from(schema::STACK)
            .cond_where(of_stacks("id", query))
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let numbers = rows.iter().map(|row| {
                let mut columns = Columns::of(row);
                let stack = columns.parsed()?;
                Ok(columns.optional_int()?.map(|last| (stack, last.unsigned_abs())))
            });
            numbers.filter_map(Result::transpose).collect()
        })
        .await
    }
}

fn after(seq: u64) -> Expr {
    Expr::col("seq").gt(number(seq))
}

fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn events_of(query: &EventQuery) -> Cond {
    Cond::all().add(of_stacks("stack", query)).add(is_asked_for(query))
}

/// Whether a column has the ID of a stack whose events are asked for.
fn of_stacks(column: &'static str, query: &EventQuery) -> Expr {
    let stacks = || Query::select().column("id").from(schema::STACK).to_owned();
    match (&query.root, &query.project) {
        (Some(root), _) => {
            Expr::col(column).in_subquery(stacks().and_where(Expr::col("root").eq(root.to_string())).to_owned())
        }
        (None, Some(project)) => {
            Expr::col(column).in_subquery(stacks().and_where(Expr::col("project").eq(project.as_str())).to_owned())
        }
        (None, None) => Expr::col(column).is_in(query.stacks.iter().map(ToString::to_string)),
    }
}

fn is_asked_for(query: &EventQuery) -> Cond {
    Cond::all()
        .add_option(query.operation.map(|id| Expr::col("operation").eq(id.to_string())))
        .add_option(query.resource.as_deref().map(|name| Expr::col("resource_name").eq(name)))
        .add_option(words("action", query.actions.iter().cloned()))
        .add_option(words("status", query.statuses.iter().cloned()))
        .add_option(any_of("resource_type", query.types.iter().cloned()))
        .add_option(words("id", query.ids.iter().cloned()))
}
