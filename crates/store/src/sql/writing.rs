//! Writes many rows with few statements.

use std::collections::VecDeque;

use sea_orm::sea_query::{Expr, InsertStatement, OnConflict, Query};
use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::packet::size_of_row;
use super::pool::Transaction;
use super::statement_retry::Fault;

/// Rows per statement: only a few sizes, so that connections can reuse prepared statements. The largest stays below
/// SQLite's 32,766 variables with 27 columns.
const SIZES: [usize; 5] = [256, 64, 16, 4, 1];

/// Bytes per statement, if the database takes so many. A single row may be larger.
const MAX_BYTES: usize = 4 << 20;

/// Inserts rows with the given columns; no rows are a no-op.
pub(super) async fn insert(
    tx: &Transaction,
    table: &'static str,
    columns: &[&'static str],
    rows: Vec<Vec<Expr>>,
    conflict: Option<OnConflict>,
) -> Result<(), Fault> {
    insert_each(tx, table, columns, rows.into_iter().map(Ok), conflict).await
}

/// Inserts rows that are converted on the way: while the database executes a statement, the next one is built.
pub(super) async fn insert_each(
    tx: &Transaction,
    table: &'static str,
    columns: &[&'static str],
    rows: impl Iterator<Item = Result<Vec<Expr>, Fault>>,
    conflict: Option<OnConflict>,
) -> Result<(), Fault> {
    let mut start = Query::insert();
    start.into_table(table).columns(columns.iter().copied());
    if let Some(conflict) = conflict {
        start.on_conflict(conflict);
    }
    let (backend, room) = (tx.get_database_backend(), tx.packet().room(MAX_BYTES));
    let mut statements = Statements { backend, room, start, rows, converted: VecDeque::new() };
    let mut next = statements.next()?;
    while let Some(statement) = next {
        let (executed, following) = tokio::join!(tx.execute_raw(statement), async { statements.next() });
        executed?;
        next = following?;
    }
    Ok(())
}

/// The statements that insert rows.
struct Statements<R> {
    backend: DbBackend,
    /// The bytes of a statement with more than one row.
    room: usize,
    /// A statement without rows.
    start: InsertStatement,
    rows: R,
    /// The next rows.
    converted: VecDeque<Vec<Expr>>,
}

impl<R: Iterator<Item = Result<Vec<Expr>, Fault>>> Statements<R> {
    fn next(&mut self) -> Result<Option<Statement>, Fault> {
        let room = SIZES[0] - self.converted.len();
        for row in self.rows.by_ref().take(room) {
            self.converted.push_back(row?);
        }
        if self.converted.is_empty() {
            return Ok(None);
        }
        let sizes: Vec<usize> = self.converted.iter().map(|row| size_of_row(row)).collect();
        let fits = |size: &usize| sizes.get(..*size).is_some_and(|some| some.iter().sum::<usize>() <= self.room);
        let count = SIZES.into_iter().find(fits).unwrap_or(1);
        let mut insert = self.start.clone();
        for row in self.converted.drain(..count) {
            insert.values(row)?;
        }
        Ok(Some(self.backend.build(&insert)))
    }
}
