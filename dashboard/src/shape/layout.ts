// A layered layout of a graph: each node right of those that it depends on. The time is linear in nodes and edges, but for
// sorting.

export interface Layout {
  /** Column and row of each node. */
  columns: Int32Array;
  rows: Int32Array;
  width: number;
  height: number;
}

/** Times that the order in the layers is improved. */
const SWEEPS = 4;

/** `edges` has pairs: a node, and one that depends on it. Edges in circles do not move nodes. */
export function layout(count: number, edges: Int32Array): Layout {
  const before = adjacency(count, edges, 1, 0);
  const after = adjacency(count, edges, 0, 1);
  const layers = layered(count, before, after);
  const place = new Float64Array(count);
  for (const layer of layers) layer.forEach((node, at) => (place[node] = at));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0;
    const neighbours = forward ? before : after;
    for (const layer of forward ? layers : [...layers].reverse()) {
      for (const node of layer) {
        const from = neighbours.starts[node]!;
        const to = neighbours.starts[node + 1]!;
        let sum = 0;
        for (let at = from; at < to; at += 1) sum += place[neighbours.nodes[at]!]!;
        if (to > from) place[node] = sum / (to - from);
      }
      layer.sort((a, b) => place[a]! - place[b]! || a - b);
      layer.forEach((node, at) => (place[node] = at));
    }
  }
  // A layer with many nodes takes several columns, so that the picture has the shape of a screen.
  const most = Math.max(12, Math.ceil(Math.sqrt(count) * 1.5));
  const columns = new Int32Array(count);
  const rows = new Int32Array(count);
  let column = 0;
  let height = 0;
  for (const layer of layers) {
    const wide = Math.ceil(layer.length / most);
    const high = Math.ceil(layer.length / wide);
    layer.forEach((node, at) => {
      columns[node] = column + Math.floor(at / high);
      rows[node] = at % high;
    });
    column += wide;
    height = Math.max(height, high);
  }
  return { columns, rows, width: column, height };
}

interface Adjacency {
  /** Where the neighbours of each node begin in `nodes`. */
  starts: Int32Array;
  nodes: Int32Array;
}

function adjacency(count: number, edges: Int32Array, of: 0 | 1, to: 0 | 1): Adjacency {
  const starts = new Int32Array(count + 1);
  for (let at = 0; at < edges.length; at += 2) starts[edges[at + of]! + 1]! += 1;
  for (let node = 0; node < count; node += 1) starts[node + 1]! += starts[node]!;
  const next = starts.slice();
  const nodes = new Int32Array(edges.length / 2);
  for (let at = 0; at < edges.length; at += 2) {
    const node = edges[at + of]!;
    nodes[next[node]!] = edges[at + to]!;
    next[node]! += 1;
  }
  return { starts, nodes };
}

/** The layers by the longest path from a node without dependencies. */
function layered(count: number, before: Adjacency, after: Adjacency): number[][] {
  const depth = new Int32Array(count);
  const waits = new Int32Array(count);
  const ready: number[] = [];
  for (let node = 0; node < count; node += 1) {
    waits[node] = before.starts[node + 1]! - before.starts[node]!;
    if (waits[node] === 0) ready.push(node);
  }
  for (let at = 0; at < ready.length; at += 1) {
    const node = ready[at]!;
    for (let edge = after.starts[node]!; edge < after.starts[node + 1]!; edge += 1) {
      const next = after.nodes[edge]!;
      depth[next] = Math.max(depth[next]!, depth[node]! + 1);
      waits[next]! -= 1;
      if (waits[next] === 0) ready.push(next);
    }
  }
  const layers: number[][] = [];
  for (let node = 0; node < count; node += 1) (layers[depth[node]!] ??= []).push(node);
  return Array.from(layers, (layer) => layer ?? []).filter((layer) => layer.length > 0);
}
