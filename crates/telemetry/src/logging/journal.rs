//! Events for systemd-journald, in its own protocol: one datagram each, with fields.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use tracing::Level;

use super::line::{Record, oslo_level};

/// The name under which the journal lists the events.
const IDENTIFIER: &str = "kiln";
/// What fits into a datagram in any case, in bytes. Longer events lose their fields and the end of their message.
const LONGEST: usize = 8 * 1024;

/// The connection to the journal.
pub(super) struct Journal(UnixDatagram);

impl Journal {
    pub(super) fn open(socket: &Path) -> io::Result<Self> {
        let datagram = UnixDatagram::unbound()?;
        datagram.connect(socket)?;
        // A journal that does not read must not stop the work.
        datagram.set_nonblocking(true)?;
        Ok(Self(datagram))
    }

    pub(super) fn send(&self, record: &Record) {
        let about = record.about;
        let mut data = Vec::with_capacity(512);
        let first = |data: &mut Vec<u8>, message: &str| {
            field(data, "MESSAGE", message);
            field(data, "PRIORITY", priority(*about.level()));
            field(data, "SYSLOG_IDENTIFIER", IDENTIFIER);
        };
        first(&mut data, &record.message);
        // The names that oslo.log's handler and systemd's own libraries give.
        field(&mut data, "LOGGER_NAME", about.target());
        field(&mut data, "LOGGER_LEVEL", oslo_level(about));
        if let (Some(file), Some(line)) = (about.file(), about.line()) {
            field(&mut data, "CODE_FILE", file);
            field(&mut data, "CODE_LINE", &line.to_string());
        }
        let ids = [
            ("REQUEST_ID", &record.ids.request),
            ("OPERATION_ID", &record.ids.operation),
            ("RESOURCE", &record.ids.resource),
            ("USER_ID", &record.ids.user),
            ("PROJECT_ID", &record.ids.project),
            ("CLIENT", &record.ids.client),
            ("STACK_ID", &record.ids.stack),
        ];
        for (name, id) in ids {
            if let Some(id) = id {
                field(&mut data, name, id);
            }
        }
        for (name, value) in &record.fields {
            field(&mut data, &format!("KILN_{}", name.to_uppercase().replace('.', "_")), &value.plain());
        }
        if let Err(error) = self.0.send(&data)
            && error.kind() != io::ErrorKind::WouldBlock
        {
            data.clear();
            let end = record.message.floor_char_boundary(LONGEST);
            first(&mut data, &record.message[..end]);
            // There is nobody to tell if this fails too.
            _ = self.0.send(&data);
        }
    }
}

/// Adds a field; a value of several lines has its length before it.
fn field(data: &mut Vec<u8>, name: &str, value: &str) {
    data.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        data.push(b'\n');
        data.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        data.push(b'=');
    }
    data.extend_from_slice(value.as_bytes());
    data.push(b'\n');
}

/// The priority of syslog.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    }
}
