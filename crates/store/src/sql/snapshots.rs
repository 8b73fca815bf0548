//! Snapshots of stacks.

use kiln_resource::{Action, Status};
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Order, Query};

use super::columns::Columns;
use super::pool::Transaction;
use super::row::Row as _;
use super::secrets::Vault;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::snapshot::SUPERSEDED;
use crate::{Error, Snapshot, SnapshotId, StackId};

impl SqlStore {
    pub(super) async fn read_snapshot(&self, stack: StackId, id: SnapshotId) -> Result<Option<Snapshot>, Error> {
        let select = Query::select()
            .columns(Snapshot::columns())
            .from(schema::SNAPSHOT)
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .to_owned();
        self.retry(|| async {
            let row = self.reader.query_one(&select).await?;
            row.map(|row| Columns::opening(&row, &self.vault).read()).transpose()
        })
        .await
    }

    pub(super) async fn read_snapshots(&self, stack: StackId) -> Result<Vec<Snapshot>, Error> {
        let select = Query::select()
            .columns(Snapshot::columns())
            .from(schema::SNAPSHOT)
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .and_where(Expr::col("action").ne(Action::Adopt.as_str()))
            .order_by("created", Order::Asc)
            .order_by("id", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).read()).collect()
        })
        .await
    }
}

/// Inserts or replaces snapshots.
pub(super) async fn save_snapshots<'s>(
    tx: &Transaction,
    vault: &Vault,
    snapshots: impl IntoIterator<Item = &'s Snapshot>,
) -> Result<(), Fault> {
    let rows: Vec<_> = snapshots.into_iter().map(|one| one.write(vault)).collect::<Result<_, _>>()?;
    let replace = OnConflict::column("id").update_columns(Snapshot::columns().skip(2)).to_owned();
    insert(tx, Snapshot::TABLE, Snapshot::COLUMNS, rows, Some(replace)).await
}

/// Deletes snapshots of a stack: these, or all.
pub(super) async fn remove_snapshots(
    tx: &Transaction,
    stack: StackId,
    only: Option<&[SnapshotId]>,
) -> Result<(), Fault> {
    let mut delete = Query::delete();
    delete.from_table(schema::SNAPSHOT).and_where(Expr::col("stack").eq(stack.to_string()));
    if let Some(ids) = only {
        if ids.is_empty() {
            return Ok(());
        }
        delete.and_where(Expr::col("id").is_in(ids.iter().map(ToString::to_string)));
    }
    tx.execute(&delete).await?;
    Ok(())
}

/// A later request ends an unfinished snapshot.
pub(super) async fn fail_unfinished_snapshots(tx: &Transaction, stack: StackId) -> Result<(), Fault> {
    let update = Query::update()
        .table(schema::SNAPSHOT)
        .value("status", Status::Failed.as_str())
        .value("reason", SUPERSEDED)
        .and_where(Expr::col("stack").eq(stack.to_string()))
        .and_where(Expr::col("action").eq(Action::Snapshot.as_str()))
        .and_where(Expr::col("status").eq(Status::InProgress.as_str()))
        .to_owned();
    tx.execute(&update).await?;
    Ok(())
}
