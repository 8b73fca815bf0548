// Activates the packaged extension against a stand-in for VS Code's API and waits for the diagnostics of a file.
// Run by ../check: node check.js FOLDER-OF-THE-EXTENSION FILE. It shows that the extension and its client start the server and
// talk with it; it does not show that VS Code itself likes the extension.
const fs = require("fs");
const Module = require("module");
const path = require("path");
const { pathToFileURL } = require("url");

const [folder, file] = [path.resolve(process.argv[2]), path.resolve(process.argv[3])];
const text = fs.readFileSync(file, "utf8");
const nothing = { dispose() {} };
const opened = [];

class Uri {
  constructor(text) { Object.assign(this, { text, scheme: "file", fsPath: file, path: file }); }
  toString() { return this.text; }
  static parse(text) { return new Uri(text); }
  static file(name) { return new Uri(pathToFileURL(name).href); }
}
class Place { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range { constructor(...at) { [this.start, this.end] = at.length === 4 ? [new Place(at[0], at[1]), new Place(at[2], at[3])] : at; } }
class Diagnostic { constructor(range, message) { Object.assign(this, { range, message }); } }

class EventEmitter {
  constructor() {
    this.listeners = [];
    this.event = (listener) => { this.listeners.push(listener); return nothing; };
  }
  fire(event) { for (const listener of this.listeners) listener(event); }
  dispose() {}
}

class CancellationTokenSource {
  constructor() { this.token = { isCancellationRequested: false, onCancellationRequested: () => nothing }; }
  cancel() {}
  dispose() {}
}

const document = {
  uri: Uri.file(file), fileName: file, languageId: "yaml", version: 1, isClosed: false, getText: () => text,
};

function show(uri, diagnostics) {
  const first = diagnostics[0];
  if (!first) return;
  console.log(`${first.range.start.line + 1}:${first.range.start.character + 1}: ${first.message}`);
  process.exit(0);
}

// Whatever else is asked for: events that never come, registrations, classes.
function anything(known) {
  return new Proxy(known, {
    get: (target, name) => {
      if (name in target || typeof name === "symbol") return target[name];
      if (/^on[A-Z]/.test(name) || /^(register|create|set)/.test(name)) return () => nothing;
      if (/^[A-Z]/.test(name)) return (target[name] = anything(class {}));
      return undefined;
    },
  });
}

const channel = anything({ append() {}, appendLine() {}, show() {}, dispose() {} });
const vscode = anything({
  version: "1.82.0",
  Uri, Range, Position: Place, Diagnostic, EventEmitter, CancellationTokenSource,
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  env: { appName: "check", language: "en" },
  commands: anything({}),
  extensions: anything({ all: [] }),
  languages: anything({
    match: () => 10,
    createDiagnosticCollection: () => ({ set: show, delete() {}, clear() {}, dispose() {} }),
  }),
  window: anything({
    visibleTextEditors: [], tabGroups: anything({ all: [], onDidChangeTabs: () => nothing }),
    createOutputChannel: () => channel,
    showErrorMessage: (message) => { console.error(message); process.exit(1); },
  }),
  workspace: anything({
    textDocuments: [document], workspaceFolders: undefined, notebookDocuments: [],
    getConfiguration: () => ({ get: (name) => (name === "path" ? process.env.KILN : undefined), inspect: () => undefined }),
    onDidOpenTextDocument: (listener) => { opened.push(listener); return nothing; },
  }),
});

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

setTimeout(() => { console.error("no diagnostics"); process.exit(1); }, 20000);
require(folder).activate({ subscriptions: [] });
