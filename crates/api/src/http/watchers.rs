//! Limits the requests that wait for events, in all and for a project: each keeps its connection for a long time, and
//! some connections must be left for other requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_web::ConnectionLimits;

/// The requests that wait for events, by project.
pub(crate) struct Watchers {
    most: usize,
    waiting: Mutex<HashMap<String, usize>>,
}

/// The place of a request that waits for events, released on drop.
pub(crate) struct Watcher {
    all: Arc<Watchers>,
    project: String,
}

/// Why a request may not wait for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are too many of all projects.
    Service,
    /// There are too many of its project.
    Project,
}

impl Watchers {
    pub(crate) fn new(limits: &ConnectionLimits) -> Self {
        Self { most: limits.most_streams(), waiting: Mutex::default() }
    }

    /// A place for a request of this project, which may have so many; `None`: as many as there are.
    pub(crate) fn admit(self: &Arc<Self>, project: &str, most: Option<u64>) -> Result<Watcher, Full> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.values().sum::<usize>() >= self.most {
            return Err(Full::Service);
        }
        let count = waiting.get(project).copied().unwrap_or_default();
        if most.is_some_and(|most| count as u64 >= most) {
            return Err(Full::Project);
        }
        *waiting.entry(project.to_owned()).or_default() += 1;
        Ok(Watcher { all: Arc::clone(self), project: project.to_owned() })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = self.all.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = waiting.get_mut(&self.project) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.project);
            }
        }
    }
}
