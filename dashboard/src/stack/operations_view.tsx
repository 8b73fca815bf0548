// Who did what with a stack.

import { get } from "../api";
import { Command, duration, Id, Loading, LongTable, quoted, Status, useLoaded, when } from "../parts";
import type { StackData } from "./stack_data";

interface OperationJson {
  id: string;
  action: string;
  status: string;
  status_reason: string;
  revision: number | null;
  user_name: string | null;
  user_id: string | null;
  request_id: string | null;
  started_at: string;
  ended_at: string | null;
  /** How long it took. */
  seconds?: number | null;
}

export function OperationsView({ data }: { data: StackData }) {
  const load = async () => (await get<{ operations: OperationJson[] }>(`${data.base}/operations`)).operations;
  const { value, error } = useLoaded(load, [data.base, data.turn.value]);
  if (!value.value) return <Loading error={error.value} />;
  return (
    <>
      <LongTable
        label="Operations"
        rows={value.value}
        keyOf={(operation) => operation.id}
        head={
          <>
            <th>Began</th>
            <th>Took</th>
            <th>Operation</th>
            <th>By</th>
            <th>Revision</th>
            <th>Reason</th>
            <th>Request</th>
          </>
        }
        row={(operation) => (
          <>
            <td>{when(operation.started_at)}</td>
            <td>{operation.seconds == null ? "" : duration(operation.seconds * 1000)}</td>
            <td>
              <Status status={`${operation.action}_${operation.status}`} />
            </td>
            <td>{operation.user_name ?? operation.user_id}</td>
            <td>{operation.revision}</td>
            <td class="reason" title={operation.status_reason}>
              {operation.status_reason}
            </td>
            <td>
              <Id id={operation.request_id} />
            </td>
          </>
        )}
      />
      <Command text={`kiln stack operation list ${quoted(data.root.name)}`} />
    </>
  );
}
