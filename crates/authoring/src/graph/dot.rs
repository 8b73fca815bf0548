//! Graphviz output.

use std::fmt::Write as _;

use super::Graph;

pub(super) fn draw(graph: &Graph) -> String {
    let mut out =
        "digraph stack {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n".to_owned();
    let name = |index: usize| graph.nodes.get(index).map_or("", |node| node.name.as_str());
    // Writing to a string cannot fail.
    for node in &graph.nodes {
        let (name, kind) = (quoted(&node.name), quoted(&node.resource_type));
        _ = writeln!(out, "  \"{name}\" [label=\"{name}\\n{kind}\"];");
    }
    for (earlier, later) in &graph.edges {
        _ = writeln!(out, "  \"{}\" -> \"{}\";", quoted(name(*earlier)), quoted(name(*later)));
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}
