// Starts `kiln lsp` for YAML files. The server itself decides which of them are templates or environments.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("kiln");
  const types = settings.get("resourceTypesDir");
  const server = {
    command: settings.get("path") || "kiln",
    args: types ? ["lsp", "--resource-types-dir", types] : ["lsp"],
  };
  client = new LanguageClient("kiln", "Kiln", server, { documentSelector: [{ scheme: "file", language: "yaml" }] });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(`Cannot start "${server.command} lsp": ${error.message}. Set kiln.path.`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function restart() {
  await stop();
  await start();
}

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("kiln.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("kiln") && restart()),
  );
  return start();
};

exports.deactivate = stop;
