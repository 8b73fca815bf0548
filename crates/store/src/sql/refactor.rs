//! Resources that move between stacks.

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Query};

use super::columns::plain;
use super::commit::apply_settle;
use super::leases::is_marked;
use super::operations::end_operation;
use super::pool::Transaction;
use super::reading::find_stack;
use super::statement_retry::Fault;
use super::{SqlStore, schema};
use crate::refactor::{MovedStack, Refactor};
use crate::{Batch, Error, Event, Stack, StackId};

impl SqlStore {
    pub(super) async fn move_rows(&self, refactor: &Refactor) -> Result<Vec<Stack>, Error> {
        let mark = self.outside.uuid().to_string();
        let stacks = self.retry(|| self.move_once(refactor, &mark)).await?;
        for stack in &stacks {
            self.hub.ring(stack.id);
            self.hub.tell(Some(stack.root));
            self.tell_couriers(stack, false);
        }
        Ok(stacks)
    }

    /// All leases are locked first: no engine can claim one of the stacks until the transaction ends. Then rows, nested stacks,
    /// stacks and events, as in a batch of an engine.
    async fn move_once(&self, refactor: &Refactor, mark: &str) -> Result<Vec<Stack>, Fault> {
        let parts = refactor.in_order();
        let tx = self.begin().await?;
        for (stack, writes) in refactor.locked() {
            if !self.lock(&tx, stack, writes, mark).await? {
                // An earlier attempt has written everything and lost its connection.
                let mut stacks = Vec::with_capacity(parts.len());
                for part in &parts {
                    stacks.push(find_stack(&tx, part.id).await?.ok_or(Error::Changed(part.id))?);
                }
                return Ok(stacks);
            }
            refuse_messages(&tx, stack).await?;
        }
        self.save(&tx, &Batch { save: refactor.rows.clone().into(), ..Batch::default() }).await?;
        for moved in &refactor.nested {
            move_stack(&tx, moved).await?;
        }
        let mut written: Vec<(Stack, Vec<Event>)> = Vec::with_capacity(parts.len());
        for part in parts {
            let begun = self.request_in(&tx, part.id, &part.request).await?;
            let (begun, started) = begun.ok_or(Error::Changed(part.id))?;
            let settle = part.settle(begun.generation);
            match &settle {
                Some(settle) => apply_settle(&tx, part.id, settle).await?,
                None => forget_previous(&tx, part.id).await?,
            }
            let stack = find_stack(&tx, part.id).await?.ok_or(Error::Changed(part.id))?;
            if let Some(settle) = &settle {
                end_operation(&tx, &stack, settle).await?;
            }
            let ended = settle.map(|_| Event::of_end(&stack));
            let events = std::iter::once(started).chain(part.events.iter().cloned()).chain(ended).collect();
            written.push((stack, events));
        }
        let events: Vec<(&Stack, &[Event])> =
            written.iter().map(|(stack, events)| (stack, events.as_slice())).collect();
        self.append_events(&tx, &events).await?;
        tx.commit().await?;
        Ok(written.into_iter().map(|(stack, _)| stack).collect())
    }

    /// Locks a lease that nobody has, if its stack is as it was read. An engine that was killed at the end of its work leaves its
    /// lease: when that has expired, it is taken from the engine, whose epoch is over. False: an earlier attempt has written this.
    async fn lock(&self, tx: &Transaction, stack: StackId, writes: i64, mark: &str) -> Result<bool, Fault> {
        let update = Query::update()
            .table(schema::LEASE)
            // Before the epoch is set: MariaDB evaluates assignments from left to right.
            .value("released", Expr::col("epoch").add(1))
            .value("epoch", Expr::col("epoch").add(1))
            .value("expires", 0)
            .value("writes", Expr::col("writes").add(1))
            .value("mark", mark)
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .and_where(Expr::col("expires").lte(self.outside.now()))
            .and_where(Expr::col("writes").eq(writes))
            .cond_where(Cond::any().add(Expr::col("mark").is_null()).add(Expr::col("mark").ne(mark)))
            .to_owned();
        if tx.execute(&update).await?.rows_affected() > 0 {
            return Ok(true);
        }
        if is_marked(tx, stack, mark).await? { Ok(false) } else { Err(Error::Changed(stack).into()) }
    }
}

/// Refuses a stack with messages that no engine has handled yet: they may be for a row that moves.
async fn refuse_messages(tx: &Transaction, stack: StackId) -> Result<(), Fault> {
    let select = Query::select()
        .column("id")
        .from(schema::MESSAGE)
        .and_where(Expr::col("stack").eq(stack.to_string()))
        .and_where(Expr::col("due").is_not_null())
        .limit(1)
        .to_owned();
    if tx.query_one(&select).await?.is_some() { Err(Error::Changed(stack).into()) } else { Ok(()) }
}

/// Lets a rollback return to the template of the request.
async fn forget_previous(tx: &Transaction, stack: StackId) -> Result<(), Fault> {
    let update = Query::update()
        .table(schema::STACK)
        .value("previous", Expr::col("desired"))
        .and_where(Expr::col("id").eq(stack.to_string()))
        .to_owned();
    tx.execute(&update).await?;
    Ok(())
}

/// Gives a nested stack another root and another parent, if no request to it was made since it was read.
async fn move_stack(tx: &Transaction, moved: &MovedStack) -> Result<(), Fault> {
    let update = Query::update()
        .table(schema::STACK)
        .value("root", moved.root.to_string())
        .value("parent_stack", moved.parent.stack.to_string())
        .value("parent_resource", moved.parent.resource.to_string())
        .value("parent_name", plain(&moved.parent.resource_name))
        .and_where(Expr::col("id").eq(moved.id.to_string()))
        .and_where(Expr::col("generation").eq(moved.generation))
        .and_where(Expr::col("settled").eq(moved.generation))
        .and_where(Expr::col("deleted").is_null())
        .to_owned();
    if tx.execute(&update).await?.rows_affected() > 0 { Ok(()) } else { Err(Error::Changed(moved.id).into()) }
}
