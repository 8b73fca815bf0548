//! Carries rings of the doorbell to other processes.
//!
//! PostgreSQL uses notifications (`LISTEN`). Other databases use rows of a table, which every process with a listener
//! polls: one small query for all stacks. In the same way a process with watchers polls for events of other processes.

mod notifications;
mod seen_numbers;
mod table;
mod tail;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sea_orm::sqlx::postgres::PgConnectOptions;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::dialect::Dialect;
use super::pool::Pool;
use crate::StackId;
use crate::doorbell::{Hub, Reach};

/// Maximum number of rings that are sent at once.
const RINGS_AT_ONCE: usize = 200;
/// Polling interval of a table.
const LOOK: Duration = Duration::from_millis(500);
/// Delay between two attempts to listen.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The tasks that carry rings. They stop when this value is dropped.
#[derive(Debug, Default)]
pub(super) struct Wires(Vec<AbortHandle>);

impl Drop for Wires {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// A hub with notifications of PostgreSQL, and its tasks.
pub(super) fn by_notifications(writer: &Pool, reader: &Pool, hosts: Vec<PgConnectOptions>) -> (Arc<Hub>, Wires) {
    let (hub, inbound, origin) = carried();
    let tail = tokio::spawn(tail::tail(reader.clone(), Arc::clone(&hub))).abort_handle();
    let carry = tokio::spawn(notifications::carry(writer.clone(), inbound, origin.clone())).abort_handle();
    let listen = tokio::spawn(notifications::listen(hosts, Arc::clone(&hub), origin)).abort_handle();
    (hub, Wires(vec![carry, listen, tail]))
}

/// A hub with a table, and its tasks.
pub(super) fn by_table(writer: &Pool, reader: &Pool, dialect: Dialect) -> (Arc<Hub>, Wires) {
    let (hub, inbound, origin) = carried();
    let carry = tokio::spawn(table::carry(writer.clone(), dialect, inbound, origin.clone())).abort_handle();
    let rings = table::Rings { reader: reader.clone(), writer: writer.clone(), dialect, origin };
    let listen = tokio::spawn(rings.listen(Arc::clone(&hub))).abort_handle();
    let tail = tokio::spawn(tail::tail(reader.clone(), Arc::clone(&hub))).abort_handle();
    (hub, Wires(vec![carry, listen, tail]))
}

fn carried() -> (Arc<Hub>, UnboundedReceiver<StackId>, String) {
    let (outbound, inbound) = unbounded_channel();
    #[expect(clippy::disallowed_methods, reason = "identifies this process; its value does not matter")]
    let origin = Uuid::new_v4().to_string();
    (Hub::new(Reach::Carried { listening: AtomicBool::new(false), outbound }), inbound, origin)
}
