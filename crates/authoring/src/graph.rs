//! Graphs of a stack: its resources and dependencies.

mod dot;
mod layout;
mod mermaid;
mod svg;

use kiln_plan::Blueprint;

/// The resources of a stack and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The resources, in the template's order.
    pub nodes: Vec<Node>,
    /// Pairs of indices into `nodes`: the first is made before the second.
    pub edges: Vec<(usize, usize)>,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its type as the template has it.
    pub resource_type: String,
}

impl Graph {
    /// The graph of a stack; resources whose condition is false are not in it.
    pub fn of(blueprint: &Blueprint) -> Self {
        let definitions = blueprint.definitions();
        let node = |definition: &kiln_template::Definition| Node {
            name: definition.name.clone(),
            resource_type: definition.resource_type.clone(),
        };
        let edges = definitions.keys().enumerate().flat_map(|(later, name)| {
            let earlier = blueprint.requires(name).iter().filter_map(|needed| definitions.get_index_of(needed));
            let mut edges: Vec<_> = earlier.map(|earlier| (earlier, later)).collect();
            edges.sort_unstable();
            edges
        });
        Self { nodes: definitions.values().map(node).collect(), edges: edges.collect() }
    }

    /// In Graphviz's language.
    pub fn dot(&self) -> String {
        dot::draw(self)
    }

    /// As a Mermaid flowchart.
    pub fn mermaid(&self) -> String {
        mermaid::draw(self)
    }

    /// As a picture: layers from left to right, what is needed first on the left.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph {
        let node = |name: &str| Node { name: name.to_owned(), resource_type: "OS::Heat::\"<None>".to_owned() };
        Graph { nodes: ["net", "sub", "port", "x"].map(node).to_vec(), edges: vec![(0, 1), (0, 2), (1, 2)] }
    }

    #[test]
    fn texts_quote_what_must_be_quoted() {
        let dot = graph().dot();
        assert!(dot.contains("\"net\" [label=\"net\\nOS::Heat::\\\"<None>\"];"), "{dot}");
        assert!(dot.contains("\"sub\" -> \"port\";"), "{dot}");
        let mermaid = graph().mermaid();
        assert!(mermaid.contains("n0[\"net<br/><small>OS::Heat::&quot;&lt;None&gt;</small>\"]"), "{mermaid}");
        assert!(mermaid.contains("n1 --> n2"), "{mermaid}");
        let svg = graph().svg();
        assert!(svg.contains("OS::Heat::&quot;&lt;None&gt;"), "{svg}");
        assert_eq!(svg.matches("<path class=\"edge\"").count(), 3);
        assert_eq!(svg.matches("<rect class=\"node\"").count(), 4);
    }

    #[test]
    fn what_is_needed_stands_to_the_left() {
        let graph = graph();
        let layout = layout::Layout::of(&graph);
        for (earlier, later) in &graph.edges {
            assert!(layout.places[*earlier].0 + layout.width <= layout.places[*later].0);
        }
        let apart = |a: (u32, u32), b: (u32, u32)| a.0 != b.0 || a.1.abs_diff(b.1) >= layout::HEIGHT;
        for (i, a) in layout.places.iter().enumerate() {
            assert!(layout.places.iter().skip(i + 1).all(|b| apart(*a, *b)), "{:?}", layout.places);
        }
    }

    #[test]
    fn nothing_is_a_picture_too() {
        assert!(Graph::default().svg().starts_with("<svg"));
    }
}
