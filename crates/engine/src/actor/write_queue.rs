//! Pending writes.

use std::collections::{HashMap, VecDeque};

use kiln_plan::Model;
use kiln_resource::{ResourceId, SoftwareChange};
use kiln_store::{
    Announcement, Batch, Distinct, Event, Message, MessageId, NewStack, Orphan, PluginRun, Settle, Snapshot,
    SnapshotId, StackId, StackRequest,
};

/// Writes in their order. A row that changes more than once is written once, at its last position. So a commit may
/// contain any prefix of the rows and events: an event may be stored before its row, and is then repeated after a crash, but
/// none is lost.
///
/// What others see or do because of the rows is not in that order. Messages, announcements, removed messages, the project of the
/// users and changes of software are written in one commit with everything that is in the queue, because rows before or after
/// them belong to them: after a crash between two commits, a message would cancel a request that was never made, or would
/// be sent again. What ends an operation is written with the last commit.
#[derive(Default)]
pub(crate) struct WriteQueue {
    writes: VecDeque<Write>,
    /// Number of writes that were removed so far: the base of positions.
    taken: usize,
    /// The position of each row to save.
    places: HashMap<ResourceId, usize>,
    /// The end of the request; written after everything else.
    pub(crate) settle: Option<Settle>,
    /// The rollback that follows the end; written with it.
    pub(crate) rollback: Option<StackRequest>,
    /// Snapshots to insert or replace; written at the end of the queue.
    pub(crate) snapshots: Distinct<Snapshot>,
    /// Snapshots to delete; written at the end of the request.
    pub(crate) removed_snapshots: Vec<SnapshotId>,
    /// What is written in one commit with the whole queue.
    together: Batch,
    /// Runs of lifecycle plug-ins after an operation; written at the end of the queue.
    pub(crate) plugin_runs: Vec<PluginRun>,
    /// Cancels that are not written yet.
    cancels: Vec<(StackId, i64)>,
}

enum Write {
    /// Removed, or moved to a later position.
    Nothing,
    Save(ResourceId),
    Remove(ResourceId),
    Event(Box<Event>),
    /// Belongs to the removal after it.
    Orphan(Box<Orphan>),
    /// Belongs to the row after it.
    Child(Box<NewStack>),
    /// Belongs to the row after it.
    StackRequest(StackId, Box<StackRequest>),
}

impl WriteQueue {
    pub(crate) fn save(&mut self, id: ResourceId) {
        self.forget(id);
        self.places.insert(id, self.taken + self.writes.len());
        self.writes.push_back(Write::Save(id));
    }

    pub(crate) fn remove(&mut self, id: ResourceId) {
        self.forget(id);
        self.writes.push_back(Write::Remove(id));
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.writes.push_back(Write::Event(Box::new(event)));
    }

    /// Adds an orphan; the removal of its row must follow.
    pub(crate) fn orphan(&mut self, orphan: Orphan) {
        self.writes.push_back(Write::Orphan(Box::new(orphan)));
    }

    /// Adds a nested stack to create; the save of its resource's row must follow.
    pub(crate) fn child(&mut self, stack: NewStack) {
        self.writes.push_back(Write::Child(Box::new(stack)));
    }

    /// Adds a request to a nested stack; the save of its resource's row must follow.
    pub(crate) fn request(&mut self, stack: StackId, request: StackRequest) {
        self.writes.push_back(Write::StackRequest(stack, Box::new(request)));
    }

    /// Adds a processed message; its results must follow before the next commit.
    pub(crate) fn handled(&mut self, id: MessageId) {
        self.together.handled.push(id);
    }

    /// Adds changes of software configs and deployments.
    pub(crate) fn software(&mut self, changes: Vec<SoftwareChange>) {
        self.together.software.extend(changes);
    }

    /// Whether a software config or deployment is not stored yet.
    pub(crate) fn changes_software(&self) -> bool {
        !self.together.software.is_empty()
    }

    /// Adds something to announce on the message bus.
    pub(crate) fn announce(&mut self, announcement: Announcement) {
        self.together.announcements.push(announcement);
    }

    /// Adds the project of the stack's users.
    pub(crate) fn user_project(&mut self, project: String) {
        self.together.user_project = Some(project);
    }

    /// Adds a message to a stack.
    pub(crate) fn send(&mut self, message: Message) {
        self.together.send.push(message);
    }

    /// Adds a cancel of the request to a nested stack; it must be written before the next commit.
    pub(crate) fn cancel(&mut self, stack: StackId) {
        let is_request = |write: &&Write| match write {
            Write::Child(child) => child.id == stack,
            Write::StackRequest(asked, _) => *asked == stack,
            _ => false,
        };
        let requests = self.writes.iter().filter(is_request).count();
        self.cancels.push((stack, i64::try_from(requests).unwrap_or(i64::MAX)));
    }

    /// The nested stacks to cancel, with the number of unstored requests to them.
    pub(crate) fn take_cancels(&mut self) -> Vec<(StackId, i64)> {
        std::mem::take(&mut self.cancels)
    }

    /// Whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.together.is_empty()
            && self.plugin_runs.is_empty()
            && self.cancels.is_empty()
            && self.snapshots.is_empty()
            && self.removed_snapshots.is_empty()
            && self.settle.is_none()
    }

    /// Number of pending writes.
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Removes the writes for one commit of about `limit` writes, with the current rows; `None` if the queue is empty.
    pub(crate) fn take(&mut self, model: &Model, limit: usize) -> Option<Batch> {
        loop {
            let batch = self.take_some(model, limit);
            // A piece may contain only abandoned positions: the writes after it must not be forgotten.
            if !batch.is_empty() || self.writes.is_empty() {
                return (!batch.is_empty()).then_some(batch);
            }
        }
    }

    fn take_some(&mut self, model: &Model, limit: usize) -> Batch {
        let mut batch = std::mem::take(&mut self.together);
        let count = if batch.is_empty() { self.cut(limit) } else { self.writes.len() };
        self.taken += count;
        for write in self.writes.drain(..count) {
            match write {
                Write::Nothing => {}
                Write::Save(id) => {
                    self.places.remove(&id);
                    batch.save.extend(model.row(id).cloned());
                }
                Write::Remove(id) => batch.remove.push(id),
                Write::Event(event) => batch.events.push(*event),
                Write::Orphan(orphan) => batch.orphans.push(*orphan),
                Write::Child(stack) => batch.children.push(*stack),
                Write::StackRequest(stack, request) => batch.requests.push((stack, *request)),
            }
        }
        if self.writes.is_empty() {
            batch.snapshots = std::mem::take(&mut self.snapshots);
            batch.remove_snapshots = std::mem::take(&mut self.removed_snapshots);
            batch.plugin_runs = std::mem::take(&mut self.plugin_runs);
            batch.settle = self.settle.take();
            batch.rollback = self.rollback.take();
        }
        batch
    }

    /// The first position at or after `limit` where the queue may be split: not between a row and the writes that
    /// belong to it.
    fn cut(&self, limit: usize) -> usize {
        let free = |at: &usize| {
            !matches!(
                at.checked_sub(1).and_then(|at| self.writes.get(at)),
                Some(Write::Child(_) | Write::StackRequest(..) | Write::Orphan(_))
            )
        };
        (limit.max(1)..self.writes.len()).find(free).unwrap_or(self.writes.len())
    }

    /// Abandons the position of a row that gets a later one. If other writes must be stored together with the row, it
    /// stays there too and is written with its state at that time.
    fn forget(&mut self, id: ResourceId) {
        let Some(place) = self.places.remove(&id).and_then(|place| place.checked_sub(self.taken)) else { return };
        let before = place.checked_sub(1).and_then(|before| self.writes.get(before));
        if matches!(before, Some(Write::Child(_) | Write::StackRequest(..))) {
            return;
        }
        if let Some(write) = self.writes.get_mut(place) {
            *write = Write::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_resource::{Resource, StackId};
    use kiln_store::StackRequest;

    use super::*;

    fn rows(count: u128) -> (Model, Vec<ResourceId>) {
        let ids: Vec<ResourceId> = (1..=count).map(|n| ResourceId(uuid::Uuid::from_u128(n))).collect();
        let row = |id: &ResourceId| {
            let stack = StackId(uuid::Uuid::nil());
            Resource::new(stack, *id, &id.to_string(), "T", jiff::Timestamp::UNIX_EPOCH)
        };
        (Model::new(ids.iter().map(row)), ids)
    }

    #[test]
    fn a_piece_of_places_that_were_given_up_ends_nothing() {
        let (model, ids) = rows(3);
        let mut queue = WriteQueue::default();
        queue.save(ids[0]);
        queue.save(ids[1]);
        queue.save(ids[0]);
        queue.save(ids[2]);
        let mut saved = Vec::new();
        while let Some(batch) = queue.take(&model, 1) {
            saved.extend(batch.save.into_iter().map(|row| row.id));
        }
        assert_eq!(saved, [ids[1], ids[0], ids[2]]);
    }

    #[test]
    fn a_request_is_stored_in_one_commit_with_its_row_though_the_row_changes_again() {
        let (model, ids) = rows(2);
        let (child, mut queue) = (StackId(uuid::Uuid::from_u128(9)), WriteQueue::default());
        queue.request(child, StackRequest::new(kiln_resource::Action::Update, jiff::Timestamp::UNIX_EPOCH));
        queue.save(ids[0]);
        queue.save(ids[1]);
        queue.save(ids[0]);
        let first = queue.take(&model, 1).expect("something to write");
        assert_eq!((first.requests.len(), first.save.len()), (1, 1));
        assert_eq!(first.save[0].id, ids[0]);
    }

    /// Each commit may be the last one: the engine may be killed after it.
    #[test]
    fn what_others_act_on_is_stored_in_one_commit_with_all_rows() {
        let message = || Message {
            id: MessageId(uuid::Uuid::from_u128(5)),
            stack: StackId(uuid::Uuid::from_u128(9)),
            resource: None,
            body: kiln_store::MessageBody::Cancel(kiln_store::Cancel::default()),
            due: jiff::Timestamp::UNIX_EPOCH,
            sent: jiff::Timestamp::UNIX_EPOCH,
        };
        let announcement = || Announcement {
            id: uuid::Uuid::from_u128(6),
            event_type: "autoscaling.end".to_owned(),
            error: false,
            time: jiff::Timestamp::UNIX_EPOCH,
            details: kiln_value::Map::new(),
        };
        let adds: [&dyn Fn(&mut WriteQueue); 4] = [
            &|queue| queue.send(message()),
            &|queue| queue.handled(message().id),
            &|queue| queue.announce(announcement()),
            &|queue| queue.user_project("p".to_owned()),
        ];
        for add in adds {
            let (model, ids) = rows(3);
            let mut queue = WriteQueue::default();
            queue.save(ids[0]);
            add(&mut queue);
            queue.save(ids[1]);
            let child = StackId(uuid::Uuid::from_u128(9));
            queue.request(child, StackRequest::new(kiln_resource::Action::Update, jiff::Timestamp::UNIX_EPOCH));
            queue.save(ids[2]);
            let first = queue.take(&model, 1).expect("something to write");
            assert_eq!((first.save.len(), first.requests.len()), (3, 1), "{first:?}");
            assert!(queue.take(&model, 1).is_none());
        }
    }

    #[test]
    fn a_row_that_stays_with_a_request_and_changes_again_is_once_in_a_batch() {
        let (model, ids) = rows(2);
        let (child, mut queue) = (StackId(uuid::Uuid::from_u128(9)), WriteQueue::default());
        queue.request(child, StackRequest::new(kiln_resource::Action::Update, jiff::Timestamp::UNIX_EPOCH));
        for id in [ids[0], ids[1], ids[0]] {
            queue.save(id);
        }
        let batch = queue.take(&model, 100).expect("something to write");
        assert_eq!(batch.save.iter().map(|row| row.id).collect::<Vec<_>>(), ids);
    }
}
