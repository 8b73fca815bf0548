//! Load balancers of groups: when the members of a group have changed, or are about to, its load balancers get them.
//!
//! The group's stack sends itself a message for each load balancer, in one commit with the change, so that it arrives
//! whatever engine fails. It is handled when no operation is running on the load balancer: in one commit, the message is
//! removed, the members are stored in the data of the load balancer, and its nested stack gets a new template.

use kiln_plan::{Blueprint, define, facts, failure_of};
use kiln_resource::{Action, Failure, Member, Received, ResourceId};
use kiln_stack::load;
use kiln_store::{GroupMembers, Message, MessageBody, StackRequest};
use kiln_value::Value;

use super::calls::Reply;
use super::inbox::received;
use super::scaling::blueprint;
use super::task::Task;
use super::{Work, stack_facts};

impl Work {
    /// Sends the members of a group to its load balancers.
    pub(super) fn tell_balancers(&mut self, group: ResourceId, members: Vec<Value>) {
        let Some(row) = self.model.row(group) else { return };
        let Some(kind) = self.kind_of(&row.name, &row.implementation) else { return };
        let Some(rules) = kind.group() else { return };
        let definition = row.running().and_then(|running| running.definition.as_ref()).or(row.definition.as_ref());
        let Some(definition) = definition else { return };
        let mut facts = facts(row, &kind, &stack_facts(&self.stack));
        define(&mut facts, &kind, definition);
        let balancers = rules.load_balancers(&facts);
        let members = GroupMembers { group: row.name.clone(), members };
        for balancer in balancers {
            let body = MessageBody::Members(members.clone());
            self.writes.send(self.actor.backends.message(self.stack.id, Some(balancer), body));
        }
    }

    /// Members that the next template of a group changes or removes get no more requests.
    pub(super) fn drain_members(&mut self, group: ResourceId, members: &[Member], template: &Value) {
        let resources = template.get("Resources").or_else(|| template.get("resources"));
        let stays = |name: &str, definition: &Value| resources.and_then(|all| all.get(name)) == Some(definition);
        let healthy = members.iter().filter(|member| !member.failed);
        let (kept, leaving): (Vec<_>, Vec<_>) = healthy.partition(|member| stays(&member.name, &member.definition));
        if !leaving.is_empty() {
            self.tell_balancers(group, kept.into_iter().map(|member| member.reference.clone()).collect());
        }
    }

    /// A load balancer gets the members of a group.
    pub(super) fn balance(&mut self, message: Message, balancer: ResourceId) {
        let row = self.model.row(balancer);
        if row.is_none_or(|row| row.child.is_none() || row.state.action == Action::Delete)
            || !self.inbox.block(&[message.resource.as_deref().unwrap_or_default()])
        {
            return self.writes.handled(message.id);
        }
        let (backends, stack) = (self.actor.backends.clone(), self.stack.clone());
        let read = async move { blueprint(&backends, &stack).await.map(Box::new) };
        self.spawn(Task::new(read, move |blueprint| Reply::Members(Box::new(message), balancer, blueprint)));
    }

    /// The template of the stack was read for it.
    pub(super) fn balanced(
        &mut self,
        message: Message,
        balancer: ResourceId,
        blueprint: Result<Box<Blueprint>, Failure>,
    ) {
        self.inbox.unblock(&[message.resource.as_deref().unwrap_or_default()]);
        if self.slots.is_busy(balancer) {
            return self.inbox.put_back(message);
        }
        self.writes.handled(message.id);
        let done = blueprint.and_then(|blueprint| self.request_balancer(&message, balancer, &blueprint));
        if let Err(failure) = done {
            let (stack, balancer) = (self.stack.id, &message.resource);
            tracing::warn!(%stack, balancer, %failure, "a load balancer does not get the members of a group");
        }
    }

    fn request_balancer(&mut self, message: &Message, id: ResourceId, blueprint: &Blueprint) -> Result<(), Failure> {
        let Some(row) = self.model.row(id) else { return Ok(()) };
        let (Some(child), Some(held)) = (row.child, &row.definition) else { return Ok(()) };
        let Some(definition) = blueprint.definitions().get(&row.name) else { return Ok(()) };
        let Some(kind) = self.kind_of(&row.name, &row.implementation) else { return Ok(()) };
        let Some(described) = kind.nested_stack() else { return Ok(()) };
        let mut facts = facts(row, &kind, &stack_facts(&self.stack));
        define(&mut facts, &kind, held);
        let MessageBody::Members(GroupMembers { group, members }) = &message.body else { return Ok(()) };
        let Some(mut data) = described.with_members(&facts, group, members) else { return Ok(()) };
        facts.data.extend(data.clone());
        let Some(nested) = blueprint.nested_sources(definition, &facts) else { return Ok(()) };
        let nested = nested.map_err(|error| failure_of(&error))?;
        data.extend(nested.data);
        let mut request = StackRequest::new(Action::Update, self.actor.backends.clock.now());
        request.desired = Some(load::texts(&nested.sources));
        request.details.operation = Some(self.stack.operation());
        self.writes.request(child, request);
        self.decide(received(id, Received { data, ..Received::default() }, None));
        Ok(())
    }
}
