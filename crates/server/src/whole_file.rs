//! Writes files as a whole: if the disk is full or the process ends, the old content stays.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use kiln_stack::Chance;

/// A new content of a file, which does not have its name yet. Deleted if it does not get it.
struct New {
    path: PathBuf,
}

impl New {
    /// Writes it next to the file.
    fn write(file: &Path, content: &[u8], permissions: Option<Permissions>, owner_only: bool) -> io::Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}", Chance::from_os().uuid().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if owner_only {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let new = Self { path: name.into() };
        let mut opened = options.open(&new.path)?;
        opened.write_all(content)?;
        if let Some(permissions) = permissions {
            opened.set_permissions(permissions)?;
        }
        opened.sync_all()?;
        Ok(new)
    }
}

impl Drop for New {
    fn drop(&mut self) {
        // It does not exist any more if it got its name.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Where the new content of a file goes.
enum Place {
    /// A device or a pipe.
    Stream(File),
    /// A file that does not exist yet.
    Nothing(PathBuf),
    /// A file, behind all links.
    File(PathBuf, Permissions),
}

impl Place {
    fn of(file: &Path) -> io::Result<Self> {
        match std::fs::metadata(file) {
            Ok(before) if before.is_file() => {
                // A file that may not be written stays as it is, also if its folder may.
                File::options().append(true).open(file)?;
                Ok(Self::File(std::fs::canonicalize(file)?, before.permissions()))
            }
            Ok(_) => Ok(Self::Stream(OpenOptions::new().write(true).open(file)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Nothing(file.to_owned())),
            Err(error) => Err(error),
        }
    }

    fn replace(self, content: &[u8], owner_only: bool) -> io::Result<()> {
        let (path, permissions) = match self {
            Self::Stream(mut stream) => return stream.write_all(content),
            Self::Nothing(path) => (path, None),
            Self::File(path, permissions) => (path, Some(permissions).filter(|_| !owner_only)),
        };
        let new = New::write(&path, content, permissions, owner_only)?;
        std::fs::rename(&new.path, &path)
    }
}

/// Replaces the content of a file, or creates it. Links and permissions stay as they are; a device or a pipe is written to.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    Place::of(file)?.replace(content, false)
}

/// The same for a file that only its owner can read afterwards.
pub fn replace_secret(file: &Path, content: &[u8]) -> io::Result<()> {
    Place::of(file)?.replace(content, true)
}

/// Whether a file may be written, without changing it. The disk may still be full later.
pub fn check(file: &Path) -> io::Result<()> {
    match Place::of(file)? {
        Place::Stream(_) => Ok(()),
        Place::Nothing(path) | Place::File(path, _) => New::write(&path, b"", None, false).map(drop),
    }
}

/// Creates a file that only its owner can read. If there is one already, its content stays; of several processes that create
/// it at once, all get the content of one.
pub fn create_secret(file: &Path, content: &str) -> io::Result<String> {
    let new = New::write(file, content.as_bytes(), None, true)?;
    match std::fs::hard_link(&new.path, file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => std::fs::read_to_string(file),
        linked => linked.map(|()| content.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_where_a_link_leads() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        replace(&file, b"one").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
            std::os::unix::fs::symlink(&file, &link).unwrap();
            replace(&link, b"two").unwrap();
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
            assert_eq!(std::fs::read(&file).unwrap(), b"two");
        }
        let missing = folder.path().join("none").join("file");
        assert!(replace(&missing, b"").is_err() && check(&missing).is_err());
        check(&file).unwrap();
        check(&folder.path().join("new")).unwrap();
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, if cfg!(unix) { 2 } else { 1 }, "nothing else is left");
    }

    #[test]
    fn all_that_create_a_secret_get_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let made: Vec<String> = std::thread::scope(|threads| {
            let create = |number: usize| create_secret(&file, &format!("{number}\n")).unwrap();
            let threads: Vec<_> = (0..8).map(|number| threads.spawn(move || create(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(made.iter().all(|one| *one == stored), "{made:?} {stored}");
    }
}
