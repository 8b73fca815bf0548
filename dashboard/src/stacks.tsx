// All stacks of the project.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "./api";
import type { StackEvent } from "./event";
import { onEvents, onGap } from "./live";
import { kindOf, Loading, LongTable, paced, Search, searched, Status, useLoaded, when } from "./parts";
import { link } from "./route";
import { type Filter, SavedFilters } from "./saved_filters";
import { isKiln, polled } from "./service";

export interface Stack {
  id: string;
  stack_name: string;
  description: string;
  stack_status: string;
  stack_status_reason: string;
  creation_time: string;
  updated_time: string | null;
  stack_owner: string | null;
  tags: string[] | null;
}

const PAGE = 1000;

/** All stacks, page by page. */
export async function loadStacks(): Promise<Map<string, Stack>> {
  const all = new Map<string, Stack>();
  for (let marker = ""; ; ) {
    const { stacks } = await get<{ stacks: Stack[] }>(`/stacks?limit=${PAGE}${marker}`);
    for (const stack of stacks) all.set(stack.id, stack);
    if (stacks.length < PAGE) return all;
    marker = `&marker=${stacks[stacks.length - 1]!.id}`;
  }
}

/** What the last regular comparison of a stack with its objects has found. */
interface Watched {
  stack_id: string;
  /** Null: the first comparison is still due. */
  status: "DRIFTED" | "IN_SYNC" | "NOT_CHECKED" | null;
  drifted_resources: number | null;
  since: string | null;
}

/** The stacks that are compared regularly, by their IDs; empty if the service compares none. */
async function loadWatched(): Promise<Map<string, Watched>> {
  const all = new Map<string, Watched>();
  for (let marker = ""; ; ) {
    const { drift } = await get<{ drift: Watched[] }>(`/drift?limit=${PAGE}${marker}`);
    for (const one of drift) all.set(one.stack_id, one);
    if (drift.length < PAGE) return all;
    marker = `&marker=${drift[drift.length - 1]!.stack_id}`;
  }
}

/** How often it is asked what has drifted: no event says so. */
const WATCH = 60_000;

const KINDS = ["all", "failed", "progress", "complete", "drifted"] as const;

function Drift({ watched, href }: { watched: Watched | undefined; href: string }) {
  if (!watched) return <span class="quiet">not watched</span>;
  const since = watched.since ? `since ${when(watched.since)}` : undefined;
  if (watched.status !== "DRIFTED") {
    return <span title={since}>{watched.status?.replaceAll("_", " ").toLowerCase() ?? "not yet checked"}</span>;
  }
  return (
    <a class="status failed" href={href} title={since}>
      <span aria-hidden="true">≠</span> {watched.drifted_resources} drifted
    </a>
  );
}

export function StacksView() {
  const { value, error, reload } = useLoaded(loadStacks, []);
  const watched = useLoaded(async () => (isKiln.value ? await loadWatched() : undefined), []);
  useEffect(() => {
    if (!isKiln.value) return;
    const timer = setInterval(watched.reload, WATCH);
    return () => clearInterval(timer);
  }, []);
  const search = useSignal("");
  const kind = useSignal<(typeof KINDS)[number]>("all");
  useEffect(() => {
    const again = paced(reload, 300);
    const asked = new Set<string>();
    const seen = (events: StackEvent[]) => {
      const known = value.peek();
      if (!known) return again();
      let next: Map<string, Stack> | undefined;
      for (const event of events.filter(({ ofStack }) => ofStack)) {
        const stack = known.get(event.stack.id);
        if (!stack) {
          // A new stack, or a nested one, which no list has.
          if (!asked.has(event.stack.id)) again();
          asked.add(event.stack.id);
          continue;
        }
        if (event.status === "DELETE_COMPLETE") {
          again();
          continue;
        }
        next ??= new Map(known);
        next.set(stack.id, {
          ...stack,
          stack_status: event.status,
          stack_status_reason: event.reason,
          updated_time: new Date(event.time).toISOString(),
        });
      }
      if (next) value.value = next;
    };
    const ends = [onEvents(seen), onGap(again), polled(reload)];
    return () => ends.forEach((end) => end());
  }, []);
  if (!value.value) return <Loading error={error.value} />;
  const matches = searched(search.value);
  const set = (filter: Filter) => {
    search.value = filter.search;
    kind.value = KINDS.find((key) => key === filter.kind) ?? "all";
  };
  const drift = watched.value.value;
  const isWatched = drift !== undefined && drift.size > 0;
  const all = [...value.value.values()];
  const shown = all.filter((stack) => {
    if (kind.value === "drifted") {
      if (drift?.get(stack.id)?.status !== "DRIFTED") return false;
    } else if (kind.value !== "all" && kindOf(stack.stack_status) !== kind.value) return false;
    return matches([stack.stack_name, stack.id, stack.description, stack.stack_owner, ...(stack.tags ?? [])].join(" "));
  });
  return (
    <main tabIndex={-1}>
      <div class="bar">
        <h1>Stacks</h1>
        <Search text={search} label="Search stacks" hint="name, ID, tag, owner" />
        <label>
          <span class="hidden">State</span>
          <select value={kind.value} onChange={(event) => (kind.value = event.currentTarget.value as typeof kind.value)}>
            {KINDS.filter((key) => key !== "drifted" || isWatched).map((key) => (
              <option key={key} value={key}>
                {key === "progress" ? "in progress" : key}
              </option>
            ))}
          </select>
        </label>
        <SavedFilters present={{ search: search.value, kind: kind.value }} plain={{ search: "", kind: "all" }} set={set} />
        <span class="quiet">
          {shown.length} of {all.length}
        </span>
        <a class="button main" href={link("new")}>
          New stack
        </a>
      </div>
      {all.length === 0 && <p>There is no stack in this project.</p>}
      <LongTable
        label="Stacks"
        rows={shown}
        keyOf={(stack) => stack.id}
        head={
          <>
            <th>Name</th>
            <th>Status</th>
            {isWatched && <th>Drift</th>}
            <ChangeHead />
          </>
        }
        row={(stack) => (
          <>
            <td>
              <a href={link("stacks", stack.stack_name, stack.id)}>{stack.stack_name}</a>
            </td>
            <td>
              <Status status={stack.stack_status} />
            </td>
            {isWatched && (
              <td>
                <Drift watched={drift.get(stack.id)} href={link("stacks", stack.stack_name, stack.id, "drift")} />
              </td>
            )}
            <Change stack={stack} />
          </>
        )}
      />
    </main>
  );
}

/** The heads of the cells of a change. */
export function ChangeHead() {
  return (
    <>
      <th>Last change</th>
      <th>Owner</th>
      <th>Reason</th>
    </>
  );
}

/** When and by whom a stack was changed, and why it failed. */
export function Change({ stack }: { stack: Stack }) {
  return (
    <>
      <td>{when(stack.updated_time ?? stack.creation_time)}</td>
      <td>{stack.stack_owner}</td>
      <td class="reason" title={stack.stack_status_reason}>
        {kindOf(stack.stack_status) === "failed" ? stack.stack_status_reason : ""}
      </td>
    </>
  );
}
