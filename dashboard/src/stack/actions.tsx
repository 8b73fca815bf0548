// What can be done with a stack. Each dialog has the command that does the same.

import { useSignal } from "@preact/signals";
import { get, post, remove } from "../api";
import { Confirm, Loading, TextField, quoted, useLoaded } from "../parts";
import { Protect } from "../guards";
import { type PlanDocument, PlanTable } from "../plan_table";
import { goWhenDone } from "../route";
import { isKiln } from "../service";
import type { StackData, StackJson } from "./stack_data";

interface Action {
  label: string;
  body: Record<string, unknown>;
  command: string;
  explains: string;
}

/** The actions that a state allows. */
function actionsOf(status: string, name: string): Action[] {
  const act = (label: string, key: string, command: string, explains: string): Action => {
    return { label, body: { [key]: null }, command: `kiln stack ${command} ${quoted(name)}`, explains };
  };
  if (status.endsWith("_IN_PROGRESS")) {
    if (!status.startsWith("UPDATE") && !status.startsWith("CREATE")) return [];
    const back = act("Cancel and roll back", "cancel_update", "cancel", "The stack returns to its state before the operation.");
    const stop = act("Cancel", "cancel_without_rollback", "cancel --no-rollback", "What was done stays.");
    // A Heat rolls back no create that is cancelled.
    return isKiln.value || status.startsWith("UPDATE") ? [back, stop] : [stop];
  }
  const again = act("Retry", "continue", "continue", "The operation that failed goes on where it failed.");
  const rest = [
    act("Check", "check", "check", "Reads each object and reports those that are missing or broken."),
    act("Suspend", "suspend", "suspend", "Servers are suspended."),
    act("Resume", "resume", "resume", "Servers that are suspended run again."),
  ];
  return status.endsWith("_FAILED") && isKiln.value ? [again, ...rest] : rest;
}

export function Actions({ data, stack }: { data: StackData; stack: StackJson }) {
  const open = useSignal<Action | "delete" | "protect" | undefined>(undefined);
  const close = () => (open.value = undefined);
  const action = open.value;
  return (
    <span class="actions">
      {actionsOf(stack.stack_status, stack.stack_name).map((each) => (
        <button key={each.label} type="button" onClick={() => (open.value = each)}>
          {each.label}
        </button>
      ))}
      {isKiln.value && (
        <button type="button" onClick={() => (open.value = "protect")}>
          Protect
        </button>
      )}
      <button type="button" class="danger" onClick={() => (open.value = "delete")}>
        Delete
      </button>
      {action === "delete" && <Delete data={data} close={close} />}
      {action === "protect" && <Protect stack={stack.stack_name} close={close} />}
      {typeof action === "object" && (
        <Confirm
          title={`${action.label}: ${stack.stack_name}`}
          label={action.label}
          command={action.command}
          close={close}
          act={() => post(`${data.base}/actions`, action.body)}
        >
          <p>{action.explains}</p>
        </Confirm>
      )}
    </span>
  );
}

/** Shows what would be deleted and lost, and asks for the name. */
function Delete({ data, close }: { data: StackData; close: () => void }) {
  const load = async () => (isKiln.value ? (await get<{ plan: PlanDocument }>(`${data.base}/preview_delete`)).plan : undefined);
  const plan = useLoaded(load, [data.base]);
  const count = data.tree.value.value?.size ?? "all";
  const typed = useSignal("");
  return (
    <Confirm
      title={`Delete ${data.root.name}`}
      label="Delete"
      command={`kiln stack delete ${quoted(data.root.name)}`}
      danger
      disabled={typed.value !== data.root.name}
      close={close}
      act={async () => {
        const goOn = goWhenDone();
        await remove(data.base);
        goOn("stacks");
      }}
    >
      {plan.value.value && <PlanTable plan={plan.value.value} />}
      {!plan.value.value && isKiln.value && <Loading error={plan.error.value} />}
      {!isKiln.value && <p class="failure">Deletes {count} resources. A Heat does not say what is lost with them.</p>}
      <TextField label={`Type the name of the stack: ${data.root.name}`} text={typed} />
    </Confirm>
  );
}
