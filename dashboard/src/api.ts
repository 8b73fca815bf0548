// Requests to the server: the session, and the REST API below it.

import { computed, signal } from "@preact/signals";

export interface NameAndId {
  id: string;
  name: string;
}

export interface Session {
  user: NameAndId;
  project: NameAndId;
  roles: string[];
  expires_at: string;
  /** The region of the service, if there are several. */
  region: string | null;
}

/** The session of this browser: undefined before the server has answered, null if nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
/** The regions between which the user chooses. */
export const regions = signal<string[]>([]);
/** What the page shows, as the server checks it: the project, and its region. */
export const scope = computed(() => {
  const { project, region } = session.value ?? {};
  return project && project.id + (region ? `@${region}` : "");
});
/** Whether the token of the session has expired: the page stays, and asks for the password above it. */
export const expired = signal(false);

/** An error that the server has explained. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
  ) {
    super(message);
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("X-Kiln-Dashboard", encodeURIComponent(scope.peek() ?? "-"));
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, redirect: "error" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "Unreachable", "The service does not answer.");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const { type = "", message = response.statusText } = body.error ?? {};
  if (response.status === 401 && path !== "session") expired.value = true;
  throw new ApiError(response.status, type, message);
}

async function json<T>(path: string, init: RequestInit): Promise<T> {
  const response = await send(path, init);
  const text = await response.text();
  // An update is answered with a page.
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return (text && isJson ? JSON.parse(text) : null) as T;
}

function withBody(method: string, body: unknown): RequestInit {
  return { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
}

/** The parts of a path, encoded. */
export function path(...parts: string[]): string {
  return parts.map((part) => "/" + encodeURIComponent(part)).join("");
}

export const get = <T>(path: string): Promise<T> => json<T>("api" + path, {});
/** What the cloud has for a constraint of a parameter, such as `nova.flavor`: the first 200. */
export const choices = async (constraint: string): Promise<NameAndId[]> =>
  (await json<{ choices: NameAndId[] }>("choices" + path(constraint), {})).choices;
export const post = <T>(path: string, body: unknown): Promise<T> => json<T>("api" + path, withBody("POST", body));
export const put = <T>(path: string, body: unknown): Promise<T> => json<T>("api" + path, withBody("PUT", body));
export const patch = <T>(path: string, body: unknown): Promise<T> => json<T>("api" + path, withBody("PATCH", body));
export const remove = (path: string): Promise<unknown> => json("api" + path, { method: "DELETE" });

/** A stream of server-sent events. */
export function stream(path: string, lastEvent: string | undefined, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastEvent) headers["Last-Event-ID"] = lastEvent;
  return send("api" + path, { headers, signal });
}

interface SessionAnswer {
  session: Session | null;
  regions: string[];
}

function begin({ session: begun, regions: all }: SessionAnswer): void {
  expired.value = false;
  regions.value = all;
  session.value = begun;
}

export async function loadSession(): Promise<void> {
  begin(await json<SessionAnswer>("session", {}));
}

export type Form =
  | { method: "password"; user: string; password: string; domain: string; project: string; passcode?: string }
  | { method: "application_credential"; id: string; secret: string }
  | { method: "token"; token: string };

export async function signIn(form: Form): Promise<void> {
  begin(await json<SessionAnswer>("session", withBody("POST", form)));
}

export async function changeProject(id: string): Promise<void> {
  begin(await json<SessionAnswer>("session", withBody("PUT", { project_id: id })));
}

export async function changeRegion(region: string): Promise<void> {
  begin(await json<SessionAnswer>("session", withBody("PUT", { region })));
}

export async function signOut(): Promise<void> {
  begin(await json<SessionAnswer>("session", { method: "DELETE" }));
}

export async function projects(): Promise<NameAndId[]> {
  return (await json<{ projects: NameAndId[] }>("projects", {})).projects;
}
