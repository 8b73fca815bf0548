//! The outbox over the connection.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_store::{Delivery, Error, Lane, OutboxStore};
use tokio::sync::watch;
use uuid::Uuid;

use super::StoreLink;
use crate::sabotage::Sabotage;

#[async_trait]
impl OutboxStore for StoreLink {
    async fn next_lane(&self, after: &str) -> Result<Option<Lane>, Error> {
        self.read("next_lane", self.inner().next_lane(after)).await
    }

    async fn claim_lane(&self, lane: &str, mark: Uuid, ttl: Duration, limit: usize) -> Result<Option<Delivery>, Error> {
        let (sim, lane) = (Arc::clone(&self.sim), lane.to_owned());
        self.write("claim_lane", async move {
            let mut delivery = sim.store.claim_lane(&lane, mark, ttl, limit).await?;
            let entries = delivery.as_mut().map(|delivery| &mut delivery.entries);
            match (sim.sabotage, entries) {
                (Some(Sabotage::RemoveBeforeSend), Some(entries)) => {
                    let numbers: Vec<i64> = entries.iter().map(|entry| entry.number).collect();
                    sim.store.remove_entries(mark, &numbers).await?;
                }
                (Some(Sabotage::OutboxBackwards), Some(entries)) => entries.reverse(),
                _ => {}
            }
            Ok(delivery)
        })
        .await
    }

    async fn remove_entries(&self, mark: Uuid, numbers: &[i64]) -> Result<(), Error> {
        let (sim, numbers) = (Arc::clone(&self.sim), numbers.to_vec());
        self.write("remove_entries", async move { sim.store.remove_entries(mark, &numbers).await }).await
    }

    async fn postpone_entries(&self, mark: Uuid, numbers: &[i64], delay: Duration) -> Result<(), Error> {
        let (sim, numbers) = (Arc::clone(&self.sim), numbers.to_vec());
        self.write("postpone_entries", async move { sim.store.postpone_entries(mark, &numbers, delay).await }).await
    }

    fn outbox_news(&self) -> watch::Receiver<()> {
        // The receivers of one channel wake in a random order, so each engine has its own, with its own delay.
        let mut news = self.inner().outbox_news();
        let (sender, receiver) = watch::channel(());
        let delay = Duration::from_millis(1 + self.label.slot.map_or(0, |slot| slot as u64));
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    () = sender.closed() => return,
                    changed = news.changed() => if changed.is_err() { return },
                }
                tokio::time::sleep(delay).await;
                sender.send_replace(());
            }
        });
        receiver
    }
}
