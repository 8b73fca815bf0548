//! The database of a user without a service (`--local`): a file in the data folder, with its key beside it.

use std::io;
use std::path::{Path, PathBuf};

use kiln_stack::Chance;
use kiln_value::Secret;
use kiln_value::url::{quote, unquote};

use crate::{owner_only, whole_file};

/// A database and the key of its secrets.
pub struct LocalDatabase {
    /// The URL.
    pub url: String,
    /// The encryption key.
    pub key: Secret<String>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// There is no such file.
    #[error("{}: the database does not exist", .0.display())]
    Missing(PathBuf),
    /// The file of the key is missing.
    #[error("{}: the key file of {} is missing; the secrets in the database cannot be decrypted without it", .key.display(), .database.display())]
    MissingKey {
        /// The file of the key.
        key: PathBuf,
        /// The database.
        database: PathBuf,
    },
    /// The file of the key is empty.
    #[error("{}: the key file is empty", .0.display())]
    EmptyKey(PathBuf),
    /// There is no place for a file that was not specified.
    #[error("no home directory")]
    NoHome,
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Unusable {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing(_) => "check --database or KILN_DATABASE; 'kiln stack create' creates a database",
            Self::MissingKey { .. } => "restore the key file, or use a new database",
            Self::EmptyKey(_) => "restore it; or delete it if the database is new",
            Self::NoHome => "use --database to select a file",
            Self::Io { .. } => "use --database to select another file",
        }
    }
}

impl LocalDatabase {
    /// A database that ends with the process.
    pub fn in_memory() -> Self {
        Self { url: "sqlite::memory:".to_owned(), key: Secret::new(new_key()) }
    }

    /// The database at a URL or in a file, or else the one in the data folder of the user.
    pub fn of_user(given: Option<&str>, must_exist: bool) -> Result<Self, Unusable> {
        if let Some(url) = given.filter(|given| given.contains("://") || given.starts_with("sqlite::")) {
            let folder = data_folder()?;
            if let Some(file) = file_of(url) {
                owner_only::file(&file).map_err(Unusable::io(&file))?;
            }
            return Ok(Self { url: url.to_owned(), key: key(&folder.join("key"))? });
        }
        let file = match given {
            Some(file) => PathBuf::from(file),
            None => data_folder()?.join("stacks.db"),
        };
        let absolute = std::path::absolute(&file).map_err(Unusable::io(&file))?;
        if must_exist && is_new(&absolute) {
            return Err(Unusable::Missing(file));
        }
        if let Some(folder) = absolute.parent() {
            owner_only::folder(folder).map_err(Unusable::io(folder))?;
        }
        Self::in_file(&absolute)
    }

    /// The database in a file, which is created. A key is created only for a new database.
    pub fn in_file(file: &Path) -> Result<Self, Unusable> {
        let mut name = file.as_os_str().to_owned();
        name.push(".key");
        let key_file = PathBuf::from(name);
        if !is_new(file) && !key_file.exists() {
            return Err(Unusable::MissingKey { key: key_file, database: file.to_owned() });
        }
        let key = key(&key_file)?;
        owner_only::file(file).map_err(Unusable::io(file))?;
        Ok(Self { url: format!("sqlite://{}?mode=rwc", quote(&file.to_string_lossy(), "/")), key })
    }
}

/// Whether a file has no database yet. An empty file, such as one created by mktemp, counts as new.
fn is_new(file: &Path) -> bool {
    std::fs::metadata(file).map_or(true, |file| file.len() == 0)
}

/// The file of a SQLite URL.
fn file_of(url: &str) -> Option<PathBuf> {
    let place = url.strip_prefix("sqlite:")?;
    let (path, query) = place.split_once('?').unwrap_or((place, ""));
    let path = path.strip_prefix("//").unwrap_or(path);
    if path == ":memory:" || query.contains("mode=memory") || query.contains("mode=ro") {
        return None;
    }
    Some(PathBuf::from(unquote(path)))
}

/// Generates a key.
fn new_key() -> String {
    Chance::from_os().uuid().simple().to_string()
}

/// `$XDG_DATA_HOME/kiln`, or `~/.local/share/kiln`.
fn data_folder() -> Result<PathBuf, Unusable> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    let folder = base.ok_or(Unusable::NoHome)?.join("kiln");
    let made = owner_only::folder(&folder).and_then(|()| owner_only::restrict(&folder, 0o700));
    made.map_err(Unusable::io(&folder))?;
    Ok(folder)
}

/// Reads a key file, or creates one that only its owner can read.
fn key(path: &Path) -> Result<Secret<String>, Unusable> {
    let key = match std::fs::read_to_string(path) {
        Ok(key) if key.trim().is_empty() => return Err(Unusable::EmptyKey(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            whole_file::create_secret(path, &format!("{}\n", new_key()))
        }
        read => read,
    };
    Ok(Secret::new(key.map_err(Unusable::io(path))?.trim().to_owned()))
}
