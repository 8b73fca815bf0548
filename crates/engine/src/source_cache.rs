//! Parsed templates, environments and files. Stored texts never change (their key is a digest), and clients that follow a
//! stack ask for the same ones many times a second.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_plan::Sources;
use kiln_store::{Desired, DesiredText, Digest, Error, Store};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::Value;

use crate::load;

/// Bytes of text whose parsed form is kept: about five to ten times as much memory.
const CAPACITY: usize = 16 << 20;
/// How long an unused text is kept. An engine drops it at its next poll, an API without an engine when it parses another.
const IDLE: Duration = Duration::from_secs(30);

/// The parsed sources of a stack.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    /// The sources.
    pub(crate) sources: Sources,
    /// Whether the template may read the resource that it belongs to (`resource_facade`).
    pub(crate) reads_facade: bool,
}

#[derive(Clone)]
enum Part {
    Template { template: Arc<Value>, reads_facade: bool },
    Environment(Arc<Environment>),
    Files(Arc<Files>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Template,
    Environment,
    Files,
}

type Key = (Kind, Digest);

struct Entry {
    part: Part,
    bytes: usize,
    /// The number of its last use, which orders the entries.
    turn: u64,
    used: Duration,
}

/// Keeps what was parsed last, up to a size.
#[derive(Default)]
pub struct SourceCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    by_turn: BTreeMap<u64, Key>,
    bytes: usize,
    turns: u64,
}

impl SourceCache {
    /// The sources of a desired or previous state, from the cache or the store. `now` is monotonic.
    ///
    /// # Errors Those of the store; [`Error::Damaged`] if the stored texts are invalid.
    pub(crate) async fn sources(&self, store: &dyn Store, desired: &Desired, now: Duration) -> Result<Parsed, Error> {
        if let Some(parsed) = self.get(desired, now) {
            return Ok(parsed);
        }
        let texts = store.desired(desired).await?;
        let sources = load::sources(&texts)?;
        let reads_facade = texts.template.contains("resource_facade") || texts.template.contains("Fn::ResourceFacade");
        let parsed = Parsed { sources, reads_facade };
        self.put(desired, &texts, &parsed, now);
        Ok(parsed)
    }

    fn get(&self, desired: &Desired, now: Duration) -> Option<Parsed> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Part::Template { template, reads_facade } =
            entries.get(&(Kind::Template, desired.template.clone()), now)?
        else {
            return None;
        };
        let Part::Environment(environment) = entries.get(&(Kind::Environment, desired.environment.clone()), now)?
        else {
            return None;
        };
        let Part::Files(files) = entries.get(&(Kind::Files, desired.files.clone()), now)? else { return None };
        Some(Parsed { sources: Sources { template, environment, files }, reads_facade })
    }

    fn put(&self, desired: &Desired, texts: &DesiredText, parsed: &Parsed, now: Duration) {
        let Parsed { sources: Sources { template, environment, files }, reads_facade } = parsed.clone();
        let template = Part::Template { template, reads_facade };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.put((Kind::Template, desired.template.clone()), template, texts.template.len(), now);
        entries.put(
            (Kind::Environment, desired.environment.clone()),
            Part::Environment(environment),
            texts.environment.len(),
            now,
        );
        entries.put((Kind::Files, desired.files.clone()), Part::Files(files), texts.files.len(), now);
        entries.expire(now);
    }

    /// The number of texts whose parsed form is kept, and their bytes.
    pub fn size(&self) -> (usize, usize) {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (entries.by_key.len(), entries.bytes)
    }

    /// Drops what has not been used for a while.
    pub(crate) fn expire(&self, now: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).expire(now);
    }
}

impl Entries {
    fn get(&mut self, key: &Key, now: Duration) -> Option<Part> {
        let entry = self.by_key.get_mut(key)?;
        self.by_turn.remove(&entry.turn);
        self.turns += 1;
        entry.turn = self.turns;
        entry.used = now;
        self.by_turn.insert(entry.turn, key.clone());
        Some(entry.part.clone())
    }

    fn put(&mut self, key: Key, part: Part, bytes: usize, now: Duration) {
        self.remove(&key);
        if bytes > CAPACITY {
            return;
        }
        while self.bytes + bytes > CAPACITY
            && let Some((_, oldest)) = self.by_turn.pop_first()
        {
            self.remove(&oldest);
        }
        self.turns += 1;
        self.by_turn.insert(self.turns, key.clone());
        self.by_key.insert(key, Entry { part, bytes, turn: self.turns, used: now });
        self.bytes += bytes;
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.by_turn.remove(&entry.turn);
            self.bytes -= entry.bytes;
        }
    }

    fn expire(&mut self, now: Duration) {
        while let Some((_, oldest)) = self.by_turn.first_key_value()
            && self.by_key.get(oldest).is_some_and(|entry| now.saturating_sub(entry.used) > IDLE)
        {
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        (Kind::Files, Digest::of(text))
    }

    fn files() -> Part {
        Part::Files(Arc::default())
    }

    #[test]
    fn what_was_used_last_is_kept() {
        let mut entries = Entries::default();
        let third = CAPACITY / 3;
        for name in ["a", "b", "c"] {
            entries.put(key(name), files(), third, Duration::ZERO);
        }
        assert!(entries.get(&key("a"), Duration::ZERO).is_some());
        entries.put(key("d"), files(), third, Duration::ZERO);
        assert!(entries.get(&key("b"), Duration::ZERO).is_none());
        assert!(entries.get(&key("a"), Duration::ZERO).is_some());
        assert_eq!(entries.bytes, 3 * third);
        assert_eq!(entries.by_key.len(), entries.by_turn.len());
    }

    #[test]
    fn a_text_above_the_capacity_is_not_kept() {
        let mut entries = Entries::default();
        entries.put(key("small"), files(), 1, Duration::ZERO);
        entries.put(key("big"), files(), CAPACITY + 1, Duration::ZERO);
        assert!(entries.get(&key("big"), Duration::ZERO).is_none());
        assert!(entries.get(&key("small"), Duration::ZERO).is_some());
    }

    #[test]
    fn an_unused_text_expires() {
        let mut entries = Entries::default();
        entries.put(key("old"), files(), 1, Duration::ZERO);
        entries.put(key("used"), files(), 1, Duration::ZERO);
        assert!(entries.get(&key("used"), IDLE).is_some());
        entries.expire(IDLE + Duration::from_secs(1));
        assert!(entries.get(&key("old"), IDLE).is_none());
        assert!(entries.get(&key("used"), IDLE).is_some());
        assert_eq!(entries.bytes, 1);
    }
}
