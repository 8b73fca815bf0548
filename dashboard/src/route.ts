// The address of a view: the part of the URL after '#', so that the page works below any prefix of a proxy.

import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

/** The parts of the address: ["stacks", "web", "ID", "time"]. */
export const route = computed(() =>
  hash.value
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    }),
);

/** The link to a view. */
export function link(...parts: string[]): string {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

export function go(...parts: string[]): void {
  location.hash = link(...parts);
}

/** What goes to a view when something is done that begins now, unless the user has left the present view meanwhile. */
export function goWhenDone(): typeof go {
  const here = location.hash;
  return (...parts) => {
    if (location.hash === here) go(...parts);
  };
}
