// Events, and the links by which the API refers to stacks.

export interface ApiLink {
  href: string;
  rel: string;
}

/** An event as the API returns it. */
export interface EventJson {
  id: string;
  event_time: string;
  resource_name: string;
  physical_resource_id: string | null;
  resource_status: string;
  resource_status_reason: string;
  links: ApiLink[];
}

export interface StackEvent {
  id: string;
  /** In ms since 1970. */
  time: number;
  /** The stack of the resource, nested ones included. */
  stack: StackId;
  resource: string;
  object: string | null;
  status: string;
  reason: string;
  /** Whether it is about the stack itself, not about one of its resources. */
  ofStack: boolean;
}

/** A stack in a path: its name and ID. */
export interface StackId {
  name: string;
  id: string;
}

/** The stack of a link with rel 'stack' or 'nested'. */
export function stackOf(links: ApiLink[] | undefined, rel: string): StackId | undefined {
  const href = links?.find((link) => link.rel === rel)?.href;
  const found = href && /\/stacks\/([^/]+)\/([^/?]+)/.exec(href);
  return found ? { name: decodeURIComponent(found[1]!), id: decodeURIComponent(found[2]!) } : undefined;
}

export function readEvent(json: EventJson): StackEvent {
  const stack = stackOf(json.links, "stack") ?? { name: "", id: "" };
  return {
    id: json.id,
    time: timeOf(json),
    stack,
    resource: json.resource_name,
    object: json.physical_resource_id,
    status: json.resource_status,
    reason: json.resource_status_reason,
    ofStack: json.physical_resource_id !== null && json.physical_resource_id === stack.id,
  };
}

/** Kiln's IDs (UUID version 7) have the time in ms, the event itself has it in seconds. */
function timeOf(json: EventJson): number {
  const seconds = Date.parse(json.event_time);
  if (json.id[14] !== "7") return seconds;
  const exact = parseInt(json.id.slice(0, 8) + json.id.slice(9, 13), 16);
  return Math.abs(exact - seconds) < 2000 ? exact : seconds;
}
