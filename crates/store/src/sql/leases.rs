//! Leases, by the rules of [`LeaseRow`].
//!
//! Each stack has a lease row from its creation. A claim is one UPDATE that succeeds for one engine only: it compares
//! the epoch and expiry that the engine saw, and increments the epoch.
//!
//! Whether the owner is alive is not judged by the database's clock, which may be set. Another engine observes that the
//! time of its last report does not change, and the claim reads that time and the expiry in one query: a report after it is
//! followed by a renewal, which changes the expiry, so that the claim fails. The expiry itself is for leases whose owner
//! has no row, and for engines of the release before.

use std::collections::HashSet;
use std::time::Duration;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Order, Query, SelectStatement, UnionType, UpdateStatement};

use super::columns::{Columns, micros, micros_of};
use super::inbox::is_known;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::limits::CLAIMS;
use crate::{Claimable, EngineId, Error, Lease, LeaseRow, Silent, StackId};

/// Leases in one statement.
const CHUNK: usize = 500;

/// Leases that are released in one statement.
const RELEASES: usize = 50;

/// A stack with work, and its lease as it was read.
struct Candidate {
    stack: StackId,
    /// The time since when there is work.
    due: i64,
    row: LeaseRow,
    /// The database's clock.
    now: i64,
}

impl Candidate {
    fn lease(&self, owner: EngineId, claimable: Claimable<'_>) -> Lease {
        let silent = match claimable {
            // The query has compared its last report.
            Claimable::LeftBehind { silent, .. } => self.row.silent_owner(silent, |_| true),
            _ => None,
        };
        self.row.next(self.stack, owner, silent)
    }
}

impl SqlStore {
    pub(super) async fn claim_from(
        &self,
        claimable: Claimable<'_>,
        owner: EngineId,
        ttl: Duration,
        limit: usize,
        won: &mut (dyn FnMut(Lease) + Send),
    ) -> Result<(), Error> {
        let mut left = limit.min(CLAIMS);
        if left == 0 {
            return Ok(());
        }
        let is_left_behind = matches!(claimable, Claimable::LeftBehind { .. });
        // Other engines may claim some of them first: read more than requested.
        for candidate in self.candidates(claimable, owner, left.saturating_mul(2)).await? {
            if left == 0 {
                break;
            }
            if !is_left_behind && candidate.row.is_from_the_future(candidate.now) {
                self.shorten(ttl, &candidate).await?;
            } else if self.swap(owner, ttl, &candidate).await? {
                won(candidate.lease(owner, claimable));
                left -= 1;
            }
        }
        Ok(())
    }

    /// Stacks with work and such a lease, oldest work first.
    async fn candidates(
        &self,
        claimable: Claimable<'_>,
        owner: EngineId,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        // Each part uses its own index and stops at the limit.
        let part = |table: &'static str, id: &'static str, due: Expr| {
            let mut select = Query::select();
            select
                .columns([(table, id), (table, "due")])
                .columns(["epoch", "expires", "ttl", "released", "owner"].map(|column| (schema::LEASE, column)))
                .expr_as(self.outside.now(), "now")
                .from(table)
                .inner_join(schema::LEASE, Expr::col((schema::LEASE, "stack")).equals((table, id)))
                .and_where(due)
                .cond_where(self.is_claimable(claimable, owner))
                .order_by((table, "due"), Order::Asc)
                .order_by((table, id), Order::Asc)
                .limit(limit as u64);
            match claimable {
                Claimable::Free | Claimable::LeftBehind { .. } => {}
                Claimable::Named(stacks) => {
                    // If there are too many for one statement, the next call claims the rest.
                    let stacks = stacks.iter().take(10 * CHUNK).map(ToString::to_string);
                    select.and_where(Expr::col((table, id)).is_in(stacks));
                }
                Claimable::OfOtherProjects(projects) => {
                    if table != schema::STACK {
                        let same = Expr::col((schema::STACK, "id")).equals((table, id));
                        select.inner_join(schema::STACK, same);
                    }
                    let projects = projects.iter().map(String::as_str);
                    select.and_where(Expr::col((schema::STACK, "project")).is_not_in(projects));
                }
            }
            let alias = format!("{table}s");
            Query::select().column(sea_orm::sea_query::Asterisk).from_subquery(select, alias).to_owned()
        };
        let requests = part(schema::STACK, "id", Expr::col((schema::STACK, "due")).is_not_null());
        let due = Expr::col((schema::MESSAGE, "due")).lte(self.outside.now());
        let due = due.and(is_known(schema::MESSAGE)).and(is_first_message());
        let messages = part(schema::MESSAGE, "stack", due);
        let select: SelectStatement = requests.clone().union(UnionType::All, messages).to_owned();
        let mut found: Vec<Candidate> = self
            .retry(|| async {
                let rows = self.reader.query_all(&select).await?;
                rows.iter().map(|row| candidate(&mut Columns::of(row))).collect::<Result<_, Fault>>()
            })
            .await?;
        found.sort_by_key(|candidate| (candidate.due, candidate.stack));
        let mut seen = HashSet::new();
        found.retain(|candidate| seen.insert(candidate.stack));
        found.truncate(limit);
        Ok(found)
    }

    /// The condition on the lease.
    fn is_claimable(&self, claimable: Claimable<'_>, own: EngineId) -> Cond {
        let owner = || Expr::col((schema::LEASE, "owner"));
        match claimable {
            Claimable::Free | Claimable::Named(_) | Claimable::OfOtherProjects(_) => {
                let engines = Query::select().column("id").from(schema::ENGINE).to_owned();
                let is_gone = Cond::all().add(owner().not_in_subquery(engines)).add(self.is_over());
                Cond::any().add(Expr::col((schema::LEASE, "expires")).eq(0)).add(is_gone)
            }
            Claimable::LeftBehind { silent, held } => {
                let held = held.iter().map(ToString::to_string);
                let forgotten = Cond::all()
                    .add(owner().eq(own.to_string()))
                    .add(Expr::col((schema::LEASE, "stack")).is_not_in(held))
                    .add(self.is_over());
                let silent = silent.iter().map(|silent| {
                    let same =
                        Query::select().expr(Expr::val(1)).from(schema::ENGINE).cond_where(is_still(silent)).to_owned();
                    Cond::all().add(owner().eq(silent.engine.to_string())).add(Expr::exists(same))
                });
                let left = silent.fold(Cond::any().add(forgotten), Cond::add);
                Cond::all().add(Expr::col((schema::LEASE, "expires")).gt(0)).add(left)
            }
        }
    }

    /// A lease that has expired, or that the current clock cannot have issued.
    fn is_over(&self) -> Cond {
        let column = |name: &'static str| Expr::col((schema::LEASE, name));
        Cond::any()
            .add(column("expires").lte(self.outside.now()))
            .add(column("expires").sub(column("ttl")).gt(self.outside.now()))
    }

    /// The compare-and-swap. It checks again whether there is work, because the former owner may have done it and
    /// released the lease meanwhile.
    async fn swap(&self, owner: EngineId, ttl: Duration, seen: &Candidate) -> Result<bool, Error> {
        let requested = Query::select()
            .expr(Expr::val(1))
            .from(schema::STACK)
            .and_where(Expr::col((schema::STACK, "id")).eq(seen.stack.to_string()))
            .and_where(Expr::col((schema::STACK, "due")).is_not_null())
            .to_owned();
        let messages = self.due_messages(Expr::val(seen.stack.to_string()));
        let mark = self.outside.uuid().to_string();
        let mut update = unchanged(seen);
        update
            .value("owner", owner.to_string())
            .value("epoch", Expr::col("epoch").add(1))
            .value("mark", mark.as_str())
            .value("expires", self.outside.now().add(micros_of(ttl)))
            .value("ttl", micros_of(ttl))
            .cond_where(Cond::any().add(Expr::exists(requested)).add(Expr::exists(messages)));
        self.retry_numbered(|attempt| {
            let (update, mark) = (&update, mark.as_str());
            async move {
                let swapped = self.writer.execute(update).await?.rows_affected() > 0;
                // An earlier attempt may have succeeded and lost its connection.
                Ok(swapped || attempt > 1 && is_marked(&self.writer, seen.stack, mark).await?)
            }
        })
        .await
    }

    /// Shortens a lease from before the clock was set back to the time to live from now. Its owner may still work, and
    /// by its own clock it must have renewed the lease by then.
    async fn shorten(&self, ttl: Duration, seen: &Candidate) -> Result<(), Error> {
        let mut update = unchanged(seen);
        update.value("expires", self.outside.now().add(micros_of(ttl))).value("ttl", micros_of(ttl));
        self.retry(|| async {
            self.writer.execute(&update).await?;
            Ok(())
        })
        .await
    }

    pub(super) async fn extend(&self, owner: EngineId, ttl: Duration, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        let mut kept = Vec::with_capacity(leases.len());
        let own: Vec<Lease> = leases.iter().filter(|lease| lease.owner == owner).copied().collect();
        for leases in own.chunks(CHUNK) {
            let update = Query::update()
                .table(schema::LEASE)
                .value("expires", self.outside.now().add(micros_of(ttl)))
                .value("ttl", micros_of(ttl))
                .cond_where(any_current(leases))
                .to_owned();
            let select = Query::select()
                .columns(["stack", "epoch"])
                .from(schema::LEASE)
                .cond_where(any_current(leases))
                .to_owned();
            let held: HashSet<(StackId, i64)> = self
                .retry(|| async {
                    if self.writer.execute(&update).await?.rows_affected() == leases.len() as u64 {
                        return Ok(leases.iter().map(|lease| (lease.stack, lease.epoch)).collect());
                    }
                    let rows = self.writer.query_all(&select).await?;
                    rows.iter()
                        .map(|row| {
                            let mut columns = Columns::of(row);
                            Ok((columns.parsed()?, columns.int()?))
                        })
                        .collect()
                })
                .await?;
            kept.extend(leases.iter().filter(|lease| held.contains(&(lease.stack, lease.epoch))));
        }
        Ok(kept)
    }

    /// Rings for released stacks that still have work: their ring may have come while the lease was held.
    pub(super) async fn give_back(&self, leases: &[Lease]) -> Result<(), Error> {
        // In one order, and few at a time: they are written in one transaction.
        let mut leases = leases.to_vec();
        leases.sort_by_key(|lease| lease.stack);
        for leases in leases.chunks(RELEASES) {
            let update = Query::update()
                .table(schema::LEASE)
                .value("expires", 0)
                .value("released", Expr::col("epoch"))
                .cond_where(any_current(leases))
                .to_owned();
            let messages = self.due_messages(Expr::col((schema::STACK, "id")));
            let select = Query::select()
                .column((schema::STACK, "id"))
                .from(schema::STACK)
                .and_where(Expr::col((schema::STACK, "id")).is_in(leases.iter().map(|lease| lease.stack.to_string())))
                .cond_where(
                    Cond::any().add(Expr::col((schema::STACK, "due")).is_not_null()).add(Expr::exists(messages)),
                )
                .to_owned();
            let due: Vec<StackId> = self
                .retry(|| async {
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

fn candidate(columns: &mut Columns<'_>) -> Result<Candidate, Fault> {
    Ok(Candidate {
        stack: columns.parsed()?,
        due: columns.int()?,
        row: LeaseRow {
            epoch: columns.int()?,
            expires: columns.int()?,
            ttl: columns.int()?,
            released: columns.int()?,
            owner: columns.optional_parsed()?,
        },
        now: columns.int()?,
    })
}

/// The row of an engine that has not reported since.
pub(super) fn is_still(silent: &Silent) -> Cond {
    let seen = Expr::col((schema::ENGINE, "seen")).eq(micros(silent.seen));
    Cond::all().add(Expr::col((schema::ENGINE, "id")).eq(silent.engine.to_string())).add(seen)
}

/// An update of a lease that applies only if it is unchanged since it was read.
fn unchanged(seen: &Candidate) -> UpdateStatement {
    Query::update()
        .table(schema::LEASE)
        .and_where(Expr::col("stack").eq(seen.stack.to_string()))
        .and_where(Expr::col("epoch").eq(seen.row.epoch))
        .and_where(Expr::col("expires").eq(seen.row.expires))
        .to_owned()
}

/// Only the oldest message of each stack, so that a stack with many messages does not displace others.
fn is_first_message() -> Expr {
    let (older, this) = ("older", schema::MESSAGE);
    let same_time = Expr::col((older, "due")).equals((this, "due"));
    let before = Expr::col((older, "due")).lt(Expr::col((this, "due")));
    let smaller = Expr::col((older, "id")).lt(Expr::col((this, "id")));
    let select = Query::select()
        .expr(Expr::val(1))
        .from_as(this, older)
        .and_where(Expr::col((older, "stack")).equals((this, "stack")))
        .and_where(is_known(older))
        .cond_where(Cond::any().add(before).add(same_time.and(smaller)))
        .to_owned();
    Expr::exists(select).not()
}

fn any_current(leases: &[Lease]) -> Cond {
    leases.iter().fold(Cond::any(), |any, lease| any.add(is_current(*lease)))
}

/// Whether the last claim or batch of the lease has this mark.
pub(super) async fn is_marked(db: &impl ConnectionTrait, stack: StackId, mark: &str) -> Result<bool, Fault> {
    let select = Query::select()
        .expr(Expr::val(1))
        .from(schema::LEASE)
        .and_where(Expr::col("stack").eq(stack.to_string()))
        .and_where(Expr::col("mark").eq(mark))
        .to_owned();
    Ok(db.query_one(&select).await?.is_some())
}

/// The condition under which the engine of the lease may write.
pub(super) fn is_current(lease: Lease) -> Cond {
    Cond::all()
        .add(Expr::col("stack").eq(lease.stack.to_string()))
        .add(Expr::col("owner").eq(lease.owner.to_string()))
        .add(Expr::col("epoch").eq(lease.epoch))
        .add(Expr::col("expires").gt(0))
}
