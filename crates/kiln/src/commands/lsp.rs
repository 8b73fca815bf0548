//! `kiln lsp`: a language server for templates.

mod answer;
mod change;
mod family;
mod server;
mod shape;
mod wire;

use std::io::{self, BufReader};

use clap::Args;
use serde_json::{Value, json};

use self::answer::Answer;
use self::server::Server;
use crate::cli::Global;
use crate::failure::{Failure, Outcome};

/// `lsp`.
#[derive(Args, Debug)]
#[command(after_help = "\
Editors start this command; editors/README.md in the source describes the set-up for VS Code,
Neovim, Helix and Emacs. It implements the Language Server Protocol over standard input and output.
For templates it provides diagnostics with quick fixes, completion, signature help, hover,
definitions, references, highlights, rename, symbols of the file and the workspace, links to files,
folding, semantic tokens and formatting; for environments all of these except signature help,
folding and semantic tokens. Use --resource-types-dir to add your own resource types.")]
pub(crate) struct LspArgs {
    /// Use standard input and output, which is always the case
    #[arg(long, hide = true)]
    stdio: bool,
}

impl LspArgs {
    /// Serves until the client sends `exit` or disconnects.
    pub(crate) async fn run(self, global: &Global) -> Outcome {
        let catalog = global.local.catalog()?;
        let served = tokio::task::spawn_blocking(move || serve(&mut Server::new(catalog))).await;
        match served {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(Failure::new("the client disconnected without a shutdown request")),
            Ok(Err(error)) => Err(Failure::new(format!("language server: {error}"))),
            Err(error) => Err(Failure::new(format!("language server: {error}"))),
        }
    }
}

/// Serves requests; returns whether the client ended the session as the protocol requires.
fn serve(server: &mut Server) -> io::Result<bool> {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = io::stdout().lock();
    while let Some(message) = wire::read(&mut input)? {
        let Some(method) = message.get("method").and_then(Value::as_str) else { continue };
        if method == "exit" {
            return Ok(server.may_exit());
        }
        let params = message.get("params").cloned().unwrap_or_default();
        match message.get("id") {
            Some(id) => {
                let answer = match server.request(method, &params) {
                    Answer::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Answer::Error { code, message } => {
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
                    }
                };
                wire::write(&mut output, &answer)?;
            }
            None => {
                for params in server.notice(method, &params) {
                    let method = "textDocument/publishDiagnostics";
                    wire::write(&mut output, &json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
                }
            }
        }
    }
    Ok(false)
}
