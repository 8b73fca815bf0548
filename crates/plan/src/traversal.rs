//! The order of a request's work on the resources.
//!
//! Update nodes follow the order of the template. There is a cleanup node for every existing row: they follow the
//! reverse of the stored order, each after the update of its own name (docs/heat-behaviour.md §2). What depends on nothing is
//! deleted in the reverse order of its creation.

use std::collections::BTreeMap;

use kiln_resource::ResourceId;

use crate::event::{Goal, Target};
use crate::graph::{Graph, Index};
use crate::model::table::Rows;

/// A node of a traversal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Bring a resource of the template to the desired state.
    Update(String),
    /// Delete a row that is no longer desired.
    Cleanup(ResourceId),
    /// Check, suspend or resume a row.
    Act(ResourceId),
}

/// The nodes of a request and their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traversal {
    pub(crate) nodes: Vec<Node>,
    pub(crate) graph: Graph,
    updates: BTreeMap<String, Index>,
    cleanups: BTreeMap<ResourceId, Index>,
}

impl Traversal {
    pub(crate) fn new(goal: Goal, targets: &[Target], rows: &Rows, current: &BTreeMap<String, ResourceId>) -> Self {
        let mut this = Self::default();
        match goal {
            Goal::Converge => this.converge(targets, rows),
            Goal::Check | Goal::Resume | Goal::Suspend | Goal::Snapshot => this.act(goal, rows, current),
        }
        this
    }

    /// The update node of a name.
    pub(crate) fn update(&self, name: &str) -> Option<Index> {
        self.updates.get(name).copied()
    }

    /// The update node of a row, if the row is the current one of its name.
    pub(crate) fn update_of(
        &self,
        name: &str,
        row: ResourceId,
        current: &BTreeMap<String, ResourceId>,
    ) -> Option<Index> {
        if current.get(name) == Some(&row) { self.updates.get(name).copied() } else { None }
    }

    /// Adds the cleanup of a row that this request created and has replaced, after the update of its name.
    pub(crate) fn clean_up_later(&mut self, name: &str, row: ResourceId) {
        let Some(update) = self.updates.get(name).copied() else { return };
        if !self.cleanups.contains_key(&row) {
            let cleanup = self.add(Node::Cleanup(row));
            self.cleanups.insert(row, cleanup);
            self.graph.order(update, cleanup);
        }
    }

    fn add(&mut self, node: Node) -> Index {
        self.nodes.push(node);
        self.graph.add()
    }

    fn converge(&mut self, targets: &[Target], rows: &Rows) {
        // Deletes without dependencies come first, as in Heat: they may release what a create needs.
        let newest = rows.newest_first();
        let cleanups: BTreeMap<ResourceId, Index> =
            newest.iter().map(|row| (row.id, self.add(Node::Cleanup(row.id)))).collect();
        let updates: BTreeMap<&str, Index> =
            targets.iter().map(|t| (t.name.as_str(), self.add(Node::Update(t.name.clone())))).collect();
        self.updates = updates.iter().map(|(name, index)| ((*name).to_owned(), *index)).collect();
        for target in targets {
            for required in &target.requires {
                if let (Some(earlier), Some(later)) =
                    (updates.get(required.as_str()), updates.get(target.name.as_str()))
                {
                    self.graph.order(*earlier, *later);
                }
            }
        }
        for row in newest {
            let Some(cleanup) = cleanups.get(&row.id) else { continue };
            if let Some(update) = updates.get(row.name.as_str()) {
                self.graph.order(*update, *cleanup);
            }
            for required in &row.requires {
                if let Some(later) = cleanups.get(required) {
                    self.graph.order(*cleanup, *later);
                }
            }
            if let Some(replacement) = row.replaced_by.and_then(|by| cleanups.get(&by)) {
                self.graph.order(*replacement, *cleanup);
            }
        }
        self.cleanups = cleanups;
    }

    fn act(&mut self, goal: Goal, rows: &Rows, current: &BTreeMap<String, ResourceId>) {
        let acts: BTreeMap<ResourceId, Index> = current.values().map(|id| (*id, self.add(Node::Act(*id)))).collect();
        for (id, later) in &acts {
            for required in rows.get(id).into_iter().flat_map(|row| &row.requires) {
                if let Some(earlier) = acts.get(required) {
                    if goal == Goal::Suspend {
                        self.graph.order(*later, *earlier);
                    } else {
                        self.graph.order(*earlier, *later);
                    }
                }
            }
        }
    }
}
