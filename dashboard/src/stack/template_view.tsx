// The template of a stack: now, at each of its revisions, and what has changed between two of them.

import { useSignal } from "@preact/signals";
import { structuredPatch } from "diff";
import { get, post } from "../api";
import { Command, Failure, Loading, quoted, useLoaded, when } from "../parts";
import { goWhenDone } from "../route";
import { isKiln } from "../service";
import { yaml } from "../value";
import type { StackData } from "./stack_data";

interface Revision {
  revision: number;
  action: string;
  user_name: string | null;
  started_at: string;
}

interface Content {
  template: unknown;
  environment: unknown;
  files: Record<string, string>;
}

/** A revision with all that it sets, as `kiln stack revision diff` compares it. */
async function load(base: string, revision: number): Promise<string> {
  const { template, environment, files } = (await get<{ revision: Content }>(`${base}/revisions/${revision}`)).revision;
  return yaml({ template, environment, files }).trimStart();
}

export function TemplateView({ data }: { data: StackData }) {
  const keys = [data.base, data.turn.value];
  const list = async () => (isKiln.value ? (await get<{ revisions: Revision[] }>(`${data.base}/revisions`)).revisions : []);
  const revisions = useLoaded(list, keys);
  const chosen = useSignal<number | undefined>(undefined);
  const other = useSignal<number | undefined>(undefined);
  const all = revisions.value.value ?? [];
  const newest = all[0]?.revision;
  const revision = chosen.value ?? newest;
  const choice = (label: string, signal: typeof chosen, none: string) => (
    <label>
      {label}{" "}
      <select
        aria-label={label}
        value={signal.value ?? ""}
        onChange={(event) => (signal.value = Number(event.currentTarget.value) || undefined)}
      >
        <option value="">{none}</option>
        {all.map((one) => (
          <option key={one.revision} value={one.revision}>
            {one.revision}: {one.action.toLowerCase()}, {when(one.started_at)}
            {one.user_name && `, ${one.user_name}`}
          </option>
        ))}
      </select>
    </label>
  );
  const stack = quoted(data.root.name);
  return (
    <>
      {isKiln.value && (
        <div class="bar">
          {choice("Revision", chosen, "the present one")}
          {choice("Compared with", other, "nothing")}
          {revision !== undefined && revision !== newest && <Return data={data} revision={revision} />}
        </div>
      )}
      <Failure error={revisions.error.value} />
      {other.value !== undefined && revision !== undefined ? (
        <Difference key={`${other.value} ${revision}`} base={data.base} from={other.value} to={revision} />
      ) : (
        <Text key={chosen.value} base={data.base} revision={chosen.value} turn={data.turn.value} />
      )}
      {other.value !== undefined && <Command text={`kiln stack revision diff ${stack} ${other.value} ${revision}`} />}
      {other.value === undefined && chosen.value !== undefined && (
        <Command text={`kiln stack revision show ${stack} ${chosen.value}`} />
      )}
      {other.value === undefined && chosen.value === undefined && <Command text={`kiln stack template show ${stack}`} />}
    </>
  );
}

function Text(props: { base: string; revision: number | undefined; turn: number }) {
  const { base, revision } = props;
  const present = async () => yaml(await get<unknown>(`${base}/template`)).trimStart();
  const { value, error } = useLoaded(() => (revision === undefined ? present() : load(base, revision)), [base, revision, props.turn]);
  if (!value.value) return <Loading error={error.value} />;
  return (
    <pre class="template" tabIndex={0} role="region" aria-label="Template">
      {value.value.split("\n").map((line, at) => (
        <code key={at} data-line={at + 1}>
          {line + "\n"}
        </code>
      ))}
    </pre>
  );
}

/** The changed lines with some around them. A sign stands before each line, so that nobody needs the colours. */
function Difference({ base, from, to }: { base: string; from: number; to: number }) {
  const both = useLoaded(() => Promise.all([load(base, from), load(base, to)]), [base, from, to]);
  if (!both.value.value) return <Loading error={both.error.value} />;
  const [before, after] = both.value.value;
  const { hunks } = structuredPatch("", "", before + "\n", after + "\n", undefined, undefined, { context: 3 });
  if (hunks.length === 0) return <p>Revisions {from} and {to} have the same template, environment and files.</p>;
  const kind = (line: string) => (line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "");
  return (
    <pre class="template" tabIndex={0} role="region" aria-label="Differences">
      {hunks.map((hunk) => (
        <span key={hunk.newStart}>
          <code class="quiet">
            {`@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@\n`}
          </code>
          {hunk.lines.map((line, at) => (
            <code key={at} class={kind(line)}>
              {line + "\n"}
            </code>
          ))}
        </span>
      ))}
    </pre>
  );
}

/** Saves the plan of an update to the revision. */
function Return({ data, revision }: { data: StackData; revision: number }) {
  const error = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const plan = async () => {
    busy.value = true;
    const goOn = goWhenDone();
    try {
      const body = { action: "update", stack: data.root.id, existing: true, revision: String(revision) };
      goOn("plans", (await post<{ plan: { id: string } }>("/plans", body)).plan.id);
    } catch (failed) {
      error.value = failed;
      busy.value = false;
    }
  };
  return (
    <>
      <button type="button" disabled={busy.value} onClick={plan}>
        Plan to return to {revision}
      </button>
      <Failure error={error.value} />
    </>
  );
}
