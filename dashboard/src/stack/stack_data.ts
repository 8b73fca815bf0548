// A stack with its resources and events, kept up to date by the stream.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, path } from "../api";
import { isOfStack, type StackEvent, type StackId, stackOf } from "../event";
import { onEvents, onGap } from "../live";
import { paced, useLoaded } from "../parts";
import { loadEvents } from "./operations";
import { keyOf, loadTree, type Tree } from "./tree";

export interface StackJson {
  id: string;
  stack_name: string;
  description: string;
  stack_status: string;
  stack_status_reason: string;
  creation_time: string;
  updated_time: string | null;
  stack_owner: string | null;
  parameters: Record<string, unknown>;
  tags: string[] | null;
}

export function useStack(root: StackId) {
  const base = path("stacks", root.name, root.id);
  const load = async () => (await get<{ stack: StackJson }>(`${base}?resolve_outputs=false`)).stack;
  const stack = useLoaded(load, [root.id]);
  const tree = useLoaded<Tree>(() => loadTree(root), [root.id]);
  const events = useLoaded<StackEvent[]>(() => loadEvents(root), [root.id]);
  /** Raised with each change: what is read on request is read again. */
  const turn = useSignal(0);
  useEffect(() => {
    const again = paced(() => {
      stack.reload();
      tree.reload();
      turn.value += 1;
    }, 1000);
    const all = paced(() => {
      stack.reload();
      tree.reload();
      events.reload();
      turn.value += 1;
    }, 500);
    const seen = (news: StackEvent[]) => {
      const known = tree.value.peek();
      // What comes while the lists are read may be in neither.
      if (!known || !events.value.peek()) return all();
      const inside = new Set([root.id]);
      for (const resource of known.values()) if (resource.nested) inside.add(resource.nested);
      const own = news.filter((event) => inside.has(stackOf(event.links, "stack")?.id ?? ""));
      // The nested stack of a resource that has just begun is not known yet.
      if (own.length < news.length && stack.value.peek()?.stack_status.endsWith("_IN_PROGRESS")) again();
      if (own.length === 0) return;
      const next: Tree = new Map(known);
      for (const event of own) {
        const { resource_status: status, resource_status_reason: reason } = event;
        if (isOfStack(event)) {
          const current = stack.value.peek();
          if (event.physical_resource_id === root.id && current) {
            stack.value.value = { ...current, stack_status: status, stack_status_reason: reason };
            again();
          }
          continue;
        }
        const key = keyOf(stackOf(event.links, "stack")!.id, event.resource_name);
        const resource = next.get(key);
        if (resource) next.set(key, { ...resource, status, reason, object: event.physical_resource_id ?? resource.object });
        if (!resource || status === "DELETE_COMPLETE" || status.endsWith("_COMPLETE")) again();
      }
      tree.value.value = next;
      const past = events.value.peek() ?? [];
      const ids = new Set(past.map(({ id }) => id));
      events.value.value = [...past, ...own.filter((event) => !ids.has(event.id))];
    };
    const ends = [onEvents(seen), onGap(all)];
    return () => ends.forEach((end) => end());
  }, [root.id]);
  return { root, base, stack, tree, events, turn };
}

export type StackData = ReturnType<typeof useStack>;
