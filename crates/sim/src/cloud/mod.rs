//! The cloud: services with collections of objects, which remember who made what.

mod link;
mod object;
mod serve;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) use link::{SABOTAGE, SimClouds};
pub(crate) use object::{Object, Phase};
pub(crate) use serve::{Answer, CloudCall};

/// The objects of all services.
#[derive(Debug, Default)]
pub(crate) struct SimCloud {
    objects: BTreeMap<String, Object>,
    count: u64,
    /// How many objects were made for each resource, by stack and name.
    made: BTreeMap<(String, String), u32>,
    /// When each object, or mark that was looked for, was asked about lately.
    asked: BTreeMap<String, VecDeque<u64>>,
    /// Requests served.
    served: u64,
    /// The trusts that were given and not taken back, by their marks.
    pub(crate) trusts: BTreeSet<String>,
}

/// Requests for one object within [`PACE_WINDOW_MS`] that are still a decent pace.
const PACE_LIMIT: usize = 40;
/// The time in which they are counted.
const PACE_WINDOW_MS: u64 = 20_000;

impl SimCloud {
    /// The live objects at a time, in the order of their ids.
    pub(crate) fn live(&mut self, now_ms: u64) -> impl Iterator<Item = &Object> {
        self.pass_time(now_ms);
        self.objects.values()
    }

    /// An object that is live at a time.
    pub(crate) fn get(&mut self, id: &str, now_ms: u64) -> Option<&Object> {
        self.pass_time(now_ms);
        self.objects.get(id)
    }

    /// How many requests were served.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// What builds and deletes come to by and by.
    fn pass_time(&mut self, now_ms: u64) {
        self.objects.retain(|_, object| object.pass_time(now_ms));
    }

    /// Counts a request for something; false if there were too many lately.
    fn paced(&mut self, what: &str, now_ms: u64) -> bool {
        let asked = self.asked.entry(what.to_owned()).or_default();
        while asked.front().is_some_and(|at| at + PACE_WINDOW_MS <= now_ms) {
            asked.pop_front();
        }
        asked.push_back(now_ms);
        asked.len() <= PACE_LIMIT
    }
}
