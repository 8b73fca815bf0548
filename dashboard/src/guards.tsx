// What is protected, and by whom.

import { get } from "./api";
import { Loading, LongTable, useLoaded, when } from "./parts";

interface Guard {
  id: string;
  stack_name?: string;
  stack_id?: string;
  resources?: string[];
  resource?: string;
  forbids?: string[];
  reason: string;
  user_name?: string;
  user_id?: string;
  created_at?: string;
}

export function GuardsView() {
  const { value, error } = useLoaded(async () => (await get<{ guards: Guard[] }>("/guards")).guards, []);
  if (!value.value) return <main tabIndex={-1}><Loading error={error.value} /></main>;
  return (
    <main tabIndex={-1}>
      <h1>Guards</h1>
      {value.value.length === 0 && <p>Nothing in this project is guarded.</p>}
      <LongTable
        label="Guards"
        rows={value.value}
        keyOf={(guard) => guard.id}
        head={
          <>
            <th>Stack</th>
            <th>Resources</th>
            <th>Forbids</th>
            <th>Reason</th>
            <th>By</th>
            <th>Since</th>
          </>
        }
        row={(guard) => (
          <>
            <td>{guard.stack_name ?? guard.stack_id}</td>
            <td>{(guard.resources ?? [guard.resource ?? "all"]).join(", ")}</td>
            <td>{(guard.forbids ?? []).join(", ")}</td>
            <td class="reason" title={guard.reason}>
              {guard.reason}
            </td>
            <td>{guard.user_name ?? guard.user_id}</td>
            <td>{when(guard.created_at)}</td>
          </>
        )}
      />
    </main>
  );
}
