//! Resources that stand for nested stacks: what is asked of those, and what comes back.

use kiln_plan::{Blame, Event, Inside, Kind, Outcome, Phase, Running, Sources, facts};
use kiln_resource::{Action, Failure, Operation, ResourceId, Status};
use kiln_store::{NewStack, Parent, StackId, StackRequest, Summary};
use kiln_value::{Map, Value};

use super::{Reply, Work, stack_facts};
use crate::view::View;
use crate::{gather, load};

impl Work {
    /// An operation on a nested stack is a request to it, stored together with the resource's row.
    pub(super) fn dispatch_nested(&mut self, id: ResourceId, running: &Running, kind: Option<Kind>) {
        let Some(row) = self.model.row(id) else { return };
        let child: Option<StackId> = row.physical_id.as_deref().and_then(|id| id.parse().ok());
        if let (Phase::Wait(_), Some(child)) = (&running.phase, child) {
            self.children.insert(child, id);
            // It may have ended before this engine took over.
            self.actor.wake.notify_one();
            return;
        }
        match (&running.operation, child) {
            (Operation::Delete, child) if child.is_none() || is_retained(row) => {
                self.inbox.push_back(finished(id, Outcome::Done(None)));
            }
            (Operation::Create, _) | (Operation::Update { .. }, None) => self.make_child(id, running, kind),
            (Operation::Update { .. }, Some(child)) => match self.nested_sources(id, running, kind) {
                Ok((sources, data)) => {
                    let mut request = StackRequest::new(Action::Update, self.actor.backends.clock.now());
                    request.desired = Some(load::texts(&sources));
                    self.ask_child(id, child, request, data, running);
                }
                Err(failure) => self.inbox.push_back(self.failed(id, &failure.class, &failure.message)),
            },
            (operation, Some(child)) => {
                let action = match operation {
                    Operation::Delete => Action::Delete,
                    Operation::Suspend => Action::Suspend,
                    Operation::Resume => Action::Resume,
                    _ => Action::Check,
                };
                let request = StackRequest::new(action, self.actor.backends.clock.now());
                self.ask_child(id, child, request, Map::new(), running);
            }
            (_, None) => self.inbox.push_back(finished(id, Outcome::Done(None))),
        }
    }

    fn make_child(&mut self, id: ResourceId, running: &Running, kind: Option<Kind>) {
        let (sources, data) = match self.nested_sources(id, running, kind) {
            Ok(made) => made,
            Err(failure) => {
                self.inbox.push_back(self.failed(id, &failure.class, &failure.message));
                return;
            }
        };
        let Some(row) = self.model.row(id) else { return };
        let child = StackId(self.actor.backends.chance.uuid());
        let name = kiln_resource::physical_name::physical_name(&self.stack.name, &row.name, row.id.0, 255);
        self.desk.child(NewStack {
            id: child,
            name,
            project: self.stack.project.clone(),
            parent: Some(Parent { stack: self.stack.id, resource: id, resource_name: row.name.clone() }),
            root: self.stack.root,
            depth: self.stack.depth + 1,
            action: Action::Create,
            desired: load::texts(&sources),
            disable_rollback: true,
            timeout_mins: self.stack.timeout_mins,
            tags: Vec::new(),
            username: self.stack.username.clone(),
            user_id: self.stack.user_id.clone(),
            credentials: None,
            user_project: self.stack.user_project.clone(),
            now: self.actor.backends.clock.now(),
        });
        self.step_to_wait(id, Some(child), data, running);
    }

    fn ask_child(&mut self, id: ResourceId, child: StackId, request: StackRequest, data: Map, running: &Running) {
        self.desk.request(child, request);
        self.step_to_wait(id, None, data, running);
    }

    fn step_to_wait(&mut self, id: ResourceId, child: Option<StackId>, data: Map, running: &Running) {
        if let Some(child) = child {
            self.model.set_child(id, child);
        }
        self.inbox.push_front(Event::Stepped {
            row: id,
            physical_id: child.map(|child| child.to_string()),
            data,
            phase: Phase::Wait(Value::Null),
            attempt: running.attempt,
            token: running.token.clone(),
        });
    }

    /// What the nested stack is made of, and what the resource must remember of that.
    fn nested_sources(&self, id: ResourceId, running: &Running, kind: Option<Kind>) -> Result<(Sources, Map), Failure> {
        let gone = || Failure::other("NotFound", "the template of the nested stack is not there any more");
        let row = self.model.row(id).ok_or_else(gone)?;
        let kind = kind.ok_or_else(gone)?;
        let scene = self.scene.as_ref().ok_or_else(gone)?;
        let blueprint = scene.blueprint();
        let definition = blueprint.definitions().get(&row.name).ok_or_else(gone)?;
        let mut facts = facts(row, &kind, &stack_facts(&self.stack));
        let wanted = if running.definition.is_null() { &row.definition } else { &running.definition };
        facts.properties = wanted.get("properties").and_then(Value::as_map).cloned().unwrap_or_default();
        let members: Map = Inside::from_map(&row.attributes).refs.into_iter().collect();
        facts.data.insert("members".to_owned(), members.into());
        match &kind {
            Kind::Template(provider) => blueprint
                .provider_sources(definition, provider, &facts.properties)
                .map(|sources| (sources, Map::new()))
                .map_err(|error| gather::failure_of(&error)),
            Kind::Type(entry) => match entry.driver.nested(&facts, &blueprint.wanted_paths(&row.name)) {
                Some(Ok(mut nested)) => {
                    let data = std::mem::take(&mut nested.data);
                    let sources = blueprint.group_sources(definition, nested);
                    sources.map(|sources| (sources, data)).map_err(|error| gather::failure_of(&error))
                }
                Some(Err(error)) => Err(gather::failure_of(&error)),
                None => Err(gone()),
            },
        }
    }

    /// A nested stack came to its end: its outputs are read, then the resource has come to its own.
    pub(super) fn child_ended(&mut self, id: ResourceId, child: &Summary) {
        let Some(row) = self.model.row(id) else { return };
        let name = row.name.clone();
        if child.state.status == Status::Failed {
            let blame = match Blame::from_stack_reason(&child.reason) {
                Some(blame) => blame.below(&name),
                None => Blame { class: String::new(), path: vec![name], message: child.reason.clone() },
            };
            self.inbox.push_back(finished(id, Outcome::Failed(blame)));
            return;
        }
        let Some(running) = Running::from_value(&row.step) else { return };
        if !matches!(running.operation, Operation::Create | Operation::Update { .. }) {
            self.inbox.push_back(finished(id, Outcome::Done(None)));
            return;
        }
        let wanted = self.scene.as_ref().map(|scene| scene.blueprint().wanted_paths(&name)).unwrap_or_default();
        let (backends, child) = (self.actor.backends.clone(), child.id);
        self.tasks.spawn(async move {
            let inside = match View::load(&backends, child).await {
                Ok(Some(view)) => view.inside(&wanted).await,
                Ok(None) => Err(Failure::other("NotFound", format!("nested stack {child} is gone"))),
                Err(error) => Err(Failure::other("Error", error.to_string())),
            };
            Reply::Event(match inside {
                Ok(inside) => Event::Finished {
                    row: id,
                    physical_id: None,
                    data: Map::new(),
                    attributes: Some(inside.to_map()),
                    outcome: Outcome::Done(None),
                },
                Err(failure) => finished(id, Outcome::Failed(Blame::of(&name, &failure))),
            })
        });
    }
}

fn is_retained(row: &kiln_resource::Resource) -> bool {
    row.definition.str_at("deletion_policy") == Some("Retain")
}

fn finished(row: ResourceId, outcome: Outcome) -> Event {
    Event::Finished { row, physical_id: None, data: Map::new(), attributes: None, outcome }
}
