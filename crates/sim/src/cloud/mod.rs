//! The cloud: services with collections of objects, with records for the checks.

mod link;
mod object;
mod serve;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) use link::{CLIENT_TIMEOUT, SABOTAGE, SimClouds};
pub(crate) use object::{Object, Phase};
pub(crate) use serve::{Answer, CloudCall};

/// The objects of all services.
#[derive(Debug, Default)]
pub(crate) struct SimCloud {
    objects: BTreeMap<String, Object>,
    count: u64,
    /// Number of objects that were created for each resource, by stack and name.
    made: BTreeMap<(String, String), u32>,
    /// Times of recent requests for each object or searched mark.
    asked: BTreeMap<String, VecDeque<u64>>,
    /// Number of requests.
    served: u64,
    /// The existing trusts, by their marks.
    pub(crate) trusts: BTreeSet<String>,
}

/// Maximum number of requests for one object within [`PACE_WINDOW_MS`].
const PACE_LIMIT: usize = 40;
/// The window in which they are counted.
const PACE_WINDOW_MS: u64 = 20_000;

impl SimCloud {
    /// The live objects at a time, sorted by ID.
    pub(crate) fn live(&mut self, now_ms: u64) -> impl Iterator<Item = &Object> {
        self.pass_time(now_ms);
        self.objects.values()
    }

    /// An object that is live at a time.
    pub(crate) fn get(&mut self, id: &str, now_ms: u64) -> Option<&Object> {
        self.pass_time(now_ms);
        self.objects.get(id)
    }

    /// Number of requests.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// Updates builds and deletes that are in progress.
    fn pass_time(&mut self, now_ms: u64) {
        self.objects.retain(|_, object| object.pass_time(now_ms));
    }

    /// Counts a request; returns false if there were too many recently.
    fn paced(&mut self, what: &str, now_ms: u64) -> bool {
        let asked = self.asked.entry(what.to_owned()).or_default();
        while asked.front().is_some_and(|at| at + PACE_WINDOW_MS <= now_ms) {
            asked.pop_front();
        }
        asked.push_back(now_ms);
        asked.len() <= PACE_LIMIT
    }
}
