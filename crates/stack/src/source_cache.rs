//! Parsed templates, environments and files. Stored texts never change (their key is a digest), and clients that follow a
//! stack ask for the same ones many times a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_plan::Sources;
use kiln_store::{Desired, DesiredText, Digest, Error, Store};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::Value;

use crate::load;
use crate::lru::Lru;

/// Bytes of text whose parsed form is kept: about five to ten times as much memory.
const CAPACITY: usize = 16 << 20;
/// How long an unused text is kept. An engine drops it at its next poll, an API without an engine when it parses another.
const IDLE: Duration = Duration::from_secs(30);

/// The parsed sources of a stack.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The sources.
    pub sources: Sources,
    /// Whether the template may read the resource that it belongs to (`resource_facade`).
    pub reads_facade: bool,
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

/// Keeps what was parsed last, up to a size.
pub struct SourceCache(Mutex<Lru<Key, Part>>);

impl Default for SourceCache {
    fn default() -> Self {
        Self(Mutex::new(Lru::new(CAPACITY, IDLE)))
    }
}

impl SourceCache {
    /// The sources of a desired or previous state, from the cache or the store. `now` is monotonic.
    ///
    /// # Errors
    /// Errors of the store; [`Error::Damaged`] if the stored texts are invalid.
    pub async fn sources(&self, store: &dyn Store, desired: &Desired, now: Duration) -> Result<Parsed, Error> {
        if let Some(parsed) = self.get(desired, now) {
            return Ok(parsed);
        }
        let texts = store.desired(desired).await?;
        Ok(self.keep(desired, &texts, &load::sources(&texts)?, now))
    }

    /// Keeps what the texts of a desired state contain.
    pub fn keep(&self, desired: &Desired, texts: &DesiredText, sources: &Sources, now: Duration) -> Parsed {
        let reads_facade = texts.template.contains("resource_facade") || texts.template.contains("Fn::ResourceFacade");
        let parsed = Parsed { sources: sources.clone(), reads_facade };
        self.put(desired, texts, &parsed, now);
        parsed
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size()
    }

    /// Drops what has not been used for a while.
    pub fn expire(&self, now: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).expire(now);
    }
}
