//! Writes archives.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use zip::write::{SimpleFileOptions, ZipWriter};

/// A ZIP archive of files by their names. The same files always become the same bytes.
///
/// Errors: more files or bytes than the format can have.
pub fn zip_of(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, String> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        let started = writer.start_file(name.as_str(), SimpleFileOptions::default());
        started.map_err(|error| error.to_string())?;
        writer.write_all(content).map_err(|error| error.to_string())?;
    }
    writer.finish().map(Cursor::into_inner).map_err(|error| error.to_string())
}
