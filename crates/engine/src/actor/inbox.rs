//! Messages: signals, health marks, cancels, timers. Each message is handled once, those to one resource in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::SignedDuration;
use kiln_plan::{Event, Kind, Model, facts};
use kiln_resource::{Action, Context, Driver, Facts, Failure, MessageId, Received, ResourceId};
use kiln_stack::Backends;
use kiln_stack::call_retry::Attempts;
use kiln_stack::{mark, stored_software};
use kiln_store::{Error, Message, MessageKind, Stack, StackId};
use kiln_value::Value;

use super::calls::Reply;
use super::task::Task;
use super::{Work, stack_facts};

/// The unhandled messages of a stack.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: VecDeque<Message>,
    /// All messages that were read and may still be in the store.
    seen: BTreeSet<MessageId>,
    /// The message count when the inbox was last read.
    read_at: i64,
    /// Cancels of the running request. They are handled when it has ended, because another engine must execute them
    /// too.
    cancels: Vec<MessageId>,
    /// Resources that are processing a message, with their names: one may be deleted meanwhile.
    receiving: BTreeMap<ResourceId, String>,
    /// Messages that wait for nested stacks ([`MessageKind::Scaling`]).
    nested: Vec<(StackId, Message)>,
}

impl Inbox {
    /// Whether there is no message to process.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.receiving.is_empty() && self.nested.is_empty()
    }

    /// Lets further messages to these resources wait; false if one of them is processing a message.
    pub(super) fn block(&mut self, model: &Model, rows: impl IntoIterator<Item = ResourceId> + Clone) -> bool {
        let free = rows.clone().into_iter().all(|row| !self.receiving.contains_key(&row));
        if free {
            let named = |row| (row, model.row(row).map(|row| row.name.clone()).unwrap_or_default());
            self.receiving.extend(rows.into_iter().map(named));
        }
        free
    }

    /// The resources have processed their message.
    pub(super) fn unblock(&mut self, rows: impl IntoIterator<Item = ResourceId>) {
        for row in rows {
            self.receiving.remove(&row);
        }
    }

    /// Processes a message again.
    pub(super) fn put_back(&mut self, message: Message) {
        self.waiting.push_front(message);
    }

    /// Lets a message wait for a nested stack.
    pub(super) fn await_nested(&mut self, child: StackId, message: Message) {
        self.nested.push((child, message));
    }

    /// Whether a message waits for a nested stack.
    pub(super) fn awaits(&self, child: StackId) -> bool {
        self.nested.iter().any(|(awaited, _)| *awaited == child)
    }

    /// Whether messages wait for nested stacks.
    pub(super) fn awaits_any(&self) -> bool {
        !self.nested.is_empty()
    }

    /// The messages that have waited for a nested stack.
    pub(super) fn nested_settled(&mut self, child: StackId) -> Vec<Message> {
        self.nested.extract_if(.., |(awaited, _)| *awaited == child).map(|(_, message)| message).collect()
    }

    /// Whether a driver is processing a message.
    pub(super) fn is_receiving(&self) -> bool {
        !self.receiving.is_empty()
    }
}

/// How long after it was sent a message is delivered again if the cloud does not respond.
const DELIVERY_TIME: SignedDuration = SignedDuration::from_hours(1);

impl Work {
    /// Reads the inbox if messages were sent since the last read.
    pub(super) async fn look_for_new_messages(&mut self) -> Result<(), Error> {
        if self.stack.messages > self.inbox.read_at { self.read_messages().await } else { Ok(()) }
    }

    /// Reads the messages that are due.
    pub(super) async fn read_messages(&mut self) -> Result<(), Error> {
        self.inbox.read_at = self.stack.messages;
        let now = self.actor.backends.clock.now();
        for message in self.actor.backends.store.inbox(self.stack.id, now).await? {
            if self.inbox.seen.insert(message.id) {
                self.inbox.waiting.push_back(message);
            }
        }
        Ok(())
    }

    /// Handles the marks, where possible: a request that begins decides about the resources as they are marked.
    pub(super) fn take_marks(&mut self) {
        let mut waiting = BTreeSet::new();
        for message in std::mem::take(&mut self.inbox.waiting) {
            let row = message.resource.as_deref().and_then(|name| Some(self.model.current(name)?.id));
            let is_free =
                |id| !self.slots.is_busy(id) && !self.inbox.receiving.contains_key(&id) && !waiting.contains(&id);
            if message.kind == MessageKind::MarkUnhealthy && row.is_some_and(is_free) {
                self.mark(&message);
            } else {
                // Messages to one resource are handled in order.
                waiting.extend(row);
                self.inbox.waiting.push_back(message);
            }
        }
    }

    /// Handles messages where possible. A message to a resource with a running operation waits for its end.
    pub(super) fn take_messages(&mut self) {
        if *self.actor.drain.borrow() {
            return;
        }
        // By name: a replacement waits for the messages to the replaced resource.
        let mut blocked: BTreeSet<String> = self.inbox.receiving.values().cloned().collect();
        for message in std::mem::take(&mut self.inbox.waiting) {
            let name = message.resource.clone().unwrap_or_default();
            let row = self.model.current(&name).map(|row| row.id);
            let busy = row.is_some_and(|row| {
                // A resource that will be created processes its messages then.
                let awaited = self.active && self.model.row(row).is_some_and(|row| row.state.action == Action::Init);
                let busy = self.slots.is_busy(row) && !self.receives_during_operations(row);
                awaited || busy || self.inbox.receiving.contains_key(&row)
            });
            if message.kind == MessageKind::Forget {
                if !self.forget_resource(&message) {
                    self.inbox.waiting.push_back(message);
                }
                continue;
            }
            if !is_for_the_stack(message.kind) && (busy || blocked.contains(&name)) {
                blocked.insert(name);
                self.inbox.waiting.push_back(message);
                continue;
            }
            match (message.kind, row) {
                (MessageKind::Cancel, _) => self.cancel(&message),
                (MessageKind::ClearHook, _) => self.clear_hook(&name, &message),
                (MessageKind::DeleteSnapshot, _) => self.remove_snapshot_of(&message),
                // Taken above.
                (MessageKind::Forget, _) => {}
                (_, None) => {
                    tracing::info!(stack = %self.stack.id, resource = name, "ignoring a message to an unknown resource");
                    self.writes.handled(message.id);
                }
                (MessageKind::RefusedSignal, Some(row)) => self.refused(&message, row),
                (MessageKind::MarkUnhealthy, Some(_)) => self.mark(&message),
                (MessageKind::Members, Some(row)) => self.balance(message, row),
                (MessageKind::Scaling, Some(row)) => self.await_scaling(message, row),
                (MessageKind::Signal | MessageKind::Timer, Some(row)) => self.receive(message, row),
            }
        }
    }

    fn receives_during_operations(&self, id: ResourceId) -> bool {
        let row = self.model.row(id);
        let kind = row.and_then(|row| self.kind_of(&row.name, &row.implementation));
        kind.as_ref().and_then(Kind::entry).is_some_and(|entry| entry.driver.receives_during_operations())
    }

    fn clear_hook(&mut self, name: &str, message: &Message) {
        if let Some(hook) = message.body.str_at("unset_hook").and_then(|hook| hook.parse().ok()) {
            self.decide(Event::HookCleared { name: name.to_owned(), hook });
        }
        self.writes.handled(message.id);
    }

    /// A cancel ends the request that it was sent for, not a later one.
    fn cancel(&mut self, message: &Message) {
        let meant = message.body.get("generation").and_then(Value::as_i64);
        if self.active && meant.is_none_or(|generation| generation == self.generation) {
            let interrupt = message.body.get("interrupt").is_some_and(Value::is_truthy);
            self.inbox.cancels.push(message.id);
            if message.body.get("out_of_time").is_some_and(Value::is_truthy) {
                self.slots.run_out_of_time();
            }
            self.decide(Event::Cancelled { interrupt });
        } else {
            self.writes.handled(message.id);
        }
    }

    /// The request has ended, and with it its cancels.
    pub(super) fn cancels_are_handled(&mut self) {
        for message in std::mem::take(&mut self.inbox.cancels) {
            self.writes.handled(message);
        }
    }

    fn mark(&mut self, message: &Message) {
        if let Some(marked) = mark::event(message, &self.model) {
            self.decide(marked);
        }
        self.writes.handled(message.id);
    }

    fn receive(&mut self, message: Message, id: ResourceId) {
        let row = self.model.row(id);
        let kind = row.and_then(|row| self.kind_of(&row.name, &row.implementation));
        let (Some(row), Some(kind), Some(entry)) = (row, &kind, kind.as_ref().and_then(Kind::entry)) else {
            return self.writes.handled(message.id);
        };
        if row.state.action == Action::Init {
            tracing::info!(stack = %self.stack.id, resource = row.name, "ignoring a message to a missing resource");
            self.writes.handled(message.id);
            return;
        }
        let refuses = matches!(row.state.action, Action::Suspend | Action::Delete);
        if refuses && message.kind == MessageKind::Signal && !entry.driver.receives_during_operations() {
            let reason = cannot_signal(row.state.action.as_str());
            self.decide(Event::Refused { row: id, reason });
            self.writes.handled(message.id);
            return;
        }
        let delivery = Delivery {
            facts: facts(row, kind, &stack_facts(&self.stack)),
            driver: Arc::clone(&entry.driver),
            backends: self.actor.backends.clone(),
            root: Arc::clone(&self.root),
            body: message.body.clone(),
            pushes: stored_software::is_push(&message),
        };
        let attempts = self.attempts();
        self.inbox.receiving.insert(id, row.name.clone());
        let task = Task::new(delivery.run(attempts), move |result| Reply::Received(Box::new(message), id, result));
        if let Some(reply) = self.reply_or_spawn(task) {
            self.take(Ok(reply));
        }
    }

    /// The API has refused a signal because of the resource's action.
    fn refused(&mut self, message: &Message, row: ResourceId) {
        let reason = cannot_signal(message.body.str_at("action").unwrap_or_default());
        self.decide(Event::Refused { row, reason });
        self.writes.handled(message.id);
    }

    /// A driver has processed a message: its results and the removal of the message are stored together.
    pub(super) fn received(&mut self, message: Message, row: ResourceId, result: Result<Received, Failure>) {
        self.inbox.receiving.remove(&row);
        match result {
            Ok(Received { scale: Some(request), event, .. }) => {
                return self.scale(message, row, Received { event, ..Received::default() }, request);
            }
            Ok(mut result) => {
                let reason = result.reason(&message.body);
                self.writes.software(std::mem::take(&mut result.software));
                self.decide(received(row, result, reason));
                for reader in self.watches.readers_of(row).into_iter().chain([row]) {
                    self.slots.wake_now(reader);
                }
            }
            Err(failure) if failure.is_passing() && self.is_young(&message) => return self.inbox.put_back(message),
            Err(failure) => {
                let resource = message.resource.as_deref().unwrap_or_default();
                tracing::warn!(stack = %self.stack.id, resource, %failure, "a signal failed");
            }
        }
        // In one commit: the results and the removal of the message.
        self.writes.handled(message.id);
    }

    /// The attempts of a call for this actor.
    pub(super) fn attempts(&self) -> Attempts {
        let actor = &self.actor;
        Attempts::new(&actor.backends, actor.options.call_retries, Some(actor.drain.clone()))
    }

    /// Whether a message is delivered again if the cloud does not respond.
    fn is_young(&self, message: &Message) -> bool {
        self.actor.backends.clock.now().duration_since(message.sent) < DELIVERY_TIME
    }
}

/// Messages that do not wait for the end of an operation on a resource.
fn is_for_the_stack(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Cancel | MessageKind::ClearHook | MessageKind::DeleteSnapshot)
}

fn cannot_signal(action: &str) -> String {
    format!("Cannot signal resource during {action}")
}

pub(super) fn received(row: ResourceId, result: Received, reason: Option<String>) -> Event {
    let Received { physical_id, data, metadata, .. } = result;
    Event::Received { row, physical_id, data, metadata, reason }
}

/// A message that is being delivered to a driver.
struct Delivery {
    facts: Facts,
    driver: Arc<dyn Driver>,
    backends: Backends,
    root: Arc<Stack>,
    body: Value,
    /// The metadata of the server are written: no signal.
    pushes: bool,
}

impl Delivery {
    /// Delivers the message, with retries while the cloud does not respond and the engine does not stop.
    async fn run(self, mut attempts: Attempts) -> Result<Received, Failure> {
        loop {
            match self.deliver().await {
                Err(failure) if failure.is_passing() => {
                    // Also after the last attempt: the message may be delivered again.
                    if !attempts.pause(&failure).await || attempts.are_over() {
                        return Err(failure);
                    }
                }
                result => return result,
            }
        }
    }

    async fn deliver(&self) -> Result<Received, Failure> {
        let needs = self.pushes || self.driver.receives_with_cloud();
        let cloud = self.backends.cloud(&self.root, needs).await?;
        let now = self.backends.wall_clock();
        let software = &self.backends.software(&self.root.project);
        let seed = self.backends.chance.seed();
        let cx = Context { cloud: &*cloud, software, facts: &self.facts, now, seed, polls: 0 };
        if self.pushes {
            return self.driver.push_metadata(&cx).await.map(|()| Received::nothing());
        }
        self.driver.receive(&cx, &self.body).await
    }
}
