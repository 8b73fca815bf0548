//! The locks that services of the cloud have for their objects: a guard may set them too.

use futures::{StreamExt as _, TryStreamExt as _};
use kiln_resource::{FailureKind, Resource};
use kiln_stack::load;
use kiln_stack::loaded_stack::LoadedStack;
use kiln_store::{Guard, Stack};

use crate::guard::inside;
use crate::{Door, Error, Guarded, Service};

/// Objects that are locked at the same time.
const AT_ONCE: usize = 8;

impl Service {
    /// Locks the objects of a guard that the cloud can lock. Returns the paths of their resources. After an error it is
    /// repeated by adding the guard again.
    ///
    /// # Errors
    /// [`Error::Lock`]
    pub(crate) async fn lock_objects(&self, guard: &Guard) -> Result<Vec<String>, Error> {
        self.set_locks(guard, true, |path| guard.terms.rule.locks(path)).await
    }

    /// Unlocks the objects of a guard that no other guard locks. Objects that are gone, and those that an administrator has
    /// locked, are left alone.
    ///
    /// # Errors
    /// [`Error::Lock`]
    pub(crate) async fn unlock_objects(&self, guard: &Guard) -> Result<(), Error> {
        if !guard.terms.rule.has_lock() {
            return Ok(());
        }
        let mut others = self.backends.store.guards(&guard.project).await?;
        others.retain(|other| other.id != guard.id && other.stack == guard.stack);
        let is_meant =
            |path: &str| guard.terms.rule.locks(path) && !others.iter().any(|other| other.terms.rule.locks(path));
        self.set_locks(guard, false, is_meant).await.map(drop)
    }

    async fn set_locks(
        &self,
        guard: &Guard,
        locked: bool,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, Error> {
        let Some(root) = guard.stack.filter(|_| guard.terms.rule.has_lock()) else { return Ok(Vec::new()) };
        let Some(root) = self.backends.store.stack(root).await? else { return Ok(Vec::new()) };
        let tree = self.tree_of(&root).await?;
        let places = load::places(&tree);
        let mut done = Vec::new();
        for id in tree.iter().map(|stack| stack.id) {
            let Some(view) = LoadedStack::load(&self.backends, id).await? else { continue };
            let place = places.get(&id).map(String::as_str).unwrap_or_default();
            let rows: Vec<(String, &Resource)> = view.resources().map(|row| (inside(place, &row.name), row)).collect();
            let calls = rows.into_iter().filter(|(path, _)| is_meant(path)).map(async |(path, row)| {
                match view.lock(row, locked).await {
                    Ok(has_lock) => Ok(has_lock.then_some(path)),
                    Err(failure) if failure.is_not_found() => Ok(None),
                    Err(failure) if !locked && failure.kind == FailureKind::Refused => {
                        tracing::warn!(resource = path, %failure, "an object stays locked");
                        Ok(None)
                    }
                    Err(failure) => Err((path, failure.to_string())),
                }
            });
            let calls: Vec<_> = calls.collect();
            let outcome: Result<Vec<Option<String>>, _> =
                futures::stream::iter(calls).buffered(AT_ONCE).try_collect().await;
            match outcome {
                Ok(paths) => done.extend(paths.into_iter().flatten()),
                Err((path, why)) => return Err(self.lock_error(&root, guard, locked, (path, why)).await?),
            }
        }
        Ok(done)
    }

    async fn lock_error(
        &self,
        root: &Stack,
        guard: &Guard,
        locked: bool,
        (path, why): (String, String),
    ) -> Result<Error, Error> {
        let why = Guarded::new(why, self.hidden_values_of_tree(root).await?).into_shown(Door::Error);
        let (what, hint) = if locked {
            ("locked", format!("The guard {} was added: repeat the request to lock the rest", guard.id))
        } else {
            ("unlocked", format!("The guard {} was not lifted: repeat the request", guard.id))
        };
        Ok(Error::Lock { path, stack: root.name.clone(), what, why, hint })
    }
}
