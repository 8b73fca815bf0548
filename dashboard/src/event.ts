// Events as the API returns them.

export interface ApiLink {
  href: string;
  rel: string;
}

export interface StackEvent {
  id: string;
  event_time: string;
  resource_name: string;
  physical_resource_id: string | null;
  resource_status: string;
  resource_status_reason: string;
  links: ApiLink[];
}

/** A stack in a path: its name and ID. */
export interface StackId {
  name: string;
  id: string;
}

/** The stack of a link with rel 'stack', 'nested' or 'self'. */
export function stackOf(links: ApiLink[] | undefined, rel: string): StackId | undefined {
  const href = links?.find((link) => link.rel === rel)?.href;
  const found = href && /\/stacks\/([^/]+)\/([^/?]+)/.exec(href);
  return found ? { name: decodeURIComponent(found[1]!), id: decodeURIComponent(found[2]!) } : undefined;
}

/** Whether an event is about a stack itself, not about one of its resources. */
export function isOfStack(event: StackEvent): boolean {
  return event.physical_resource_id !== null && event.physical_resource_id === stackOf(event.links, "stack")?.id;
}

/** The time of an event in ms since 1970. Kiln's IDs (UUID version 7) have it in ms, the time itself is in seconds. */
export function timeOf(event: StackEvent): number {
  const seconds = Date.parse(event.event_time);
  if (event.id[14] !== "7") return seconds;
  const exact = parseInt(event.id.slice(0, 8) + event.id.slice(9, 13), 16);
  return Math.abs(exact - seconds) < 2000 ? exact : seconds;
}
