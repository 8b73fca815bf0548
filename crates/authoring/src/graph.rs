//! Graphs of a stack: its resources and dependencies.

mod dot;
mod layout;
mod mermaid;
mod svg;

use kiln_plan::Blueprint;

/// The resources of a stack and their dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The resources, in the order of the template.
    pub nodes: Vec<Node>,
    /// Pairs of indexes in `nodes`: the first is created before the second.
    pub edges: Vec<(usize, usize)>,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its type as written in the template.
    pub resource_type: String,
}

impl Graph {
    /// The graph of a stack, without resources whose condition is false.
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

    /// The graph in Graphviz's language.
    pub fn dot(&self) -> String {
        dot::draw(self)
    }

    /// The graph as a Mermaid flowchart.
    pub fn mermaid(&self) -> String {
        mermaid::draw(self)
    }

    /// The graph as an image: layers from left to right, dependencies on the left.
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
    fn special_characters_are_escaped() {
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
    fn dependencies_are_on_the_left() {
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
    fn an_empty_graph_has_an_image() {
        assert!(Graph::default().svg().starts_with("<svg"));
    }
}
