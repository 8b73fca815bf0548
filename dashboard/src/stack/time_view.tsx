// The resources of an operation on an axis of time.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Command, duration, kindOf, Loading, LongTable, quoted, Status, when } from "../parts";
import { barsOf, operationsOf, type Segment } from "./operations";
import type { StackData } from "./stack_data";

export function TimeView({ data }: { data: StackData }) {
  const chosen = useSignal("");
  const only = useSignal("all");
  const now = useSignal(Date.now());
  const operations = useComputed(() => operationsOf(data.events.value ?? [], data.root));
  const operation = useComputed(() => operations.value.find(({ id }) => id === chosen.value) ?? operations.value[0]);
  const bars = useComputed(() => {
    const tree = data.tree.value.value;
    return operation.value && tree ? barsOf(operation.value, tree) : [];
  });
  const runs = operation.value !== undefined && operation.value.to === undefined;
  useEffect(() => {
    if (!runs) return;
    const timer = setInterval(() => (now.value = Date.now()), 500);
    return () => clearInterval(timer);
  }, [runs]);
  if (!data.events.value || !data.tree.value.value) return <Loading error={data.eventsError.value} />;
  const current = operation.value;
  if (!current) return <p>No operation is in the events of this stack.</p>;
  // The clock of this computer may be behind that of the service.
  const latest = current.events.length > 0 ? current.events[current.events.length - 1]!.time : current.from;
  const end = current.to ?? Math.max(now.value, latest);
  const span = Math.max(end - current.from, 1);
  const shown = bars.value.filter((bar) => {
    if (only.value === "critical") return bar.critical;
    return only.value === "all" || kindOf(bar.status) === only.value;
  });
  const place = (segment: Segment) => {
    const left = Math.max(0, ((segment.from - current.from) / span) * 100);
    const width = Math.max(0.3, (((segment.to ?? end) - segment.from) / span) * 100);
    return { left: `${left}%`, width: `${Math.min(width, 100 - left)}%` };
  };
  return (
    <>
      <div class="bar">
        <label>
          <span class="hidden">Operation</span>
          <select value={current.id} onChange={(event) => (chosen.value = event.currentTarget.value)}>
            {operations.value.map((one) => (
              <option key={one.id} value={one.id}>
                {one.action.toLowerCase()} {when(one.from)}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span class="hidden">Shown</span>
          <select value={only.value} onChange={(event) => (only.value = event.currentTarget.value)}>
            <option value="all">all resources</option>
            <option value="critical">the critical path</option>
            <option value="progress">in progress</option>
            <option value="failed">failed</option>
          </select>
        </label>
        <Status status={current.status} />
        <span class="quiet">
          {duration(end - current.from)}, {shown.length} of {bars.value.length} resources
        </span>
      </div>
      <LongTable
        class="time"
        label="Time of each resource"
        rows={shown}
        keyOf={(bar) => bar.key}
        head={
          <>
            <th>Resource</th>
            <th>Status</th>
            <th>Took</th>
            <th class="axis">
              <span>0</span>
              <span>{duration(span / 2)}</span>
              <span>{duration(span)}</span>
            </th>
          </>
        }
        row={(bar) => {
          const last = bar.segments[bar.segments.length - 1];
          return (
            <>
              <td style={{ paddingLeft: `${0.5 + 1.2 * (bar.path.length - 1)}rem` }} title={`${bar.path.join(" / ")} ${bar.type}`}>
                {bar.path[bar.path.length - 1]}
                {bar.critical && (
                  <span class="critical" title="on the critical path">
                    {" "}
                    ◆<span class="hidden"> on the critical path</span>
                  </span>
                )}
              </td>
              <td title={bar.reason}>
                <Status status={bar.status} />
              </td>
              <td>{last && duration((last.to ?? end) - bar.segments[0]!.from)}</td>
              <td class="track">
                <div>
                  {bar.segments.map((segment, at) => (
                    <span
                      key={at}
                      class={`segment ${segment.failed ? "failed" : segment.to === undefined ? "progress" : "complete"} ${segment.action.toLowerCase()}`}
                      style={place(segment)}
                      title={`${segment.action.toLowerCase()}: ${duration((segment.to ?? end) - segment.from)}`}
                    />
                  ))}
                </div>
              </td>
            </>
          );
        }}
      />
      <Command text={`kiln stack timeline ${quoted(data.root.name)}`} />
    </>
  );
}
