// One resource: state, attributes, events.

import { useSignal } from "@preact/signals";
import { get, patch, path, post } from "../api";
import type { EventJson, StackId } from "../event";
import { Command, Confirm, Id, Loading, Status, TextField, option, quoted, useLoaded, when } from "../parts";
import { isKiln } from "../service";
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
      <div class="bar">
        <h2>
          {name} <Status status={one.resource_status} />
        </h2>
        <ResourceActions base={base} stack={stack.name} name={name} status={one.resource_status} done={resource.reload} />
      </div>
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

type ResourceAction = "mark" | "signal" | "forget";

/** What can be done with a resource. The engine does it after the answer. */
function ResourceActions(props: { base: string; stack: string; name: string; status: string; done: () => void }) {
  const { base, stack, name } = props;
  const open = useSignal<ResourceAction | undefined>(undefined);
  const text = useSignal("");
  const begin = (action: ResourceAction) => {
    text.value = "";
    open.value = action;
  };
  const of = `${quoted(stack)} ${quoted(name)}`;
  const actions = {
    mark: {
      label: "Mark unhealthy",
      explains: "The next update of the stack replaces the resource.",
      field: "Reason",
      command: `kiln stack resource mark unhealthy ${of}${text.value ? ` ${quoted(text.value)}` : ""}`,
      act: () => patch(base, { mark_unhealthy: true, resource_status_reason: text.value }),
    },
    signal: {
      label: "Signal",
      explains: "A policy scales its group, a wait condition gets its data, a deployment ends.",
      field: "Data (JSON)",
      command: `kiln stack resource signal ${of}${option("--data", text.value)}`,
      act: () => post(`${base}/signal`, text.value ? JSON.parse(text.value) : {}),
    },
    forget: {
      label: "Forget",
      explains: "The resource leaves the stack, and its object stays in the cloud: nobody deletes it any more.",
      field: "Reason",
      command: `kiln stack resource forget ${of}${option("--reason", text.value)}`,
      act: () => post(`${base}/forget`, text.value ? { reason: text.value } : {}),
    },
  };
  const action = open.value && actions[open.value];
  return (
    <span class="actions">
      <button type="button" onClick={() => begin("mark")}>
        Mark unhealthy
      </button>
      <button type="button" onClick={() => begin("signal")}>
        Signal
      </button>
      {isKiln.value && props.status.startsWith("DELETE") && (
        <button type="button" class="danger" onClick={() => begin("forget")}>
          Forget
        </button>
      )}
      {action && (
        <Confirm
          title={`${action.label}: ${name}`}
          label={action.label}
          command={action.command}
          danger={open.value === "forget"}
          close={() => (open.value = undefined)}
          act={async () => {
            await action.act();
            props.done();
          }}
        >
          <p>{action.explains}</p>
          <TextField label={action.field} text={text} />
        </Confirm>
      )}
    </span>
  );
}
