// The engines of the service, for operators.

import { get } from "./api";
import { Loading, LongTable, useLoaded, when } from "./parts";

interface Engine {
  id: string;
  hostname: string;
  binary: string;
  engine_id: string;
  status: string;
  updated_at: string | null;
}

export function ServicesView() {
  const { value, error } = useLoaded(async () => (await get<{ services: Engine[] }>("/services")).services, []);
  if (!value.value) return <main tabIndex={-1}><Loading error={error.value} /></main>;
  return (
    <main tabIndex={-1}>
      <h1>Engines</h1>
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
              <code class="id">{engine.engine_id}</code>
            </td>
          </>
        )}
      />
    </main>
  );
}
