//! Packages: archives that bring a template and its files along.
//!
//! [`Package::open`] recognises ZIP, TAR and gzipped TAR by their content, reads all members into memory within
//! [`Limits`], checks names, links and digests, and finds the root file. Like the languages, this crate has no I/O.

mod archive;
mod manifest;
mod member;
mod refusal;
mod root;
mod write;

use std::collections::BTreeMap;

pub use refusal::Refusal;
pub use write::zip_of;

/// What an archive may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Members, folders included.
    pub members: usize,
    /// Bytes of the archive.
    pub archive_bytes: usize,
    /// Bytes of all files together, after decompression.
    pub bytes: usize,
    /// Bytes after decompression per byte of the archive, once there are more than 1 MiB of them.
    pub ratio: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { members: 10_000, archive_bytes: 256 << 20, bytes: 512 << 20, ratio: 200 }
    }
}

/// The language of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `heat.yaml` at the root: a blueprint or a HOT template.
    Blueprint,
    /// CAMP's Platform Deployment Package: `camp.yaml` at the root.
    Pdp,
    /// TOSCA's Cloud Service Archive: `TOSCA-Metadata/TOSCA.meta`, or the only YAML file at the root.
    Csar,
}

impl Format {
    /// The name in readings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blueprint => "blueprint",
            Self::Pdp => "pdp",
            Self::Csar => "csar",
        }
    }
}

/// An archive that has been read and checked.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its language.
    pub format: Format,
    /// The name of the file to read first.
    pub root: String,
    /// The content of every file by its name, `/` between folders.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Package {
    /// Whether the bytes begin like an archive: ZIP, gzip or TAR. A text does not.
    pub fn is_archive(bytes: &[u8]) -> bool {
        archive::Kind::of(bytes).is_some()
    }

    /// Reads an archive.
    ///
    /// Errors: `not-an-archive`, `too-large`, `unsafe-path`, `duplicate-member`, `missing-root`, `two-roots`,
    /// `missing-file`, `digest-mismatch`, `bad-metadata`.
    pub fn open(bytes: &[u8], limits: &Limits) -> Result<Self, Refusal> {
        let files = archive::read(bytes, limits)?;
        let (format, root) = root::find(&files)?;
        match format {
            Format::Pdp => manifest::check_camp(&files)?,
            Format::Csar => manifest::check_tosca(&files)?,
            Format::Blueprint => {}
        }
        Ok(Self { format, root, files })
    }

    /// The members that are texts, but for the root, by their names.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let others = self.files.iter().filter(|(name, _)| **name != self.root);
        others.filter_map(|(name, content)| Some((name.as_str(), std::str::from_utf8(content).ok()?)))
    }

    /// The file that `name` means in a file of the folder `base` (empty for the root of the package).
    ///
    /// Errors: `unsafe-path` if the name leaves the package, `missing-file`.
    pub fn resolve(&self, base: &str, name: &str) -> Result<(&str, &[u8]), Refusal> {
        let path = member::join(base, name).ok_or_else(|| refusal::unsafe_path(name))?;
        match self.files.get_key_value(&path) {
            Some((path, content)) => Ok((path, content)),
            None => Err(Refusal::new("missing-file", Some(name), format!("The package has no file {name}."))),
        }
    }
}
