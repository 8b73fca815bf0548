//! Orphans.

use async_trait::async_trait;

use super::MemoryStore;
use super::state::micro;
use crate::{Error, Orphan, OrphanQuery, OrphanStore, ResourceId};

#[async_trait]
impl OrphanStore for MemoryStore {
    async fn orphans(&self, query: &OrphanQuery) -> Result<Vec<Orphan>, Error> {
        let (state, _) = self.open();
        let after = match query.marker {
            Some(marker) => match state.orphans.get(&marker) {
                Some(orphan) => Some((orphan.time, orphan.id)),
                None => return Err(Error::NotFound(format!("orphan {marker}"))),
            },
            None => None,
        };
        let is_asked = |orphan: &&Orphan| {
            query.project.as_ref().is_none_or(|project| *project == orphan.project)
                && query.stack.is_none_or(|stack| stack == orphan.stack)
                && after.is_none_or(|after| (orphan.time, orphan.id) < after)
        };
        let mut orphans: Vec<Orphan> = state.orphans.values().filter(is_asked).cloned().collect();
        orphans.sort_by_key(|orphan| std::cmp::Reverse((orphan.time, orphan.id)));
        orphans.truncate(query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
        Ok(orphans)
    }

    async fn delete_orphan(&self, project: &str, id: ResourceId) -> Result<bool, Error> {
        let (mut state, _) = self.open();
        let is_own = state.orphans.get(&id).is_some_and(|orphan| orphan.project == project);
        Ok(is_own && state.orphans.remove(&id).is_some())
    }
}

/// The entry with times as a database stores them.
pub(super) fn stored(orphan: &Orphan) -> Orphan {
    Orphan { time: micro(orphan.time), ..orphan.clone() }
}
