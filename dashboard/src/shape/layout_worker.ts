// Computes layouts beside the page, so that it stays responsive.

import { layout } from "./layout";

interface Scope {
  onmessage: ((event: MessageEvent<{ id: number; count: number; edges: Int32Array }>) => void) | null;
  postMessage(message: unknown): void;
}

const scope = globalThis as unknown as Scope;
scope.onmessage = ({ data: { id, count, edges } }) => scope.postMessage({ id, layout: layout(count, edges) });
