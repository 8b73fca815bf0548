//! Writes many rows with few statements.

use sea_orm::sea_query::{Expr, OnConflict, Query, Value};
use sea_orm::{ConnectionTrait, DatabaseTransaction};

use super::retry::Fault;
use super::secrets::Vault;
use super::{rows, schema};
use crate::Event;

/// Rows per statement: only a few sizes, so that connections can reuse prepared statements. The largest stays below
/// SQLite's 32,766 variables with 27 columns.
const SIZES: [usize; 5] = [256, 64, 16, 4, 1];

/// Bytes of text per statement, far below MariaDB's default limit of 16 MB. A single row may be larger.
const MAX_BYTES: usize = 4 << 20;

/// Inserts rows with the given columns; no rows are a no-op.
pub(super) async fn insert(
    tx: &DatabaseTransaction,
    table: &'static str,
    columns: &[&'static str],
    rows: Vec<Vec<Expr>>,
    conflict: Option<OnConflict>,
) -> Result<(), Fault> {
    let sizes: Vec<usize> = rows.iter().map(|row| bytes_of(row)).collect();
    let mut rows = rows.into_iter();
    let mut left = sizes.as_slice();
    while !left.is_empty() {
        let count = SIZES
            .into_iter()
            .find(|&size| left.get(..size).is_some_and(|some| some.iter().sum::<usize>() <= MAX_BYTES))
            .unwrap_or(1);
        let mut insert = Query::insert();
        insert.into_table(table).columns(columns.iter().copied());
        for row in rows.by_ref().take(count) {
            insert.values(row)?;
        }
        if let Some(conflict) = &conflict {
            insert.on_conflict(conflict.clone());
        }
        tx.execute(&insert).await?;
        left = left.get(count..).unwrap_or_default();
    }
    Ok(())
}

/// Appends events.
pub(super) async fn insert_events(tx: &DatabaseTransaction, vault: &Vault, events: &[Event]) -> Result<(), Fault> {
    let rows = events.iter().map(|event| rows::of_event(event, vault)).collect::<Result<_, _>>()?;
    insert(tx, schema::EVENT, &schema::EVENT_COLUMNS, rows, None).await
}

fn bytes_of(row: &[Expr]) -> usize {
    row.iter()
        .map(|cell| match cell {
            Expr::Value(Value::String(Some(text))) => text.len(),
            _ => 8,
        })
        .sum()
}
