//! The current row of a name: the one that `get_resource` refers to, that the request updates, and that is not deleted.
//!
//! A name has more than one row while a replaced row, or one whose create failed, still exists. Of these, the current row
//! is found by questions in a fixed order. The first question that the rows answer differently decides:
//!
//! 1. Is it not being deleted? The object of a row in a delete may be gone.
//! 2. Has its last operation not failed?
//! 3. *Rollback only:* was it made by this rollback? The rollback had no row to return to when it made this one.
//! 4. Was it not replaced? *In a rollback:* does it replace no row that still exists? The rollback returns to the row before
//!    the replacement, also after it has set that row to its own generation.
//! 5. Was it reached by the newest request? *In a rollback:* by the oldest?
//! 6. Was it changed last? (Then the ID decides, so that every engine finds the same row.)
//!
//! For the row that users see, questions 1 and 2 are left out, because users also see a row that failed or that is being
//! deleted. Question 4 is asked only in a rollback, and question 6 is: was it created last?

use std::collections::BTreeMap;

use jiff::Timestamp;
use kiln_resource::{Action, Resource, ResourceId};
use kiln_value::Value;

use super::Model;

/// The entry of a resource's data with the number of the rollback that made its row.
const MADE_BY_ROLLBACK: &str = "kiln_made_by_rollback";

/// The answers, the most important one first: the row with the greatest answers is the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "each is the answer to a question")]
struct Answers {
    is_kept: bool,
    is_sound: bool,
    is_made_by_rollback: bool,
    is_last: bool,
    generation: i64,
    changed: Timestamp,
    id: ResourceId,
}

impl Model {
    /// Notes that the running rollback has made a row.
    pub(super) fn note_rollback(&self, row: &mut Resource) {
        if self.request.action == Action::Rollback {
            row.data.insert(MADE_BY_ROLLBACK.to_owned(), self.request.generation.into());
        }
    }

    /// Finds the current row of each name.
    pub(super) fn choose_current(&mut self) {
        let back = self.request.action == Action::Rollback;
        let best = self.best(|row| self.answers(row, back));
        self.current = best.into_iter().map(|(name, row)| (name.to_owned(), row.id)).collect();
    }

    /// The row of each name that is shown to users; `back`: in a rollback.
    pub fn shown(&self, back: bool) -> BTreeMap<&str, &Resource> {
        self.best(|row| {
            let answers = self.answers(row, back);
            Answers {
                is_kept: true,
                is_sound: true,
                is_last: answers.is_last || !back,
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

    fn answers(&self, row: &Resource, back: bool) -> Answers {
        let replaces = row.replaces.is_some_and(|other| self.rows.contains_key(&other));
        let made_by = row.data.get(MADE_BY_ROLLBACK).and_then(Value::as_i64);
        Answers {
            is_kept: row.state.action != Action::Delete,
            is_sound: !row.state.failed(),
            is_made_by_rollback: back && made_by == Some(row.generation),
            is_last: if back { !replaces } else { row.replaced_by.is_none() },
            generation: if back { -row.generation } else { row.generation },
            changed: row.updated,
            id: row.id,
        }
    }
}
