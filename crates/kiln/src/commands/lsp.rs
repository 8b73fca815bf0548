//! `kiln lsp`: a language server for templates.

mod answer;
mod change;
mod family;
mod server;
mod shape;
mod topology;
mod wire;

use std::io::{self, BufReader};
use std::sync::mpsc;

use clap::Args;
use serde_json::{Value, json};

use self::answer::Answer;
use self::server::Server;
use crate::cli::{Global, LocalArgs};
use crate::failure::{Failure, Outcome};

/// `lsp`.
#[derive(Args, Debug)]
#[command(after_help = "\
Editors start this command; editors/README.md in the source describes the set-up for VS Code,
Neovim, Helix and Emacs. It implements the Language Server Protocol over standard input and output.
For templates it provides diagnostics with quick fixes, completion, signature help, hover,
definitions, references, highlights, rename, symbols of the file and the workspace, links to files,
folding, semantic tokens and formatting; for environments all of these except signature help,
folding and semantic tokens; for blueprints, TOSCA and type files of these diagnostics, completion
and hover. Use --resource-types-dir and --plugin to add your own resource types, and
--topology-types-dir for types of blueprints and TOSCA.")]
pub(crate) struct LspArgs {
    /// Use standard input and output, which is always the case
    #[arg(long, hide = true)]
    stdio: bool,
}

impl LspArgs {
    /// Serves until the client sends `exit` or disconnects.
    pub(crate) async fn run(self, global: &Global) -> Outcome {
        let catalog = global.local.catalog().await?;
        // Errors in type files are shown in the editor when they are opened.
        let types = global.local.topology_types().or_else(|error| {
            tracing::error!("{error:#}");
            LocalArgs::default().topology_types()
        })?;
        let served = tokio::task::spawn_blocking(move || serve(&mut Server::new(catalog, types))).await;
        match served {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(Failure::new("the client disconnected without a shutdown request")),
            Ok(Err(error)) => Err(Failure::new(format!("language server: {error}"))),
            Err(error) => Err(Failure::new(format!("language server: {error}"))),
        }
    }
}

/// Serves requests; returns whether the client ended the session as the protocol requires.
///
/// Another thread reads, so that a text is checked once after many changes and not after each.
fn serve(server: &mut Server) -> io::Result<bool> {
    let (sender, messages) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = BufReader::new(io::stdin().lock());
        loop {
            let message = wire::read(&mut input).transpose();
            let is_last = !matches!(message, Some(Ok(_)));
            if message.is_none_or(|message| sender.send(message).is_err()) || is_last {
                return;
            }
        }
    });
    let mut output = io::stdout().lock();
    loop {
        let message = if let Ok(message) = messages.try_recv() {
            message?
        } else {
            publish(server, &mut output)?;
            let Ok(message) = messages.recv() else { return Ok(false) };
            message?
        };
        let Some(method) = message.get("method").and_then(Value::as_str) else { continue };
        if method == "exit" {
            return Ok(server.may_exit());
        }
        let params = message.get("params").cloned().unwrap_or_default();
        let Some(id) = message.get("id") else {
            server.notice(method, &params);
            continue;
        };
        if method == "textDocument/codeAction" {
            // Fixes are for what is wrong now.
            publish(server, &mut output)?;
        }
        let answer = match server.request(method, &params) {
            Answer::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Answer::Error { code, message } => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        };
        wire::write(&mut output, &answer)?;
    }
}

/// Sends the diagnostics of what has changed.
fn publish(server: &mut Server, output: &mut impl io::Write) -> io::Result<()> {
    for params in server.published() {
        let method = "textDocument/publishDiagnostics";
        wire::write(output, &json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
    }
    Ok(())
}
