// What a plan does, the highest risk first.

import { duration, LongTable } from "./parts";
import { shown } from "./value";

interface Side {
  value: unknown;
}

export interface Entry {
  path: string;
  former?: boolean;
  type: string;
  object?: string;
  decision: { at_least: string; at_most: string };
  risk: string;
  lost?: { kind: string; what: string }[];
  properties?: { name: string; before?: Side; after?: Side }[];
  reasons?: string[];
  guard?: string;
}

export interface PlanDocument {
  action: string;
  stack: string;
  totals: Record<string, number>;
  resources: Entry[];
  /** The snapshots that are deleted with the stack. */
  snapshots?: { id: string; name?: string }[];
  /** How long it takes, from earlier operations. */
  estimate?: { seconds: number; seconds_at_most: number; operations: number; unknown?: string[] };
}

const RISKS = ["data_loss", "replacement", "interruption", "change", "none"];
const words = (key: string) => key.replaceAll("_", " ");

function difference(entry: Entry): string {
  const sides = (entry.properties ?? []).map(({ name, before, after }) => {
    const side = (value: Side | undefined) => (value ? shown(value.value) : "nothing");
    return `${name}: ${side(before)} → ${side(after)}`;
  });
  const lost = (entry.lost ?? []).map(({ what }) => `loses ${what}`);
  return [...(entry.reasons ?? []), ...lost, ...sides].join("; ");
}

export function PlanTable({ plan }: { plan: PlanDocument }) {
  const changed = plan.resources.filter((entry) => entry.decision.at_most !== "keep");
  changed.sort((a, b) => RISKS.indexOf(a.risk) - RISKS.indexOf(b.risk));
  const totals = RISKS.filter((risk) => plan.totals[risk]).map((risk) => `${plan.totals[risk]} ${words(risk)}`);
  return (
    <>
      <p role="status">
        {plan.action} {plan.stack}: {changed.length} of {plan.resources.length} resources ({totals.join(", ") || "no change"}).
      </p>
      {plan.estimate && plan.estimate.seconds_at_most >= 1 && (
        <p>
          Takes about {duration(plan.estimate.seconds * 1000)}, seldom more than{" "}
          {duration(plan.estimate.seconds_at_most * 1000)}
          {plan.estimate.unknown && `; no earlier operations of ${plan.estimate.unknown.join(", ")}`}.
        </p>
      )}
      {plan.snapshots && (
        <p class="failure">Deletes snapshots: {plan.snapshots.map(({ id, name }) => name ?? id).join(", ")}</p>
      )}
      <LongTable
        label="Plan"
        rows={changed}
        keyOf={(entry) => `${entry.path} ${entry.former ?? ""} ${entry.object ?? ""}`}
        head={
          <>
            <th>Risk</th>
            <th>Resource</th>
            <th>Decision</th>
            <th>Type</th>
            <th>Details</th>
          </>
        }
        row={(entry) => {
          const { at_least, at_most } = entry.decision;
          const text = difference(entry);
          return (
            <>
              <td>
                <span class={`risk ${entry.risk}`}>{words(entry.risk)}</span>
              </td>
              <td>{entry.path}</td>
              <td>
                {at_least === at_most ? at_most : `${at_least} or ${at_most}`}
                {entry.guard && " (guarded)"}
              </td>
              <td>{entry.type}</td>
              <td class="reason" title={text}>
                {text}
              </td>
            </>
          );
        }}
      />
    </>
  );
}
