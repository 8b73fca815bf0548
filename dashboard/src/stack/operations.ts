// What happened in an operation, from the events of a stack.

import { ApiError, get, path } from "../api";
import { type EventJson, readEvent, type StackEvent, type StackId } from "../event";
import { keyOf, type Tree } from "./tree";

/** A part of the time in which something was done with a resource. */
export interface Segment {
  action: string;
  from: number;
  /** Undefined: it has not ended. */
  to: number | undefined;
  failed: boolean;
}

export interface Bar {
  key: string;
  path: string[];
  type: string;
  segments: Segment[];
  status: string;
  reason: string;
  critical: boolean;
}

export interface Operation {
  /** The ID of its first event. */
  id: string;
  action: string;
  status: string;
  reason: string;
  from: number;
  to: number | undefined;
  events: StackEvent[];
}

const PAGE = 1000;
/** More events than this are not read: the oldest operations are left out. */
const PAGES = 60;

/** The newest events of a tree, the oldest first: at least those of the latest operation. */
export async function loadEvents(root: StackId): Promise<StackEvent[]> {
  const all: StackEvent[] = [];
  for (let page = 0, marker = ""; page < PAGES; page += 1) {
    const query = `nested_depth=50&sort_dir=desc&limit=${PAGE}${marker}`;
    const { events } = await get<{ events: EventJson[] }>(`${path("stacks", root.name, root.id)}/events?${query}`);
    const read = events.map(readEvent);
    all.push(...read);
    if (events.length < PAGE || (page > 0 && read.some((event) => begins(event, root)))) break;
    marker = `&marker=${events[events.length - 1]!.id}`;
  }
  return all.reverse();
}

/** The events after one of them, the oldest first; undefined if there is no such event any more. */
export async function loadEventsAfter(root: StackId, marker: string): Promise<StackEvent[] | undefined> {
  const query = `nested_depth=50&sort_dir=asc&limit=${PAGE}&marker=${marker}`;
  try {
    const { events } = await get<{ events: EventJson[] }>(`${path("stacks", root.name, root.id)}/events?${query}`);
    return events.map(readEvent);
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return undefined;
    throw error;
  }
}

/** The first failure of an operation: of a resource that is not a nested stack, whose failure follows from one in it. */
export function firstFailure({ events }: Operation, tree: Tree): StackEvent | undefined {
  const failed = events.filter(({ ofStack, status }) => !ofStack && status.endsWith("_FAILED"));
  return failed.find(({ stack, resource }) => !tree.get(keyOf(stack.id, resource))?.nested) ?? failed[0];
}

function begins(event: StackEvent, root: StackId): boolean {
  return event.ofStack && event.stack.id === root.id && event.status.endsWith("_IN_PROGRESS");
}

/** The operations in events that are in order, the newest first. */
export function operationsOf(events: StackEvent[], root: StackId): Operation[] {
  const all: Operation[] = [];
  for (const event of events) {
    const { id, time, status, reason } = event;
    if (begins(event, root)) {
      const action = status.replace("_IN_PROGRESS", "");
      all.push({ id, action, status, reason, from: time, to: undefined, events: [] });
    }
    const current = all[all.length - 1];
    if (!current) continue;
    if (event.ofStack && event.stack.id === root.id) {
      current.status = status;
      current.reason = reason;
      if (!status.endsWith("_IN_PROGRESS")) current.to = time;
    } else current.events.push(event);
  }
  for (const operation of all) {
    // The time of a request is in seconds, that of what follows in ms.
    const first = operation.events[0]?.time;
    if (first && first - operation.from < 1000) operation.from = Math.max(operation.from, first);
  }
  return all.reverse();
}

/** The bars of an operation: each one before those inside it, siblings by their begin. */
export function barsOf(operation: Operation, tree: Tree): Bar[] {
  const bars = new Map<string, Bar>();
  for (const event of operation.events) {
    // The event of a nested stack itself: its resource in the stack above has one too.
    if (event.ofStack) continue;
    const { time, stack, status } = event;
    const key = keyOf(stack.id, event.resource);
    let bar = bars.get(key);
    if (!bar) {
      const resource = tree.get(key);
      const names = resource?.path ?? [stack.name, event.resource];
      bar = { key, path: names, type: resource?.type ?? "", segments: [], status: "", reason: "", critical: false };
      bars.set(key, bar);
    }
    const [action = "", ...rest] = status.split("_");
    const last = bar.segments[bar.segments.length - 1];
    if (rest.join("_") === "IN_PROGRESS") {
      if (last && last.to === undefined && last.action === action) continue;
      if (last && last.to === undefined) last.to = time;
      bar.segments.push({ action, from: time, to: undefined, failed: false });
    } else if (last && last.to === undefined) {
      last.to = time;
      last.failed = status.endsWith("_FAILED");
    } else {
      bar.segments.push({ action, from: time, to: time, failed: status.endsWith("_FAILED") });
    }
    bar.status = status;
    bar.reason = event.reason;
  }
  markCritical(bars, tree);
  return ordered(bars);
}

const endOf = (bar: Bar): number => bar.segments[bar.segments.length - 1]?.to ?? Infinity;

/** Marks what decided how long the operation took: the bar that ended last, and what it waited for, one after the other. */
function markCritical(bars: Map<string, Bar>, tree: Tree): void {
  const requires = new Map<string, string[]>();
  for (const resource of tree.values()) {
    for (const name of resource.requiredBy) {
      const dependent = keyOf(resource.stack.id, name);
      const list = requires.get(dependent);
      if (list) list.push(resource.key);
      else requires.set(dependent, [resource.key]);
    }
  }
  const top = [...bars.values()].filter((bar) => bar.path.length === 1);
  let current = top.reduce<Bar | undefined>((last, bar) => (!last || endOf(bar) > endOf(last) ? bar : last), undefined);
  while (current && !current.critical) {
    current.critical = true;
    const before: Bar[] = (requires.get(current.key) ?? []).flatMap((key) => bars.get(key) ?? []);
    current = before.reduce<Bar | undefined>((last, bar) => (!last || endOf(bar) > endOf(last) ? bar : last), undefined);
  }
}

function ordered(bars: Map<string, Bar>): Bar[] {
  const begin = new Map<string, number>();
  for (const bar of bars.values()) begin.set(bar.path.join("/"), bar.segments[0]?.from ?? 0);
  const all = [...bars.values()].map((bar) => {
    const steps = bar.path.map((_, at) => {
      const above = bar.path.slice(0, at + 1).join("/");
      return [begin.get(above) ?? 0, above] as const;
    });
    return { bar, steps };
  });
  all.sort((a, b) => {
    for (let at = 0; at < Math.min(a.steps.length, b.steps.length); at += 1) {
      const [[from, name], [otherFrom, otherName]] = [a.steps[at]!, b.steps[at]!];
      if (name !== otherName) return from - otherFrom || (name < otherName ? -1 : 1);
    }
    return a.steps.length - b.steps.length;
  });
  return all.map(({ bar }) => bar);
}
