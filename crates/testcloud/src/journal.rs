//! What was asked of the cloud, so that a test can prove that nothing was done twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use uuid::Uuid;

use crate::request::Service;

/// The oldest entries are forgotten beyond this many.
const KEPT: usize = 500_000;

/// One served request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedCall {
    /// The service asked.
    pub service: Service,
    /// The HTTP method.
    pub method: String,
    /// The address below the version, without the query: `/servers/5f…`.
    pub path: String,
    /// The status of the reply (also when the reply was lost).
    pub status: u16,
    /// Whether a fault dropped the reply.
    pub lost: bool,
}

impl RecordedCall {
    /// The call without ids, for counting: `POST compute /servers/{id}/action`.
    pub fn call(&self) -> String {
        let path = self.path.split('/').skip(1).fold(String::new(), |path, segment| {
            let id = segment.len() >= 32 && Uuid::try_parse(segment).is_ok();
            path + "/" + if id { "{id}" } else { segment }
        });
        format!("{} {} {path}", self.method, self.service.prefix())
    }
}

/// The requests served, oldest first.
#[derive(Debug, Default)]
pub struct Journal(Mutex<VecDeque<RecordedCall>>);

impl Journal {
    pub(crate) fn record(&self, entry: RecordedCall) {
        let mut entries = self.entries();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// A copy of the entries.
    pub fn list(&self) -> Vec<RecordedCall> {
        self.entries().iter().cloned().collect()
    }

    /// How often each [`RecordedCall::call`] was served.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for entry in self.entries().iter() {
            *counts.entry(entry.call()).or_default() += 1;
        }
        counts
    }

    /// How many entries `wanted` matches.
    pub fn count(&self, wanted: impl Fn(&RecordedCall) -> bool) -> usize {
        self.entries().iter().filter(|entry| wanted(entry)).count()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<RecordedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
