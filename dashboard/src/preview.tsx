// The preview of a Heat, where Kiln makes a plan.

interface Previewed {
  resource_name: string;
  resource_type: string;
}

/** What a Heat answers to the preview of a create: the resources of the stack. */
export interface CreatePreview {
  stack: { resources: (Previewed | Previewed[])[] };
}

/** What it answers to that of an update. */
export interface UpdatePreview {
  resource_changes: Record<"added" | "deleted" | "replaced" | "updated" | "unchanged", Previewed[]>;
}

/** The changes of a preview, those that destroy something first. */
export function changesOf(answer: CreatePreview | UpdatePreview): [string, Previewed][] {
  // Those of a nested stack are a list in the list.
  if ("stack" in answer) return (answer.stack.resources.flat(Infinity) as Previewed[]).map((one) => ["create", one]);
  const { deleted, replaced, updated, added } = answer.resource_changes;
  const all: [string, Previewed[]][] = [["delete", deleted], ["replace", replaced], ["update", updated], ["create", added]];
  return all.flatMap(([change, some]) => some.map((one): [string, Previewed] => [change, one]));
}

export function PreviewTable({ changes }: { changes: [string, Previewed][] }) {
  return (
    <section aria-label="Preview">
      <p role="status">
        Heat's preview: {changes.length} {changes.length === 1 ? "resource is" : "resources are"} changed. It does not show
        properties, nor what is lost.
      </p>
      <table>
        <thead>
          <tr>
            <th>Change</th>
            <th>Resource</th>
            <th>Type</th>
          </tr>
        </thead>
        <tbody>
          {changes.map(([change, { resource_name, resource_type }], at) => (
            <tr key={at}>
              <td class={change === "delete" || change === "replace" ? "failure" : ""}>{change}</td>
              <td>{resource_name}</td>
              <td>{resource_type}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
