//! Circles in graphs.

/// The groups of nodes that reach each other, by Tarjan's algorithm without recursion, in linear time.
///
/// `edges[i]` are the successors of node `i`. Single nodes count only with an edge to themselves. Nodes of a group, and
/// groups by their first node, are in ascending order.
pub(crate) fn circles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut index = vec![NEW; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let (mut stack, mut next, mut found) = (Vec::new(), 0, Vec::new());
    for root in 0..edges.len() {
        if index[root] != NEW {
            continue;
        }
        let mut visits = vec![(root, 0)];
        while let Some((node, edge)) = visits.pop() {
            if edge == 0 {
                index[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&other) = edges[node].get(edge) {
                visits.push((node, edge + 1));
                if index[other] == NEW {
                    visits.push((other, 0));
                } else if on_stack[other] {
                    low[node] = low[node].min(index[other]);
                }
                continue;
            }
            if low[node] == index[node] {
                let mut group = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    group.push(member);
                    if member == node {
                        break;
                    }
                }
                if group.len() > 1 || edges[node].contains(&node) {
                    group.sort_unstable();
                    found.push(group);
                }
            }
            if let Some((parent, _)) = visits.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn finds_groups_and_loops() {
        let edges = vec![vec![1], vec![2], vec![0, 3], vec![3], vec![0], vec![]];
        assert_eq!(circles(&edges), vec![vec![0, 1, 2], vec![3]]);
        assert!(circles(&[vec![1], vec![]]).is_empty());
    }

    #[test]
    fn long_chains_do_not_overflow_the_stack() {
        let mut edges: Vec<Vec<usize>> = (1..200_000).map(|next| vec![next]).collect();
        edges.push(vec![0]);
        assert_eq!(circles(&edges)[0].len(), 200_000);
    }
}
