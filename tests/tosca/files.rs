//! The files of the sample data.

use std::path::{Path, PathBuf};

use kiln_topology::tosca::Files;

/// A folder; the address `example.com` answers with files of it too.
pub(crate) struct Folder {
    root: PathBuf,
    /// The folder of the sample data that a template belongs to, where `example.com` begins.
    site: PathBuf,
}

impl Folder {
    pub(crate) fn new(root: &Path, path: &str) -> Self {
        let site = match path.find("/data/") {
            Some(end) => root.join(&path[..end + 5]),
            None => root.to_owned(),
        };
        Self { root: root.to_owned(), site }
    }
}

impl Files for Folder {
    fn text(&self, name: &str) -> Option<String> {
        let file = match name.strip_prefix("https://example.com/") {
            Some(page) => {
                let file = self.site.join(page);
                if file.is_file() { file } else { self.site.join("custom_types").join(page) }
            }
            None if name.contains("://") => return None,
            None => self.root.join(name),
        };
        std::fs::read_to_string(file).ok()
    }
}
