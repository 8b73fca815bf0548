//! Resources that move between stacks.

use kiln_resource::{Action, State, Status};

use crate::{Event, Parent, Resource, Settle, StackId, StackRequest};

/// Rows of resources that move between stacks, in one transaction: each of the stacks is updated.
#[derive(Clone, Debug)]
pub struct Refactor {
    /// The stacks, each once.
    pub stacks: Vec<RefactoredStack>,
    /// The rows that change, as they are afterwards.
    pub rows: Vec<Resource>,
    /// The nested stacks that move with rows, each once.
    pub nested: Vec<MovedStack>,
}

/// A nested stack that moves into the tree of another root stack, with all that is in it; or that stays, and whose rows move.
#[derive(Clone, Debug)]
pub struct MovedStack {
    /// Its ID.
    pub id: StackId,
    /// [`crate::Stack::writes`] as it was read, with the rows.
    pub writes: i64,
    /// [`crate::Stack::generation`] as it was read; it has ended.
    pub generation: i64,
    /// The root stack of the tree.
    pub root: StackId,
    /// The resource that it belongs to.
    pub parent: Parent,
}

/// A stack of a [`Refactor`].
#[derive(Clone, Debug)]
pub struct RefactoredStack {
    /// Its ID.
    pub id: StackId,
    /// [`crate::Stack::writes`] as it was read, with the rows.
    pub writes: i64,
    /// The update; `if_generation` is what was read.
    pub request: StackRequest,
    /// The events between its begin and its end.
    pub events: Vec<Event>,
    /// Whether the update ends at once. Otherwise an engine carries it out, and a rollback of it returns to the same template:
    /// the former one does not fit the rows any more.
    pub ends: bool,
}

impl RefactoredStack {
    /// The end of the update, which has this number, if it ends at once.
    pub(crate) fn settle(&self, generation: i64) -> Option<Settle> {
        let state = State::new(Action::Update, Status::Complete);
        let reason = format!("Stack {} completed successfully", state.action);
        let settle = Settle { generation, state, reason, deleted: false, reached: true, now: self.request.now };
        self.ends.then_some(settle)
    }
}

impl Refactor {
    /// The stacks that must be as they were read, with their writes. In the order of their IDs, so that two transactions with
    /// the same ones do not deadlock.
    pub(crate) fn locked(&self) -> Vec<(StackId, i64)> {
        let parts = self.stacks.iter().map(|part| (part.id, part.writes));
        let mut locked: Vec<_> = parts.chain(self.nested.iter().map(|moved| (moved.id, moved.writes))).collect();
        locked.sort_unstable();
        locked
    }

    /// The stacks in the order of their IDs.
    pub(crate) fn in_order(&self) -> Vec<&RefactoredStack> {
        let mut stacks: Vec<&RefactoredStack> = self.stacks.iter().collect();
        stacks.sort_by_key(|stack| stack.id);
        stacks
    }
}
