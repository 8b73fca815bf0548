//! Records of all requests, for tests that check that nothing is done twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use uuid::Uuid;

use crate::request::Service;

/// Maximum number of entries; the oldest are removed.
const KEPT: usize = 500_000;

/// A recorded request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedCall {
    /// The service.
    pub service: Service,
    /// The HTTP method.
    pub method: String,
    /// The path without version and query: `/servers/5f…`.
    pub path: String,
    /// The status of the response (even if the response was lost).
    pub status: u16,
    /// Whether a fault dropped the response.
    pub lost: bool,
    /// The header `traceparent` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl RecordedCall {
    /// The call with IDs replaced, for counting: `POST compute /servers/{id}/action`.
    pub fn call(&self) -> String {
        let path = self.path.split('/').skip(1).fold(String::new(), |path, segment| {
            let id = segment.len() >= 32 && Uuid::try_parse(segment).is_ok();
            path + "/" + if id { "{id}" } else { segment }
        });
        format!("{} {} {path}", self.method, self.service.prefix())
    }
}

/// The recorded requests, oldest first.
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

    /// The number of requests by [`RecordedCall::call`].
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for entry in self.entries().iter() {
            *counts.entry(entry.call()).or_default() += 1;
        }
        counts
    }

    /// The requests that change something, other than those for tokens and trusts, by [`RecordedCall::call`].
    pub fn writes(&self) -> Vec<String> {
        let calls = self.list();
        let calls = calls.iter().map(RecordedCall::call);
        calls
            .filter(|call| !call.starts_with("GET ") && !call.contains("/auth/") && !call.contains("/OS-TRUST/"))
            .collect()
    }

    /// How many entries `wanted` matches.
    pub fn count(&self, wanted: impl Fn(&RecordedCall) -> bool) -> usize {
        self.entries().iter().filter(|entry| wanted(entry)).count()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<RecordedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
