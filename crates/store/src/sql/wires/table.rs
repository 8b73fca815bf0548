//! Rings as rows of a table.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::seen_numbers::SeenNumbers;
use super::{LISTEN_AGAIN, LOOK, RINGS_AT_ONCE};
use crate::StackId;
use crate::doorbell::Hub;
use crate::sql::columns::{Columns, micros_of};
use crate::sql::dialect::Dialect;
use crate::sql::pool::Pool;
use crate::sql::schema;
use crate::sql::statement_retry::Fault;

/// How long rings are kept, and the interval of their deletion.
const KEPT: Duration = Duration::from_mins(1);

/// Writes all pending rings at once, outside of the transactions that ring, to keep those short.
pub(super) async fn carry(writer: Pool, dialect: Dialect, mut rings: UnboundedReceiver<StackId>, origin: String) {
    let mut stacks = Vec::new();
    while rings.recv_many(&mut stacks, RINGS_AT_ONCE).await > 0 {
        let rung: BTreeSet<StackId> = stacks.drain(..).collect();
        if let Err(fault) = write_down(&writer, dialect, &rung, &origin).await {
            tracing::debug!(%fault, "failed to write rings");
        }
    }
}

async fn write_down(writer: &Pool, dialect: Dialect, rung: &BTreeSet<StackId>, origin: &str) -> Result<(), Fault> {
    let mut insert = Query::insert();
    insert.into_table(schema::RING).columns(["stack", "origin", "rung"]);
    for stack in rung {
        insert.values([stack.to_string().into(), origin.into(), dialect.now()])?;
    }
    writer.execute(&insert).await?;
    Ok(())
}

/// The table as one process reads it.
pub(super) struct Rings {
    pub(super) reader: Pool,
    pub(super) writer: Pool,
    pub(super) dialect: Dialect,
    /// The name of this process.
    pub(super) origin: String,
}

impl Rings {
    /// Receives the rings of other processes while anybody in this process listens.
    pub(super) async fn listen(self, hub: Arc<Hub>) {
        loop {
            hub.listened().await;
            if let Err(fault) = self.listen_until_lost(&hub).await {
                tracing::debug!(%fault, "failed to read rings");
            }
            hub.set_listening(false);
            hub.ring_here(None);
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }

    async fn listen_until_lost(&self, hub: &Hub) -> Result<(), Fault> {
        let mut seen = SeenNumbers::from(self.newest().await?);
        hub.set_listening(true);
        hub.ring_here(None);
        let mut removed = Instant::now();
        while hub.is_listened() {
            tokio::time::sleep(LOOK).await;
            for (number, stack, origin) in self.read(seen.floor()).await? {
                if seen.is_new(number) && origin != self.origin {
                    hub.ring_here(Some(stack));
                }
            }
            seen.next_look();
            if removed.elapsed() >= KEPT {
                removed = Instant::now();
                self.remove_old(seen.newest()).await?;
            }
        }
        Ok(())
    }

    async fn newest(&self) -> Result<i64, Fault> {
        let query = Query::select().expr(Expr::col("number").max()).from(schema::RING).to_owned();
        let row = self.reader.query_one(&query).await?;
        let newest = row.map(|row| Columns::of(&row).optional_int()).transpose()?;
        Ok(newest.flatten().unwrap_or(0))
    }

    async fn read(&self, above: i64) -> Result<Vec<(i64, StackId, String)>, Fault> {
        let query = Query::select()
            .columns(["number", "stack", "origin"])
            .from(schema::RING)
            .and_where(Expr::col("number").gt(above))
            .to_owned();
        let rows = self.reader.query_all(&query).await?;
        let read = rows.iter().map(|row| {
            let mut columns = Columns::of(row);
            Ok((columns.int()?, columns.parsed()?, columns.text()?))
        });
        read.collect()
    }

    async fn remove_old(&self, newest: i64) -> Result<(), Fault> {
        let delete = Query::delete()
            .from_table(schema::RING)
            .and_where(Expr::col("number").lt(newest))
            .and_where(Expr::col("rung").lt(self.dialect.now().sub(micros_of(KEPT))))
            .to_owned();
        self.writer.execute(&delete).await?;
        Ok(())
    }
}
