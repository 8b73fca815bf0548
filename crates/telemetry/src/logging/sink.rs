//! Where lines of the log go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_console::progress;

use super::journal::Journal;
use super::line::Record;

/// A place for lines.
pub(super) enum Sink {
    /// Standard error.
    Stderr {
        /// Whether it is a terminal with colours.
        has_colour: bool,
    },
    /// A file.
    File(Arc<LogFile>),
    /// systemd's journal, which gets fields instead of a line.
    Journal(Journal),
}

impl Sink {
    pub(super) fn stderr() -> Self {
        let choice = anstream::AutoStream::choice(&io::stderr());
        Self::Stderr { has_colour: choice != anstream::ColorChoice::Never }
    }

    /// Writes an event; `line` makes its line, with colours or without. Errors are ignored: there is nobody to tell.
    pub(super) fn write(&self, record: &Record, line: impl FnOnce(bool) -> String) {
        match self {
            Self::Stderr { has_colour } => {
                let line = line(*has_colour);
                progress::beside(|| _ = io::stderr().write_all(line.as_bytes()));
            }
            Self::File(file) => file.write(line(false).as_bytes()),
            Self::Journal(journal) => journal.send(record),
        }
    }
}

/// A file to which lines are added. Another program may move it away.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    /// Looks before each line whether the file is still there, as Python's `WatchedFileHandler`.
    is_watched: bool,
    file: Mutex<File>,
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl LogFile {
    pub(super) fn open(path: PathBuf, is_watched: bool) -> io::Result<Self> {
        let file = Mutex::new(open(&path)?);
        Ok(Self { path, is_watched, file })
    }

    fn write(&self, line: &[u8]) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_watched && self.is_gone(&file) {
            self.renew(&mut file);
        }
        if file.write_all(line).is_err() {
            _ = io::stderr().write_all(line);
        }
    }

    /// Whether the path is not the open file any more.
    fn is_gone(&self, file: &File) -> bool {
        let number = |about: io::Result<std::fs::Metadata>| about.map(|about| (about.dev(), about.ino())).ok();
        number(std::fs::metadata(&self.path)) != number(file.metadata())
    }

    /// Opens the path again; the former file stays if that fails.
    pub(super) fn reopen(&self) {
        self.renew(&mut self.file.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn renew(&self, file: &mut File) {
        if let Ok(new) = open(&self.path) {
            *file = new;
        }
    }
}
