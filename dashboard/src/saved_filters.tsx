// Filters of the list of stacks, kept by this browser.

import { useSignal } from "@preact/signals";
import { Dialog, TextField } from "./parts";

export interface Filter {
  search: string;
  kind: string;
}

const KEY = "kiln-filters";
/** The value of the choice for none: a name that nobody can give. */
const NONE = "";

function isFilter(value: unknown): value is Filter {
  const { search, kind } = (value ?? {}) as Partial<Filter>;
  return typeof search === "string" && typeof kind === "string";
}

function stored(): Record<string, Filter> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(Object.entries(found ?? {}).filter(([name, filter]) => name !== NONE && isFilter(filter)));
  } catch {
    return {};
  }
}

function store(filters: Record<string, Filter>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(filters));
  } catch {
    // A browser without storage keeps them as long as the list is shown.
  }
}

const isSame = (one: Filter, other: Filter) => one.search === other.search && one.kind === other.kind;

/** Chooses, saves and removes filters. `present` is the one that is set, `plain` that of all stacks. */
export function SavedFilters(props: { present: Filter; plain: Filter; set: (filter: Filter) => void }) {
  const { present, plain, set } = props;
  const all = useSignal(stored());
  const naming = useSignal(false);
  const name = useSignal("");
  const keep = (filters: Record<string, Filter>) => {
    all.value = filters;
    store(filters);
  };
  const names = Object.keys(all.value);
  const current = names.find((name) => isSame(all.value[name]!, present)) ?? NONE;
  const save = (event: Event) => {
    event.preventDefault();
    if (name.value.trim() === NONE) return;
    // What other tabs have saved stays.
    keep({ ...stored(), [name.value.trim()]: present });
    name.value = "";
    naming.value = false;
  };
  const remove = () => keep(Object.fromEntries(Object.entries(stored()).filter(([name]) => name !== current)));
  return (
    <>
      {names.length > 0 && (
        <label>
          <span class="hidden">Saved filter</span>
          <select value={current} onChange={(event) => set(all.value[event.currentTarget.value] ?? plain)}>
            <option value={NONE}>no saved filter</option>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {current === NONE && !isSame(present, plain) && (
        <button type="button" class="small" onClick={() => (naming.value = true)}>
          Save the filter
        </button>
      )}
      {current !== NONE && (
        <button type="button" class="small" onClick={remove}>
          Forget the filter
        </button>
      )}
      {naming.value && (
        <Dialog title="Save the filter" close={() => (naming.value = false)}>
          <form onSubmit={save}>
            <TextField text={name} label="Name of the filter" hint="This browser keeps it." />
            <button type="submit" class="main" disabled={name.value.trim() === NONE}>
              Save
            </button>{" "}
            <button type="button" onClick={() => (naming.value = false)}>
              Close
            </button>
          </form>
        </Dialog>
      )}
    </>
  );
}
