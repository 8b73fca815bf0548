//! Batches of the engine that holds a lease.

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, OnConflict, Query};
use uuid::Uuid;

use super::columns::{micros, plain};
use super::inbox::{insert_messages, remove_messages};
use super::leases::{is_current, is_marked};
use super::operations::end_operation;
use super::orphans::insert_orphans;
use super::plans::remove_plans_of;
use super::pool::Transaction;
use super::reading::find_stack;
use super::requests::details;
use super::row::Row as _;
use super::snapshots::{remove_snapshots, save_snapshots};
use super::statement_retry::Fault;
use super::writing::insert_each;
use super::{SqlStore, schema};
use crate::{Batch, Details, Error, Lease, Resource, ResourceId, Settle, Stack, StackId};

/// IDs in one statement.
const CHUNK: usize = 1_000;

impl SqlStore {
    pub(super) async fn commit_batch(&self, lease: Lease, batch: &Batch) -> Result<Stack, Error> {
        #[expect(clippy::disallowed_methods, reason = "identifies this batch; its value does not matter")]
        let mark = Uuid::new_v4().to_string();
        let stack = self.retry(|| self.commit_once(lease, batch, &mark)).await?;
        for other in batch.rings() {
            self.hub.ring(other);
        }
        if batch.has_events() {
            self.hub.tell(Some(stack.root));
        }
        self.tell_couriers(&stack, !batch.plugin_runs.is_empty());
        if batch.settle.is_some() {
            self.hub.ring(stack.id);
            if let Some(parent) = &stack.parent {
                self.hub.ring(parent.stack);
            }
        }
        Ok(stack)
    }

    /// The lease is checked first and locked, so that no other engine can claim it until the transaction ends.
    /// Rows of nested stacks are written before the row of the stack itself, always from the leaves to the root, and events
    /// last, to avoid deadlocks.
    async fn commit_once(&self, lease: Lease, batch: &Batch, mark: &str) -> Result<Stack, Fault> {
        let tx = self.begin().await?;
        if check_lease(&tx, lease, mark).await? == Attempt::Repeated {
            return Ok(find_stack(&tx, lease.stack).await?.ok_or(Error::Stale(lease.stack))?);
        }
        self.save(&tx, batch).await?;
        remove(&tx, lease.stack, &batch.remove).await?;
        insert_orphans(&tx, &batch.orphans).await?;
        let mut started = Vec::new();
        if !batch.children.is_empty() {
            started = self.create_in(&tx, &batch.children).await?;
            self.attach_credentials_of(&tx, &batch.children).await?;
        }
        for (child, request) in &batch.requests {
            started.extend(self.request_in(&tx, *child, request).await?);
        }
        self.mark_handled(&tx, lease.stack, &batch.handled).await?;
        if !batch.snapshots.is_empty() {
            save_snapshots(&tx, &self.vault, &batch.snapshots).await?;
        }
        remove_snapshots(&tx, lease.stack, Some(&batch.remove_snapshots)).await?;
        for change in &batch.software {
            self.change_software_in(&tx, change).await?;
        }
        if let Some(project) = &batch.user_project {
            set_user_project(&tx, lease.stack, project).await?;
        }
        if let Some(generation) = batch.admit {
            admit(&tx, lease.stack, generation).await?;
        }
        if let Some(settle) = &batch.settle {
            apply_settle(&tx, lease.stack, settle).await?;
        }
        let mut stack = find_stack(&tx, lease.stack).await?.ok_or(Error::Stale(lease.stack))?;
        if let Some(settle) = &batch.settle {
            end_operation(&tx, &stack, settle).await?;
        }
        if let Some(request) = batch.rollback.as_ref().filter(|one| one.if_generation == Some(stack.generation)) {
            let begun = match self.request_in(&tx, lease.stack, request).await {
                Err(Fault::Refused(Error::Changed(_))) => None,
                begun => begun?,
            };
            stack = begun.as_ref().map_or(stack, |(stack, _)| stack.clone());
            started.extend(begun);
        }
        if stack.deleted.is_none() {
            insert_messages(&tx, &self.vault, &batch.timers).await?;
        }
        for message in &batch.send {
            self.send_in(&tx, message).await?;
        }
        let started = started.iter().map(|(child, event)| (child, std::slice::from_ref(event)));
        let events: Vec<_> = std::iter::once((&stack, batch.events.as_slice())).chain(started).collect();
        self.append_events(&tx, &events).await?;
        self.announce(&tx, &stack, batch).await?;
        tx.commit().await?;
        Ok(stack)
    }

    pub(super) async fn save(&self, tx: &Transaction, batch: &Batch) -> Result<(), Fault> {
        let rows = batch.save.iter().map(|row| row.write(&self.vault));
        let replace = OnConflict::column("id").update_columns(Resource::changed_columns()).to_owned();
        insert_each(tx, Resource::TABLE, Resource::COLUMNS, rows, Some(replace)).await?;
        for (child, row) in batch.moved_owners() {
            let update = Query::update()
                .table(schema::STACK)
                .value("parent_name", plain(&row.name))
                .and_where(Expr::col("id").eq(child.to_string()))
                .and_where(Expr::col("parent_name").ne(plain(&row.name)))
                .to_owned();
            tx.execute(&update).await?;
        }
        Ok(())
    }
}

/// Whether a batch is written for the first time.
#[derive(PartialEq)]
enum Attempt {
    /// The batch is to be written.
    First,
    /// The batch was already written by an attempt that lost its connection.
    Repeated,
}

/// Checks that the lease is current. This is a write, not a read: it locks the row until the transaction ends. On a
/// multi-master cluster, where locks are local, it conflicts with a claim on another node.
async fn check_lease(tx: &Transaction, lease: Lease, mark: &str) -> Result<Attempt, Fault> {
    let update = Query::update()
        .table(schema::LEASE)
        .value("writes", Expr::col("writes").add(1))
        .value("mark", mark)
        .cond_where(is_current(lease))
        .cond_where(Cond::any().add(Expr::col("mark").is_null()).add(Expr::col("mark").ne(mark)))
        .to_owned();
    if tx.execute(&update).await?.rows_affected() > 0 {
        return Ok(Attempt::First);
    }
    if is_marked(tx, lease.stack, mark).await? { Ok(Attempt::Repeated) } else { Err(Error::Stale(lease.stack).into()) }
}

async fn remove(tx: &Transaction, stack: StackId, ids: &[ResourceId]) -> Result<(), Fault> {
    for ids in ids.chunks(CHUNK) {
        let delete = Query::delete()
            .from_table(schema::RESOURCE)
            .and_where(Expr::col("id").is_in(ids.iter().map(ToString::to_string)))
            .and_where(Expr::col("stack").eq(stack.to_string()))
            .to_owned();
        tx.execute(&delete).await?;
    }
    Ok(())
}

async fn set_user_project(tx: &Transaction, stack: StackId, project: &str) -> Result<(), Fault> {
    let update = Query::update()
        .table(schema::STACK)
        .value("user_project", plain(project))
        .and_where(Expr::col("id").eq(stack.to_string()))
        .to_owned();
    tx.execute(&update).await?;
    Ok(())
}

async fn admit(tx: &Transaction, stack: StackId, generation: i64) -> Result<(), Fault> {
    let Some(found) = find_stack(tx, stack).await? else { return Ok(()) };
    let update = Query::update()
        .table(schema::STACK)
        .value("details", details(&Details { admitted: true, ..found.details })?)
        .and_where(Expr::col("id").eq(stack.to_string()))
        .and_where(Expr::col("generation").eq(generation))
        .to_owned();
    tx.execute(&update).await?;
    Ok(())
}

pub(super) async fn apply_settle(tx: &Transaction, stack: StackId, settle: &Settle) -> Result<(), Fault> {
    let mut update = Query::update();
    update
        .table(schema::STACK)
        .value("action", settle.state.action.as_str())
        .value("status", settle.state.status.as_str())
        .value("reason", plain(&settle.reason))
        .value("settled", settle.generation)
        .value("due", None::<i64>)
        .and_where(Expr::col("id").eq(stack.to_string()))
        .and_where(Expr::col("generation").eq(settle.generation));
    if settle.reached {
        update.value("previous", Expr::col("desired"));
    }
    if settle.deleted {
        update.value("deleted", micros(settle.now)).value(schema::LIVE_NAME, None::<String>);
    }
    let applied = tx.execute(&update).await?.rows_affected() > 0;
    if applied && settle.deleted {
        let delete =
            Query::delete().from_table(schema::RESOURCE).and_where(Expr::col("stack").eq(stack.to_string())).to_owned();
        tx.execute(&delete).await?;
        remove_messages(tx, stack).await?;
        remove_snapshots(tx, stack, None).await?;
        remove_plans_of(tx, &[stack.to_string()], true).await?;
    }
    Ok(())
}
