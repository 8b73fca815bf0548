//! Audit events as notifications.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_audit::{Destination, Notification};
use kiln_engine::{Message, MessageBus};

/// Sends audit events to a message bus.
pub(super) struct AuditBus(pub(super) Arc<dyn MessageBus>);

#[async_trait]
impl Destination for AuditBus {
    async fn deliver(&self, notifications: &[Notification]) -> Result<(), String> {
        let message = |notification: &Notification| Message {
            id: notification.id,
            event_type: notification.event_type.clone(),
            error: false,
            time: notification.time,
            payload: notification.payload.as_map().cloned().unwrap_or_default(),
        };
        let messages: Vec<Message> = notifications.iter().map(message).collect();
        self.0.send(&messages).await.map_err(|failure| failure.to_string())
    }
}
