//! Messages to stacks.
//!
//! A message is a row, and no other row must be kept consistent with it: a stack can be claimed while it has due
//! messages. The row of a handled message is kept for some time without its content, to detect a repeated send.

use std::time::Duration;

use jiff::Timestamp;
use kiln_value::Chain;
use sea_orm::sea_query::{CaseStatement, Cond, Expr, ExprTrait, OnConflict, Order, Query, SelectStatement};
use sea_orm::{ConnectionTrait, QueryResult};

use super::columns::{Columns, micros, micros_of};
use super::pool::Transaction;
use super::reading::belongs_to_kiln;
use super::row::Row as _;
use super::secrets::Vault;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::{Backlog, Error, Message, MessageId, MessageKind, StackId};

/// When a damaged message is read again: another process may have the key for it.
const DAMAGED_FOR: Duration = Duration::from_mins(10);
/// IDs in one statement.
const CHUNK: usize = 1_000;

impl SqlStore {
    pub(super) async fn put_message(&self, message: &Message) -> Result<(), Error> {
        self.retry(|| async {
            let tx = self.begin().await?;
            if !self.send_in(&tx, message).await? {
                return Err(Error::NotFound(format!("stack {}", message.stack)).into());
            }
            tx.commit().await
        })
        .await?;
        if message.is_due_at_once() {
            self.hub.ring(message.stack);
        }
        Ok(())
    }

    /// Stores a message; false if the stack is deleted. The update of the stack's row prevents its concurrent deletion,
    /// also on a multi-master cluster, where a lock does not.
    pub(super) async fn send_in(&self, tx: &Transaction, message: &Message) -> Result<bool, Fault> {
        let count = Query::update()
            .table(schema::STACK)
            .value("messages", Expr::col("messages").add(1))
            .and_where(Expr::col("id").eq(message.stack.to_string()))
            .and_where(belongs_to_kiln())
            .and_where(Expr::col("deleted").is_null())
            .to_owned();
        if tx.execute(&count).await?.rows_affected() == 0 {
            return Ok(false);
        }
        let mut row = message.write(&self.vault)?;
        if message.is_due_at_once() {
            // The stack can be claimed immediately, whatever the sender's clock is.
            let due = Expr::val(micros(message.due));
            let earlier =
                CaseStatement::new().case(due.clone().lte(self.outside.now()), due).finally(self.outside.now());
            let due = Message::columns().position(|column| column == "due");
            if let Some(cell) = due.and_then(|due| row.get_mut(due)) {
                *cell = earlier.into();
            }
        }
        insert_rows(tx, vec![row]).await?;
        Ok(true)
    }

    pub(super) async fn read_due(&self, stack: StackId, now: Timestamp) -> Result<Vec<MessageId>, Error> {
        let due = Cond::any().add(Expr::col("due").lte(micros(now))).add(Expr::col("due").lte(self.outside.now()));
        let select = Query::select()
            .column("id")
            .from(schema::MESSAGE)
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .cond_where(due)
            .order_by("due", Order::Asc)
            .order_by("sent", Order::Asc)
            .order_by("id", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::of(row).parsed()).collect()
        })
        .await
    }

    pub(super) async fn read_messages(&self, stack: StackId, ids: &[MessageId]) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for ids in ids.chunks(CHUNK) {
            let select = Query::select()
                .columns(Message::columns())
                .from(schema::MESSAGE)
                .and_where(Expr::col("id").is_in(ids.iter().map(ToString::to_string)))
                .and_where(Expr::col("stack").eq(stack.to_string()))
                .and_where(Expr::col("due").is_not_null())
                .to_owned();
            messages.extend(self.retry(|| self.read_these(stack, &select)).await?);
        }
        messages.sort_by_key(|message| (message.due, message.sent, message.id));
        Ok(messages)
    }

    async fn read_these(&self, stack: StackId, select: &SelectStatement) -> Result<Vec<Message>, Fault> {
        let mut messages = Vec::new();
        for row in self.reader.query_all(select).await? {
            match Columns::opening(&row, &self.vault).read() {
                Ok(message) => messages.push(message),
                Err(Fault::Refused(Error::Damaged(error))) => {
                    let why = Chain(&*error).to_string();
                    self.leave_unread(stack, &row, &why).await?;
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(messages)
    }

    /// A message that this process cannot read is kept. It does not make its stack claimable.
    async fn leave_unread(&self, stack: StackId, row: &QueryResult, error: &str) -> Result<(), Fault> {
        let message = Columns::of(row).text()?;
        tracing::warn!(%stack, message, error, "a message cannot be read, and is kept");
        // A kind that is not known is that of another version, for which the message stays due.
        let later = Query::update()
            .table(schema::MESSAGE)
            .value("due", self.outside.now().add(micros_of(DAMAGED_FOR)))
            .and_where(Expr::col("id").eq(message))
            .and_where(Expr::col("due").is_not_null())
            .and_where(is_known(schema::MESSAGE))
            .to_owned();
        self.writer.execute(&later).await?;
        Ok(())
    }

    pub(super) async fn read_backlog(&self, stack: StackId, sizes: bool) -> Result<Backlog, Error> {
        let mut select = Query::select();
        select
            .expr(self.dialect.integer("COUNT(*)"))
            .from(schema::MESSAGE)
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .and_where(Expr::col("due").is_not_null());
        if sizes {
            select.expr(self.dialect.integer("COALESCE(SUM(OCTET_LENGTH(body)), 0)"));
        }
        self.retry(|| async {
            let Some(row) = self.reader.query_one(&select).await? else { return Ok(Backlog::default()) };
            let mut columns = Columns::of(&row);
            let messages = columns.count()?;
            Ok(Backlog { messages, bytes: if sizes { columns.count()? } else { 0 } })
        })
        .await
    }

    pub(super) async fn mark_handled(&self, tx: &Transaction, stack: StackId, ids: &[MessageId]) -> Result<(), Fault> {
        for ids in ids.chunks(CHUNK) {
            let update = Query::update()
                .table(schema::MESSAGE)
                .value("due", None::<i64>)
                .value("body", None::<String>)
                .value("handled", self.outside.now())
                .and_where(Expr::col("id").is_in(ids.iter().map(ToString::to_string)))
                .and_where(Expr::col("stack").eq(stack.to_string()))
                .to_owned();
            tx.execute(&update).await?;
        }
        Ok(())
    }

    /// One row for each due message of the stack, given as a column of the outer query or as a value.
    pub(super) fn due_messages(&self, stack: Expr) -> SelectStatement {
        Query::select()
            .expr(Expr::val(1))
            .from(schema::MESSAGE)
            .and_where(Expr::col((schema::MESSAGE, "stack")).eq(stack))
            .and_where(Expr::col((schema::MESSAGE, "due")).lte(self.outside.now()))
            .and_where(is_known(schema::MESSAGE))
            .to_owned()
    }
}

/// Whether this version knows the kind of a message.
pub(super) fn is_known(table: &'static str) -> Expr {
    Expr::col((table, "kind")).is_in(MessageKind::ALL.map(MessageKind::as_str))
}

/// Inserts messages that are not stored yet.
pub(super) async fn insert_messages(tx: &Transaction, vault: &Vault, messages: &[Message]) -> Result<(), Fault> {
    insert_rows(tx, messages.iter().map(|message| message.write(vault)).collect::<Result<_, _>>()?).await
}

async fn insert_rows(tx: &Transaction, rows: Vec<Vec<Expr>>) -> Result<(), Fault> {
    let absent = OnConflict::column("id").do_nothing_on(["id"]).to_owned();
    insert(tx, Message::TABLE, Message::COLUMNS, rows, Some(absent)).await
}

/// Deletes all messages of a deleted stack.
pub(super) async fn remove_messages(tx: &Transaction, stack: StackId) -> Result<(), Fault> {
    let delete =
        Query::delete().from_table(schema::MESSAGE).and_where(Expr::col("stack").eq(stack.to_string())).to_owned();
    tx.execute(&delete).await?;
    Ok(())
}
