//! A session of an editor: messages in, messages out.

use std::sync::Arc;

use kiln_plan::ResourceTypes;
use kiln_topology::TypeFiles;
use serde_json::{Value, json};

use super::answer::Answer;
use super::server::Server;

/// The state between messages.
pub struct Session {
    server: Server,
}

impl Session {
    /// A session for an editor on another machine: the texts that it opens are all that there is. No file is read, whatever
    /// an address or a template names.
    pub fn new(catalog: Arc<ResourceTypes>, types: Arc<TypeFiles>) -> Self {
        Self { server: Server::new(catalog, types, false) }
    }

    /// A session for an editor on this machine: files that are not open are read.
    pub(crate) fn with_files(catalog: Arc<ResourceTypes>, types: Arc<TypeFiles>) -> Self {
        Self { server: Server::new(catalog, types, true) }
    }

    /// Takes a message of JSON-RPC; returns those to send.
    pub fn receive(&mut self, message: &Value) -> Vec<Value> {
        let Some(method) = message.get("method").and_then(Value::as_str) else { return Vec::new() };
        let params = message.get("params").cloned().unwrap_or_default();
        let Some(id) = message.get("id") else {
            self.server.notice(method, &params);
            return Vec::new();
        };
        // Fixes are for what is wrong now.
        let mut told = if method == "textDocument/codeAction" { self.settle() } else { Vec::new() };
        told.push(match self.server.request(method, &params) {
            Answer::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Answer::Error { code, message } => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        });
        told
    }

    /// The diagnostics of what has changed, to be sent when no message waits.
    pub fn settle(&mut self) -> Vec<Value> {
        let method = "textDocument/publishDiagnostics";
        let published = self.server.published().into_iter();
        published.map(|params| json!({"jsonrpc": "2.0", "method": method, "params": params})).collect()
    }

    /// The bytes of the open texts.
    pub fn bytes(&self) -> usize {
        self.server.texts.iter().map(|(uri, text)| uri.len() + text.content.len()).sum()
    }

    pub(crate) fn may_exit(&self) -> bool {
        self.server.may_exit()
    }
}
