//! Rings as PostgreSQL notifications.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sea_orm::sqlx::{self, Executor as _};
use sea_orm::{ConnectionTrait, DbBackend, Statement};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{LISTEN_AGAIN, RINGS_AT_ONCE};
use crate::StackId;
use crate::doorbell::Hub;
use crate::sql::connection::first_of;
use crate::sql::pool::Pool;
use crate::sql::pulse::silent;

/// The channel. A notification has at most 8,000 bytes: [`RINGS_AT_ONCE`] IDs and the origin.
const CHANNEL: &str = "kiln";
/// A listener that has heard nothing for this long is tested.
const TEST_EACH: Duration = Duration::from_secs(5);
/// How long the answer to a test, or to `LISTEN`, may take.
const TEST_LIMIT: Duration = Duration::from_secs(3);

/// Sends all pending rings at once. Commits of notifications are serialized for the whole server, so the transactions
/// that ring do not send them.
pub(super) async fn carry(writer: Pool, mut rings: UnboundedReceiver<StackId>, origin: String) {
    let mut stacks = Vec::new();
    while rings.recv_many(&mut stacks, RINGS_AT_ONCE).await > 0 {
        let ids: BTreeSet<String> = stacks.drain(..).map(|stack| stack.to_string()).collect();
        let payload = ids.into_iter().fold(origin.clone(), |payload, id| payload + " " + &id);
        let values = [CHANNEL.into(), payload.into()];
        let notify = Statement::from_sql_and_values(DbBackend::Postgres, "SELECT pg_notify($1, $2)", values);
        if let Err(error) = writer.execute_raw(notify).await {
            tracing::debug!(%error, "failed to send notifications");
        }
    }
}

/// Receives the rings of other processes while anybody in this process listens. After a lost connection, listeners look
/// at everything.
pub(super) async fn listen(hosts: Vec<PgConnectOptions>, hub: Arc<Hub>, origin: String) {
    loop {
        hub.listened().await;
        if let Err(error) = listen_until_lost(&hosts, &hub, &origin).await {
            tracing::debug!(%error, "failed to receive notifications");
        }
        hub.set_listening(false);
        hub.ring_here(None);
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

async fn listen_until_lost(hosts: &[PgConnectOptions], hub: &Hub, origin: &str) -> Result<(), sqlx::Error> {
    // A standby refuses listeners.
    let mut listener = first_of(hosts, |host| async move {
        // For the one connection of the listener.
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let mut listener = PgListener::connect_with(&pool.connect_lazy_with(host)).await?;
        let listen = tokio::time::timeout(TEST_LIMIT, listener.listen(CHANNEL)).await;
        listen.map_err(|_| silent())??;
        Ok(listener)
    })
    .await?;
    hub.set_listening(true);
    hub.ring_here(None);
    loop {
        let Ok(received) = tokio::time::timeout(TEST_EACH, listener.try_recv()).await else {
            // Silence is normal. But a connection whose other side has gone would be silent for ever.
            let test = tokio::time::timeout(TEST_LIMIT, listener.execute("SELECT 1")).await;
            test.map_err(|_| silent())??;
            continue;
        };
        let Some(notification) = received? else { return Ok(()) };
        let mut words = notification.payload().split(' ');
        if words.next() != Some(origin) {
            for id in words.filter_map(|word| word.parse().ok()) {
                hub.ring_here(Some(id));
            }
        }
    }
}
