//! Messages: signals, health marks, cancels, timers. Each message is handled once, those to one resource in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use jiff::SignedDuration;
use kiln_plan::{Event, Kind, facts};
use kiln_resource::{Action, Driver, Facts, Failure, MessageId, Received, ResourceId};
use kiln_stack::call_retry::Attempts;
use kiln_stack::{Backends, mark};
use kiln_store::{Cancel, Error, HookClearing, Message, MessageBody, Stack, StackId, Timer};
use kiln_value::Value;

use super::calls::Reply;
use super::task::Task;
use super::{Work, stack_facts};

/// The unhandled messages of a stack.
#[derive(Default)]
pub(super) struct Inbox {
    /// Messages that wait neither for operations on a resource nor for the messages to it.
    at_once: VecDeque<Message>,
    /// The other messages by the name of their resource, in order. By name: a replacement waits for the messages to the
    /// replaced resource.
    queues: BTreeMap<String, VecDeque<(i64, Message)>>,
    /// The queues whose first message has to be looked at, by the number of that message.
    ready: BTreeMap<i64, String>,
    /// The number of the first message and that of the next one.
    numbers: Range<i64>,
    /// The messages that are due, as they were last read: their content is read once.
    known: BTreeSet<MessageId>,
    /// The message count when the inbox was last read.
    read_at: i64,
    /// Cancels of the running request. They are handled when it has ended, because another engine must execute them
    /// too.
    cancels: Vec<MessageId>,
    /// The names of resources that are processing a message.
    receiving: BTreeSet<String>,
    /// The present names of resources that have moved since the messages were read, by their former names.
    moved: BTreeMap<String, String>,
    /// Messages that wait for nested stacks ([`MessageBody::Scaling`]).
    nested: Vec<(StackId, Message)>,
}

impl Inbox {
    /// Whether there is no message to process.
    pub(super) fn is_empty(&self) -> bool {
        self.at_once.is_empty() && self.queues.is_empty() && self.receiving.is_empty() && self.nested.is_empty()
    }

    fn add(&mut self, message: Message) {
        if is_at_once(&message.body) {
            return self.at_once.push_back(message);
        }
        let name = self.present(message.resource.as_deref().unwrap_or_default());
        let number = self.numbers.end;
        self.numbers.end += 1;
        let queue = self.queues.entry(name.clone()).or_default();
        queue.push_back((number, message));
        if queue.len() == 1 {
            self.ready.insert(number, name);
        }
    }

    /// Processes a message again, before all others.
    pub(super) fn put_back(&mut self, message: Message) {
        let name = self.present(message.resource.as_deref().unwrap_or_default());
        self.numbers.start -= 1;
        let queue = self.queues.entry(name.clone()).or_default();
        if let Some((before, _)) = queue.front() {
            self.ready.remove(before);
        }
        queue.push_front((self.numbers.start, message));
        self.ready.insert(self.numbers.start, name);
    }

    /// The first message to a resource may have waited for what has changed.
    pub(super) fn look_at(&mut self, name: &str) {
        if let Some((number, _)) = self.queues.get(name).and_then(VecDeque::front) {
            self.ready.insert(*number, name.to_owned());
        }
    }

    /// The first message to any resource may have waited for what has changed.
    pub(super) fn look_at_all(&mut self) {
        let firsts = self.queues.iter().filter_map(|(name, queue)| Some((queue.front()?.0, name.clone())));
        self.ready = firsts.collect();
    }

    fn first(&self, name: &str) -> Option<&Message> {
        Some(&self.queues.get(name)?.front()?.1)
    }

    /// Removes the first message to a resource. The next one is looked at.
    fn take_first(&mut self, name: &str) -> Option<Message> {
        let queue = self.queues.get_mut(name)?;
        let (number, message) = queue.pop_front()?;
        self.ready.remove(&number);
        if queue.is_empty() {
            self.queues.remove(name);
        }
        self.look_at(name);
        Some(message)
    }

    /// Whether a cancel of this request waits.
    pub(super) fn is_cancelled(&self, generation: i64) -> bool {
        self.at_once.iter().any(|message| cancels(message, generation))
    }

    /// Lets further messages to these resources wait; false if one of them is processing a message.
    pub(super) fn block(&mut self, names: &[&str]) -> bool {
        let names: Vec<String> = names.iter().map(|name| self.present(name)).collect();
        let free = names.iter().all(|name| !self.receiving.contains(name));
        if free {
            self.receiving.extend(names);
        }
        free
    }

    /// The resources have processed their message.
    pub(super) fn unblock(&mut self, names: &[&str]) {
        for name in names {
            let name = self.present(name);
            self.receiving.remove(&name);
            self.look_at(&name);
        }
    }

    /// The present name of a resource.
    fn present(&self, name: &str) -> String {
        self.moved.get(name).map_or(name, String::as_str).to_owned()
    }

    /// A resource has moved to another name: its messages wait under that one.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        self.moved.remove(to);
        for present in self.moved.values_mut().filter(|present| *present == from) {
            to.clone_into(present);
        }
        self.moved.insert(from.to_owned(), to.to_owned());
        if self.receiving.remove(from) {
            self.receiving.insert(to.to_owned());
        }
        let Some(queue) = self.queues.remove(from) else { return };
        let merged = self.queues.entry(to.to_owned()).or_default();
        merged.extend(queue);
        merged.make_contiguous().sort_by_key(|(number, _)| *number);
        self.ready.retain(|_, name| name != from && name != to);
        self.look_at(to);
    }

    /// Lets a message wait for a nested stack.
    pub(super) fn await_nested(&mut self, child: StackId, message: Message) {
        self.nested.push((child, message));
    }

    /// Whether a message waits for a nested stack.
    pub(super) fn awaits(&self, child: StackId) -> bool {
        self.nested.iter().any(|(awaited, _)| *awaited == child)
    }

    /// The nested stacks that messages wait for.
    pub(super) fn awaited(&self) -> Vec<StackId> {
        self.nested.iter().map(|(awaited, _)| *awaited).collect()
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

    /// Reads the messages that are due and not known.
    pub(super) async fn read_messages(&mut self) -> Result<(), Error> {
        let (backends, stack, sent) = (self.actor.backends.clone(), self.stack.id, self.stack.messages);
        let due = backends.store.due_messages(stack, backends.clock.now()).await?;
        let new: Vec<MessageId> = due.iter().filter(|id| !self.inbox.known.contains(*id)).copied().collect();
        let messages = if new.is_empty() { Vec::new() } else { backends.store.messages(stack, &new).await? };
        // From here on at once, so that a read that is given up is repeated.
        // Whoever has sent them may know only a former name of the resource. Many messages have few names.
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for mut message in messages {
            if let Some(name) = &mut message.resource {
                let present = || self.model.current_or_moved(name).map_or_else(|| name.clone(), |row| row.name.clone());
                let present = names.entry(name.clone()).or_insert_with(present).clone();
                *name = present;
            }
            self.inbox.add(message);
        }
        (self.inbox.known, self.inbox.read_at) = (due.into_iter().collect(), sent);
        Ok(())
    }

    /// Handles the marks, where possible: a request that begins decides about the resources as they are marked.
    pub(super) fn take_marks(&mut self) {
        let names: Vec<String> = self.inbox.queues.keys().cloned().collect();
        for name in names {
            while self.inbox.first(&name).is_some_and(|message| matches!(message.body, MessageBody::MarkUnhealthy(_)))
                && self.model.current(&name).is_some_and(|row| !self.slots.is_busy(row.id))
                && !self.inbox.receiving.contains(&name)
                && let Some(message) = self.inbox.take_first(&name)
            {
                self.mark(&message);
            }
        }
    }

    /// Handles messages where possible. A message to a resource with a running operation waits for its end.
    pub(super) fn take_messages(&mut self) {
        if *self.actor.drain.borrow() {
            return;
        }
        for message in std::mem::take(&mut self.inbox.at_once) {
            match &message.body {
                MessageBody::Cancel(cancel) => self.cancel(message.id, cancel),
                MessageBody::ClearHook(clearing) => self.clear_hook(&message, clearing),
                MessageBody::DeleteSnapshot(removal) => self.remove_snapshot(removal.snapshot, Some(message.id)),
                MessageBody::Forget(parting) if self.forget_resource(&message, parting) => {}
                _ => self.inbox.at_once.push_back(message),
            }
        }
        while let Some((_, name)) = self.inbox.ready.pop_first() {
            let row = self.model.current(&name).map(|row| row.id);
            if self.inbox.receiving.contains(&name) || row.is_some_and(|row| self.awaits_operation(row)) {
                continue;
            }
            let Some(message) = self.inbox.take_first(&name) else { continue };
            match (&message.body, row) {
                (_, None) => {
                    tracing::info!(stack = %self.stack.id, resource = name, "ignoring a message to an unknown resource");
                    self.writes.handled(message.id);
                }
                (MessageBody::RefusedSignal(refused), Some(row)) => {
                    self.decide(Event::Refused { row, reason: cannot_signal(&refused.action) });
                    self.writes.handled(message.id);
                }
                (MessageBody::MarkUnhealthy(_), Some(_)) => self.mark(&message),
                (MessageBody::Members(_), Some(row)) => self.balance(message, row),
                (MessageBody::Scaling(_), Some(row)) => self.await_scaling(message, row),
                (_, Some(row)) => self.receive(message, row),
            }
        }
    }

    /// Whether the messages to a resource wait for an operation on it: one that is running, or the create that will come.
    fn awaits_operation(&self, row: ResourceId) -> bool {
        let is_to_come = self.request.active && self.model.row(row).is_some_and(|row| row.state.action == Action::Init);
        is_to_come || self.slots.is_busy(row) && !self.receives_during_operations(row)
    }

    fn receives_during_operations(&self, id: ResourceId) -> bool {
        let row = self.model.row(id);
        let kind = row.and_then(|row| self.kind_of(&row.name, &row.implementation));
        kind.as_ref().and_then(Kind::entry).is_some_and(|entry| entry.driver.receives_during_operations())
    }

    fn clear_hook(&mut self, message: &Message, clearing: &HookClearing) {
        if let Ok(hook) = clearing.hook.parse() {
            self.decide(Event::HookCleared { name: message.resource.clone().unwrap_or_default(), hook });
        }
        self.writes.handled(message.id);
    }

    /// A cancel ends the request that it was sent for, not a later one.
    fn cancel(&mut self, message: MessageId, cancel: &Cancel) {
        if self.request.active && means(cancel, self.request.generation) {
            self.inbox.cancels.push(message);
            if cancel.out_of_time {
                self.slots.run_out_of_time();
            }
            self.decide(Event::Cancelled { interrupt: cancel.interrupt });
        } else {
            self.writes.handled(message);
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
        if refuses && matches!(message.body, MessageBody::Signal(_)) && !entry.driver.receives_during_operations() {
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
            body: message.body.details().clone(),
            pushes: matches!(message.body, MessageBody::Timer(Timer { push_metadata: true })),
        };
        let attempts = self.attempts();
        self.inbox.receiving.insert(row.name.clone());
        let task = Task::new(delivery.run(attempts), move |result| Reply::Received(Box::new(message), id, result));
        if let Some(reply) = self.reply_or_spawn(task) {
            self.take(Ok(reply));
        }
    }

    /// A driver has processed a message: its results and the removal of the message are stored together.
    pub(super) fn received(&mut self, message: Message, row: ResourceId, result: Result<Received, Failure>) {
        self.inbox.unblock(&[message.resource.as_deref().unwrap_or_default()]);
        match result {
            Ok(Received { scale: Some(request), event, .. }) => {
                return self.scale(message, row, Received { event, ..Received::default() }, request);
            }
            Ok(mut result) => {
                let reason = result.reason(message.body.details());
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

/// Whether a message cancels this request.
fn cancels(message: &Message, generation: i64) -> bool {
    matches!(&message.body, MessageBody::Cancel(cancel) if means(cancel, generation))
}

/// Whether a cancel is for this request.
fn means(cancel: &Cancel, generation: i64) -> bool {
    cancel.generation.is_none_or(|meant| meant == generation)
}

/// Messages that do not wait for the end of an operation on a resource.
fn is_at_once(body: &MessageBody) -> bool {
    use MessageBody::{Cancel, ClearHook, DeleteSnapshot, Forget};
    matches!(body, Cancel(_) | ClearHook(_) | DeleteSnapshot(_) | Forget(_))
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
            let Some(result) = attempts.result(self.deliver().await).await else { continue };
            if let Err(failure) = &result
                && failure.is_passing()
            {
                // The message may be delivered again.
                attempts.pause(failure).await;
            }
            return result;
        }
    }

    async fn deliver(&self) -> Result<Received, Failure> {
        let needs = self.pushes || self.driver.receives_with_cloud();
        let cloud = self.backends.cloud(&self.root, needs).await?;
        let software = &self.backends.software(&self.root.project);
        let cx = self.backends.context(&*cloud, software, &self.facts);
        if self.pushes {
            return self.driver.push_metadata(&cx).await.map(|()| Received::nothing());
        }
        self.driver.receive(&cx, &self.body).await
    }
}
