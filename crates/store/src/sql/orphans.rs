//! Orphans.

use async_trait::async_trait;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, OnConflict, Order, Query};

use super::pool::Transaction;
use super::rows::{Columns, micros, plain};
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::{Error, Orphan, OrphanQuery, OrphanStore, ResourceId};

#[async_trait]
impl OrphanStore for SqlStore {
    async fn orphans(&self, query: &OrphanQuery) -> Result<Vec<Orphan>, Error> {
        self.retry(|| async {
            let mut select = Query::select();
            select.columns(schema::ORPHAN_COLUMNS).from(schema::ORPHAN);
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
            rows.iter().map(|row| Columns::of(row).orphan()).collect()
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
    let rows = orphans.iter().map(row_of).collect();
    let keep = OnConflict::column("id").do_nothing_on(["id"]).to_owned();
    insert(tx, schema::ORPHAN, &schema::ORPHAN_COLUMNS, rows, Some(keep)).await
}

fn row_of(orphan: &Orphan) -> Vec<Expr> {
    vec![
        orphan.id.to_string().into(),
        plain(&orphan.project).into(),
        orphan.stack.to_string().into(),
        plain(&orphan.stack_name).into(),
        plain(&orphan.path).into(),
        plain(&orphan.resource_type).into(),
        orphan.physical_id.as_deref().map(plain).into(),
        orphan.region.as_deref().map(plain).into(),
        plain(&orphan.user_id).into(),
        plain(&orphan.username).into(),
        plain(&orphan.reason).into(),
        micros(orphan.time).into(),
    ]
}

impl Columns<'_> {
    /// [`schema::ORPHAN_COLUMNS`].
    fn orphan(&mut self) -> Result<Orphan, Fault> {
        Ok(Orphan {
            id: self.parsed()?,
            project: self.text()?,
            stack: self.parsed()?,
            stack_name: self.text()?,
            path: self.text()?,
            resource_type: self.text()?,
            physical_id: self.optional_text()?,
            region: self.optional_text()?,
            user_id: self.text()?,
            username: self.text()?,
            reason: self.text()?,
            time: self.time()?,
        })
    }
}
