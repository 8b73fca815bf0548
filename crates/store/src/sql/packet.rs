//! The size of statements. MariaDB and MySQL take none above `max_allowed_packet`: they refuse it, or close the connection,
//! which looks as if it was lost. So does a proxy that has a limit of its own.

use std::io::{Error as IoError, ErrorKind};

use sea_orm::Statement;
use sea_orm::sea_query::{Expr, Value, Values};
use sea_orm::sqlx;

/// The most that a value takes besides its text: its length, its type and its bit among the nulls; or a number.
const OF_VALUE: usize = 16;
/// The same for a statement: its header, and rounding.
const OF_STATEMENT: usize = 256;

/// From this size on, a statement may be the reason why its connection is lost.
const LARGE: usize = 1 << 20;

/// The limit of a connection, in bytes; `None`: the database has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packet(pub(super) Option<usize>);

/// A statement is too large for the database.
#[derive(Debug, thiserror::Error)]
#[error("{size} bytes in one statement, while the database has a max_allowed_packet of {limit} bytes")]
pub(super) struct TooLarge {
    size: usize,
    limit: usize,
}

/// The connection was lost in a large statement.
#[derive(Debug, thiserror::Error)]
#[error("the connection was lost in a statement of {size} bytes")]
pub(super) struct LostInLarge {
    size: usize,
    source: sqlx::Error,
}

/// The loss of a connection in a statement of a size: if that is large, the error says so. When the server is silent on all
/// connections, the statement is not the reason.
pub(super) fn lost_in(size: usize, error: sqlx::Error) -> sqlx::Error {
    let kind = match &error {
        sqlx::Error::Io(error) => error.kind(),
        _ => ErrorKind::ConnectionAborted,
    };
    if size < LARGE || kind == ErrorKind::TimedOut {
        return error;
    }
    sqlx::Error::Io(IoError::new(kind, LostInLarge { size, source: error }))
}

/// The bytes of a statement.
pub(super) fn size_of_statement(statement: &Statement) -> usize {
    let values = statement.values.as_ref().map_or(&[] as &[Value], |Values(values)| values);
    statement.sql.len().max(values.iter().map(size_of).sum())
}

impl Packet {
    /// Refuses a row that no statement can insert.
    pub(super) fn check_row(self, row: &[Expr]) -> Result<(), TooLarge> {
        self.check_size(size_of_row(row))
    }

    /// Refuses a statement of a size that the database does not take.
    pub(super) fn check_size(self, size: usize) -> Result<(), TooLarge> {
        match self.0 {
            Some(limit) if size + OF_STATEMENT > limit => Err(TooLarge { size, limit }),
            _ => Ok(()),
        }
    }

    /// The most that a statement with many rows should have, at most `wanted`.
    pub(super) fn room(self, wanted: usize) -> usize {
        self.0.map_or(wanted, |limit| limit.saturating_sub(OF_STATEMENT).min(wanted))
    }
}

/// The bytes of the values of a row in a statement.
pub(super) fn size_of_row(row: &[Expr]) -> usize {
    row.iter()
        .map(|cell| match cell {
            Expr::Value(value) => size_of(value),
            _ => OF_VALUE,
        })
        .sum()
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::String(Some(text)) => text.len() + OF_VALUE,
        _ => OF_VALUE,
    }
}
