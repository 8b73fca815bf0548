//! The current row of a name: the one that `get_resource` refers to, that the request updates, and that is not deleted.
//!
//! A name has more than one row while a replaced row, or one whose create failed, still exists. Of these, the current row
//! is found by questions in a fixed order. The first question that the rows answer differently decides:
//!
//! 1. Is it not being deleted? The object of a row in a delete may be gone.
//! 2. Has its last operation not failed?
//! 3. *Rollback only:* was it reached by this rollback? The rollback has decided about it already.
//! 4. Was it not replaced? *Back:* does it replace no row that still exists?
//! 5. Was it reached by the newest request? *Back:* by the oldest?
//! 6. Was it changed last? (Then the ID decides, so that every engine finds the same row.)
//!
//! *Back:* so does a rollback ask about rows that it has not reached, because it returns to the row before the replacement.
//! About its own rows, it asks what any request asks.
//!
//! For the row that users see, questions 1 and 2 are left out, because users also see a row that failed or that is being
//! deleted. Question 4 is asked only in a rollback, and question 6 is: was it created last?

use std::collections::BTreeMap;

use jiff::Timestamp;
use kiln_resource::{Action, Resource, ResourceId};

use super::Model;

/// The answers, the most important one first: the row with the greatest answers is the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "each is the answer to a question")]
struct Answers {
    is_kept: bool,
    is_sound: bool,
    is_reached: bool,
    is_last: bool,
    generation: i64,
    changed: Timestamp,
    id: ResourceId,
}

impl Model {
    /// Finds the current row of each name.
    pub(super) fn choose_current(&mut self) {
        let rollback = (self.request.action == Action::Rollback).then_some(self.request.generation);
        let best = self.best(|row| self.answers(row, rollback));
        self.current = best.into_iter().map(|(name, row)| (name.to_owned(), row.id)).collect();
    }

    /// The row of each name that is shown to users, in a rollback with this number.
    pub fn shown(&self, rollback: Option<i64>) -> BTreeMap<&str, &Resource> {
        self.best(|row| {
            let answers = self.answers(row, rollback);
            Answers {
                is_kept: true,
                is_sound: true,
                is_last: answers.is_last || rollback.is_none(),
                changed: row.created,
                ..answers
            }
        })
    }

    fn best(&self, answers: impl Fn(&Resource) -> Answers) -> BTreeMap<&str, &Resource> {
        let mut best: BTreeMap<&str, &Resource> = BTreeMap::new();
        for row in self.rows.values() {
            let held = best.entry(&row.name).or_insert(row);
            if answers(row) > answers(held) {
                *held = row;
            }
        }
        best
    }

    fn answers(&self, row: &Resource, rollback: Option<i64>) -> Answers {
        let is_reached = rollback == Some(row.generation);
        let back = rollback.is_some() && !is_reached;
        let replaces = row.replaces.is_some_and(|other| self.rows.contains_key(&other));
        Answers {
            is_kept: row.state.action != Action::Delete,
            is_sound: !row.state.failed(),
            is_reached,
            is_last: if back { !replaces } else { row.replaced_by.is_none() },
            generation: if back { -row.generation } else { row.generation },
            changed: row.updated,
            id: row.id,
        }
    }
}
