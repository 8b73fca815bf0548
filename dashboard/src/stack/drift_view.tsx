// What others have changed in the cloud. It is read when asked for: it reads every object.

import { useSignal } from "@preact/signals";
import { get, post, put } from "../api";
import { Command, Confirm, Failure, Id, LongTable, TextField, option, quoted, when } from "../parts";
import { goWhenDone } from "../route";
import { shown } from "../value";
import type { StackData } from "./stack_data";

interface Difference {
  property: string;
  expected: unknown;
  actual: unknown;
}

interface Drifted {
  resource_name: string;
  resource_type: string;
  stack_name: string;
  physical_resource_id: string | null;
  drift_status: string;
  drift_status_reason: string | null;
  differences: Difference[];
}

interface DriftJson {
  status: string;
  checked_at: string;
  resources: Drifted[];
}

const words = (status: string) => status.replaceAll("_", " ").toLowerCase();

export function DriftView({ data }: { data: StackData }) {
  const drift = useSignal<DriftJson | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const ignored = useSignal<Drifted | undefined>(undefined);
  const check = async () => {
    busy.value = true;
    try {
      drift.value = (await get<{ drift: DriftJson }>(`${data.base}/drift`)).drift;
      error.value = undefined;
    } catch (failed) {
      error.value = failed;
    } finally {
      busy.value = false;
    }
  };
  /** Saves the plan that gives the objects the values of the template again, or the template those of the objects. */
  const plan = async (verb: "repair" | "accept") => {
    busy.value = true;
    const goOn = goWhenDone();
    try {
      const { plan } = await post<{ plan: { id: string } | null }>(`${data.base}/drift/${verb}`, {});
      error.value = undefined;
      if (plan) goOn("plans", plan.id);
      else await check();
    } catch (failed) {
      error.value = failed;
    } finally {
      busy.value = false;
    }
  };
  const hasDrifted = drift.value?.resources.some((one) => ["MODIFIED", "DELETED"].includes(one.drift_status));
  const found = drift.value?.resources.filter((one) => one.drift_status !== "IN_SYNC") ?? [];
  return (
    <>
      <p>
        <button type="button" onClick={check} disabled={busy.value}>
          {busy.value ? "Checking…" : "Check now"}
        </button>{" "}
        This reads each object from the cloud. Nothing is changed.
      </p>
      <Failure error={error.value} />
      {drift.value && (
        <>
          <p role="status">
            <strong>{words(drift.value.status)}</strong>, {when(drift.value.checked_at)}:{" "}
            {drift.value.resources.length - found.length} of {drift.value.resources.length} resources are in sync.
          </p>
          {hasDrifted && (
            <p>
              <button type="button" class="main" disabled={busy.value} onClick={() => plan("repair")}>
                Plan a repair
              </button>{" "}
              <button type="button" disabled={busy.value} onClick={() => plan("accept")}>
                Plan to accept
              </button>{" "}
              A repair gives the objects the values of the template again. To accept is to take the values of the objects into
              the template. You see the plan before anything is changed.
            </p>
          )}
          <LongTable
            label="Drift"
            rows={found}
            keyOf={(one) => `${one.stack_name}/${one.resource_name}/${one.physical_resource_id}`}
            head={
              <>
                <th>Resource</th>
                <th>Type</th>
                <th>Drift</th>
                <th>Object</th>
                <th>Differences</th>
                <th>Ignore</th>
              </>
            }
            row={(one) => {
              const differences = one.differences.map(
                (each) => `${each.property}: ${shown(each.expected)} → ${shown(each.actual)}`,
              );
              const text = differences.join("; ") || one.drift_status_reason || "";
              return (
                <>
                  <td>{one.resource_name}</td>
                  <td>{one.resource_type}</td>
                  <td>{words(one.drift_status)}</td>
                  <td>
                    <Id id={one.physical_resource_id} />
                  </td>
                  <td class="reason" title={text}>
                    {text}
                  </td>
                  <td>
                    {one.differences.length > 0 && (
                      <button type="button" class="small" onClick={() => (ignored.value = one)}>
                        Ignore
                      </button>
                    )}
                  </td>
                </>
              );
            }}
          />
        </>
      )}
      {ignored.value && (
        <Ignore data={data} one={ignored.value} close={() => (ignored.value = undefined)} done={check} />
      )}
      <Command text={`kiln stack drift ${quoted(data.root.name)}${hasDrifted ? " --repair" : ""}`} />
    </>
  );
}

/** Adds a guard: what others do with these properties is no drift. */
function Ignore(props: { data: StackData; one: Drifted; close: () => void; done: () => Promise<void> }) {
  const { data, one } = props;
  const leave = useSignal(false);
  const reason = useSignal("");
  const tree = [...(data.tree.value.value?.values() ?? [])];
  const known = tree.find((each) => each.stack.name === one.stack_name && each.name === one.resource_name);
  const place = known?.path.join("/") ?? one.resource_name;
  const ignore = one.differences.map((each) => `${place}.${each.property}`);
  const stack = data.root.name;
  const ignored = ignore.map((each) => option("--ignore", each)).join("");
  const command = `kiln stack drift ${quoted(stack)}${ignored}${leave.value ? " --leave" : ""}`;
  return (
    <Confirm
      title={`Ignore changes of ${place}`}
      label="Ignore"
      command={command + option("--reason", reason.value)}
      close={props.close}
      act={async () => {
        await put("/guards", { stack, ignore, leave: leave.value, reason: reason.value });
        await props.done();
      }}
    >
      <p>What others do with {ignore.join(", ")} is not reported any more. Lift the guard to end this.</p>
      <label>
        <input type="checkbox" checked={leave.value} onChange={() => (leave.value = !leave.value)} /> No update writes these
        properties either
      </label>
      <TextField label="Reason" text={reason} />
    </Confirm>
  );
}
