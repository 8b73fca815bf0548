// Draws a graph on a canvas: only what is in sight.

import type { Graph } from "./graph";
import type { Layout } from "./layout";

export const NODE = { width: 190, height: 44, across: 250, down: 60 };

/** The part of the picture in sight. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export const placeOf = (layout: Layout, node: number) => ({
  x: layout.columns[node]! * NODE.across,
  y: layout.rows[node]! * NODE.down,
});

/** The camera that shows everything, within limits of size. */
export function overview(layout: Layout, width: number, height: number): Camera {
  const [wide, high] = [layout.width * NODE.across, layout.height * NODE.down];
  const scale = Math.max(0.05, Math.min(1, (width - 40) / wide, (height - 40) / high));
  return { x: Math.min(0, (wide - width / scale) / 2) - 20 / scale, y: Math.min(0, (high - height / scale) / 2), scale };
}

/** The node at a point of the canvas. */
export function nodeAt(layout: Layout, camera: Camera, x: number, y: number): number | undefined {
  const [wx, wy] = [x / camera.scale + camera.x, y / camera.scale + camera.y];
  for (let node = 0; node < layout.columns.length; node += 1) {
    const place = placeOf(layout, node);
    if (wx >= place.x && wx <= place.x + NODE.width && wy >= place.y && wy <= place.y + NODE.height) return node;
  }
  return undefined;
}

function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  const letters = Math.max(1, Math.floor((text.length * width) / context.measureText(text).width) - 1);
  return text.slice(0, letters) + "…";
}

export function draw(canvas: HTMLCanvasElement, graph: Graph, layout: Layout, camera: Camera, selected: number): void {
  const ratio = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const context = canvas.getContext("2d")!;
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(`--${name}`);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const scale = camera.scale * ratio;
  context.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale);
  const left = camera.x;
  const top = camera.y;
  const right = left + width / camera.scale;
  const bottom = top + height / camera.scale;

  const line = (from: number, to: number) => {
    const [a, b] = [placeOf(layout, from), placeOf(layout, to)];
    const [x1, y1, x2, y2] = [a.x + NODE.width, a.y + NODE.height / 2, b.x, b.y + NODE.height / 2];
    if (Math.max(x1, x2) < left || Math.min(x1, x2) > right || Math.max(y1, y2) < top || Math.min(y1, y2) > bottom) return;
    const bend = Math.max(30, Math.abs(x2 - x1) / 2);
    context.moveTo(x1, y1);
    if (camera.scale < 0.3) context.lineTo(x2, y2);
    else context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  };
  context.lineWidth = 1 / Math.min(1, camera.scale);
  for (const own of [false, true]) {
    context.strokeStyle = own ? colour("accent") : colour("line");
    context.beginPath();
    for (let at = 0; at < graph.edges.length; at += 2) {
      const [from, to] = [graph.edges[at]!, graph.edges[at + 1]!];
      if ((from === selected || to === selected) === own) line(from, to);
    }
    context.stroke();
  }

  const colours = { complete: colour("complete"), progress: colour("progress"), failed: colour("failed"), none: colour("quiet") };
  const [paper, ink, quiet, accent] = [colour("paper"), colour("ink"), colour("quiet"), colour("accent")];
  for (let node = 0; node < graph.nodes.length; node += 1) {
    const { x, y } = placeOf(layout, node);
    if (x + NODE.width < left || x > right || y + NODE.height < top || y > bottom) continue;
    const { kind, label, type, members } = graph.nodes[node]!;
    if (camera.scale < 0.3) {
      context.fillStyle = node === selected ? accent : colours[kind];
      context.fillRect(x, y, NODE.width, NODE.height);
      continue;
    }
    context.fillStyle = paper;
    context.strokeStyle = node === selected ? accent : colours[kind];
    context.lineWidth = node === selected ? 3 : 1.5;
    if (members.length > 1) context.strokeRect(x + 4, y + 4, NODE.width, NODE.height);
    context.fillRect(x, y, NODE.width, NODE.height);
    context.strokeRect(x, y, NODE.width, NODE.height);
    context.fillStyle = colours[kind];
    context.fillRect(x, y, 6, NODE.height);
    context.fillStyle = ink;
    context.font = "13px system-ui, sans-serif";
    context.fillText(cut(context, label, NODE.width - 24), x + 14, y + 18);
    context.fillStyle = quiet;
    context.font = "11px system-ui, sans-serif";
    const inside = members.length === 1 && members[0]!.nested ? " ▸" : "";
    context.fillText(cut(context, type + inside, NODE.width - 24), x + 14, y + 35);
  }
}
