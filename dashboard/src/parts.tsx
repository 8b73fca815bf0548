// Small parts that several views use.

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { ApiError } from "./api";
import { link } from "./route";

/** The kind of a status such as CREATE_FAILED: what colours distinguish. */
export function kindOf(status: string): "complete" | "progress" | "failed" | "none" {
  if (status.endsWith("_IN_PROGRESS")) return "progress";
  if (status.endsWith("_FAILED")) return "failed";
  return status.endsWith("_COMPLETE") && status !== "INIT_COMPLETE" ? "complete" : "none";
}

const SIGNS = { complete: "✓", progress: "…", failed: "✗", none: "·" };

export function Status({ status }: { status: string }) {
  const kind = kindOf(status);
  return (
    <span class={`status ${kind}`}>
      <span aria-hidden="true">{SIGNS[kind]}</span> {status.replaceAll("_", " ").toLowerCase()}
    </span>
  );
}

export function Failure({ error }: { error: unknown }) {
  if (!error) return null;
  const text = error instanceof Error ? error.message : String(error);
  return (
    <p class="failure" role="alert">
      {text}
      {error instanceof ApiError && error.type && <small> ({error.type})</small>}
    </p>
  );
}

export function Id({ id }: { id: string | null | undefined }) {
  return id ? <code class="id">{id}</code> : <span class="quiet">none</span>;
}

/** Work that a button begins: whether it is going on, and why it has failed. */
export function useWork() {
  const busy = useSignal(false);
  const error = useSignal<unknown>(undefined);
  const run = async (work: () => Promise<void>) => {
    busy.value = true;
    error.value = undefined;
    try {
      await work();
    } catch (failed) {
      error.value = failed;
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, run };
}

/**
 * What is loaded from the server: loaded again when a key changes, and by the returned function. While it is being loaded,
 * that function has it loaded once more afterwards, so that no answer is dropped however often it is called.
 */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]) {
  const value = useSignal<T | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const state = useRef({ turn: 0, busy: false, again: false });
  /** Whether the view is gone: what calls the function later loads nothing any more. */
  const gone = useRef(false);
  const latest = useRef(load);
  latest.current = load;
  const reload = () => {
    const { current } = state;
    current.again = current.busy;
    if (current.busy || gone.current) return;
    current.busy = true;
    const { turn } = current;
    const end = (show: () => void) => {
      // The view shows something else now.
      if (turn !== state.current.turn) return;
      show();
      current.busy = false;
      if (current.again) reload();
    };
    latest.current().then(
      (loaded) =>
        end(() => {
          value.value = loaded;
          error.value = undefined;
        }),
      (failed) => end(() => (error.value = failed)),
    );
  };
  useEffect(() => {
    reload();
    return () => {
      state.current = { turn: state.current.turn + 1, busy: false, again: false };
    };
  }, keys);
  useEffect(() => () => void (gone.current = true), []);
  return { value, error, reload };
}

export function Loading({ error }: { error?: unknown }) {
  return error ? <Failure error={error} /> : <p class="quiet">Loading…</p>;
}

/** The function, called at most once in a time, and once more at the end. */
export function paced(call: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      call();
    }, ms);
  };
}

const ROW = 30;

/** A table of which only the rows in sight are in the document. Each row is 30 px high. */
export function LongTable<T>(props: {
  label: string;
  head: ComponentChildren;
  rows: T[];
  keyOf: (row: T) => string;
  row: (row: T) => ComponentChildren;
  class?: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const from = useSignal(0);
  const height = useSignal(600);
  useLayoutEffect(() => {
    const sized = new ResizeObserver(() => (height.value = box.current?.clientHeight ?? 600));
    sized.observe(box.current!);
    return () => sized.disconnect();
  }, []);
  const count = Math.ceil(height.value / ROW) + 10;
  const first = Math.max(0, Math.min(from.value, props.rows.length - count));
  const shown = props.rows.slice(first, first + count);
  const scrolled = () => (from.value = Math.max(0, Math.floor(box.current!.scrollTop / ROW) - 5));
  return (
    <div class="long" ref={box} onScroll={scrolled} tabIndex={0} role="region" aria-label={props.label}>
      <table class={props.class} aria-rowcount={props.rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>{props.head}</tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" style={{ height: `${first * ROW}px` }} />}
          {shown.map((row, at) => (
            <tr key={props.keyOf(row)} aria-rowindex={first + at + 2}>
              {props.row(row)}
            </tr>
          ))}
          {first + shown.length < props.rows.length && (
            <tr aria-hidden="true" style={{ height: `${(props.rows.length - first - shown.length) * ROW}px` }} />
          )}
        </tbody>
      </table>
    </div>
  );
}

/** Whether a text has each of the words that are searched for. */
export function searched(search: string): (text: string) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => words.length === 0 || words.every((word) => text.toLowerCase().includes(word));
}

/** The field of a search: what is in it, and what it searches. */
export function Search({ text, label, hint }: { text: Signal<string>; label: string; hint: string }) {
  const type = (event: Event) => (text.value = (event.currentTarget as HTMLInputElement).value);
  return <input type="search" placeholder={`Search ${hint}`} aria-label={label} value={text.value} onInput={type} />;
}

/** A dialog of the browser: Escape closes it, and the focus stays in it. */
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} onClose={props.close} aria-label={props.title}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/** A command that does the same, to be copied. */
export function Command({ text }: { text: string }) {
  const copied = useSignal(false);
  const copy = () => navigator.clipboard?.writeText(text).then(() => (copied.value = true));
  return (
    <p class="command">
      <code>{text}</code>
      {"clipboard" in navigator && (
        <button type="button" class="small" onClick={copy}>
          {copied.value ? "Copied" : "Copy"}
        </button>
      )}
    </p>
  );
}

/** A dialog that asks before something is done. It shows the command that does the same, and the error if it fails. */
export function Confirm(props: {
  title: string;
  label: string;
  command: string;
  danger?: boolean;
  disabled?: boolean;
  close: () => void;
  act: () => Promise<unknown>;
  children: ComponentChildren;
}) {
  const error = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    try {
      await props.act();
      props.close();
    } catch (failed) {
      error.value = failed;
      busy.value = false;
    }
  };
  return (
    <Dialog title={props.title} close={props.close}>
      <form onSubmit={submit}>
        {props.children}
        <Failure error={error.value} />
        <Command text={props.command} />
        <button type="submit" class={props.danger ? "danger" : "main"} disabled={props.disabled || busy.value}>
          {props.label}
        </button>{" "}
        <button type="button" onClick={props.close}>
          Close
        </button>
      </form>
    </Dialog>
  );
}

/** An argument of a shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** An option of a command with its value, after a space; nothing for an empty value. */
export function option(name: string, value: string): string {
  return value && ` ${name} ${quoted(value)}`;
}

export function Tabs(props: { base: string[]; tabs: [string, string][]; current: string }) {
  return (
    <nav class="tabs" aria-label="Views">
      {props.tabs.map(([key, label]) => (
        <a key={key} href={link(...props.base, key)} aria-current={key === props.current ? "page" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

export function Field(props: { label: string; hint?: string } & JSX.InputHTMLAttributes<HTMLInputElement>) {
  const { label, hint, ...input } = props;
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input {...input} id={id} aria-describedby={hint ? `${id}-hint` : undefined} />
      {hint && (
        <small class="quiet" id={`${id}-hint`}>
          {hint}
        </small>
      )}
    </div>
  );
}

/** A field for a text. */
export function TextField({ text, label, hint }: { text: Signal<string>; label: string; hint?: string }) {
  const type = (event: Event) => (text.value = (event.currentTarget as HTMLInputElement).value);
  return <Field label={label} hint={hint} value={text.value} onInput={type} autocomplete="off" />;
}

/** A duration for people: 350 ms, 4.2 s, 3 m 05 s. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} m`;
}

export function when(time: string | number | null | undefined): string {
  if (time === null || time === undefined) return "";
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
