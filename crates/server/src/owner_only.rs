//! Files and folders that only their owner can read.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and those above it. What exists stays as it is.
pub fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates the file of a database, or takes it and the files that SQLite keeps beside it from others. SQLite gives the
/// files beside it the permissions of the file.
pub fn file(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        match restrict(Path::new(&name), 0o600) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

/// Takes the permissions away that are not in `mode`. A file of another owner stays as it is.
pub fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mut permissions = std::fs::metadata(path)?.permissions();
        if permissions.mode() & 0o777 & !mode != 0 {
            permissions.set_mode(permissions.mode() & mode);
            match std::fs::set_permissions(path, permissions) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                done => done?,
            }
        }
    }
    Ok(())
}
