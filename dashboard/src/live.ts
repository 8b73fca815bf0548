// The stream of the events of the project. One tab of a browser reads it and tells the others, because a browser has few
// connections to a host (six with HTTP/1.1).

import { effect, signal } from "@preact/signals";
import { ApiError, scope, stream } from "./api";
import { readEvent, type StackEvent } from "./event";
import { isKiln } from "./service";

/** Whether the page shows what happens; false: it shows what was read last. */
export const isLive = signal(false);

type Listener = (events: StackEvent[]) => void;
const listeners = new Set<Listener>();
const reloaders = new Set<() => void>();

/** Calls a function with new events until the result is called. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls a function when events may have been missed, so that lists must be read again. */
export function onGap(reload: () => void): () => void {
  reloaders.add(reload);
  return () => reloaders.delete(reload);
}

type Message = { kind: "events"; events: StackEvent[] } | { kind: "gap" } | { kind: "live"; live: boolean } | { kind: "ask" };

function deliver(message: Message): void {
  if (message.kind === "events") for (const listener of listeners) listener(message.events);
  if (message.kind === "gap") for (const reload of reloaders) reload();
  if (message.kind === "live") isLive.value = message.live;
}

/** Shorter pauses would load a service that is starting, longer ones would bore. */
const PAUSES = [500, 1000, 2000, 5000];

/** Events of this time are shown together: a busy project has thousands in a second. */
const TOGETHER = 200;

class Reader {
  private waiting: StackEvent[] = [];
  private last: string | undefined;
  private readonly end = new AbortController();
  private readonly channel: BroadcastChannel;
  private leads = false;

  constructor(project: string) {
    // Another Kiln below another prefix of the same host has other events.
    const name = `kiln-events-${location.pathname}-${project}`;
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.kind === "ask") {
        if (this.leads) this.channel.postMessage({ kind: "live", live: isLive.peek() });
      } else deliver(data);
    };
    this.channel.postMessage({ kind: "ask" });
    // Locks exist only in secure contexts: with plain HTTP each tab has its own connection.
    if (navigator.locks) {
      const held = () => this.lead();
      navigator.locks.request(name, { signal: this.end.signal }, held).catch(() => {});
    } else void this.lead();
  }

  close(): void {
    this.end.abort();
    this.channel.close();
    isLive.value = false;
  }

  private tell(message: Message): void {
    deliver(message);
    if (navigator.locks && !this.end.signal.aborted) this.channel.postMessage(message);
  }

  private async lead(): Promise<void> {
    this.leads = true;
    let failures = 0;
    while (!this.end.signal.aborted) {
      try {
        const response = await stream("/events", this.last, this.end.signal);
        // A stream goes on after the last event; only the first one of a tab has none.
        if (!this.last) this.tell({ kind: "gap" });
        failures = 0;
        this.tell({ kind: "live", live: true });
        await this.read(response);
      } catch (error) {
        if (this.end.signal.aborted) return;
        // The last event may be purged meanwhile.
        if (error instanceof ApiError && (error.status === 400 || error.status === 404)) this.last = undefined;
        failures += 1;
      }
      if (failures > 0) {
        this.tell({ kind: "live", live: false });
        const pause = PAUSES[Math.min(failures, PAUSES.length) - 1];
        await new Promise((done) => setTimeout(done, pause));
      }
    }
  }

  private async read(response: Response): Promise<void> {
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new ApiError(0, "Ended", "The stream has ended.");
      const parts = (rest + value).split("\n\n");
      rest = parts.pop()!;
      for (const part of parts) {
        const data = part.split("\n").find((line) => line.startsWith("data: "));
        if (data) this.show(readEvent(JSON.parse(data.slice(6))));
      }
    }
  }

  private show(event: StackEvent): void {
    this.last = event.id;
    this.waiting.push(event);
    if (this.waiting.length > 1) return;
    setTimeout(() => this.tell({ kind: "events", events: this.waiting.splice(0) }), TOGETHER);
  }
}

/** Reads the stream of the session's project, as long as there is a session. A Heat has none. */
export function follow(): void {
  let reader: Reader | undefined;
  let project: string | undefined;
  effect(() => {
    const now = isKiln.value ? scope.value : undefined;
    if (now === project) return;
    project = now;
    reader?.close();
    reader = now ? new Reader(now) : undefined;
  });
}
