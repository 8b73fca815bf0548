// What is protected, and by whom.

import { useSignal } from "@preact/signals";
import { get, path, put, remove } from "./api";
import { Confirm, Id, Loading, LongTable, TextField, option, quoted, useLoaded, when } from "./parts";
import { link } from "./route";
import { loadStacks } from "./stacks";

interface Guard {
  id: string;
  /** Null: all stacks of the project. */
  stack_id: string | null;
  protect?: string[];
  resources?: string | null;
  lock?: boolean;
  freeze?: boolean;
  signals?: boolean;
  plans?: "required";
  stack_policy?: string;
  ignore?: string[];
  leave?: boolean;
  until: string | null;
  reason: string;
  user_name: string | null;
  user_id: string | null;
  created_at: string;
}

/** What a guard does, in words. */
function rule(guard: Guard): string {
  if (guard.freeze) return guard.signals ? "no change, no signals" : "no change";
  if (guard.plans) return "changes by saved plans only";
  if (guard.stack_policy) return "stack policy of CloudFormation";
  if (guard.ignore) return `${guard.leave ? "leaves" : "ignores changes of others to"} ${guard.ignore.join(", ")}`;
  const what = `no ${(guard.protect ?? []).join(", no ")}`;
  return `${what} of ${guard.resources ?? "any resource"}${guard.lock ? ", locked in the cloud" : ""}`;
}

export function GuardsView() {
  const guards = useLoaded(async () => (await get<{ guards: Guard[] }>("/guards")).guards, []);
  const stacks = useLoaded(loadStacks, []);
  const lifted = useSignal<Guard | undefined>(undefined);
  const lift = lifted.value;
  if (!guards.value.value) return <main tabIndex={-1}><Loading error={guards.error.value} /></main>;
  const stackOf = (id: string | null) => {
    const stack = id === null ? undefined : stacks.value.value?.get(id);
    if (stack) return <a href={link("stacks", stack.stack_name, stack.id)}>{stack.stack_name}</a>;
    return id === null ? "all" : <Id id={id} />;
  };
  return (
    <main tabIndex={-1}>
      <h1>Guards</h1>
      {guards.value.value.length === 0 && <p>Nothing in this project is guarded.</p>}
      <LongTable
        label="Guards"
        rows={guards.value.value}
        keyOf={(guard) => guard.id}
        head={
          <>
            <th>Stack</th>
            <th>Rule</th>
            <th>Reason</th>
            <th>By</th>
            <th>Since</th>
            <th>Until</th>
            <th>Lift</th>
          </>
        }
        row={(guard) => (
          <>
            <td>{stackOf(guard.stack_id)}</td>
            <td>{rule(guard)}</td>
            <td class="reason" title={guard.reason}>
              {guard.reason}
            </td>
            <td>{guard.user_name ?? guard.user_id}</td>
            <td>{when(guard.created_at)}</td>
            <td>{when(guard.until)}</td>
            <td>
              <button type="button" class="small" onClick={() => (lifted.value = guard)}>
                Lift
              </button>
            </td>
          </>
        )}
      />
      {lift && (
        <Confirm
          title="Lift a guard"
          label="Lift the guard"
          command={`kiln guard lift ${lift.id}`}
          danger
          close={() => (lifted.value = undefined)}
          act={async () => {
            await remove(path("guards", lift.id));
            guards.reload();
          }}
        >
          <p>
            {rule(lift)}. {lift.reason && `The reason: ${lift.reason}.`} Nothing holds it any more.
          </p>
        </Confirm>
      )}
    </main>
  );
}

const VERBS = {
  delete: "Nobody deletes the stack, or the resource.",
  replace: "Nobody replaces the resource.",
  update: "Nobody changes the resource.",
};
type Verb = keyof typeof VERBS;

/** Adds a guard to a stack. */
export function Protect({ stack, close }: { stack: string; close: () => void }) {
  const verbs = useSignal<Verb[]>(["delete"]);
  const resources = useSignal("");
  const reason = useSignal("");
  const toggle = (verb: Verb) =>
    (verbs.value = (Object.keys(VERBS) as Verb[]).filter((each) => (each === verb) !== verbs.value.includes(each)));
  const body = {
    stack,
    protect: verbs.value,
    ...(resources.value && { resources: resources.value }),
    ...(reason.value && { reason: reason.value }),
  };
  const from = verbs.value.map((verb) => option("--from", verb)).join("");
  const command = `kiln stack protect ${quoted(stack)}${option("--resource", resources.value)}${from}`;
  return (
    <Confirm
      title={`Protect ${stack}`}
      label="Protect"
      command={command + option("--reason", reason.value)}
      disabled={verbs.value.length === 0}
      close={close}
      act={() => put("/guards", body)}
    >
      <fieldset>
        <legend>From</legend>
        {(Object.keys(VERBS) as Verb[]).map((verb) => (
          <label key={verb}>
            <input type="checkbox" checked={verbs.value.includes(verb)} onChange={() => toggle(verb)} /> {verb}:{" "}
            {VERBS[verb]}
          </label>
        ))}
      </fieldset>
      <TextField
        label="Resources"
        hint="A path such as db or group/*/volume; empty: the stack itself"
        text={resources}
      />
      <TextField label="Reason" text={reason} />
    </Confirm>
  );
}
