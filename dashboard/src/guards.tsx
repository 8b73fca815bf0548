// What is protected, and by whom.

import { get } from "./api";
import { Id, Loading, LongTable, useLoaded, when } from "./parts";
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
          </>
        )}
      />
    </main>
  );
}
