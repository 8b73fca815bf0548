//! Creation of stacks and requests to them.

use std::collections::BTreeSet;

use kiln_resource::{Action, State as Progress, Status};

use super::state::{Claimed, Content, StackRow, State, micro, micros_of};
use crate::limits::{CONTENT_FRESH, NAME};
use crate::snapshot::SUPERSEDED;
use crate::{
    DesiredText, Digest, Error, Event, NewStack, ObjectClaim, Operation, Snapshot, Stack, StackId, StackRequest, stack,
    version_of,
};

/// Refuses names that a server cannot store.
fn check_names<'n>(mut names: impl Iterator<Item = &'n String>) -> Result<(), Error> {
    match names.find(|name| name.chars().count() > NAME) {
        Some(_) => Err(Error::Invalid(format!("a name has more than {NAME} characters").into())),
        None => Ok(()),
    }
}

impl State {
    /// Refuses a stack that cannot be created.
    pub(super) fn check_new(&self, new: &NewStack, now: i64) -> Result<(), Error> {
        if let Some(plan) = new.plan_to_use() {
            self.check_plan(plan, now)?;
        }
        self.check_credentials(new.credentials)?;
        check_names(new.parent.is_none().then_some(&new.name).into_iter().chain(&new.tags))?;
        if new.parent.is_none() && self.names.contains_key(&(new.project.clone(), new.name.clone())) {
            return Err(Error::NameTaken(new.name.clone()));
        }
        if self.stacks.contains_key(&new.id) {
            return Err(Error::Database(format!("stack {} exists", new.id).into()));
        }
        let adopted = new.adopt.iter().filter(|_| new.parent.is_none());
        self.check_claims(new.id, &new.project, &adopted.flat_map(|data| data.claims(&new.user_id)).collect())
    }

    /// Refuses objects that another stack takes over, or that a resource has.
    fn check_claims(&self, id: StackId, project: &str, claims: &BTreeSet<ObjectClaim>) -> Result<(), Error> {
        if claims.is_empty() {
            return Ok(());
        }
        let taken = |claim: &ObjectClaim, owner| Err(Error::ObjectTaken { id: claim.id.clone(), owner });
        for held in self.claims.iter().filter(|held| held.stack != id) {
            let other = self.live(held.stack).filter(|other| other.settled < held.generation);
            let same = held.objects.intersection(claims).next();
            if let (Some(other), Some(claim)) = (other.filter(|other| other.project == project), same) {
                return taken(claim, ObjectClaim::claimant(other));
            }
        }
        for row in self.resources_of_project(project, |row| row.physical_id.is_some()) {
            let root = self.live(row.stack).and_then(|stack| self.live(stack.root));
            let Some(root) = root.filter(|root| !root.is_abandoned()) else { continue };
            let has = row.physical_id.as_deref().and_then(|id| ObjectClaim::of(&row.implementation, id, &root.user_id));
            if let Some(claim) = has.filter(|has| claims.contains(has)) {
                return taken(&claim, ObjectClaim::owner(&row.name, root));
            }
        }
        Ok(())
    }

    /// Creates a checked stack.
    pub(super) fn create(&mut self, new: &NewStack, now: i64) -> Stack {
        self.store_contents(&new.desired, now);
        if let Some(credentials) = new.credentials {
            self.touch_credentials(credentials, now);
        }
        let guards = self.guards_of(&new.project);
        let stack = Stack { created: micro(new.now), guards, ..Stack::started(new) };
        match &stack.parent {
            None => {
                self.names.insert((stack.project.clone(), stack.name.clone()), stack.id);
            }
            Some(parent) => {
                self.nested.entry(parent.stack).or_default().insert(stack.id);
            }
        }
        if let Some(begun) = Operation::of(&stack, new.author().as_ref(), Some(stack.desired.clone())) {
            self.begin_operation(begun);
        }
        if let Some(plan) = new.plan_to_use() {
            self.use_plan(plan, now);
        }
        let event = Event::of_start(&stack);
        if let Some(adopt) = &new.adopt {
            if stack.parent.is_none() {
                self.claim_objects(&stack, adopt);
            }
            self.save_snapshot(adopt);
        }
        let row = StackRow { stack: stack.clone(), due: None, lease: crate::LeaseRow::default() };
        self.stacks.insert(stack.id, row);
        self.post(stack.id, std::slice::from_ref(&event), now);
        self.append(event);
        self.set_due(stack.id, Some(stack.created.as_microsecond()));
        stack
    }

    /// Refuses a request unless the stack exists and has the expected generation.
    pub(super) fn check_request(
        &self,
        id: StackId,
        generation: i64,
        request: &StackRequest,
        now: i64,
    ) -> Result<(), Error> {
        self.check_credentials(request.credentials)?;
        check_names(request.tags.iter().flatten())?;
        if request.if_generation.is_some_and(|expected| expected != generation) {
            return Err(Error::Changed(id));
        }
        if let Some(version) = &request.if_version {
            let root = self.live(id).map(|stack| stack.root);
            let tree = self.stacks.values().map(|row| &row.stack);
            let tree = tree.filter(|stack| Some(stack.root) == root && stack.deleted.is_none()).cloned();
            if version_of(tree.collect()) != *version {
                return Err(Error::Changed(id));
            }
        }
        if let Some(stack) = self.live(id) {
            let claims = request.snapshot.iter().flat_map(|data| data.claims(&stack.user_id));
            self.check_claims(id, &stack.project, &claims.collect())?;
        }
        request.details.plan_to_use().map_or(Ok(()), |plan| self.check_plan(plan, now))
    }

    /// Writes a checked request; returns the stack after that and the event to write. `None`: the stack is deleted.
    pub(super) fn request(&mut self, id: StackId, request: &StackRequest, now: i64) -> Option<(Stack, Event)> {
        let old = self.live(id)?.credentials;
        if let Some(desired) = &request.desired {
            self.store_contents(desired, now);
        }
        if let Some(new) = request.credentials {
            for credentials in old.into_iter().chain([new]) {
                self.touch_credentials(credentials, now);
            }
        }
        let row = self.stacks.get_mut(&id)?;
        let stack = &mut row.stack;
        if matches!(request.action, Action::Update | Action::Restore) {
            stack.previous = Some(stack.previous.take().unwrap_or_else(|| stack.desired.clone()));
        } else if let (Action::Rollback, Some(previous)) = (request.action, &stack.previous) {
            stack.desired = previous.clone();
        }
        stack.generation += 1;
        stack.state = Progress::new(request.action, Status::InProgress);
        stack.reason = stack::started_text(request.action);
        stack.updated = Some(micro(request.now));
        stack.details = request.details.clone().with_origin();
        if let Some(desired) = &request.desired {
            stack.desired = desired.digests();
        }
        if let Some(disable_rollback) = request.disable_rollback {
            stack.disable_rollback = disable_rollback;
        }
        if let Some(timeout_mins) = request.timeout_mins {
            stack.timeout_mins = Some(timeout_mins);
        }
        if let Some(tags) = &request.tags {
            stack.tags.clone_from(tags);
        }
        if let Some(credentials) = request.credentials {
            stack.credentials = Some(credentials);
        }
        let (asked, due) = (stack.clone(), row.due);
        self.set_due(id, due.or(Some(request.now.as_microsecond())));
        let unfinished = Progress::new(Action::Snapshot, Status::InProgress);
        for snapshot in self.snapshots.values_mut().filter(|one| one.stack == id && one.state == unfinished) {
            snapshot.state.status = Status::Failed;
            SUPERSEDED.clone_into(&mut snapshot.reason);
        }
        if let Some(snapshot) = &request.snapshot {
            self.claim_objects(&asked, snapshot);
            self.save_snapshot(snapshot);
        }
        if let Some(begun) = request.operation(&asked) {
            self.begin_operation(begun);
        }
        if let Some(plan) = request.details.plan_to_use() {
            self.use_plan(plan, now);
        }
        let event = Event::of_start(&asked);
        Some((asked, event))
    }

    fn claim_objects(&mut self, stack: &Stack, data: &Snapshot) {
        let objects = data.claims(&stack.user_id);
        if !objects.is_empty() {
            self.claims.push(Claimed { stack: stack.id, generation: stack.generation, objects });
        }
    }

    /// Inserts or replaces a snapshot.
    pub(super) fn save_snapshot(&mut self, snapshot: &Snapshot) {
        let stored = Snapshot { created: micro(snapshot.created), ..snapshot.clone() };
        self.snapshots.insert(snapshot.id, stored);
    }

    pub(super) fn store_contents(&mut self, desired: &DesiredText, now: i64) {
        for text in [&desired.template, &desired.environment, &desired.files] {
            let content =
                self.contents.entry(Digest::of(text)).or_insert_with(|| Content { body: text.clone(), used: now });
            if content.used < now.saturating_sub(micros_of(CONTENT_FRESH)) {
                content.used = now;
            }
        }
    }
}
