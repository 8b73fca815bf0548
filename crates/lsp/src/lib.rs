//! A language server for templates, environments, blueprints, TOSCA and type files: the Language Server Protocol over
//! standard input and output.

mod answer;
mod change;
mod family;
mod server;
mod shape;
mod topology;
mod wire;

use std::io::{self, BufReader};
use std::sync::{Arc, mpsc};

use kiln_plan::ResourceTypes;
use kiln_topology::TypeFiles;
use serde_json::{Value, json};

use self::answer::Answer;
use self::server::Server;

/// Serves requests; returns whether the client ended the session as the protocol requires.
///
/// Another thread reads, so that a text is checked once after many changes and not after each.
pub fn serve(catalog: ResourceTypes, types: Arc<TypeFiles>) -> io::Result<bool> {
    let mut server = Server::new(catalog, types);
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
            publish(&mut server, &mut output)?;
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
            publish(&mut server, &mut output)?;
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
