// The resources of a stack and of its nested stacks.

import { get, path } from "../api";
import { type ApiLink, type StackId, stackOf } from "../event";

interface ResourceJson {
  resource_name: string;
  resource_type: string;
  resource_status: string;
  resource_status_reason: string;
  physical_resource_id: string | null;
  updated_time: string;
  required_by?: string[];
  links: ApiLink[];
}

export interface Resource {
  /** The stack that it is in, and its name. */
  key: string;
  stack: StackId;
  name: string;
  type: string;
  status: string;
  reason: string;
  object: string | null;
  updated: string;
  /** The names of the resources in the same stack that depend on it. */
  requiredBy: string[];
  /** Its nested stack. */
  nested: string | undefined;
  /** Its names from the root stack on. */
  path: string[];
}

export const keyOf = (stack: string, name: string): string => `${stack}/${name}`;

/** The resources by their keys: each one before those of its nested stack, siblings by name. */
export type Tree = Map<string, Resource>;

export async function loadTree(root: StackId): Promise<Tree> {
  const list = `${path("stacks", root.name, root.id)}/resources?nested_depth=50`;
  const { resources } = await get<{ resources: ResourceJson[] }>(list);
  return arrange(
    root,
    resources.map((json) => ({
      stack: stackOf(json.links, "stack") ?? root,
      name: json.resource_name,
      type: json.resource_type,
      status: json.resource_status,
      reason: json.resource_status_reason,
      object: json.physical_resource_id,
      updated: json.updated_time,
      requiredBy: json.required_by ?? [],
      nested: stackOf(json.links, "nested")?.id,
      path: [],
      key: "",
    })),
  );
}

/** Sets keys and paths, and puts the resources in order. */
export function arrange(root: StackId, resources: Resource[]): Tree {
  const inside = new Map<string, Resource[]>();
  for (const resource of resources) {
    resource.key = keyOf(resource.stack.id, resource.name);
    const siblings = inside.get(resource.stack.id);
    if (siblings) siblings.push(resource);
    else inside.set(resource.stack.id, [resource]);
  }
  const tree: Tree = new Map();
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const stack: { resource: Resource; above: string[] }[] = [];
  const enter = (id: string, above: string[]) => {
    const siblings = inside.get(id) ?? [];
    siblings.sort((a, b) => compare(b.name, a.name));
    for (const resource of siblings) stack.push({ resource, above });
    // A nested stack is entered once, whatever the answer says.
    inside.delete(id);
  };
  enter(root.id, []);
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { resource, above } = next;
    resource.path = [...above, resource.name];
    tree.set(resource.key, resource);
    if (resource.nested) enter(resource.nested, resource.path);
  }
  return tree;
}
