// What answers behind the page: Kiln, or a Heat, which has less.

import { effect, signal } from "@preact/signals";
import { ApiError, get, session } from "./api";

/** Undefined: the service has not said yet. */
export const isKiln = signal<boolean | undefined>(undefined);

/** How often a Heat is asked what has happened, in ms. It sends nothing by itself. */
export const POLL = 5000;
const AGAIN = 2000;
/** A service that is not there now, or a session that has ended, says nothing about the calls. */
const TELLS_NOTHING = [0, 401, 409, 429, 502, 503, 504];

async function discover(): Promise<void> {
  const asked = session.peek();
  try {
    await get("/plans?limit=1");
    if (session.peek() === asked) isKiln.value = true;
  } catch (error) {
    if (session.peek() !== asked) return;
    const status = error instanceof ApiError ? error.status : 0;
    if (TELLS_NOTHING.includes(status)) setTimeout(() => session.peek() === asked && discover(), AGAIN);
    // A user who may not list plans is told so by Kiln.
    else isKiln.value = status !== 404;
  }
}

/** Asks once for each session. */
export function discoverService(): void {
  let region: string | null | undefined;
  effect(() => {
    if (!session.value) return;
    // Another region may have another service.
    if (region !== session.value.region) isKiln.value = undefined;
    region = session.value.region;
    void discover();
  });
}

/** Calls a function again and again while the service sends no events and somebody looks; ends when the result is called. */
export function polled(ask: () => void): () => void {
  if (isKiln.peek()) return () => {};
  const timer = setInterval(() => document.visibilityState === "visible" && ask(), POLL);
  return () => clearInterval(timer);
}

const ABSENT: [string, string][] = [
  ["Plans", "a change shows Heat's preview instead, which names resources without their properties and risks"],
  ["Drift", "use Check, which reports objects that are missing or broken"],
  ["Guards", "nothing protects a stack, but the policy of Heat"],
  ["Operations and revisions", "Heat does not record who did what; the events say what happened"],
  ["Stream of events", `the page asks every ${POLL / 1000} seconds`],
  ["Retry", "an update with the same template goes on after a failure"],
  ["Forget, and what a delete loses", "Heat deletes without telling what would be lost"],
  ["Quotas", "the policy and the options of Heat limit stacks"],
];

/** What a Heat does not have: the views that are absent, by name. */
export function ServiceView() {
  return (
    <main tabIndex={-1}>
      <h1>{isKiln.value ? "The service is Kiln" : "The service is a Heat"}</h1>
      {isKiln.value ? (
        <p>It has everything that this page shows.</p>
      ) : (
        <>
          <p>It does not have:</p>
          <dl aria-label="What a Heat does not have">
            {ABSENT.map(([what, instead]) => (
              <div key={what}>
                <dt>{what}</dt>
                <dd>{instead}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </main>
  );
}
