//! Mermaid output.

use std::fmt::Write as _;

use super::Graph;
use super::svg::escaped;

pub(super) fn draw(graph: &Graph) -> String {
    let mut out = "flowchart LR\n".to_owned();
    // Writing to a string cannot fail. Nodes are numbered, because names may be keywords of Mermaid.
    for (index, node) in graph.nodes.iter().enumerate() {
        let (name, kind) = (escaped(&node.name), escaped(&node.resource_type));
        _ = writeln!(out, "  n{index}[\"{name}<br/><small>{kind}</small>\"]");
    }
    for (earlier, later) in &graph.edges {
        _ = writeln!(out, "  n{earlier} --> n{later}");
    }
    out
}
