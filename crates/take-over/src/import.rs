//! Imports stacks of Heat into Kiln's tables. Until their project is switched they belong to Heat.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use kiln_store::{Error, SqlStore, Store as _, TakeOver, TakeOverState, TakenSoftware, TakenTree};

use crate::Finding;
use crate::convert::{Converted, Converter};
use crate::finding::reasons;
use crate::heat::{HeatDatabase, HeatSoftware, ReadTree};
use crate::trees::{Selection, Tree, groups, read, trees};

/// An import: from a database of Heat into a store.
pub struct Import<'a> {
    /// The database of Heat.
    pub heat: &'a HeatDatabase,
    /// Its conversion.
    pub converter: &'a Converter,
    /// Kiln's tables.
    pub store: &'a SqlStore,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// The result for one tree.
#[derive(Debug)]
pub struct Imported {
    /// The tree.
    pub tree: Tree,
    /// What became of it.
    pub outcome: Outcome,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// What became of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was imported, or imported again.
    Imported,
    /// It is in Heat as it was when it was imported.
    Unchanged,
    /// Something stands in its way.
    Refused,
    /// It belongs to Kiln already, or goes back to Heat.
    Switched,
    /// It is deleted in Heat, and its import was removed.
    Gone,
}

impl Outcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Imported => "imported",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Switched => "switched",
            Self::Gone => "gone",
        }
    }
}

impl Import<'_> {
    /// Imports the selected trees, each in one transaction. What has not changed in Heat since an earlier import is left as it
    /// is, so that an import that was interrupted goes on. `seen` gets each result with the number of trees behind and of all.
    ///
    /// # Errors
    /// Errors of the databases; what was imported before stays.
    pub async fn run(&self, only: &Selection, mut seen: impl FnMut(Imported, usize, usize)) -> Result<(), Error> {
        let (found, _) = trees(self.heat, only).await?;
        let records = self.store.take_overs(only.project.as_deref()).await?;
        let known: HashMap<String, &TakeOver> =
            records.iter().map(|record| (record.root.to_string(), record)).collect();
        let mut done = 0;
        for group in groups(&found) {
            let read = read(self.heat, group).await?;
            for (tree, read) in group.iter().zip(read) {
                let imported = self.one(tree, read, known.get(&tree.root).copied()).await?;
                done += 1;
                seen(imported, done, found.len());
            }
        }
        if only.stack.is_none() {
            self.remove_gone(&records, &found, &mut seen).await?;
        }
        let projects: BTreeSet<&str> = found.iter().map(|tree| tree.project.as_str()).collect();
        for project in projects {
            self.software(project, &records).await?;
        }
        Ok(())
    }

    async fn one(&self, tree: &Tree, read: ReadTree, known: Option<&TakeOver>) -> Result<Imported, Error> {
        let done = |outcome, findings| Ok(Imported { tree: tree.clone(), outcome, findings });
        if known.is_some_and(|known| known.state.is_newer_in_kiln()) {
            return done(Outcome::Switched, Vec::new());
        }
        let ReadTree { digest, tree: read } = read;
        if known.is_some_and(|known| known.state == TakeOverState::Imported && known.digest == digest) {
            return done(Outcome::Unchanged, Vec::new());
        }
        let now = self.store.now().await?;
        let converted = match &read {
            Ok(read) => self.converter.convert(tree, read, now),
            Err(damaged) => Converted::refused(damaged.finding()),
        };
        let (outcome, taken) = match converted.tree {
            Some(taken) => (Outcome::Imported, Some(taken)),
            None => (Outcome::Refused, refused(tree, digest, &converted.findings, now)),
        };
        match taken {
            Some(taken) if !self.dry_run => match self.store.take_tree(&taken).await {
                Err(Error::Changed(_)) => done(Outcome::Switched, converted.findings),
                stored => stored.and(done(outcome, converted.findings)),
            },
            _ => done(outcome, converted.findings),
        }
    }

    /// Removes the imports of stacks that do not live in Heat any more.
    async fn remove_gone(
        &self,
        records: &[TakeOver],
        found: &[Tree],
        seen: &mut impl FnMut(Imported, usize, usize),
    ) -> Result<(), Error> {
        let live: BTreeSet<&str> = found.iter().map(|tree| tree.root.as_str()).collect();
        for record in records.iter().filter(|record| !record.state.is_newer_in_kiln()) {
            let root = record.root.to_string();
            if live.contains(root.as_str()) {
                continue;
            }
            if !self.dry_run {
                self.store.drop_take_over(record.root).await?;
            }
            let (name, project) = (record.name.clone(), record.project.clone());
            let tree = Tree { root, name, project, ids: Vec::new(), namesakes: 0 };
            seen(Imported { tree, outcome: Outcome::Gone, findings: Vec::new() }, found.len(), found.len());
        }
        Ok(())
    }

    async fn software(&self, project: &str, records: &[TakeOver]) -> Result<(), Error> {
        let is_switched = |record: &TakeOver| record.project == project && record.state.is_newer_in_kiln();
        if self.dry_run || records.iter().any(is_switched) {
            return Ok(());
        }
        let (_, software) = self.software_in_heat(project).await?;
        self.store.take_software(project, &software).await
    }

    /// The software configs and deployments that Heat has of a project, and the same as Kiln stores them.
    pub(crate) async fn software_in_heat(&self, project: &str) -> Result<(HeatSoftware, TakenSoftware), Error> {
        let read = self.heat.software(project).await?;
        let software = read.map_err(|damaged| Error::Damaged(damaged.into()))?;
        let taken = self.converter.software(&software);
        Ok((software, taken))
    }
}

/// The record of a tree that was not imported.
fn refused(tree: &Tree, digest: String, findings: &[Finding], now: Timestamp) -> Option<TakenTree> {
    let record = TakeOver {
        root: tree.root.parse().ok()?,
        project: tree.project.clone(),
        name: tree.name.clone(),
        digest,
        state: TakeOverState::Refused,
        reason: reasons(findings),
        time: now,
    };
    Some(TakenTree::of(record))
}
