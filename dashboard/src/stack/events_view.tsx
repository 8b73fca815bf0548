// The events of a stack, the newest first.

import { useSignal } from "@preact/signals";
import { Command, Loading, LongTable, quoted, Search, searched, Status, when } from "../parts";
import type { StackData } from "./stack_data";

/** A field of CSV. A leading sign would be a formula in a spreadsheet. */
function csv(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

export function EventsView({ data }: { data: StackData }) {
  const search = useSignal("");
  const events = data.events.value;
  if (!events) return <Loading error={data.eventsError.value} />;
  const matches = searched(search.value);
  const shown = events.filter(({ resource, status, reason, object }) => matches(`${resource} ${status} ${reason} ${object}`));
  shown.reverse();
  const save = () => {
    const rows = shown.map((event) => {
      const { time, stack, resource, status, reason, object, id } = event;
      return [new Date(time).toISOString(), stack.name, resource, status, reason, object ?? "", id];
    });
    const head = ["time", "stack", "resource", "status", "reason", "object", "id"];
    const text = [head, ...rows].map((row) => row.map(csv).join(",")).join("\r\n");
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = `${data.root.name}-events.csv`;
    anchor.click();
    URL.revokeObjectURL(url);
  };
  return (
    <>
      <div class="bar">
        <Search text={search} label="Search events" hint="resource, status, reason" />
        <span class="quiet">
          {shown.length} of {events.length}
        </span>
        <button type="button" onClick={save}>
          Save as CSV
        </button>
      </div>
      <LongTable
        label="Events"
        rows={shown}
        keyOf={(event) => event.id}
        head={
          <>
            <th>Time</th>
            <th>Stack</th>
            <th>Resource</th>
            <th>Status</th>
            <th>Reason</th>
          </>
        }
        row={(event) => (
          <>
            <td>{when(event.time)}</td>
            <td>{event.stack.name}</td>
            <td>{event.resource}</td>
            <td>
              <Status status={event.status} />
            </td>
            <td class="reason" title={event.reason}>
              {event.reason}
            </td>
          </>
        )}
      />
      <Command text={`kiln stack event list ${quoted(data.root.name)} --nested-depth 5`} />
    </>
  );
}
