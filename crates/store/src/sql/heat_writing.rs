//! Writes rows into the tables of a Heat, past the fence around a project.

use std::fmt;

use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ConnectionTrait, DbBackend};

use super::dialect::Dialect;
use super::heat_fence::{lowered, raised};
use super::pool::Transaction;
use super::statement_retry::Fault;
use crate::Error;

/// Keys per statement.
const KEYS: usize = 500;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum HeatValue {
    /// NULL.
    Null,
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// A truth value.
    Flag(bool),
    /// A time, stored in UTC without a zone.
    Time(Timestamp),
}

impl<T: Into<HeatValue>> From<Option<T>> for HeatValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<&str> for HeatValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for HeatValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for HeatValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for HeatValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Timestamp> for HeatValue {
    fn from(time: Timestamp) -> Self {
        Self::Time(time)
    }
}

/// The columns of a row with their values.
pub type HeatColumns = Vec<(&'static str, HeatValue)>;

/// A transaction that may write rows of a fenced project: it has removed the fence, and raises it again before it commits, so
/// that nobody else ever sees the tables without it. It is rolled back when it is dropped.
pub struct HeatWriter {
    tx: Transaction,
    dialect: Dialect,
    project: String,
}

impl HeatWriter {
    pub(super) async fn begin(tx: Transaction, dialect: Dialect, project: &str) -> Result<Self, Fault> {
        tx.execute(&lowered(project)).await?;
        Ok(Self { tx, dialect, project: project.to_owned() })
    }

    /// Inserts a row into a table whose column `id` numbers its rows. Returns the number.
    pub async fn insert_numbered(&self, table: &'static str, columns: HeatColumns) -> Result<i64, Error> {
        let mut insert = self.insert_of(table, columns)?;
        if self.tx.get_database_backend() == DbBackend::Postgres {
            insert.returning(Query::returning().expr(Expr::col("id").cast_as("BIGINT")));
            let row = self.tx.query_one(&insert).await.map_err(Fault::from)?;
            let row = row.ok_or_else(|| Error::Database("an insert returned no row".into()))?;
            return Ok(row.try_get_by_index(0).map_err(Fault::from)?);
        }
        let done = self.tx.execute(&insert).await.map_err(Fault::from)?;
        i64::try_from(done.last_insert_id()).map_err(|error| Error::Database(error.to_string().into()))
    }

    /// Inserts a row.
    pub async fn insert(&self, table: &'static str, columns: HeatColumns) -> Result<(), Error> {
        let insert = self.insert_of(table, columns)?;
        self.tx.execute(&insert).await.map_err(Fault::from)?;
        Ok(())
    }

    fn insert_of(
        &self,
        table: &'static str,
        columns: HeatColumns,
    ) -> Result<sea_orm::sea_query::InsertStatement, Error> {
        let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let mut insert = Query::insert();
        insert.into_table(table).columns(names);
        insert.values(values.into_iter().map(|value| self.expression(value))).map_err(Fault::from)?;
        Ok(insert)
    }

    /// Changes the row with this value of its column `id`.
    pub async fn update(&self, table: &'static str, id: HeatValue, columns: HeatColumns) -> Result<(), Error> {
        let mut update = Query::update();
        update.table(table).and_where(Expr::col("id").eq(self.expression(id)));
        for (name, value) in columns {
            update.value(name, self.expression(value));
        }
        self.tx.execute(&update).await.map_err(Fault::from)?;
        Ok(())
    }

    /// Deletes the rows whose column has one of these values.
    pub async fn delete(
        &self,
        table: &'static str,
        column: &'static str,
        values: impl IntoIterator<Item = HeatValue>,
    ) -> Result<(), Error> {
        let values: Vec<HeatValue> = values.into_iter().collect();
        for page in values.chunks(KEYS) {
            let among = Expr::col(column).is_in(page.iter().cloned().map(|value| self.expression(value)));
            let delete = Query::delete().from_table(table).and_where(among).to_owned();
            self.tx.execute(&delete).await.map_err(Fault::from)?;
        }
        Ok(())
    }

    /// Raises the fence again and commits.
    pub async fn commit(self) -> Result<(), Error> {
        self.tx.execute(&raised(&self.project)?).await.map_err(Fault::from)?;
        Ok(self.tx.commit().await?)
    }

    fn expression(&self, value: HeatValue) -> Expr {
        match value {
            // Without a type: that of the column is not known.
            HeatValue::Null => Expr::cust("NULL"),
            HeatValue::Text(text) => text.into(),
            HeatValue::Number(number) => number.into(),
            HeatValue::Flag(flag) => flag.into(),
            HeatValue::Time(time) => {
                let text = |format| Expr::val(time.strftime(format).to_string());
                match self.dialect {
                    Dialect::Postgres => text("%Y-%m-%d %H:%M:%S.%6f").cast_as("TIMESTAMP"),
                    Dialect::Sqlite => text("%Y-%m-%d %H:%M:%S.%6f"),
                    // The columns have whole seconds, to which the server would round.
                    Dialect::MariaDb | Dialect::MySql => text("%Y-%m-%d %H:%M:%S"),
                }
            }
        }
    }
}

impl fmt::Debug for HeatWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeatWriter").field("project", &self.project).finish_non_exhaustive()
    }
}
