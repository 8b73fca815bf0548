//! The lock of a process that runs an engine on a SQLite file.
//!
//! Each such process holds the lock of a file beside the database while it lives. Who gets it alone knows that all engines
//! before are dead, and need not wait until they are found silent. The first process that makes the file knows nothing: an
//! engine of a version without the lock may be running.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::SqlStore;
use super::connection::Place;
use crate::{EngineId, Error, Store as _};

/// How often a lock that is held alone for a moment is asked for again.
const AGAIN: Duration = Duration::from_millis(20);

/// Held while an engine runs.
#[derive(Debug, Default)]
pub struct EngineLock {
    /// Engines that are certainly dead.
    pub gone: Vec<EngineId>,
    /// The lock ends with the process that has opened it.
    _file: Option<File>,
}

impl SqlStore {
    pub(super) async fn take_engine_lock(&self) -> Result<EngineLock, Error> {
        let Place::Sqlite { options, is_private: false, .. } = self.writer.place() else {
            return Ok(EngineLock::default());
        };
        let path = beside(options.get_filename());
        let unusable = |error: std::io::Error| Error::Unusable(format!("{}: {error}", path.display()).into());
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        // As the database of `--local`, in a folder that others may be able to read.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(unusable)?;
        let mut gone = Vec::new();
        if file.try_lock().is_ok() && !is_new {
            gone = self.engines().await?.into_iter().map(|engine| engine.id).collect();
        }
        // Another process that is alone now does not find this engine, which has not reported yet.
        file.unlock().map_err(unusable)?;
        while let Err(error) = file.try_lock_shared() {
            match error {
                TryLockError::WouldBlock => tokio::time::sleep(AGAIN).await,
                TryLockError::Error(error) => return Err(unusable(error)),
            }
        }
        Ok(EngineLock { gone, _file: Some(file) })
    }
}

fn beside(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-engine");
    path.into()
}
