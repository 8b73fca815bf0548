//! Orphans.

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, OnConflict, Order, Query};

use super::columns::{Columns, plain};
use super::pool::Transaction;
use super::row::Row as _;
use super::secrets::CLOSED;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::{Error, Orphan, OrphanQuery, OrphanStore, ResourceId};

#[async_trait]
impl OrphanStore for SqlStore {
    async fn orphans(&self, query: &OrphanQuery) -> Result<Vec<Orphan>, Error> {
        self.retry(|| async {
            let mut select = Query::select();
            select.columns(Orphan::columns()).from(schema::ORPHAN);
            if let Some(project) = &query.project {
                select.and_where(Expr::col("project").eq(plain(project)));
            }
            if let Some(stack) = query.stack {
                select.and_where(Expr::col("stack").eq(stack.to_string()));
            }
            if let Some(marker) = query.marker {
                let time = Query::select()
                    .column("time")
                    .from(schema::ORPHAN)
                    .and_where(Expr::col("id").eq(marker.to_string()))
                    .to_owned();
                let Some(row) = self.reader.query_one(&time).await? else {
                    return Err(Error::NotFound(format!("orphan {marker}")).into());
                };
                let time = Columns::of(&row).int()?;
                let same = Cond::all().add(Expr::col("time").eq(time)).add(Expr::col("id").lt(marker.to_string()));
                select.cond_where(Cond::any().add(Expr::col("time").lt(time)).add(same));
            }
            select.order_by("time", Order::Desc).order_by("id", Order::Desc);
            if let Some(limit) = query.limit {
                select.limit(limit);
            }
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::of(row).read()).collect()
        })
        .await
    }

    async fn delete_orphan(&self, project: &str, id: ResourceId) -> Result<bool, Error> {
        let delete = Query::delete()
            .from_table(schema::ORPHAN)
            .and_where(Expr::col("id").eq(id.to_string()))
            .and_where(Expr::col("project").eq(plain(project)))
            .to_owned();
        self.retry(|| async { Ok(self.writer.execute(&delete).await?.rows_affected() > 0) }).await
    }
}

/// Writes orphans in the transaction that removes their rows. The same batch may be written twice.
pub(super) async fn insert_orphans(tx: &Transaction, orphans: &[Orphan]) -> Result<(), Fault> {
    let rows = orphans.iter().map(|orphan| orphan.write(&CLOSED)).collect::<Result<_, _>>()?;
    let keep = OnConflict::column("id").do_nothing_on(["id"]).to_owned();
    insert(tx, Orphan::TABLE, Orphan::COLUMNS, rows, Some(keep)).await
}
