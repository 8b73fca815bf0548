// The graph of the resources of one stack. Equal ones are one node.

import { kindOf } from "../parts";
import type { Resource, Tree } from "../stack/tree";

export interface Node {
  key: string;
  label: string;
  type: string;
  kind: ReturnType<typeof kindOf>;
  members: Resource[];
}

export interface Graph {
  nodes: Node[];
  edges: Int32Array;
}

/** Fewer equal resources are shown one by one. */
const GROUP = 4;

/** `opened` has the keys of the groups that are shown one by one. */
export function graphOf(tree: Tree, stack: string, opened: ReadonlySet<string>): Graph {
  const resources = [...tree.values()].filter((resource) => resource.stack.id === stack);
  const requires = new Map<string, string[]>();
  for (const resource of resources) {
    for (const name of resource.requiredBy) {
      const list = requires.get(name);
      if (list) list.push(resource.name);
      else requires.set(name, [resource.name]);
    }
  }
  const groups = new Map<string, Resource[]>();
  for (const resource of resources) {
    const needs = (requires.get(resource.name) ?? []).sort().join(",");
    const key = `${resource.type}|${kindOf(resource.status)}|${needs}|${[...resource.requiredBy].sort().join(",")}`;
    const group = groups.get(key);
    if (group) group.push(resource);
    else groups.set(key, [resource]);
  }
  const nodes: Node[] = [];
  const nodeOf = new Map<string, number>();
  for (const [key, members] of groups) {
    const apart = members.length < GROUP || opened.has(key) ? members.map((one) => [one]) : [members];
    for (const part of apart) {
      const [first] = part as [Resource];
      const label = part.length > 1 ? `${first.name} and ${part.length - 1} more` : first.name;
      for (const one of part) nodeOf.set(one.name, nodes.length);
      const kind = kindOf(first.status);
      nodes.push({ key: part.length > 1 ? key : first.key, label, type: first.type, kind, members: part });
    }
  }
  const pairs = new Set<number>();
  const edges: number[] = [];
  for (const resource of resources) {
    const from = nodeOf.get(resource.name)!;
    for (const name of resource.requiredBy) {
      const to = nodeOf.get(name);
      if (to === undefined || to === from) continue;
      const pair = from * nodes.length + to;
      if (pairs.has(pair)) continue;
      pairs.add(pair);
      edges.push(from, to);
    }
  }
  return { nodes, edges: Int32Array.from(edges) };
}
