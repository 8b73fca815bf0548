//! What of a stack in Kiln has to be written into Heat's tables, so that Heat can go on with it.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use kiln_stack::clock::Chance;
use kiln_store::{Error, StackId, StackQuery, Store as _, TakeOver, TakeOverState, TakenTree};

use crate::Release;
use crate::convert::Converted;
use crate::export::{Exported, Exporter};
use crate::finding::is_blocked;
use crate::heat::HeatTree;
use crate::import::Import;
use crate::kiln_tree::kiln_tree;
use crate::trees::{Selection, Tree, trees};

/// The way back of the stacks of a Heat.
pub(crate) struct WayBack<'a> {
    import: &'a Import<'a>,
    encrypts: bool,
    release: Release,
    pub(crate) now: Timestamp,
    chance: Chance,
    /// The live trees in Heat by the IDs of their root stacks.
    trees: HashMap<String, Tree>,
}

/// The way back of a stack.
pub(crate) struct Prepared {
    /// The stack in Kiln; `None`: it is deleted.
    pub(crate) kiln: Option<TakenTree>,
    /// What Heat has, as Kiln would store it; `None`: Heat has nothing, or it cannot be read.
    pub(crate) known: Option<TakenTree>,
    /// What Heat has.
    pub(crate) heat: HeatTree,
    /// What Heat should have.
    pub(crate) exported: Exported,
}

impl<'a> WayBack<'a> {
    /// `encrypts`: whether Heat encrypts parameters and properties.
    pub(crate) async fn new(import: &'a Import<'a>, encrypts: bool, only: &Selection) -> Result<Self, Error> {
        let release = import.heat.release().await?;
        let now = import.store.now().await?;
        let (found, _) = trees(import.heat, only).await?;
        let trees = found.into_iter().map(|tree| (tree.root.clone(), tree)).collect();
        Ok(Self { import, encrypts, release, now, chance: Chance::from_os(), trees })
    }

    /// The stacks of a project that would go back: those that were taken over, and those that Kiln has made. None if the project
    /// is Heat's: what Kiln has imported of it is older than what Heat has.
    pub(crate) async fn candidates(&self, project: &str) -> Result<Vec<TakeOver>, Error> {
        let store = self.import.store;
        let mut records = store.take_overs(Some(project)).await?;
        records.retain(|record| record.state.is_newer_in_kiln());
        if records.is_empty() {
            return Ok(records);
        }
        let known: HashSet<StackId> = records.iter().map(|record| record.root).collect();
        let own = StackQuery { project: Some(project.to_owned()), ..StackQuery::default() };
        let made = store.stacks(&own).await?;
        records.extend(made.into_iter().filter(|stack| !known.contains(&stack.id)).map(|stack| TakeOver {
            root: stack.id,
            project: project.to_owned(),
            name: stack.name,
            digest: String::new(),
            state: TakeOverState::Switched,
            reason: String::new(),
            time: self.now,
        }));
        Ok(records)
    }

    fn exporter(&self) -> Exporter<'_> {
        let converter = self.import.converter;
        Exporter {
            types: &converter.types,
            key: &converter.key,
            encrypts: self.encrypts,
            release: self.release,
            now: self.now,
            chance: &self.chance,
        }
    }

    /// The tree of a record in Heat.
    fn tree(&self, record: &TakeOver) -> Option<&Tree> {
        self.trees.get(&record.root.to_string())
    }

    /// Reads both sides of a stack, and converts that of Kiln.
    pub(crate) async fn prepare(&self, record: &TakeOver) -> Result<Prepared, Error> {
        let kiln = kiln_tree(self.import.store, record).await?;
        let (mut heat, mut known, mut findings) = (HeatTree::default(), None, Vec::new());
        if let Some(tree) = self.tree(record) {
            let read = self.import.heat.tree(&tree.root, &tree.ids).await?;
            match read.tree {
                Ok(read) => {
                    let converted = self.import.converter.convert(tree, &read, self.now);
                    known = converted.tree;
                    heat = read;
                }
                Err(damaged) => findings = Converted::refused(damaged.finding()).findings,
            }
        }
        let exported = match &kiln {
            Some(kiln) if findings.is_empty() => self.exporter().export(kiln, &heat, known.as_ref()),
            _ => Exported { tree: None, findings },
        };
        Ok(Prepared { kiln, known, heat, exported })
    }
}

impl Prepared {
    /// Whether something stands in the way.
    pub(crate) fn is_refused(&self) -> bool {
        is_blocked(&self.exported.findings)
    }
}
