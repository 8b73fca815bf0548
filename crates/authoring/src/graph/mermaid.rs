//! Mermaid output.

use std::fmt::Write as _;

use super::Graph;
use super::svg::escaped;

pub(super) fn draw(graph: &Graph) -> String {
    let mut out = "flowchart LR\n".to_owned();
    // Writing to a text does not fail. Names may be words of Mermaid's, so nodes go by numbers.
    for (index, node) in graph.nodes.iter().enumerate() {
        let (name, kind) = (escaped(&node.name), escaped(&node.resource_type));
        _ = writeln!(out, "  n{index}[\"{name}<br/><small>{kind}</small>\"]");
    }
    for (earlier, later) in &graph.edges {
        _ = writeln!(out, "  n{earlier} --> n{later}");
    }
    out
}
