//! A language server for templates, environments, blueprints, TOSCA and type files: the Language Server Protocol over
//! standard input and output ([`serve`]), or over another wire without files of the machine ([`Session`]).

mod answer;
mod change;
mod family;
mod server;
mod session;
mod shape;
mod topology;
mod wire;

use std::io::{self, BufReader};
use std::sync::{Arc, mpsc};

use kiln_plan::ResourceTypes;
use kiln_topology::TypeFiles;

pub use session::Session;

/// Serves requests; returns whether the client ended the session as the protocol requires.
///
/// Another thread reads, so that a text is checked once after many changes and not after each.
pub fn serve(catalog: ResourceTypes, types: Arc<TypeFiles>) -> io::Result<bool> {
    let mut session = Session::with_files(Arc::new(catalog), types);
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
            session.settle().iter().try_for_each(|told| wire::write(&mut output, told))?;
            let Ok(message) = messages.recv() else { return Ok(false) };
            message?
        };
        if message.get("method").is_some_and(|method| method == "exit") {
            return Ok(session.may_exit());
        }
        session.receive(&message).iter().try_for_each(|told| wire::write(&mut output, told))?;
    }
}
