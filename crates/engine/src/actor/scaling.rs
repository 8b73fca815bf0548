//! Changes of the size of a group while its stack is settled.
//!
//! A signal to a policy names a group. In one commit, the signal is removed, the nested stack of the group gets a new
//! template, and the stack gets a message `Scaling`, which is handled when the nested stack has settled. Until then
//! some engine has the lease of the stack, because it has a message. So the end of the change is recorded whatever
//! engine fails, and whether a group is changing follows from its nested stack and this message.

use std::sync::Arc;

use kiln_plan::{Blueprint, Event, Inside, Kind, StackScope, define, facts, failure_of};
use kiln_resource::{Action, Failure, Received, Rescale, ResourceId, ScaleRequest, StackId, Status};
use kiln_stack::loaded_stack::{GroupContent, LoadedStack, inside, unreadable};
use kiln_stack::{Backends, load};
use kiln_store::quota::{Quota, Quotas, limit};
use kiln_store::{GroupResize, Message, MessageBody, Stack, StackRequest, Summary};
use kiln_value::{Class, Value, text};

use super::calls::Reply;
use super::inbox::received;
use super::resizing::Resizing;
use super::task::Task;
use super::{Work, stack_facts};

/// A signal to a policy, which has asked for a change of a group.
pub(super) struct Scale {
    message: Message,
    policy: ResourceId,
    received: Received,
    request: ScaleRequest,
    group: ResourceId,
    /// The name of the group.
    name: String,
}

/// What is read for it.
pub(super) struct Group {
    blueprint: Box<Blueprint>,
    /// Its content; `None` while the nested stack is changing.
    content: Option<GroupContent>,
    /// The number of resources in the tree of stacks.
    resources: u64,
    /// The quotas of the project.
    quotas: Quotas,
}

/// A group after its change.
pub(super) struct Resized {
    inside: Inside,
    blueprint: Arc<Blueprint>,
}

impl Work {
    /// A policy has asked for a change of a group: reads the members of the group. A group with a running operation, or
    /// one that is changing already, is left as it is.
    pub(super) fn scale(&mut self, message: Message, policy: ResourceId, received: Received, request: ScaleRequest) {
        let Some((group, child)) = self.group_of(policy, &request.group) else {
            let (stack, group) = (self.stack.id, text::str(&request.group));
            tracing::warn!(%stack, policy = message.resource, group, "the scaling group does not exist");
            return self.writes.handled(message.id);
        };
        let name = self.model.row(group).map(|row| row.name.clone()).unwrap_or_default();
        let names = [message.resource.as_deref().unwrap_or_default(), name.as_str()];
        if self.is_changing(group, child) || !self.inbox.block(&names) {
            return self.writes.handled(message.id);
        }
        let (backends, stack) = (self.actor.backends.clone(), self.stack.clone());
        let scale = Box::new(Scale { message, policy, received, request, group, name });
        let read = async move { read_group(&backends, &stack, child).await };
        self.spawn(Task::new(read, move |group| Reply::Scale(scale, group)));
    }

    fn is_changing(&self, group: ResourceId, child: StackId) -> bool {
        self.slots.is_busy(group) || self.inbox.awaits(child)
    }

    /// The group with a reference ID, and its nested stack. Usually the policy names it in the template.
    fn group_of(&self, policy: ResourceId, reference: &Value) -> Option<(ResourceId, StackId)> {
        let stack = stack_facts(&self.stack);
        let required = self.model.row(policy).into_iter().flat_map(|row| &row.requires);
        let required = required.filter_map(|id| self.model.row(*id));
        required.chain(self.model.rows()).find_map(|row| {
            let is_current = self.model.current(&row.name).is_some_and(|current| current.id == row.id);
            let kind =
                self.kind_of(&row.name, &row.implementation).filter(|kind| is_current && kind.members_by_age())?;
            let found = kind.entry()?.driver.reference(&facts(row, &kind, &stack)) == *reference;
            if found { Some((row.id, row.child?)) } else { None }
        })
    }

    /// The members are known: requests the new template of the nested stack.
    pub(super) fn group_read(&mut self, scale: &Scale, group: Result<Group, Failure>) {
        self.inbox.unblock(&[scale.message.resource.as_deref().unwrap_or_default(), &scale.name]);
        // The message is removed whatever comes of it, in one commit with it.
        self.writes.handled(scale.message.id);
        if let Err(failure) = group.and_then(|group| self.rescale(scale, &group)) {
            let (stack, policy) = (self.stack.id, &scale.message.resource);
            tracing::warn!(%stack, policy, %failure, "a signal failed");
        }
    }

    fn rescale(&mut self, scale: &Scale, group: &Group) -> Result<(), Failure> {
        let Some(row) = self.model.row(scale.group) else { return Ok(()) };
        let (Some(child), Some(content)) = (row.child, &group.content) else { return Ok(()) };
        let Some(kind) = self.kind_of(&row.name, &row.implementation) else { return Ok(()) };
        let Some(definition) = group.blueprint.definitions().get(&row.name) else { return Ok(()) };
        let (Some(rules), Some(held)) = (kind.group(), &row.definition) else { return Ok(()) };
        if self.is_changing(row.id, child) {
            return Ok(());
        }
        let mut facts = facts(row, &kind, &stack_facts(&self.stack));
        define(&mut facts, &kind, held);
        facts.nested.members.clone_from(&content.members);
        let adjustment = &scale.request.adjustment;
        let Some(Rescale { step, metadata }) = rules.rescale(&facts, adjustment, self.actor.backends.wall_clock())
        else {
            return Ok(());
        };
        facts.nested.step = step;
        self.observe_for(row.id, &kind, &mut facts)?;
        let Some(nested) = group.blueprint.nested_sources(definition, &facts) else { return Ok(()) };
        let mut nested = nested.map_err(|error| failure_of(&error))?;
        nested.sources.keep_files(&content.files);
        let size = group_size(&nested.sources.template);
        let growth = u64::try_from(size.saturating_sub(facts.nested.members.len())).unwrap_or(u64::MAX);
        let limit = limit(&group.quotas, Quota::ResourcesPerStack, self.actor.options.resources_per_stack);
        if growth > 0 && limit.is_some_and(|limit| group.resources.saturating_add(growth) > limit) {
            let text = "Request limit exceeded: Maximum resources per stack exceeded.";
            return Err(Failure::other(Class::RequestLimitExceeded, text));
        }
        let now = self.actor.backends.clock.now();
        let mut request = StackRequest::new(Action::Update, now);
        request.desired = Some(load::texts(&nested.sources));
        let policy = self.model.row(scale.policy).map(|row| row.name.clone()).unwrap_or_default();
        let reason = scale.received.reason(scale.message.body.details());
        let name = text::str(&scale.request.group);
        let start = Resizing { group: &name, adjustment, capacity: content.members.len() };
        self.writes.announce(start.announcement(
            "start",
            scale.message.id,
            now,
            format!("Start resizing the group {name}"),
        ));
        let resize = GroupResize { policy, reason, adjustment: adjustment.clone(), group: Some(name.clone()), size };
        let end = self.actor.backends.message(self.stack.id, Some(row.name.clone()), MessageBody::Scaling(resize));
        self.drain_members(scale.group, &facts.nested.members, &nested.sources.template);
        self.writes.request(child, request);
        let changed = Received { data: nested.data, metadata: Some(metadata), ..Received::default() };
        self.decide(received(scale.group, changed, None));
        self.writes.send(end);
        Ok(())
    }

    /// A group is changing its size: awaits the end. The nested stack may have settled before.
    pub(super) fn await_scaling(&mut self, message: Message, group: ResourceId) {
        match self.model.row(group).and_then(|row| row.child) {
            Some(child) => {
                self.inbox.await_nested(child, message);
                self.actor.wake.notify_one();
            }
            None => self.writes.handled(message.id),
        }
    }

    /// A nested stack whose change of size is awaited has settled.
    pub(super) fn scaling_ended(&mut self, message: Message, child: &Summary) {
        let Some(group) = self.model.row(child.resource).map(|row| row.id) else {
            return self.writes.handled(message.id);
        };
        // A running operation on the group comes first: it may have changed the nested stack again.
        let name = message.resource.clone().unwrap_or_default();
        if self.slots.is_busy(group) || !self.inbox.block(&[&name]) {
            return self.inbox.put_back(message);
        }
        if child.deleted {
            let gone = "its nested stack is deleted".to_owned();
            let failure = Failure::other(Class::of("NotFound"), gone.clone());
            return self.scaled(message, group, Some(gone), Err(failure));
        }
        let by_age = self.model.row(group).and_then(|row| self.kind_of(&row.name, &row.implementation));
        let by_age = by_age.is_some_and(|kind| kind.members_by_age());
        let (backends, stack) = (self.actor.backends.clone(), self.stack.clone());
        let failed = (child.state.status != Status::Complete).then(|| child.reason.clone());
        let id = child.id;
        let read = async move { read_resized(&backends, &stack, &name, id, by_age).await };
        self.spawn(Task::new(read, move |resized| Reply::Scaled(Box::new(message), group, failed, resized)));
    }

    /// Records the end of a change of size: the attributes of the group, its cooldown, and the event of the policy.
    /// `failed`: why it failed.
    pub(super) fn scaled(
        &mut self,
        message: Message,
        group: ResourceId,
        failed: Option<String>,
        resized: Result<Resized, Failure>,
    ) {
        let succeeded = failed.is_none();
        self.inbox.unblock(&[message.resource.as_deref().unwrap_or_default()]);
        if self.slots.is_busy(group) {
            return self.inbox.put_back(message);
        }
        self.writes.handled(message.id);
        let MessageBody::Scaling(resize) = &message.body else { return };
        let Some(row) = self.model.row(group) else { return };
        let kind = self.kind_of(&row.name, &row.implementation);
        let metadata = kind.as_ref().and_then(|kind| {
            let mut facts = facts(row, kind, &stack_facts(&self.stack));
            define(&mut facts, kind, row.definition.as_ref()?);
            Some(kind.group()?.rescaled(&facts, &resize.adjustment, succeeded, self.actor.backends.wall_clock()))
        });
        let mut resized_to = None;
        let (attributes, blueprint) = match resized {
            Ok(Resized { inside, blueprint }) => {
                resized_to = Some(inside.refs.len());
                self.tell_balancers(group, inside.refs.values().cloned().collect());
                (Some(inside.to_map()), Some(blueprint))
            }
            Err(failure) => {
                tracing::warn!(stack = %self.stack.id, group = row.name, %failure, "cannot read the members of a group");
                (None, None)
            }
        };
        self.decide(Event::NestedChanged { row: group, attributes, metadata });
        if let Some(blueprint) = blueprint {
            self.refresh_metadata(&blueprint);
        }
        self.announce_end(message.id, resize, failed, resized_to);
        let policy = self.model.current(&resize.policy).map(|row| row.id);
        if let (true, Some(policy), Some(_)) = (succeeded, policy, &resize.reason) {
            self.decide(received(policy, Received::default(), resize.reason.clone()));
        }
    }

    /// Evaluates the metadata of servers and nested stacks again, which agents in them read: the attributes of a
    /// resource have changed.
    fn refresh_metadata(&mut self, blueprint: &Arc<Blueprint>) {
        let mut scope = StackScope::new(Arc::clone(blueprint), stack_facts(&self.stack));
        for row in self.model.rows() {
            if self.model.current(&row.name).is_some_and(|current| current.id == row.id) {
                scope.see(row);
            }
        }
        let mut changed = Vec::new();
        for (name, definition) in blueprint.definitions() {
            let (Some(row), Some(kind)) = (self.model.current(name), blueprint.kind(name)) else { continue };
            let refreshed = match kind {
                Kind::Template(_) => true,
                Kind::Type(entry) => entry.driver.refreshes_metadata(),
            };
            if !refreshed || row.state.action == Action::Init || definition.metadata.attributes(&scope).is_empty() {
                continue;
            }
            let Ok(Some(Value::Map(metadata))) = definition.metadata.resolve(&scope) else { continue };
            let mut all = row.metadata.as_map().filter(|_| !kind.is_nested()).cloned().unwrap_or_default();
            all.extend(metadata);
            if row.metadata.as_map() != Some(&all) {
                changed.push((row.id, all));
            }
        }
        for (row, metadata) in changed {
            self.decide(received(row, Received { metadata: Some(metadata), ..Received::default() }, None));
        }
    }

    /// The metadata of a group after its create or update, for an event after the end of the operation.
    pub(super) fn group_done(&self, group: ResourceId, size: usize) -> Option<Event> {
        let row = self.model.row(group)?;
        let kind = self.kind_of(&row.name, &row.implementation)?;
        let definition = row.running().and_then(|running| running.definition.as_ref()).or(row.definition.as_ref())?;
        let mut facts = facts(row, &kind, &stack_facts(&self.stack));
        define(&mut facts, &kind, definition);
        if row.definition.as_ref().is_none_or(|held| held.metadata != definition.metadata) {
            facts.metadata = Value::Map(definition.metadata.clone());
        }
        let metadata = kind.group()?.completed(&facts, size, self.actor.backends.wall_clock())?;
        Some(Event::NestedChanged { row: group, attributes: None, metadata: Some(metadata) })
    }

    /// Checks the nested stacks whose change of size is awaited.
    pub(super) fn look_at_scaling(&mut self, ended: &[Summary]) {
        for child in ended {
            for message in self.inbox.nested_settled(child.id) {
                self.scaling_ended(message, child);
            }
        }
    }
}

/// The number of resources in a template of either language.
fn group_size(template: &Value) -> usize {
    let resources = template.get("resources").or_else(|| template.get("Resources"));
    resources.and_then(Value::as_map).map_or(0, |resources| resources.len())
}

pub(super) async fn blueprint(backends: &Backends, stack: &Stack) -> Result<Blueprint, Failure> {
    match load::blueprint(backends, stack, &stack.desired).await {
        Ok(Ok(blueprint)) => Ok(blueprint),
        Ok(Err(error)) => Err(failure_of(&error)),
        Err(error) => Err(unreadable(&error)),
    }
}

async fn read_group(backends: &Backends, stack: &Stack, child: StackId) -> Result<Group, Failure> {
    let view = LoadedStack::load_marked(backends, child).await.map_err(|error| unreadable(&error))?;
    let settled = view.filter(|view| !view.stack.is_pending() && view.stack.deleted.is_none());
    let resources = backends.store.count_resources(stack.root).await.map_err(|error| unreadable(&error))?;
    let quotas = backends.store.quotas(&stack.project).await.map_err(|error| unreadable(&error))?;
    let blueprint = Box::new(blueprint(backends, stack).await?);
    Ok(Group { blueprint, content: settled.map(|view| view.group_content()), resources, quotas })
}

async fn read_resized(
    backends: &Backends,
    stack: &Stack,
    group: &str,
    child: StackId,
    by_age: bool,
) -> Result<Resized, Failure> {
    let blueprint = blueprint(backends, stack).await?;
    let inside = inside(backends, child, &blueprint.wanted_paths(group), by_age).await?;
    Ok(Resized { inside, blueprint: Arc::new(blueprint) })
}
