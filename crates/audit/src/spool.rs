//! Files of events that are not delivered yet.
//!
//! Each process has a file of its own, with a lock, and appends a line for each event before the work goes on: a killed process
//! loses nothing. The lines are delivered in order, at least once; what a dead process left is delivered by the next one that
//! looks. A file whose lines are all delivered is emptied.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_value::Value;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use uuid::Uuid;

/// The end of the names of the files.
const EXTENSION: &str = "audit";
/// The most bytes that are read at a time.
const CHUNK: u64 = 256 * 1024;
/// How long a destination that failed is left alone, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How often the files of dead processes are looked for, if nothing is to be delivered.
const LOOK: Duration = Duration::from_secs(30);

/// An event on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// Its ID; a notification that is sent again has the same one.
    pub id: Uuid,
    /// `audit.http.request` or `audit.http.response`.
    pub event_type: String,
    /// The time of the event.
    pub time: Timestamp,
    /// The event in CADF.
    pub payload: Value,
}

/// Where notifications are delivered.
#[async_trait]
pub trait Destination: Send + Sync {
    /// Delivers notifications in order. Succeeds when the destination has confirmed that it has all of them.
    ///
    /// # Errors
    /// Why it does not have all of them.
    async fn deliver(&self, notifications: &[Notification]) -> Result<(), String>;
}

/// The spool cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct SpoolError {
    path: PathBuf,
    error: io::Error,
}

/// The file of this process, and those of dead ones.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    path: PathBuf,
    file: Mutex<Written>,
    /// The most bytes that are not delivered.
    limit: u64,
    news: Notify,
}

#[derive(Debug)]
struct Written {
    file: File,
    /// All bytes, and those of delivered lines.
    size: u64,
    delivered: u64,
}

impl Spool {
    /// A file of this process in a folder, which is created. `name` differs in each process.
    ///
    /// # Errors
    /// The folder or the file cannot be created.
    pub fn open(folder: &Path, name: &str, limit: u64) -> Result<Self, SpoolError> {
        let path = folder.join(format!("{name}.{EXTENSION}"));
        let open = || {
            std::fs::create_dir_all(folder)?;
            // Others take a file without a lock for one of a dead process: it gets its name when it has the lock.
            let new = path.with_extension("new");
            let file = OpenOptions::new().append(true).read(true).create_new(true).open(&new)?;
            file.lock()?;
            std::fs::rename(&new, &path)?;
            Ok(file)
        };
        let file = open().map_err(|error| SpoolError { path: path.clone(), error })?;
        let file = Mutex::new(Written { file, size: 0, delivered: 0 });
        Ok(Self { folder: folder.to_owned(), path, file, limit, news: Notify::new() })
    }

    /// Appends a notification.
    pub(crate) fn write(&self, notification: &Notification) -> io::Result<()> {
        let mut line = serde_json::to_vec(notification)?;
        line.push(b'\n');
        let mut written = self.lock();
        let after = written.size + line.len() as u64;
        if after - written.delivered > self.limit {
            return Err(io::Error::other(format!("{} bytes are not delivered, the limit of the spool", self.limit)));
        }
        if let Err(error) = written.file.write_all(&line) {
            // A part of the line must not be the start of the next one.
            let size = written.size;
            _ = written.file.set_len(size);
            return Err(error);
        }
        written.size = after;
        drop(written);
        self.news.notify_one();
        Ok(())
    }

    /// Delivers what is written, for ever. May be dropped at any time.
    pub async fn deliver(&self, destination: &dyn Destination) {
        let mut pause = PAUSES.0;
        loop {
            match self.deliver_all(destination).await {
                Ok(()) => {
                    pause = PAUSES.0;
                    // Without news, files of dead processes may be there.
                    _ = tokio::time::timeout(LOOK, self.news.notified()).await;
                }
                Err(error) => {
                    tracing::warn!(error, ?pause, "audit events cannot be delivered and stay in the spool");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Delivers all that is in the spool now, within a time; for the end of the process.
    pub async fn flush(&self, destination: &dyn Destination, within: Duration) {
        _ = tokio::time::timeout(within, self.deliver_all(destination)).await;
    }

    /// Delivers what is in the file of this process, and in those of dead ones.
    async fn deliver_all(&self, destination: &dyn Destination) -> Result<(), String> {
        self.deliver_own(destination).await?;
        self.deliver_orphans(destination).await
    }

    async fn deliver_own(&self, destination: &dyn Destination) -> Result<(), String> {
        loop {
            let (chunk, from) = {
                let mut written = self.lock();
                if written.delivered == written.size {
                    // Nothing may be left of the file when the disk was full.
                    if written.size > 0 && written.file.set_len(0).is_ok() {
                        (written.size, written.delivered) = (0, 0);
                    }
                    return Ok(());
                }
                let from = written.delivered;
                (chunk(&mut written.file, from).map_err(|error| error.to_string())?, from)
            };
            let (notifications, read) = parsed(&chunk);
            if !notifications.is_empty() {
                destination.deliver(&notifications).await?;
            }
            if read == 0 {
                return Err(format!("{}: a line is not complete", self.path.display()));
            }
            self.lock().delivered = from + read;
        }
    }

    /// Delivers and removes the files whose processes have ended.
    async fn deliver_orphans(&self, destination: &dyn Destination) -> Result<(), String> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Ok(()) };
        for entry in entries.flatten() {
            let path = entry.path();
            if path == self.path || path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => continue,
            }
            let mut from = 0;
            loop {
                let chunk = chunk(&mut file, from).map_err(|error| error.to_string())?;
                let (notifications, read) = parsed(&chunk);
                if !notifications.is_empty() {
                    destination.deliver(&notifications).await?;
                }
                from += read;
                // What is left is a line that the process could not complete.
                if read == 0 {
                    break;
                }
            }
            _ = std::fs::remove_file(&path);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let written = self.lock();
        if written.delivered == written.size {
            _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The bytes from a place, at most a chunk.
fn chunk(file: &mut File, from: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The notifications in the complete lines, and the number of their bytes. Lines that are none are left out.
fn parsed(chunk: &[u8]) -> (Vec<Notification>, u64) {
    let end = chunk.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = chunk[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = |line: &[u8]| {
        let read = serde_json::from_slice(line);
        read.inspect_err(|error| tracing::warn!(%error, "a line of the audit spool cannot be read")).ok()
    };
    (lines.filter_map(read).collect(), end as u64)
}
