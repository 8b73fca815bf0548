//! Ends a take-over: the tables of Heat go, and with them the way back.

use std::collections::{BTreeMap, HashSet};

use kiln_store::{Error, HeatFence, SqlStore, TakeOverState};

use crate::heat::{HeatDatabase, Release};
use crate::trees::{Selection, trees};

/// The end of a take-over.
#[derive(Debug)]
pub struct Finish<'a> {
    /// Heat.
    pub heat: &'a HeatDatabase,
    /// The fence in its database.
    pub fence: &'a HeatFence,
    /// Kiln.
    pub store: &'a SqlStore,
}

impl Finish<'_> {
    /// The stacks that do not belong to Kiln, by project: their names.
    ///
    /// # Errors
    /// [`Error::Unusable`] if the database is none of a Heat; errors of the databases.
    pub async fn remaining(&self) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let records = self.store.take_overs(None).await?;
        let is_switched = |state: TakeOverState| state == TakeOverState::Switched;
        let switched: HashSet<String> =
            records.iter().filter(|one| is_switched(one.state)).map(|one| one.root.to_string()).collect();
        let mut remaining: BTreeMap<String, Vec<String>> = BTreeMap::new();
        match self.heat.release().await? {
            release if release.is_supported() => {
                let (found, _) = trees(self.heat, &Selection::default()).await?;
                for tree in found.into_iter().filter(|tree| !switched.contains(&tree.root)) {
                    remaining.entry(tree.project).or_default().push(tree.name);
                }
            }
            // Some were dropped before a kill.
            Release::None if self.heat.is_fenced().await? => {}
            release => return Err(Error::Unusable(format!("it has {release}").into())),
        }
        // On their way back, or deleted in Heat since the import.
        for record in records.into_iter().filter(|record| !is_switched(record.state)) {
            let names = remaining.entry(record.project).or_default();
            if !names.contains(&record.name) {
                names.push(record.name);
            }
        }
        Ok(remaining)
    }

    /// Drops the tables of Heat, and forgets which stacks have come from there. After a kill, a second call goes on. Returns the
    /// number of stacks that had come from Heat, without nested ones.
    ///
    /// # Errors
    /// Errors of the databases; [`Error::Changed`] if a stack does not belong to Kiln.
    pub async fn run(&self) -> Result<u64, Error> {
        self.fence.drop_tables().await?;
        let stacks = self.store.finish_take_overs().await?;
        self.fence.remove().await?;
        Ok(stacks)
    }
}
