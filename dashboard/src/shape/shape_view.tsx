// The resources of a stack as a graph of what depends on what. The tree of the view 'Resources' shows the same as text.

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Loading } from "../parts";
import { resourceLink } from "../stack/resources_view";
import type { StackData } from "../stack/stack_data";
import { theme } from "../theme";
import { type Camera, draw, nodeAt, NODE, overview, placeOf } from "./drawing";
import { type Graph, graphOf } from "./graph";
import type { Layout } from "./layout";

export function ShapeView({ data }: { data: StackData }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  /** The nested stacks that are open, from the root on: their IDs and names. */
  const level = useSignal<{ id: string; name: string }[]>([{ id: data.root.id, name: data.root.name }]);
  const opened = useSignal<ReadonlySet<string>>(new Set());
  const laid = useSignal<{ graph: Graph; layout: Layout } | undefined>(undefined);
  const camera = useSignal<Camera>({ x: 0, y: 0, scale: 1 });
  const selected = useSignal(-1);
  const worker = useRef<Worker | undefined>(undefined);
  const request = useRef(0);
  const fitted = useRef("");

  const stack = useComputed(() => level.value[level.value.length - 1]!.id);
  const graph = useComputed(() => data.tree.value.value && graphOf(data.tree.value.value, stack.value, opened.value));
  /** The form of the graph: a change of state alone needs no new layout. */
  const form = useComputed(() => graph.value && `${graph.value.nodes.map(({ key }) => key).join("\n")}\n${graph.value.edges.join()}`);

  useEffect(() => {
    const made = new Worker("layout.js", { type: "module" });
    worker.current = made;
    made.onmessage = ({ data: { id, layout } }: MessageEvent<{ id: number; layout: Layout }>) => {
      const current = graph.peek();
      // A late answer is for a graph that is gone.
      if (id !== request.current || !current || layout.columns.length !== current.nodes.length) return;
      laid.value = { graph: current, layout };
      if (fitted.current !== stack.peek() && canvas.current) {
        fitted.current = stack.peek();
        camera.value = overview(layout, canvas.current.clientWidth, canvas.current.clientHeight);
      }
    };
    return () => made.terminate();
  }, []);
  useSignalEffect(() => {
    if (form.value === undefined) return;
    const { nodes, edges } = graph.peek()!;
    request.current += 1;
    worker.current?.postMessage({ id: request.current, count: nodes.length, edges });
  });
  useSignalEffect(() => {
    const current = laid.value;
    const latest = graph.value;
    void theme.value;
    const [view, chosen] = [camera.value, selected.value];
    if (!current || !latest) return;
    const fits = latest.nodes.length === current.layout.columns.length;
    const frame = requestAnimationFrame(() => {
      if (canvas.current) draw(canvas.current, fits ? latest : current.graph, current.layout, view, chosen);
    });
    return () => cancelAnimationFrame(frame);
  });
  useEffect(() => {
    // Not passive: the wheel zooms, and the page stays.
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    };
    const element = canvas.current;
    element?.addEventListener("wheel", wheel, { passive: false });
    const sized = new ResizeObserver(() => (camera.value = { ...camera.peek() }));
    if (element) sized.observe(element);
    return () => {
      element?.removeEventListener("wheel", wheel);
      sized.disconnect();
    };
  }, [graph.value === undefined]);

  const zoom = (factor: number, x: number, y: number) => {
    const { x: left, y: top, scale } = camera.peek();
    const next = Math.min(3, Math.max(0.02, scale * factor));
    camera.value = { x: left + x / scale - x / next, y: top + y / scale - y / next, scale: next };
  };
  const fit = () => {
    const element = canvas.current;
    if (laid.value && element) camera.value = overview(laid.value.layout, element.clientWidth, element.clientHeight);
  };
  const choose = (node: number) => {
    selected.value = node;
    const current = laid.peek();
    const element = canvas.current;
    if (node < 0 || !current || !element) return;
    const place = placeOf(current.layout, node);
    const { x, y, scale } = camera.peek();
    const [right, bottom] = [x + element.clientWidth / scale, y + element.clientHeight / scale];
    if (place.x < x || place.y < y || place.x + NODE.width > right || place.y + NODE.height > bottom) {
      const [half, middle] = [element.clientWidth / scale / 2, element.clientHeight / scale / 2];
      camera.value = { x: place.x + NODE.width / 2 - half, y: place.y + NODE.height / 2 - middle, scale };
    }
  };
  const open = (node: number) => {
    const one = graph.peek()?.nodes[node];
    if (!one) return;
    if (one.members.length > 1) {
      selected.value = -1;
      opened.value = new Set([...opened.peek(), one.key]);
      return;
    }
    const [resource] = one.members;
    if (resource!.nested) {
      selected.value = -1;
      laid.value = undefined;
      level.value = [...level.peek(), { id: resource!.nested, name: resource!.name }];
    } else location.hash = resourceLink(data, resource!);
  };
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  const down = (event: PointerEvent) => {
    drag.current = { x: event.clientX, y: event.clientY, moved: false };
    canvas.current?.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent) => {
    const from = drag.current;
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.moved && Math.hypot(dx, dy) < 4) return;
    const { x, y, scale } = camera.peek();
    camera.value = { x: x - dx / scale, y: y - dy / scale, scale };
    drag.current = { x: event.clientX, y: event.clientY, moved: true };
  };
  const up = (event: PointerEvent) => {
    const from = drag.current;
    drag.current = undefined;
    if (!from || from.moved || !laid.value) return;
    selected.value = nodeAt(laid.value.layout, camera.value, event.offsetX, event.offsetY) ?? -1;
  };
  const key = (event: KeyboardEvent) => {
    const current = laid.value;
    if (!current) return;
    const count = current.graph.nodes.length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const across = { ArrowRight: true, ArrowLeft: false }[event.key];
    if (step !== undefined) choose((selected.value + step + count) % count);
    else if (across !== undefined) choose(neighbour(current.graph, selected.value, across));
    else if (event.key === "Enter") open(selected.value);
    else if (event.key === "+") zoom(1.3, canvas.current!.clientWidth / 2, canvas.current!.clientHeight / 2);
    else if (event.key === "-") zoom(1 / 1.3, canvas.current!.clientWidth / 2, canvas.current!.clientHeight / 2);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  };
  if (!graph.value) return <Loading error={data.tree.error.value} />;
  const one = graph.value.nodes[selected.value];
  return (
    <>
      <div class="bar">
        <nav class="crumbs" aria-label="Nested stacks">
          {level.value.map(({ id, name }, at) => (
            <button
              key={id}
              type="button"
              class="small"
              disabled={at === level.value.length - 1}
              onClick={() => {
                selected.value = -1;
                laid.value = undefined;
                level.value = level.value.slice(0, at + 1);
              }}
            >
              {name}
            </button>
          ))}
        </nav>
        <button type="button" class="small" onClick={fit}>
          Show all
        </button>
        {opened.value.size > 0 && (
          <button type="button" class="small" onClick={() => (opened.value = new Set())}>
            Group equal resources
          </button>
        )}
        <span class="legend">
          {(["complete", "progress", "failed", "none"] as const).map((kind) => (
            <span key={kind} class={`status ${kind}`}>
              ■ {kind === "progress" ? "in progress" : kind === "none" ? "not begun" : kind}
            </span>
          ))}
        </span>
      </div>
      <canvas
        ref={canvas}
        class="shape"
        aria-busy={laid.value === undefined}
        tabIndex={0}
        role="application"
        aria-label={`${graph.value.nodes.length} resources. Arrow keys choose one, Enter opens it. The view Resources shows them as a table.`}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onDblClick={(event) => {
          const node = laid.value && nodeAt(laid.value.layout, camera.value, event.offsetX, event.offsetY);
          if (node !== undefined) open(node);
        }}
        onKeyDown={key}
      />
      <p role="status" class="chosen">
        {one ? (
          <>
            <strong>{one.label}</strong> {one.type}, {one.kind === "progress" ? "in progress" : one.kind}{" "}
            <button type="button" class="small" onClick={() => open(selected.value)}>
              {one.members.length > 1 ? "Show one by one" : one.members[0]!.nested ? "Open the nested stack" : "Details"}
            </button>
            {one.members.length === 1 && one.members[0]!.nested && (
              <>
                {" "}
                <a href={resourceLink(data, one.members[0]!)}>Details</a>
              </>
            )}
          </>
        ) : (
          "Choose a resource to see what it depends on."
        )}
      </p>
    </>
  );
}

/** The first node that depends on a node, or on which it depends. */
function neighbour(graph: Graph, node: number, after: boolean): number {
  for (let at = 0; at < graph.edges.length; at += 2) {
    const [from, to] = [graph.edges[at]!, graph.edges[at + 1]!];
    if (after && from === node) return to;
    if (!after && to === node) return from;
  }
  return node < 0 ? 0 : node;
}
