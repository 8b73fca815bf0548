//! A dependency graph. Linear in nodes and edges.

/// Index of a node.
pub(crate) type Index = usize;

/// A graph of nodes that are completed one by one, each after its dependencies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    followers: Vec<Vec<Index>>,
    waits_for: Vec<usize>,
    open: usize,
}

impl Graph {
    /// Adds a node without dependencies.
    pub(crate) fn add(&mut self) -> Index {
        self.followers.push(Vec::new());
        self.waits_for.push(0);
        self.open += 1;
        self.followers.len() - 1
    }

    /// Makes `later` depend on `earlier`.
    pub(crate) fn order(&mut self, earlier: Index, later: Index) {
        if let (Some(followers), Some(count)) = (self.followers.get_mut(earlier), self.waits_for.get_mut(later)) {
            followers.push(later);
            *count += 1;
        }
    }

    /// The nodes without pending dependencies, in the order of their addition.
    pub(crate) fn ready(&self) -> Vec<Index> {
        self.waits_for.iter().enumerate().filter(|(_, count)| **count == 0).map(|(i, _)| i).collect()
    }

    /// Marks a node as done; returns the nodes that depended only on it. Called once per node.
    pub(crate) fn done(&mut self, index: Index) -> Vec<Index> {
        self.open = self.open.saturating_sub(1);
        let followers = self.followers.get_mut(index).map(std::mem::take).unwrap_or_default();
        followers
            .into_iter()
            .filter(|later| {
                self.waits_for.get_mut(*later).is_some_and(|count| {
                    *count -= 1;
                    *count == 0
                })
            })
            .collect()
    }

    /// Whether all nodes are done.
    pub(crate) fn is_done(&self) -> bool {
        self.open == 0
    }

    /// The nodes of a cycle, if there is one; none of them is ever ready.
    pub(crate) fn circle(&self) -> Vec<Index> {
        let mut rest = self.clone();
        let mut queue = rest.ready();
        while let Some(index) = queue.pop() {
            queue.extend(rest.done(index));
        }
        // The rest consists of cycles and their dependants: remove nodes without remaining dependants.
        let left: Vec<bool> = rest.waits_for.iter().map(|count| *count > 0).collect();
        let mut leads = vec![Vec::new(); left.len()];
        let mut feeds = vec![0_usize; left.len()];
        for (earlier, followers) in rest.followers.iter().enumerate().filter(|(i, _)| left[*i]) {
            for later in followers.iter().filter(|later| left[**later]) {
                leads[*later].push(earlier);
                feeds[earlier] += 1;
            }
        }
        let mut circle = left.clone();
        let mut queue: Vec<Index> = (0..left.len()).filter(|i| left[*i] && feeds[*i] == 0).collect();
        while let Some(index) = queue.pop() {
            circle[index] = false;
            for earlier in &leads[index] {
                feeds[*earlier] -= 1;
                if feeds[*earlier] == 0 {
                    queue.push(*earlier);
                }
            }
        }
        (0..left.len()).filter(|i| circle[*i]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_nodes_in_order() {
        let mut graph = Graph::default();
        let [a, b, c] = [graph.add(), graph.add(), graph.add()];
        graph.order(a, c);
        graph.order(b, c);
        graph.order(a, b);
        assert_eq!(graph.ready(), [a]);
        assert_eq!(graph.done(a), [b]);
        assert_eq!(graph.done(b), [c]);
        assert!(graph.done(c).is_empty() && graph.is_done());
    }

    #[test]
    fn finds_the_circle_only() {
        let mut graph = Graph::default();
        let nodes: Vec<_> = (0..5).map(|_| graph.add()).collect();
        for (earlier, later) in [(0, 1), (1, 2), (2, 1), (2, 3), (3, 4)] {
            graph.order(nodes[earlier], nodes[later]);
        }
        assert_eq!(graph.circle(), [1, 2]);
    }
}
