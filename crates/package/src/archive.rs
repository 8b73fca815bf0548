//! From bytes to files, within limits.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use crate::refusal::unsafe_path;
use crate::{Limits, Refusal, member};

/// Below this size, the ratio does not count.
const SMALL: usize = 1 << 20;

/// A kind of archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Zip,
    Gzip,
    Tar,
}

impl Kind {
    /// The kind, by the first bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
            Some(Self::Zip)
        } else if bytes.starts_with(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if bytes.get(257..262) == Some(b"ustar") {
            Some(Self::Tar)
        } else {
            None
        }
    }
}

/// The content of all files of an archive by name.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
    if bytes.len() > limits.archive_bytes {
        let message = format!("The archive has more than {} bytes.", limits.archive_bytes);
        return Err(Refusal::new("too-large", None, message));
    }
    let mut files = Files { found: BTreeMap::new(), members: 0, budget: Budget::new(bytes.len(), limits), limits };
    match Kind::of(bytes) {
        Some(Kind::Zip) => files.read_zip(bytes)?,
        Some(Kind::Tar) => files.read_tar(bytes)?,
        Some(Kind::Gzip) => {
            let mut tar = Vec::new();
            let mut decoder = flate2::read::MultiGzDecoder::new(bytes);
            Budget::new(bytes.len(), limits).read("the archive", &mut decoder, &mut tar)?;
            // The same bytes are copied once more, which the limits allow.
            files.budget.left = limits.bytes;
            if Kind::of(&tar) != Some(Kind::Tar) {
                let message = "The gzipped content is not a TAR archive.";
                return Err(Refusal::new("not-an-archive", None, message));
            }
            files.read_tar(&tar)?;
        }
        None => return Err(Refusal::new("not-an-archive", None, "This is not a ZIP, TAR or gzipped TAR archive.")),
    }
    Ok(files.found)
}

/// The bytes that may still be decompressed.
struct Budget {
    left: usize,
}

impl Budget {
    fn new(compressed: usize, limits: &Limits) -> Self {
        Self { left: limits.bytes.min(SMALL.max(compressed.saturating_mul(limits.ratio))) }
    }

    fn read(&mut self, name: &str, from: &mut impl Read, to: &mut Vec<u8>) -> Result<(), Refusal> {
        let limit = u64::try_from(self.left).unwrap_or(u64::MAX).saturating_add(1);
        from.take(limit).read_to_end(to).map_err(|error| broken(name, &error))?;
        let message = || format!("{name} is too large: an archive may decompress to a limited size only.");
        let left = self.left.checked_sub(to.len());
        self.left = left.ok_or_else(|| Refusal::new("too-large", Some(name), message()))?;
        Ok(())
    }
}

struct Files<'l> {
    found: BTreeMap<String, Vec<u8>>,
    members: usize,
    budget: Budget,
    limits: &'l Limits,
}

impl Files<'_> {
    fn read_zip(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let unreadable = |error: zip::result::ZipError| broken("the archive", &error);
        self.count(directory_entries(bytes))?;
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(unreadable)?;
        for i in 0..archive.len() {
            let mut entry = archive.by_index(i).map_err(unreadable)?;
            let raw = entry.name().to_owned();
            let name = member::normal(&raw).ok_or_else(|| unsafe_path(&raw))?;
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                return Err(link(&raw));
            }
            let mut content = Vec::new();
            self.budget.read(&raw, &mut entry, &mut content)?;
            self.insert(name, content)?;
        }
        Ok(())
    }

    fn read_tar(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let unreadable = |error: std::io::Error| broken("the archive", &error);
        let mut archive = tar::Archive::new(bytes);
        for entry in archive.entries().map_err(unreadable)? {
            let mut entry = entry.map_err(unreadable)?;
            self.count(1)?;
            let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let kind = entry.header().entry_type();
            if kind.is_pax_global_extensions() {
                continue;
            }
            // `tar c .` begins with the folder itself.
            if kind.is_dir() && matches!(raw.as_str(), "." | "./") {
                continue;
            }
            let name = member::normal(&raw).ok_or_else(|| unsafe_path(&raw))?;
            if kind.is_dir() {
                continue;
            }
            if !kind.is_file() {
                return Err(link(&raw));
            }
            let mut content = Vec::new();
            self.budget.read(&raw, &mut entry, &mut content)?;
            self.insert(name, content)?;
        }
        Ok(())
    }

    fn count(&mut self, more: usize) -> Result<(), Refusal> {
        self.members += more;
        if self.members > self.limits.members {
            let message = format!("The archive has more than {} members.", self.limits.members);
            return Err(Refusal::new("too-large", None, message));
        }
        Ok(())
    }

    fn insert(&mut self, name: String, content: Vec<u8>) -> Result<(), Refusal> {
        if self.found.contains_key(&name) {
            let message = format!("The archive has two members {name}.");
            return Err(Refusal::new("duplicate-member", Some(&name), message));
        }
        self.found.insert(name, content);
        Ok(())
    }
}

/// The number of entries that the end of the central directory gives, so that it is known before they are read.
fn directory_entries(bytes: &[u8]) -> usize {
    let end = bytes.windows(4).rposition(|window| window == b"PK\x05\x06");
    let field = end.and_then(|end| bytes.get(end + 10..end + 12));
    field.map_or(0, |field| usize::from(u16::from_le_bytes([field[0], field[1]])))
}

fn link(name: &str) -> Refusal {
    let message = format!("{name} is a link or a device: packages contain files and folders only.");
    Refusal::new("unsafe-path", Some(name), message)
}

fn broken(name: &str, error: &dyn std::error::Error) -> Refusal {
    Refusal::new("not-an-archive", None, format!("Cannot read {name}: {error}."))
}
