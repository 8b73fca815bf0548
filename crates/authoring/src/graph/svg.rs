//! Self-contained SVG.

use std::fmt::Write as _;

use super::Graph;
use super::layout::{HEIGHT, Layout};

const STYLE: &str = "text{font:12px sans-serif;fill:#1b1f24}.type{font-size:10px;fill:#656d76}\
    .node{fill:#f6f8fa;stroke:#8c959f}.edge{fill:none;stroke:#8c959f}";

pub(super) fn draw(graph: &Graph) -> String {
    let layout = Layout::of(graph);
    let (width, height) = layout.size;
    // Writing to a string cannot fail.
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>{STYLE}</style>\n\
         <defs><marker id=\"to\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#8c959f\"/></marker></defs>\n"
    );
    let place = |index: usize| layout.places.get(index).copied().unwrap_or_default();
    for (earlier, later) in &graph.edges {
        let ((x, y), (to_x, to_y)) = (place(*earlier), place(*later));
        let (x, y, to_y) = (x + layout.width, y + HEIGHT / 2, to_y + HEIGHT / 2);
        let middle = x.midpoint(to_x);
        _ = writeln!(
            out,
            "<path class=\"edge\" marker-end=\"url(#to)\" d=\"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}\"/>"
        );
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        let (x, y) = place(index);
        let (name, kind) = (escaped(&node.name), escaped(&node.resource_type));
        let middle = x + layout.width / 2;
        _ = writeln!(
            out,
            "<g><title>{name}: {kind}</title><rect class=\"node\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{HEIGHT}\" \
             rx=\"6\"/><text text-anchor=\"middle\" x=\"{middle}\" y=\"{}\">{name}</text><text class=\"type\" \
             text-anchor=\"middle\" x=\"{middle}\" y=\"{}\">{kind}</text></g>",
            layout.width,
            y + 19,
            y + 34
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Escapes a string for XML.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML does not allow other control characters.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
