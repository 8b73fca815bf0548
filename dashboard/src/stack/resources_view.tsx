// The resources of a stack as a tree, which a screen reader reads as a table.

import { useSignal } from "@preact/signals";
import { Command, Id, kindOf, Loading, LongTable, quoted, Search, searched, Status } from "../parts";
import { link } from "../route";
import type { StackData } from "./stack_data";
import type { Resource } from "./tree";

/** The link to the page of a resource. */
export function resourceLink(data: StackData, resource: Resource): string {
  const { name, id } = data.root;
  return link("stacks", name, id, "resource", resource.stack.name, resource.stack.id, resource.name);
}

export function ResourcesView({ data }: { data: StackData }) {
  const search = useSignal("");
  const failed = useSignal(false);
  const tree = data.tree.value.value;
  if (!tree) return <Loading error={data.tree.error.value} />;
  const matches = searched(search.value);
  const shown = [...tree.values()].filter((resource) => {
    if (failed.value && kindOf(resource.status) !== "failed") return false;
    return matches(`${resource.path.join("/")} ${resource.type} ${resource.object ?? ""} ${resource.status}`);
  });
  return (
    <>
      <div class="bar">
        <Search text={search} label="Search resources" hint="name, type, ID, status" />
        <label>
          <input type="checkbox" checked={failed.value} onChange={() => (failed.value = !failed.value)} /> failed only
        </label>
        <span class="quiet">
          {shown.length} of {tree.size}
        </span>
      </div>
      <LongTable
        label="Resources"
        rows={shown}
        keyOf={(resource) => resource.key}
        head={
          <>
            <th>Name</th>
            <th>Type</th>
            <th>Status</th>
            <th>Object</th>
            <th>Reason</th>
          </>
        }
        row={(resource) => (
          <>
            <td style={{ paddingLeft: `${0.5 + 1.2 * (resource.path.length - 1)}rem` }}>
              <a href={resourceLink(data, resource)} title={resource.path.join(" / ")}>
                {resource.name}
              </a>
            </td>
            <td>{resource.type}</td>
            <td>
              <Status status={resource.status} />
            </td>
            <td>
              <Id id={resource.object} />
            </td>
            <td class="reason" title={resource.reason}>
              {resource.reason === "state changed" ? "" : resource.reason}
            </td>
          </>
        )}
      />
      <Command text={`kiln stack resource list ${quoted(data.root.name)} --nested-depth 5`} />
    </>
  );
}
