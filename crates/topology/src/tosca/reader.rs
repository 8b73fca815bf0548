//! What all parts of reading share: types, errors, names.

use std::cell::RefCell;
use std::collections::HashSet;

use kiln_template::hint::nearest;
use kiln_value::{Map, Path};

use super::types::Types;
use crate::Refusal;

/// Searching for near names takes time: only the first errors have them.
const MOST_HINTS: usize = 20;

/// The state of reading a template.
pub(super) struct Reader<'d> {
    pub(super) types: &'d Types<'d>,
    refusals: RefCell<Vec<Refusal>>,
    /// Messages with their places: the same one is reported once.
    seen: RefCell<HashSet<(Path, String)>>,
    /// The file, if it is not the template itself.
    pub(super) file: Option<String>,
    /// The values that were given for inputs.
    pub(super) given: Map,
}

impl<'d> Reader<'d> {
    pub(super) fn new(types: &'d Types<'d>, file: Option<String>, given: Map) -> Self {
        Self { types, refusals: RefCell::default(), seen: RefCell::default(), file, given }
    }

    pub(super) fn refuse(&self, kind: &'static str, at: &Path, message: impl Into<String>) {
        self.refuse_with(Refusal::new(kind, at, message));
    }

    /// Refuses a word that is none of the known ones.
    pub(super) fn refuse_word<'w>(
        &self,
        kind: &'static str,
        at: &Path,
        message: String,
        word: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) {
        let mut refusal = Refusal::new(kind, at, message);
        if self.refusals.borrow().len() < MOST_HINTS
            && let Some(near) = nearest(word, known)
        {
            refusal = refusal.hint(format!("did you mean {near}?"));
        }
        self.refuse_with(refusal);
    }

    /// Adds a refusal.
    pub(super) fn refuse_with(&self, mut refusal: Refusal) {
        if self.seen.borrow_mut().insert((refusal.at.clone(), refusal.message.clone())) {
            refusal.file.clone_from(&self.file);
            self.refusals.borrow_mut().push(refusal);
        }
    }

    /// Refuses the keys of a map that are not known.
    pub(super) fn check_keys(&self, what: &str, map: &Map, known: &[&str], at: &Path) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let message = format!("{what} has no field \"{key}\".");
            self.refuse_word("unknown-field", &at.key(key), message, key, known.iter().copied());
        }
    }

    pub(super) fn into_refusals(self) -> Vec<Refusal> {
        self.refusals.into_inner()
    }
}
