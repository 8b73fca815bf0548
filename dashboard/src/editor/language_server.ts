// The client of the language server: one socket for each editor.

import { type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import type { Options } from "./api";

interface Position {
  line: number;
  character: number;
}

interface Range {
  start: Position;
  end: Position;
}

interface Item {
  label: string;
  detail?: string;
  kind?: number;
  documentation?: { value: string };
  textEdit: { range: Range; newText: string };
}

const FOLDER = "file:///stack/";
const TEMPLATE = `${FOLDER}template.yaml`;
/** Changes are sent when nothing was typed for this long, or before a question, in ms. */
const PAUSE = 150;
/** A socket that was closed is opened again by a change, but not more often than this, in ms. */
const AGAIN = 5000;
/** An answer that takes longer is not waited for, in ms. */
const PATIENCE = 5000;
const SEVERITIES = ["error", "error", "warning", "info", "info"] as const;
const KINDS: Record<number, string> = { 3: "function", 5: "property", 6: "variable", 7: "type", 10: "property", 12: "constant", 14: "keyword" };

/** The address of a file that a template names. It must be that to which the server resolves the name. */
function address(name: string): string {
  return (/^[a-z][\w+.-]*:/i.test(name) ? name : FOLDER + name.replace(/^(\.?\/)+/, "")).replaceAll(" ", "%20");
}

function offset(text: Text, { line, character }: Position): number {
  if (line >= text.lines) return text.length;
  const { from, length } = text.line(line + 1);
  return from + Math.min(character, length);
}

function position(text: Text, at: number): Position {
  const line = text.lineAt(at);
  return { line: line.number - 1, character: at - line.from };
}

export class LanguageServer {
  private socket: WebSocket | undefined;
  private view: EditorView | undefined;
  private isReady = false;
  private isStopped = false;
  private connectedAt = 0;
  private asked = 0;
  private version = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private waiting = new Map<number, (result: unknown) => void>();
  /** The files that the server has, by address. */
  private sent = new Map<string, string>();

  constructor(
    private readonly url: URL,
    private files: Record<string, string>,
    private readonly checked: Options["checked"],
  ) {}

  start(view: EditorView): void {
    this.view = view;
    this.connect();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  private connect(): void {
    this.connectedAt = Date.now();
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = async () => {
      await this.ask("initialize", { processId: null, rootUri: null, capabilities: {} });
      if (this.socket !== socket || !this.view) return;
      this.tell("initialized", {});
      this.isReady = true;
      this.sendFiles();
      this.version += 1;
      const text = this.view.state.doc.toString();
      this.tell("textDocument/didOpen", { textDocument: { uri: TEMPLATE, languageId: "yaml", version: this.version, text } });
    };
    socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
    // The next change connects again.
    socket.onclose = () => {
      this.isReady = false;
      this.socket = undefined;
      this.sent.clear();
      for (const done of this.waiting.values()) done(null);
      this.waiting.clear();
      if (!this.isStopped) this.checked(undefined);
    };
  }

  private receive(message: { id?: number; method?: string; result?: unknown; params?: { uri: string; version?: number; diagnostics: unknown[] } }): void {
    if (message.id !== undefined) {
      this.waiting.get(message.id)?.(message.result ?? null);
      this.waiting.delete(message.id);
    }
    const { method, params } = message;
    if (method !== "textDocument/publishDiagnostics" || !params || params.uri !== TEMPLATE || !this.view) return;
    // What was checked is not the text any more.
    if (params.version !== this.version || this.timer !== undefined) return;
    const { state } = this.view;
    const found = (params.diagnostics as { range: Range; severity: number; message: string }[]).map((one): Diagnostic => {
      const [from, to] = [offset(state.doc, one.range.start), offset(state.doc, one.range.end)];
      return { from, to: Math.max(from, to), severity: SEVERITIES[one.severity] ?? "info", message: one.message };
    });
    this.view.dispatch(setDiagnostics(state, found));
    const troubles = found.map(({ from, severity, message }) => ({
      line: state.doc.lineAt(from).number,
      severity: severity as "error" | "warning" | "info",
      message,
    }));
    this.checked(troubles);
  }

  private tell(method: string, params: unknown): void {
    // A socket that is closing says so in the console. Another one is told everything again.
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    this.socket.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  private ask<T>(method: string, params: unknown): Promise<T | null> {
    const { socket } = this;
    if (socket?.readyState !== WebSocket.OPEN) return Promise.resolve(null);
    this.asked += 1;
    const id = this.asked;
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return new Promise((done) => {
      this.waiting.set(id, done as (result: unknown) => void);
      setTimeout(() => {
        if (this.waiting.delete(id)) done(null);
      }, PATIENCE);
    });
  }

  change(text: Text): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(text), PAUSE);
    if (!this.socket && !this.isStopped && Date.now() > this.connectedAt + AGAIN) this.connect();
  }

  private flush(text: Text): void {
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.isReady) return;
    this.version += 1;
    this.tell("textDocument/didChange", { textDocument: { uri: TEMPLATE, version: this.version }, contentChanges: [{ text: text.toString() }] });
  }

  setFiles(files: Record<string, string>): void {
    this.files = files;
    if (this.isReady) this.sendFiles();
  }

  private sendFiles(): void {
    const wanted = new Map(Object.entries(this.files).map(([name, text]) => [address(name), text]));
    for (const uri of [...this.sent.keys()].filter((uri) => !wanted.has(uri))) {
      this.tell("textDocument/didClose", { textDocument: { uri } });
      this.sent.delete(uri);
    }
    for (const [uri, text] of wanted) {
      if (this.sent.get(uri) === text) continue;
      this.tell("textDocument/didOpen", { textDocument: { uri, languageId: "yaml", version: 1, text } });
      this.sent.set(uri, text);
    }
  }

  async complete(context: CompletionContext): Promise<CompletionResult | null> {
    const text = context.state.doc;
    const before = text.lineAt(context.pos).text.slice(0, context.pos - text.lineAt(context.pos).from);
    if (!context.explicit && !/[\w:.[{,]$|: $/.test(before)) return null;
    this.flush(text);
    const params = { textDocument: { uri: TEMPLATE }, position: position(text, context.pos) };
    const items = (await this.ask<Item[]>("textDocument/completion", params)) ?? [];
    const [first] = items;
    if (!first || context.aborted) return null;
    const from = offset(text, first.textEdit.range.start);
    // What is written already needs no list, which would take the next Enter.
    if (!context.explicit && items.some(({ label }) => label === text.sliceString(from, context.pos))) return null;
    const options = items.map((item, at): Completion => {
      const shown = item.documentation?.value;
      return {
        label: item.label,
        apply: item.textEdit.newText,
        ...(item.detail && { detail: item.detail }),
        ...(shown && { info: shown }),
        type: KINDS[item.kind ?? 0] ?? "text",
        boost: -Math.min(at, 99),
      };
    });
    return { from, options, validFor: /^[\w:.-]*$/ };
  }

  async hover(text: Text, at: number): Promise<{ from: number; to: number; text: string } | null> {
    this.flush(text);
    const params = { textDocument: { uri: TEMPLATE }, position: position(text, at) };
    const hover = await this.ask<{ contents: { value: string }; range: Range }>("textDocument/hover", params);
    return hover && { from: offset(text, hover.range.start), to: offset(text, hover.range.end), text: hover.contents.value };
  }
}
