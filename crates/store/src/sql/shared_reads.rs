//! Reads of stacks by ID that arrive while a query is in progress share the next one.
//!
//! A request of the API begins with the row of its stack. Alone, that is one query; under load, one query answers many
//! requests, and most of its cost is the way to the database and back. The shared query begins after all its reads, so
//! each sees at least what its own query would.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Expr, ExprTrait};
use tokio::sync::oneshot;

use super::SqlStore;
use super::columns::Columns;
use super::reading::{find_stack, select_stacks};
use super::statement_retry::Fault;
use crate::{Error, Stack, StackId};

/// Most stacks of a query.
const MOST: usize = 64;
/// How long a read waits for the others' query before it has its own: a connection may hang.
const PATIENCE: Duration = Duration::from_millis(500);

/// The reads that wait for the next query.
#[derive(Debug, Default)]
pub(super) struct SharedReads(Mutex<Reads>);

#[derive(Debug, Default)]
struct Reads {
    waiting: Vec<Read>,
    /// Whether a task executes queries. A read that has lost its patience with it sets this to false.
    is_served: bool,
}

#[derive(Debug)]
struct Read {
    id: StackId,
    /// Dropped if the query failed.
    answer: oneshot::Sender<Option<Stack>>,
}

impl SharedReads {
    fn lock(&self) -> MutexGuard<'_, Reads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reads of the next query. If there are none, the next read needs another task.
    fn next(&self) -> Vec<Read> {
        let mut reads = self.lock();
        reads.waiting.retain(|read| !read.answer.is_closed());
        reads.is_served = !reads.waiting.is_empty();
        let count = reads.waiting.len().min(MOST);
        reads.waiting.drain(..count).collect()
    }
}

impl SqlStore {
    /// A stack by ID.
    pub(super) async fn read_stack(&self, id: StackId) -> Result<Option<Stack>, Error> {
        if self.reader.place().is_simulated() {
            // A use case does not wait for a task.
            return self.retry(|| async { find_stack(&self.reader, id).await }).await;
        }
        let (answer, shared) = oneshot::channel();
        let needs_task = {
            let mut reads = self.stack_reads.lock();
            reads.waiting.push(Read { id, answer });
            !std::mem::replace(&mut reads.is_served, true)
        };
        if needs_task {
            tokio::spawn(self.clone().serve_reads());
        }
        match tokio::time::timeout(PATIENCE, shared).await {
            Ok(Ok(stack)) => return Ok(stack),
            Ok(Err(_)) => {}
            Err(_) => self.stack_reads.lock().is_served = false,
        }
        self.retry(|| async { find_stack(&self.reader, id).await }).await
    }

    /// Executes queries as long as reads wait.
    async fn serve_reads(self) {
        // Requests that are ready to run come first: their reads belong to the same query.
        tokio::task::yield_now().await;
        loop {
            let reads = self.stack_reads.next();
            if reads.is_empty() {
                return;
            }
            // If it fails for good, the query of one read may still succeed.
            let Ok(stacks) = self.retry(|| self.query_stacks(&reads)).await else { continue };
            for read in reads {
                // The client may be gone meanwhile.
                let _ = read.answer.send(stacks.get(&read.id).cloned());
            }
        }
    }

    async fn query_stacks(&self, reads: &[Read]) -> Result<HashMap<StackId, Stack>, Fault> {
        let mut ids: Vec<StackId> = reads.iter().map(|read| read.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if let &[id] = ids.as_slice() {
            return Ok(find_stack(&self.reader, id).await?.map(|stack| (id, stack)).into_iter().collect());
        }
        // A number of IDs for which the database has probably prepared the statement already.
        ids.resize(ids.len().next_power_of_two(), ids[0]);
        let select = select_stacks().and_where(Expr::col("id").is_in(ids.iter().map(ToString::to_string))).to_owned();
        let rows = self.reader.query_all(&select).await?;
        rows.iter().map(|row| Columns::of(row).read().map(|stack: Stack| (stack.id, stack))).collect()
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::Secret;

    use super::*;
    use crate::{Options, Store};

    /// If the query of others hangs, only the reads that wait for it lose time.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "fresh IDs")]
    async fn a_query_that_hangs_holds_nobody_up_for_long() {
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(Options::new("sqlite::memory:", key)).await.unwrap();
        store.migrate().await.unwrap();
        let id = StackId(uuid::Uuid::new_v4());
        store.stack_reads.lock().is_served = true;
        let waiting = std::iter::repeat_with(|| {
            let store = store.clone();
            tokio::spawn(async move { store.read_stack(id).await.unwrap() })
        });
        for read in waiting.take(3).collect::<Vec<_>>() {
            assert_eq!(tokio::time::timeout(PATIENCE * 10, read).await.unwrap().unwrap(), None);
        }
        assert!(!store.stack_reads.lock().is_served, "the next read would wait too");
        assert_eq!(store.read_stack(id).await.unwrap(), None);
        assert!(store.stack_reads.lock().waiting.is_empty());
    }
}
