//! Rings as PostgreSQL notifications.

use std::collections::BTreeSet;
use std::sync::Arc;

use sea_orm::sqlx;
use sea_orm::sqlx::postgres::{PgListener, PgPool};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{LISTEN_AGAIN, RINGS_AT_ONCE};
use crate::StackId;
use crate::doorbell::Hub;

/// The channel. A notification has at most 8,000 bytes: [`RINGS_AT_ONCE`] IDs and the origin.
const CHANNEL: &str = "kiln";

/// Sends all pending rings at once. Commits of notifications are serialized for the whole server, so the transactions
/// that ring do not send them.
pub(super) async fn carry(pool: PgPool, mut rings: UnboundedReceiver<StackId>, origin: String) {
    let mut stacks = Vec::new();
    while rings.recv_many(&mut stacks, RINGS_AT_ONCE).await > 0 {
        let ids: BTreeSet<String> = stacks.drain(..).map(|stack| stack.to_string()).collect();
        let payload = ids.into_iter().fold(origin.clone(), |payload, id| payload + " " + &id);
        let sent = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload).execute(&pool).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "failed to send notifications");
        }
    }
}

/// Receives the rings of other processes while anybody in this process listens. After a lost connection, listeners look
/// at everything.
pub(super) async fn listen(url: String, hub: Arc<Hub>, origin: String) {
    loop {
        hub.listened().await;
        if let Err(error) = hear(&url, &hub, &origin).await {
            tracing::debug!(%error, "failed to receive notifications");
        }
        hub.set_listening(false);
        hub.ring_here(None);
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

async fn hear(url: &str, hub: &Hub, origin: &str) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect(url).await?;
    listener.listen(CHANNEL).await?;
    hub.set_listening(true);
    hub.ring_here(None);
    while let Some(notification) = listener.try_recv().await? {
        let mut words = notification.payload().split(' ');
        if words.next() != Some(origin) {
            for id in words.filter_map(|word| word.parse().ok()) {
                hub.ring_here(Some(id));
            }
        }
    }
    Ok(())
}
