//! Operations.

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Order, Query};

use super::columns::{Columns, micros, plain};
use super::pool::Transaction;
use super::row::Row as _;
use super::secrets::CLOSED;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::{Error, Operation, OperationId, OperationQuery, OperationStore, Operations, Settle, Stack, StackId};

#[async_trait]
impl OperationStore for SqlStore {
    async fn operations(&self, query: &OperationQuery) -> Result<Vec<Operation>, Error> {
        self.retry(|| async {
            let mut select = Query::select();
            select.columns(Operation::columns()).from(schema::OPERATION);
            match query.of {
                Operations::OfTree(root) => select.and_where(Expr::col("root").eq(root.to_string())),
                Operations::Revisions(stack) => {
                    let is_revision = Expr::col("desired").is_not_null();
                    select.and_where(Expr::col("stack").eq(stack.to_string()).and(is_revision))
                }
            };
            if let Some(marker) = query.marker {
                let place = Query::select()
                    .column("seq")
                    .from(schema::OPERATION)
                    .and_where(Expr::col("id").eq(marker.to_string()))
                    .to_owned();
                let Some(row) = self.reader.query_one(&place).await? else {
                    return Err(Error::NotFound(format!("operation {marker}")).into());
                };
                select.and_where(Expr::col("seq").lt(Columns::of(&row).int()?));
            }
            select.order_by("seq", Order::Desc);
            if let Some(limit) = query.limit {
                select.limit(limit);
            }
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::of(row).read()).collect()
        })
        .await
    }

    async fn operation(&self, root: StackId, id: OperationId) -> Result<Option<Operation>, Error> {
        let is_it = Expr::col("id").eq(id.to_string()).and(Expr::col("root").eq(root.to_string()));
        self.find_operation(is_it).await
    }

    async fn revision(&self, stack: StackId, generation: i64) -> Result<Option<Operation>, Error> {
        let is_it = Expr::col("stack").eq(stack.to_string()).and(Expr::col("generation").eq(generation));
        self.find_operation(is_it.and(Expr::col("desired").is_not_null())).await
    }
}

impl SqlStore {
    pub(super) async fn find_operation(&self, is_it: Expr) -> Result<Option<Operation>, Error> {
        let select = Query::select().columns(Operation::columns()).from(schema::OPERATION).and_where(is_it).to_owned();
        self.retry(|| async { self.reader.query_one(&select).await?.map(|row| Columns::of(&row).read()).transpose() })
            .await
    }

    /// Deletes the oldest operations of some stacks that have more than `keep`; returns their number.
    pub(super) async fn forget_operations(&self, keep: u64) -> Result<u64, Error> {
        let count = Expr::col("id").count();
        let many = Query::select()
            .column("stack")
            .from(schema::OPERATION)
            .group_by_col("stack")
            .cond_having(Cond::all().add(count.gt(i64::try_from(keep).unwrap_or(i64::MAX))))
            .limit(crate::limits::STACKS as u64)
            .to_owned();
        self.retry(|| async {
            let mut gone = 0;
            for row in self.reader.query_all(&many).await? {
                let stack = Columns::of(&row).text()?;
                gone += self.forget_oldest(schema::OPERATION, "stack", &stack, keep).await?.0;
            }
            Ok(gone)
        })
        .await
    }
}

/// Writes the operations that requests began.
pub(super) async fn begin_operations(
    tx: &Transaction,
    operations: impl Iterator<Item = Operation>,
) -> Result<(), Fault> {
    let rows = operations.map(|operation| operation.write(&CLOSED)).collect::<Result<_, _>>()?;
    insert(tx, Operation::TABLE, Operation::COLUMNS, rows, None).await
}

/// Writes the end of a stack's operation, if its request is one of its own.
pub(super) async fn end_operation(tx: &Transaction, stack: &Stack, settle: &Settle) -> Result<(), Fault> {
    if stack.details.operation.is_some() || stack.generation != settle.generation {
        return Ok(());
    }
    let update = Query::update()
        .table(schema::OPERATION)
        .value("ended", micros(settle.now))
        .value("status", settle.state.status.as_str())
        .value("reason", plain(&settle.reason))
        .and_where(Expr::col("stack").eq(stack.id.to_string()))
        .and_where(Expr::col("generation").eq(settle.generation))
        .and_where(Expr::col("ended").is_null())
        .to_owned();
    tx.execute(&update).await?;
    Ok(())
}
