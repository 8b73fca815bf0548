//! Publishes to RabbitMQ with confirms. The connection is opened when it is needed, and again after every failure.

use std::time::Duration;

use amqprs::channel::{
    BasicPublishArguments, Channel, ConfirmSelectArguments, ExchangeDeclareArguments, QueueBindArguments,
    QueueDeclareArguments,
};
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::tls::TlsAdaptor;
use amqprs::{
    Ack, BasicProperties, Cancel, CloseChannel, DELIVERY_MODE_PERSISTENT, FieldTable, FieldValue, Nack, Return,
};
use async_trait::async_trait;
use kiln_engine::{Message, MessageBus};
use kiln_resource::{Failure, FailureKind};
use kiln_value::Class;
use tokio::sync::{Mutex, watch};
use tokio_rustls::TlsConnector;

use super::envelope::Envelope;
use super::transport_url::{Node, Transport};

/// Time limit for opening a connection to one node.
const CONNECT: Duration = Duration::from_secs(4);

/// How exchange and queues are declared; they must be the same as with the other services.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declarations {
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) quorum: bool,
}

/// RabbitMQ.
pub(super) struct Rabbit {
    transport: Transport,
    tls: Option<TlsConnector>,
    heartbeat: Duration,
    exchange: String,
    topics: Vec<String>,
    declarations: Declarations,
    envelope: Envelope,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Absent while it is used: a call that fails or is abandoned leaves none.
    open: Option<Open>,
    /// The number of the node to which the next connection is opened.
    next: usize,
}

/// An open connection.
struct Open {
    connection: Connection,
    channel: Channel,
    /// The routing keys whose queues exist.
    declared: Vec<String>,
    /// The number of published messages.
    published: u64,
    confirms: watch::Receiver<Confirms>,
}

/// What the broker has confirmed.
#[derive(Clone, Debug, Default)]
struct Confirms {
    /// All messages up to this number.
    up_to: u64,
    /// Later messages.
    beyond: std::collections::BTreeSet<u64>,
    /// Why no more messages are confirmed.
    broken: Option<String>,
}

impl Confirms {
    fn confirm(&mut self, tag: u64, multiple: bool) {
        if multiple {
            self.up_to = self.up_to.max(tag);
        } else {
            self.beyond.insert(tag);
        }
        while self.beyond.remove(&(self.up_to + 1)) {
            self.up_to += 1;
        }
        let up_to = self.up_to;
        self.beyond.retain(|tag| *tag > up_to);
    }
}

/// Receives confirms.
struct Listener(watch::Sender<Confirms>);

impl Listener {
    fn broken(&self, why: String) {
        self.0.send_modify(|confirms| confirms.broken = Some(why));
    }
}

#[async_trait]
impl amqprs::callbacks::ChannelCallback for Listener {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), amqprs::error::Error> {
        self.broken(close.to_string());
        Ok(())
    }

    async fn cancel(&mut self, _: &Channel, _: Cancel) -> Result<(), amqprs::error::Error> {
        Ok(())
    }

    async fn flow(&mut self, _: &Channel, _: bool) -> Result<bool, amqprs::error::Error> {
        Ok(true)
    }

    async fn publish_ack(&mut self, _: &Channel, ack: Ack) {
        self.0.send_modify(|confirms| confirms.confirm(ack.delivery_tag(), ack.mutiple()));
    }

    async fn publish_nack(&mut self, _: &Channel, _: Nack) {
        self.broken("the broker could not store a message".to_owned());
    }

    async fn publish_return(&mut self, _: &Channel, _: Return, _: BasicProperties, _: Vec<u8>) {}
}

impl Rabbit {
    pub(super) fn new(
        transport: Transport,
        tls: Option<TlsConnector>,
        heartbeat: Duration,
        exchange: String,
        topics: Vec<String>,
        declarations: Declarations,
        envelope: Envelope,
    ) -> Self {
        let state = Mutex::default();
        Self { transport, tls, heartbeat, exchange, topics, declarations, envelope, state }
    }

    /// The open connection, or a new one to the first node that answers.
    async fn connection(&self, state: &mut State) -> Result<Open, Failure> {
        if let Some(open) = state.open.take()
            && open.connection.is_open()
            && open.channel.is_open()
            && open.confirms.borrow().broken.is_none()
        {
            return Ok(open);
        }
        let mut last = failure("there is no node");
        for _ in 0..self.transport.nodes.len() {
            let Some(node) = self.transport.nodes.get(state.next % self.transport.nodes.len()) else { break };
            match tokio::time::timeout(CONNECT, self.open(node)).await {
                Ok(Ok(open)) => return Ok(open),
                Ok(Err(error)) => last = failure(format!("{}:{}: {error}", node.host, node.port)),
                Err(_) => last = failure(format!("{}:{}: no answer", node.host, node.port)),
            }
            state.next = state.next.wrapping_add(1);
        }
        Err(last)
    }

    async fn open(&self, node: &Node) -> Result<Open, amqprs::error::Error> {
        let mut arguments = OpenConnectionArguments::new(&node.host, node.port, &node.user, node.password.expose());
        arguments.virtual_host(&self.transport.vhost).connection_name("kiln");
        arguments.heartbeat(u16::try_from(self.heartbeat.as_secs()).unwrap_or(u16::MAX));
        if let Some(connector) = &self.tls {
            arguments.tls_adaptor(TlsAdaptor::new(connector.clone(), node.host.clone()));
        }
        let connection = Connection::open(&arguments).await?;
        let channel = connection.open_channel(None).await?;
        let (sender, confirms) = watch::channel(Confirms::default());
        channel.register_callback(Listener(sender)).await?;
        channel.confirm_select(ConfirmSelectArguments::new(false)).await?;
        let mut exchange = ExchangeDeclareArguments::new(&self.exchange, "topic");
        exchange.durable(self.declarations.durable).auto_delete(self.declarations.auto_delete);
        channel.exchange_declare(exchange.finish()).await?;
        tracing::info!(host = node.host, port = node.port, exchange = self.exchange, "connected to RabbitMQ");
        Ok(Open { connection, channel, declared: Vec::new(), published: 0, confirms })
    }

    /// Declares the queue of a routing key, so that messages are kept until somebody consumes them, as with
    /// oslo.messaging.
    async fn declare(&self, open: &mut Open, key: &str) -> Result<(), amqprs::error::Error> {
        if open.declared.iter().any(|declared| declared == key) {
            return Ok(());
        }
        let mut queue = QueueDeclareArguments::new(key);
        queue.durable(self.declarations.durable || self.declarations.quorum);
        queue.auto_delete(self.declarations.auto_delete);
        if self.declarations.quorum {
            let mut table = FieldTable::new();
            table.insert(short("x-queue-type")?, FieldValue::S(long("quorum")?));
            queue.arguments(table);
        }
        open.channel.queue_declare(queue.finish()).await?;
        open.channel.queue_bind(QueueBindArguments::new(key, &self.exchange, key)).await?;
        open.declared.push(key.to_owned());
        Ok(())
    }

    async fn publish(&self, open: &mut Open, messages: &[Message]) -> Result<(), amqprs::error::Error> {
        for message in messages {
            let content = self.envelope.wrap(message);
            let priority = self.envelope.priority(message).to_lowercase();
            for topic in &self.topics {
                let key = format!("{topic}.{priority}");
                self.declare(open, &key).await?;
                let mut properties = BasicProperties::default();
                properties
                    .with_content_type("application/json")
                    .with_content_encoding("utf-8")
                    .with_delivery_mode(DELIVERY_MODE_PERSISTENT);
                let place = BasicPublishArguments::new(&self.exchange, &key);
                open.channel.basic_publish(properties.finish(), content.clone(), place).await?;
                open.published += 1;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl MessageBus for Rabbit {
    async fn send(&self, messages: &[Message]) -> Result<(), Failure> {
        let mut state = self.state.lock().await;
        let mut open = self.connection(&mut state).await?;
        if let Err(error) = self.publish(&mut open, messages).await {
            let broken = open.confirms.borrow().broken.clone();
            return Err(failure(broken.unwrap_or_else(|| error.to_string())));
        }
        let published = open.published;
        let done = |confirms: &Confirms| confirms.up_to >= published || confirms.broken.is_some();
        tokio::select! {
            // The listener ends with the connection.
            confirms = open.confirms.wait_for(done) => match confirms {
                Ok(confirms) => match &confirms.broken {
                    Some(why) if confirms.up_to < published => return Err(failure(why.clone())),
                    _ => {}
                },
                Err(_) => return Err(failure("the connection was lost")),
            },
            _ = open.connection.listen_network_io_failure() => return Err(failure("the connection was lost")),
        }
        state.open = Some(open);
        Ok(())
    }
}

fn short(text: &str) -> Result<amqprs::ShortStr, amqprs::error::Error> {
    text.try_into().map_err(|_| amqprs::error::Error::ChannelUseError(format!("{text} is too long")))
}

fn long(text: &str) -> Result<amqprs::LongStr, amqprs::error::Error> {
    text.try_into().map_err(|_| amqprs::error::Error::ChannelUseError(format!("{text} is too long")))
}

fn failure(why: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Unavailable, Class::MessageBus, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirms_may_come_in_any_order() {
        let mut confirms = Confirms::default();
        confirms.confirm(2, false);
        assert_eq!(confirms.up_to, 0);
        confirms.confirm(1, false);
        assert_eq!(confirms.up_to, 2);
        confirms.confirm(5, false);
        confirms.confirm(4, true);
        assert_eq!((confirms.up_to, confirms.beyond.len()), (5, 0));
        confirms.confirm(3, true);
        assert_eq!(confirms.up_to, 5);
    }
}
