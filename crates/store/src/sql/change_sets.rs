//! Change sets of stacks.

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait, Func, OnConflict, Order, Query};

use super::pool::Transaction;
use super::rows::{self, Columns};
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::{ChangeSet, ChangeSetId, Error, StackId};

impl SqlStore {
    pub(super) async fn write_change_set(&self, set: &ChangeSet) -> Result<(), Error> {
        let row = rows::of_change_set(set, &self.vault)?;
        let replace = OnConflict::column("id").update_columns(["executed", "body"]).to_owned();
        let insert = Query::insert()
            .into_table(schema::CHANGE_SET)
            .columns(schema::CHANGE_SET_COLUMNS)
            .values(row)
            .map_err(Fault::from)?
            .on_conflict(replace)
            .to_owned();
        let same_name = Query::select()
            .column("id")
            .from(schema::CHANGE_SET)
            .and_where(Expr::col("stack").eq(set.stack.to_string()))
            .and_where(Expr::col("name").eq(set.name.as_str()))
            .and_where(Expr::col("id").ne(set.id.to_string()))
            .to_owned();
        self.retry(|| async {
            let tx = self.begin().await?;
            if tx.query_one(&same_name).await?.is_some() {
                return Err(Error::NameTaken(set.name.clone()).into());
            }
            tx.execute(&insert).await?;
            tx.commit().await
        })
        .await
    }

    pub(super) async fn read_change_sets(&self, project: &str, stack_name: &str) -> Result<Vec<ChangeSet>, Error> {
        let select = Query::select()
            .columns(schema::CHANGE_SET_COLUMNS)
            .from(schema::CHANGE_SET)
            .and_where(Expr::col("project").eq(project))
            .and_where(Expr::col("stack_name").eq(stack_name))
            .order_by("created", Order::Asc)
            .order_by("id", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::of(row).change_set(&self.vault)).collect()
        })
        .await
    }

    pub(super) async fn read_change_set_count(&self, project: &str) -> Result<u64, Error> {
        let select = Query::select()
            .expr(Func::count(Expr::col("id")))
            .from(schema::CHANGE_SET)
            .and_where(Expr::col("project").eq(project))
            .to_owned();
        self.retry(|| async {
            match self.reader.query_one(&select).await? {
                Some(row) => Columns::of(&row).count(),
                None => Ok(0),
            }
        })
        .await
    }

    pub(super) async fn drop_change_sets(&self, ids: &[ChangeSetId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let delete = Query::delete()
            .from_table(schema::CHANGE_SET)
            .and_where(Expr::col("id").is_in(ids.iter().map(ToString::to_string)))
            .to_owned();
        self.retry(|| async {
            self.writer.execute(&delete).await?;
            Ok(())
        })
        .await
    }
}

/// Deletes the change sets of a deleted stack.
pub(super) async fn remove_change_sets(tx: &Transaction, stack: StackId) -> Result<(), Fault> {
    let delete =
        Query::delete().from_table(schema::CHANGE_SET).and_where(Expr::col("stack").eq(stack.to_string())).to_owned();
    tx.execute(&delete).await?;
    Ok(())
}
