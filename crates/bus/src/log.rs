//! Notifications as lines of the log: the driver `log` of oslo.messaging.

use async_trait::async_trait;
use kiln_engine::{Message, MessageBus};
use kiln_resource::Failure;
use kiln_value::text;

use super::envelope::Envelope;
use super::rabbit::Rabbit;

/// Writes each notification as one line, in JSON, at its priority.
pub(super) struct Log {
    pub(super) envelope: Envelope,
    /// Gets the notifications first: what it does not accept is sent again, and is in the log once.
    pub(super) first: Option<Rabbit>,
}

#[async_trait]
impl MessageBus for Log {
    async fn send(&self, messages: &[Message]) -> Result<(), Failure> {
        if let Some(first) = &self.first {
            first.send(messages).await?;
        }
        for message in messages {
            self.write(message);
        }
        Ok(())
    }
}

impl Log {
    fn write(&self, message: &Message) {
        const TARGET: &str = "oslo.messaging.notification";
        let line = text::json(&self.envelope.content(message));
        match self.envelope.priority(message) {
            "DEBUG" => tracing::debug!(target: TARGET, "{line}"),
            "WARN" => tracing::warn!(target: TARGET, "{line}"),
            "ERROR" | "CRITICAL" => tracing::error!(target: TARGET, "{line}"),
            _ => tracing::info!(target: TARGET, "{line}"),
        }
    }
}
