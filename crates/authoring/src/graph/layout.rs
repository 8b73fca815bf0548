//! Layout of the boxes: layers from left to right, each ordered by its neighbors (Sugiyama's method without the final
//! refinements).

use super::Graph;

/// Height of a box.
pub(super) const HEIGHT: u32 = 44;
/// Distance of boxes in a layer.
const BETWEEN: u32 = 18;
/// Distance of layers, for the edges.
const ALLEY: u32 = 70;
/// Margin of the image.
const MARGIN: u32 = 16;
/// Number of passes that order the layers, from left to right and back.
const SWEEPS: usize = 4;

/// Sizes and positions in pixels.
pub(super) struct Layout {
    /// The upper left corner of each box.
    pub(super) places: Vec<(u32, u32)>,
    /// The width of every box.
    pub(super) width: u32,
    /// The size of the image.
    pub(super) size: (u32, u32),
}

impl Layout {
    pub(super) fn of(graph: &Graph) -> Self {
        let layers = layers(graph);
        let longest =
            graph.nodes.iter().flat_map(|node| [&node.name, &node.resource_type]).map(|text| text.chars().count());
        let width = u32::try_from(longest.max().unwrap_or_default()).unwrap_or(u32::MAX).clamp(8, 60) * 7 + 20;
        let tallest = layers.iter().map(Vec::len).max().unwrap_or_default();
        let height = |boxes: usize| u32::try_from(boxes).unwrap_or(u32::MAX).saturating_mul(HEIGHT + BETWEEN);
        let mut places = vec![(0, 0); graph.nodes.len()];
        let mut left = MARGIN;
        for layer in &layers {
            let mut top = MARGIN.saturating_add((height(tallest) - height(layer.len())) / 2);
            for node in layer {
                if let Some(place) = places.get_mut(*node) {
                    *place = (left, top);
                }
                top = top.saturating_add(HEIGHT + BETWEEN);
            }
            left = left.saturating_add(width + ALLEY);
        }
        let right = if layers.is_empty() { 2 * MARGIN } else { left - ALLEY + MARGIN };
        Self { places, width, size: (right, height(tallest).saturating_add(2 * MARGIN)) }
    }
}

/// The nodes of each layer, from top to bottom.
fn layers(graph: &Graph) -> Vec<Vec<usize>> {
    let depth = depths(graph);
    let mut layers = vec![Vec::new(); depth.iter().max().map_or(0, |deepest| deepest + 1)];
    for (node, depth) in depth.iter().enumerate() {
        if let Some(layer) = layers.get_mut(*depth) {
            layer.push(node);
        }
    }
    let mut rank = vec![0.0; graph.nodes.len()];
    number(&layers, &mut rank);
    let mut left = vec![Vec::new(); graph.nodes.len()];
    let mut right = vec![Vec::new(); graph.nodes.len()];
    for (earlier, later) in &graph.edges {
        if let (Some(left), Some(right)) = (left.get_mut(*later), right.get_mut(*earlier)) {
            left.push(*earlier);
            right.push(*later);
        }
    }
    for sweep in 0..SWEEPS {
        let neighbours = if sweep % 2 == 0 { &left } else { &right };
        for layer in &mut layers {
            let centre = |node: &usize| {
                let ranks = neighbours.get(*node).into_iter().flatten().filter_map(|other| rank.get(*other).copied());
                let (sum, count) = ranks.fold((0.0, 0.0), |(sum, count), rank| (sum + rank, count + 1.0));
                if count > 0.0 { sum / count } else { rank.get(*node).copied().unwrap_or(0.0) }
            };
            let mut centred: Vec<(f64, usize)> = layer.iter().map(|node| (centre(node), *node)).collect();
            centred.sort_by(|a, b| a.0.total_cmp(&b.0));
            *layer = centred.into_iter().map(|(_, node)| node).collect();
        }
        number(&layers, &mut rank);
    }
    layers
}

/// The longest path to each node. The graph has no cycles; the number of nodes limits the length in any case.
fn depths(graph: &Graph) -> Vec<usize> {
    let mut depth = vec![0; graph.nodes.len()];
    for _ in 0..graph.nodes.len() {
        let mut changed = false;
        for (earlier, later) in &graph.edges {
            let deeper = depth.get(*earlier).map_or(0, |depth| depth + 1);
            if let Some(depth) = depth.get_mut(*later).filter(|depth| **depth < deeper) {
                *depth = deeper;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    depth
}

/// The relative position of each node in its layer, from 0 to 1, so that layers of different sizes can be compared.
fn number(layers: &[Vec<usize>], rank: &mut [f64]) {
    for layer in layers {
        let mut height = 0.5;
        for node in layer {
            if let Some(rank) = rank.get_mut(*node) {
                *rank = height / count(layer);
            }
            height += 1.0;
        }
    }
}

fn count(layer: &[usize]) -> f64 {
    f64::from(u32::try_from(layer.len()).unwrap_or(u32::MAX))
}
