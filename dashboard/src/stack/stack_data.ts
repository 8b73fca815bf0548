// A stack with its resources and events, kept up to date by the stream.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, path } from "../api";
import type { StackEvent, StackId } from "../event";
import { onEvents, onGap } from "../live";
import { paced, useLoaded } from "../parts";
import { polled } from "../service";
import { loadEvents, loadEventsAfter } from "./operations";
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

/** Events whose stack is not known are kept as long, in ms. */
const UNPLACED = 30_000;
/** More events are not kept: the oldest go. */
const KEPT = 60_000;

/** The events of a list and those of the stream that are not in it. */
function merged(past: StackEvent[], news: StackEvent[], inside: ReadonlySet<string>): StackEvent[] {
  const ids = new Set(past.map(({ id }) => id));
  const all = [...past, ...news.filter(({ id, stack }) => !ids.has(id) && inside.has(stack.id))];
  return all.slice(-KEPT);
}

export function useStack(root: StackId) {
  const base = path("stacks", root.name, root.id);
  const load = async () => (await get<{ stack: StackJson }>(`${base}?resolve_outputs=false`)).stack;
  const stack = useLoaded(load, [root.id]);
  const tree = useLoaded<Tree>(() => loadTree(root), [root.id]);
  const past = useLoaded<StackEvent[]>(() => loadEvents(root), [root.id]);
  /** Events of the stream: a list that is on its way may be older than they are. */
  const news = useSignal<StackEvent[]>([]);
  /** The stacks of the tree. */
  const inside = useComputed(() => {
    const ids = new Set([root.id]);
    for (const { nested } of tree.value.value?.values() ?? []) if (nested) ids.add(nested);
    return ids;
  });
  const events = useComputed(() => past.value.value && merged(past.value.value, news.value, inside.value));
  /** Raised with each change: what is read on request is read again. */
  const turn = useSignal(0);
  useEffect(() => {
    const again = paced(() => {
      stack.reload();
      tree.reload();
      turn.value += 1;
    }, 1000);
    const all = paced(() => {
      news.value = news.peek().slice(-KEPT);
      stack.reload();
      tree.reload();
      past.reload();
      turn.value += 1;
    }, 500);
    const seen = (come: StackEvent[]) => {
      const known = tree.value.peek();
      // What comes while the resources are read may not be in them.
      if (!known) return all();
      const ids = inside.peek();
      const inTree = come.filter((event) => ids.has(event.stack.id));
      if (inTree.length < come.length && stack.value.peek()?.stack_status.endsWith("_IN_PROGRESS")) {
        // They may be of a nested stack that has just begun, or of another stack: the tree tells soon.
        again();
        const since = come[0]!.time - UNPLACED;
        news.value = [...news.peek().filter(({ stack, time }) => ids.has(stack.id) || time > since), ...come];
      } else news.value = [...news.peek(), ...inTree];
      if (inTree.length === 0) return;
      const next: Tree = new Map(known);
      for (const event of inTree) {
        const { status, reason, stack: own } = event;
        if (event.ofStack) {
          const current = stack.value.peek();
          if (own.id === root.id && current) {
            stack.value.value = { ...current, stack_status: status, stack_status_reason: reason };
            again();
          }
          continue;
        }
        const key = keyOf(own.id, event.resource);
        const resource = next.get(key);
        if (resource) next.set(key, { ...resource, status, reason, object: event.object ?? resource.object });
        if (!resource || status.endsWith("_COMPLETE")) again();
      }
      tree.value.value = next;
    };
    let busy = false;
    /** Asks for the events after those that are known. */
    const ask = async () => {
      const known = events.peek();
      if (busy || !known) return;
      busy = true;
      try {
        const last = known[known.length - 1];
        const come = last && (await loadEventsAfter(root, last.id));
        // The events of a stack can be purged, the last one too.
        if (!come) all();
        else if (come.length > 0) seen(come);
        // The state was read before its last event was, so that no event tells it.
        else if (stack.value.peek()?.stack_status.endsWith("_IN_PROGRESS")) again();
      } catch {
        // The next time.
      } finally {
        busy = false;
      }
    };
    const ends = [onEvents(seen), onGap(all), polled(ask)];
    return () => ends.forEach((end) => end());
  }, [root.id]);
  return { root, base, stack, tree, events, eventsError: past.error, turn };
}

export type StackData = ReturnType<typeof useStack>;
