//! Who works on which stack.
//!
//! Each stack has a lease row from its first day. A claim is one UPDATE that succeeds for one engine only: it names
//! the epoch that it saw and makes it one higher, and the database's clock says whether the lease has run out. What
//! has run out but was claimed by no one is still its owner's: nobody else can have written.

use std::time::Duration;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Order, Query};

use super::retry::{Fault, retry};
use super::rows::Columns;
use super::{SqlStore, schema};
use crate::{EngineId, Error, Lease, StackId};

/// The most that one call claims.
const MAX_CLAIMS: usize = 1_000;
/// Leases in one statement.
const CHUNK: usize = 500;

impl SqlStore {
    pub(super) async fn claim_due(
        &self,
        owner: EngineId,
        ttl: Duration,
        only: &[StackId],
        limit: usize,
    ) -> Result<Vec<Lease>, Error> {
        let limit = limit.min(MAX_CLAIMS);
        let mut leases = Vec::new();
        // Others may be faster: look at more than are wanted.
        for (stack, epoch) in self.claimable(only, limit.saturating_mul(2)).await? {
            if leases.len() >= limit {
                break;
            }
            if self.swap(owner, ttl, stack, epoch).await? {
                leases.push(Lease { stack, owner, epoch: epoch + 1 });
            }
        }
        Ok(leases)
    }

    /// Stacks with work to do and no current lease, and the epochs of their leases; the oldest request first.
    async fn claimable(&self, only: &[StackId], limit: usize) -> Result<Vec<(StackId, i64)>, Error> {
        let (stack, lease) = (schema::STACK, schema::LEASE);
        let mut select = Query::select();
        select
            .columns([(stack, "id"), (lease, "epoch")])
            .from(stack)
            .inner_join(lease, Expr::col((lease, "stack")).equals((stack, "id")))
            .and_where(Expr::col((stack, "due")).is_not_null())
            .and_where(Expr::col((lease, "expires")).lte(self.dialect.now()))
            .order_by((stack, "due"), Order::Asc)
            .order_by((stack, "id"), Order::Asc)
            .limit(limit as u64);
        if !only.is_empty() {
            // More than fit one statement are claimed with the next call.
            let only = only.iter().take(20 * CHUNK).map(ToString::to_string);
            select.and_where(Expr::col((stack, "id")).is_in(only));
        }
        retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter()
                .map(|row| {
                    let mut columns = Columns::of(row);
                    Ok((columns.parsed()?, columns.int()?))
                })
                .collect::<Result<_, Fault>>()
        })
        .await
    }

    /// The compare-and-swap. It looks once more whether there is work: the former owner may have done it and given
    /// the lease back since.
    async fn swap(&self, owner: EngineId, ttl: Duration, stack: StackId, epoch: i64) -> Result<bool, Error> {
        let due = Query::select()
            .expr(Expr::val(1))
            .from(schema::STACK)
            .and_where(Expr::col((schema::STACK, "id")).eq(stack.to_string()))
            .and_where(Expr::col((schema::STACK, "due")).is_not_null())
            .to_owned();
        let update = Query::update()
            .table(schema::LEASE)
            .value("owner", owner.to_string())
            .value("epoch", Expr::col("epoch").add(1))
            .value("expires", self.dialect.now().add(micros(ttl)))
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .and_where(Expr::col("epoch").eq(epoch))
            .and_where(Expr::col("expires").lte(self.dialect.now()))
            .and_where(Expr::exists(due))
            .to_owned();
        retry(|| async { Ok(self.writer.execute(&update).await?.rows_affected() > 0) }).await
    }

    pub(super) async fn renew_all(&self, owner: EngineId, ttl: Duration) -> Result<Vec<Lease>, Error> {
        let held = || Expr::col("owner").eq(owner.to_string()).and(Expr::col("expires").gt(0));
        let update = Query::update()
            .table(schema::LEASE)
            .value("expires", self.dialect.now().add(micros(ttl)))
            .and_where(held())
            .to_owned();
        let select = Query::select().columns(["stack", "epoch"]).from(schema::LEASE).and_where(held()).to_owned();
        retry(|| async {
            if self.writer.execute(&update).await?.rows_affected() == 0 {
                return Ok(Vec::new());
            }
            let rows = self.writer.query_all(&select).await?;
            rows.iter()
                .map(|row| {
                    let mut columns = Columns::of(row);
                    Ok(Lease { stack: columns.parsed()?, owner, epoch: columns.int()? })
                })
                .collect()
        })
        .await
    }

    /// Rings for those given back that still have work to do: their ring may have come while the lease was held.
    pub(super) async fn give_back(&self, leases: &[Lease]) -> Result<(), Error> {
        for leases in leases.chunks(CHUNK) {
            let mut any = Cond::any();
            for lease in leases {
                any = any.add(is_current(*lease));
            }
            let update = Query::update().table(schema::LEASE).value("expires", 0).cond_where(any).to_owned();
            let select = Query::select()
                .column("id")
                .from(schema::STACK)
                .and_where(Expr::col("id").is_in(leases.iter().map(|lease| lease.stack.to_string())))
                .and_where(Expr::col("due").is_not_null())
                .to_owned();
            let due: Vec<StackId> = retry(|| async {
                self.writer.execute(&update).await?;
                let rows = self.writer.query_all(&select).await?;
                rows.iter().map(|row| Columns::of(row).parsed()).collect()
            })
            .await?;
            for stack in due {
                self.hub.ring(stack);
            }
        }
        Ok(())
    }
}

/// The condition on a lease's row under which its engine may write.
pub(super) fn is_current(lease: Lease) -> Cond {
    Cond::all()
        .add(Expr::col("stack").eq(lease.stack.to_string()))
        .add(Expr::col("owner").eq(lease.owner.to_string()))
        .add(Expr::col("epoch").eq(lease.epoch))
        .add(Expr::col("expires").gt(0))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}
