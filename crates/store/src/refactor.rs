//! Resources that move between stacks.

use kiln_resource::{Action, State, Status};

use crate::{Event, Resource, Settle, StackId, StackRequest};

/// Rows of resources that move between stacks, in one transaction: each of the stacks is updated, and the update ends at once.
#[derive(Clone, Debug)]
pub struct Refactor {
    /// The stacks, each once.
    pub stacks: Vec<RefactoredStack>,
    /// The rows that change, as they are afterwards.
    pub rows: Vec<Resource>,
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
}

impl RefactoredStack {
    /// The end of the update, which has this number.
    pub(crate) fn settle(&self, generation: i64) -> Settle {
        let state = State::new(Action::Update, Status::Complete);
        let reason = format!("Stack {} completed successfully", state.action);
        Settle { generation, state, reason, deleted: false, reached: true, now: self.request.now }
    }
}

impl Refactor {
    /// The stacks in the order of their IDs, so that two transactions with the same ones do not deadlock.
    pub(crate) fn in_order(&self) -> Vec<&RefactoredStack> {
        let mut stacks: Vec<&RefactoredStack> = self.stacks.iter().collect();
        stacks.sort_by_key(|stack| stack.id);
        stacks
    }
}
