// One resource: state, attributes, events.

import { get, path } from "../api";
import type { EventJson, StackId } from "../event";
import { Command, Id, Loading, quoted, Status, useLoaded, when } from "../parts";
import { shown } from "../value";
import type { StackData } from "./stack_data";
import { keyOf } from "./tree";

interface ResourceJson {
  resource_name: string;
  resource_type: string;
  resource_status: string;
  resource_status_reason: string;
  physical_resource_id: string | null;
  creation_time: string;
  updated_time: string;
  description: string;
  required_by: string[];
  attributes?: Record<string, unknown>;
}

export function ResourcePage({ data, stack, name }: { data: StackData; stack: StackId; name: string }) {
  const base = path("stacks", stack.name, stack.id, "resources", name);
  const known = data.tree.value.value?.get(keyOf(stack.id, name));
  const keys = [base, known?.status];
  const resource = useLoaded(async () => (await get<{ resource: ResourceJson }>(base)).resource, keys);
  const events = useLoaded(
    async () => (await get<{ events: EventJson[] }>(`${base}/events?sort_dir=desc&limit=100`)).events,
    keys,
  );
  const one = resource.value.value;
  if (!one) return <Loading error={resource.error.value} />;
  return (
    <>
      <h2>
        {name} <Status status={one.resource_status} />
      </h2>
      <dl>
        <div>
          <dt>Type</dt>
          <dd>{one.resource_type}</dd>
        </div>
        <div>
          <dt>Object</dt>
          <dd>
            <Id id={one.physical_resource_id} />
          </dd>
        </div>
        <div>
          <dt>Reason</dt>
          <dd>{one.resource_status_reason}</dd>
        </div>
        <div>
          <dt>Updated</dt>
          <dd>{when(one.updated_time)}</dd>
        </div>
        <div>
          <dt>Depends on it</dt>
          <dd>{one.required_by.join(", ") || "nothing"}</dd>
        </div>
      </dl>
      <h2>Attributes</h2>
      <dl>
        {Object.entries(one.attributes ?? {}).map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>
              <pre>{shown(value)}</pre>
            </dd>
          </div>
        ))}
      </dl>
      <h2>Events</h2>
      <ul class="plain">
        {(events.value.value ?? []).map((event) => (
          <li key={event.id}>
            {when(event.event_time)} <Status status={event.resource_status} /> {event.resource_status_reason}
          </li>
        ))}
      </ul>
      <Command text={`kiln stack resource show ${quoted(stack.name)} ${quoted(name)}`} />
    </>
  );
}
