//! Resources that have another name than before: their rows get the new name when a request begins, before anything is
//! decided.
//!
//! No call is made for it, and names of objects stay ([`kiln_resource::Resource::first_name`]). A row moves only from a name
//! that the template does not have to one that has no row, or only rows that are being deleted. So a move is made once, and
//! an entry of the section that was made already changes nothing.
//!
//! A row also returns to a former name if the template has that name and not the present one. So a rollback, and an update to
//! the template before the move, destroy nothing.

use std::collections::BTreeSet;

use kiln_resource::{Action, ResourceId, State};

use super::Model;
use crate::event::{Command, Note, Target};

impl Model {
    pub(super) fn move_rows(&mut self, targets: &[Target], out: &mut Vec<Command>) {
        let wanted: BTreeSet<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        for (from, to) in self.request.moves.clone() {
            if !wanted.contains(from.as_str()) && wanted.contains(to.as_str()) {
                self.move_name(&from, &to, out);
            }
        }
        let unwanted = self.rows.values().filter(|row| !wanted.contains(row.name.as_str()));
        let returns = unwanted.filter_map(|row| {
            let former = row.former_names().rev().find(|name| wanted.contains(name))?;
            Some((row.name.clone(), former.to_owned()))
        });
        for (from, to) in returns.collect::<BTreeSet<_>>() {
            self.move_name(&from, &to, out);
        }
    }

    /// Renames the rows of a name, unless there are rows with the new name that are not being deleted.
    fn move_name(&mut self, from: &str, to: &str, out: &mut Vec<Command>) {
        if self.rows_of(to).any(|row| row.state.action != Action::Delete) {
            return;
        }
        let Some(rows) = self.named.remove(from).filter(|rows| !rows.is_empty()) else { return };
        for id in &rows {
            self.rename(*id, from, to, out);
        }
        self.named.entry(to.to_owned()).or_default().extend(rows);
    }

    fn rename(&mut self, id: ResourceId, from: &str, to: &str, out: &mut Vec<Command>) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.rename(to);
        out.extend([Command::Moved(id, from.to_owned()), Command::Save(id)]);
        if row.state != State::INIT {
            out.push(Command::Note(Box::new(Note::of(row, row.state, format!("moved from {from}")))));
        }
    }
}
