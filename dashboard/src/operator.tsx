// What an operator looks at: the engines of the service, and the failed stacks of all projects.

import { ApiError, get } from "./api";
import { Command, Id, Loading, LongTable, Status, useLoaded, when } from "./parts";
import { Change, ChangeHead, type Stack } from "./stacks";

interface Engine {
  id: string;
  hostname: string;
  binary: string;
  engine_id: string;
  status: string;
  updated_at: string | null;
}

/** A stack in the list of all projects. */
interface FailedStack extends Stack {
  project: string;
}

const MOST = 1000;

export function OperatorView() {
  return (
    <main tabIndex={-1}>
      <h1>Operator</h1>
      <Engines />
      <FailedStacks />
    </main>
  );
}

function Engines() {
  const { value, error } = useLoaded(async () => (await get<{ services: Engine[] }>("/services")).services, []);
  return (
    <>
      <h2>Engines</h2>
      {!value.value ? (
        <Loading error={error.value} />
      ) : (
        <LongTable
          label="Engines"
          rows={value.value}
          keyOf={(engine) => engine.id}
          head={
            <>
              <th>Host</th>
              <th>Program</th>
              <th>Status</th>
              <th>Last seen</th>
              <th>ID</th>
            </>
          }
          row={(engine) => (
            <>
              <td>{engine.hostname}</td>
              <td>{engine.binary}</td>
              <td>{engine.status}</td>
              <td>{when(engine.updated_at)}</td>
              <td>
                <Id id={engine.engine_id} />
              </td>
            </>
          )}
        />
      )}
    </>
  );
}

function FailedStacks() {
  const list = `/stacks?global_tenant=true&status=FAILED&limit=${MOST}`;
  const { value, error } = useLoaded(async () => (await get<{ stacks: FailedStack[] }>(list)).stacks, []);
  const isDenied = error.value instanceof ApiError && error.value.status === 403;
  const stacks = value.value;
  return (
    <>
      <h2>Failed stacks of all projects</h2>
      {isDenied && <p>The policy of the service lets nobody list them: the rule is stacks:global_index.</p>}
      {!stacks && !isDenied && <Loading error={error.value} />}
      {stacks?.length === 0 && <p>No stack has failed.</p>}
      {stacks && stacks.length >= MOST && <p>The first {MOST}.</p>}
      {stacks && stacks.length > 0 && (
        <LongTable
          label="Failed stacks"
          rows={stacks}
          keyOf={(stack) => stack.id}
          head={
            <>
              <th>Project</th>
              <th>Stack</th>
              <th>Status</th>
              <ChangeHead />
            </>
          }
          row={(stack) => (
            <>
              <td>
                <Id id={stack.project} />
              </td>
              <td>{stack.stack_name}</td>
              <td>
                <Status status={stack.stack_status} />
              </td>
              <Change stack={stack} />
            </>
          )}
        />
      )}
      <Command text="kiln stack list --all-projects --property status=FAILED" />
    </>
  );
}
