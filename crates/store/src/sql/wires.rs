//! Rings of the doorbell that PostgreSQL carries from process to process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sea_orm::sqlx;
use sea_orm::sqlx::postgres::{PgListener, PgPool};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::StackId;
use crate::doorbell::{Hub, Reach};

/// PostgreSQL's channel.
const CHANNEL: &str = "kiln";
/// Ids in one notification, which may have 8,000 bytes.
const IDS_PER_NOTIFICATION: usize = 200;
/// Between two tries to listen.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The tasks that carry rings; they end with it.
#[derive(Debug, Default)]
pub(super) struct Wires(Vec<AbortHandle>);

impl Drop for Wires {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// A hub whose rings PostgreSQL carries, and the wires.
pub(super) fn carried(pool: &PgPool, url: String) -> (Arc<Hub>, Wires) {
    let (outbound, inbound) = unbounded_channel();
    let hub = Hub::new(Reach::Carried { listening: AtomicBool::new(false), outbound });
    #[expect(clippy::disallowed_methods, reason = "tells this process from others; nothing depends on what it is")]
    let origin = Uuid::new_v4().to_string();
    let carry = tokio::spawn(carry(pool.clone(), inbound, origin.clone())).abort_handle();
    let listen = tokio::spawn(listen(url, Arc::clone(&hub), origin)).abort_handle();
    (hub, Wires(vec![carry, listen]))
}

/// Sends rings on, as many at once as have come meanwhile: a commit of a notification is serial for the whole server,
/// so none is made in the transactions that ring.
async fn carry(pool: PgPool, mut rings: UnboundedReceiver<StackId>, origin: String) {
    let mut stacks = Vec::new();
    while rings.recv_many(&mut stacks, IDS_PER_NOTIFICATION).await > 0 {
        let ids: BTreeSet<String> = stacks.drain(..).map(|stack| stack.to_string()).collect();
        let payload = ids.into_iter().fold(origin.clone(), |payload, id| payload + " " + &id);
        let sent = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload).execute(&pool).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a ring was lost");
        }
    }
}

/// Hears the rings of other processes. After a lost connection everything is worth a look.
async fn listen(url: String, hub: Arc<Hub>, origin: String) {
    loop {
        if let Err(error) = hear(&url, &hub, &origin).await {
            tracing::debug!(%error, "rings of other processes are not heard");
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
