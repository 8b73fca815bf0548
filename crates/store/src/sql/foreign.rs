//! The tables of another application: they are only read, and every value is read as a text.

use std::fmt;

use sea_orm::sea_query::{Expr, ExprTrait, Order, Query, SelectStatement};
use sea_orm::{ConnectionTrait, QueryResult};

use super::columns::Columns;
use super::dialect::Dialect;
use super::pool::{Pool, Transaction};
use super::statement_retry::{Fault, Losses};
use super::{Options, dialect_of};
use crate::Error;

/// Keys per query.
const KEYS: usize = 500;

/// A row: the values of its columns, `None` for NULL.
pub type ForeignRow = Vec<Option<String>>;

/// A database of another application.
#[derive(Clone)]
pub struct ForeignDatabase {
    pool: Pool,
    dialect: Dialect,
}

/// Its tables at one moment.
pub struct ForeignSnapshot {
    tx: Transaction,
    dialect: Dialect,
}

/// The rows to read.
#[derive(Clone, Copy, Debug)]
pub enum ForeignKeys<'a> {
    /// Those whose column has one of these texts.
    Texts(&'static str, &'a [String]),
    /// Those whose column has one of these numbers.
    Numbers(&'static str, &'a [i64]),
    /// Those whose column is NULL.
    Null(&'static str),
    /// All.
    All,
}

impl ForeignDatabase {
    /// Connects. `options`: its URL and its connections; the key has no effect.
    pub async fn open(options: &Options) -> Result<Self, Error> {
        let pool = options.connect_to_foreign(&Losses::default()).await?;
        let dialect = dialect_of(&pool).await?;
        Ok(Self { pool, dialect })
    }

    /// Begins to read its tables as they are now.
    pub async fn snapshot(&self) -> Result<ForeignSnapshot, Error> {
        Ok(ForeignSnapshot { tx: Transaction::snapshot(&self.pool).await?, dialect: self.dialect })
    }
}

impl fmt::Debug for ForeignDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignDatabase").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl ForeignSnapshot {
    /// Columns of a table, in the order of a column.
    pub async fn rows(
        &self,
        table: &'static str,
        columns: &[&'static str],
        keys: ForeignKeys<'_>,
        order: &'static str,
    ) -> Result<Vec<ForeignRow>, Error> {
        let text = if matches!(self.dialect, Dialect::MariaDb | Dialect::MySql) { "CHAR" } else { "TEXT" };
        let mut select = Query::select();
        select.from(table).order_by(order, Order::Asc);
        for column in columns {
            select.expr(Expr::col(*column).cast_as(text));
        }
        let mut rows = Vec::new();
        for page in pages(&select, keys) {
            for row in self.tx.query_all(&page).await.map_err(Fault::from)? {
                let row = (0..columns.len()).map(|at| text_at(&row, at)).collect::<Result<_, Fault>>()?;
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Whether there is a table.
    pub async fn has_table(&self, table: &'static str) -> Result<bool, Error> {
        let query = self.dialect.count_tables(&[table]);
        let query = sea_orm::Statement::from_string(self.tx.get_database_backend(), query);
        let row = self.tx.query_one_raw(query).await.map_err(Fault::from)?;
        Ok(row.map_or(Ok(0), |row| Columns::of(&row).count())? > 0)
    }
}

/// A value of a row. SQLite may have bytes that are no text: they become U+FFFD, so that one row does not stop the others.
fn text_at(row: &QueryResult, at: usize) -> Result<Option<String>, Fault> {
    row.try_get_by_index(at).or_else(|error| {
        let bytes: Option<Vec<u8>> = row.try_get_by_index(at).map_err(|_| error)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    })
}

/// A query for each page of the keys.
fn pages(select: &SelectStatement, keys: ForeignKeys<'_>) -> Vec<SelectStatement> {
    let among = |condition: Expr| select.clone().and_where(condition).to_owned();
    match keys {
        ForeignKeys::All => vec![select.clone()],
        ForeignKeys::Null(column) => vec![among(Expr::col(column).is_null())],
        ForeignKeys::Texts(column, texts) => {
            texts.chunks(KEYS).map(|page| among(Expr::col(column).is_in(page.iter().map(String::as_str)))).collect()
        }
        ForeignKeys::Numbers(column, numbers) => {
            numbers.chunks(KEYS).map(|page| among(Expr::col(column).is_in(page.iter().copied()))).collect()
        }
    }
}
