//! Metadata of packages with digests: CAMP's `camp.mf` and TOSCA's `TOSCA.meta`.

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256, Sha512};

use crate::{Refusal, member};

/// The metadata file of a CSAR.
pub(crate) const META: &str = "TOSCA-Metadata/TOSCA.meta";

const CAMP: &str = "camp.mf";

/// Checks the manifest of a PDP, if there is one: lines `SHA256(file)= digest`, as in OVF.
pub(crate) fn check_camp(files: &BTreeMap<String, Vec<u8>>) -> Result<(), Refusal> {
    let Some(content) = files.get(CAMP) else { return Ok(()) };
    for line in text(CAMP, content)?.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let entry = line.split_once('(').and_then(|(algorithm, rest)| {
            let (name, digest) = rest.rsplit_once(")=")?;
            Some((algorithm.trim(), name, digest.trim()))
        });
        let Some((algorithm, name, digest)) = entry else {
            let message = format!("{CAMP} must consist of lines SHA256(file)= digest, but one is {line:?}.");
            return Err(Refusal::new("bad-metadata", Some(CAMP), message));
        };
        check_digest(files, CAMP, name, algorithm, digest)?;
    }
    Ok(())
}

/// Checks the digests in the metadata of a CSAR: blocks with `Name` or `Source`, `Algorithm` and `Hash` (SOL004).
pub(crate) fn check_tosca(files: &BTreeMap<String, Vec<u8>>) -> Result<(), Refusal> {
    if !files.contains_key(META) {
        return Ok(());
    }
    let (mut name, mut algorithm) = (None, None);
    for (key, value) in tosca_meta(files)? {
        match key.as_str() {
            "Name" | "Source" => (name, algorithm) = (Some(value), None),
            "Algorithm" => algorithm = Some(value),
            "Hash" => {
                if let (Some(name), Some(algorithm)) = (&name, &algorithm) {
                    check_digest(files, META, name, algorithm, &value)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The entries of `TOSCA.meta`: `key: value` in blocks that are separated by empty lines.
pub(crate) fn tosca_meta(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<(String, String)>, Refusal> {
    let content = files.get(META).map(Vec::as_slice).unwrap_or_default();
    let lines = text(META, content)?.lines().map(str::trim_end);
    let mut entries: Vec<(String, String)> = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix(' '), line.split_once(':'), entries.last_mut()) {
            // A long value continues.
            (Some(rest), _, Some((_, value))) => value.push_str(rest),
            (None, Some((key, value)), _) => entries.push((key.trim().to_owned(), value.trim().to_owned())),
            _ => {
                let message = format!("{META} must consist of lines key: value, but one is {line:?}.");
                return Err(Refusal::new("bad-metadata", Some(META), message));
            }
        }
    }
    Ok(entries)
}

fn check_digest(
    files: &BTreeMap<String, Vec<u8>>,
    manifest: &str,
    name: &str,
    algorithm: &str,
    digest: &str,
) -> Result<(), Refusal> {
    let path = member::normal(name).ok_or_else(|| crate::refusal::unsafe_path(name))?;
    let Some(content) = files.get(&path) else {
        let message = format!("The package has no file {name}, which {manifest} names.");
        return Err(Refusal::new("missing-file", Some(name), message));
    };
    let found = match algorithm.to_ascii_uppercase().replace('-', "").as_str() {
        "SHA256" => hex(&Sha256::digest(content)),
        "SHA512" => hex(&Sha512::digest(content)),
        _ => {
            let message = format!("The digest of {name} uses {algorithm}: SHA-256 and SHA-512 are supported.");
            return Err(Refusal::new("bad-metadata", Some(manifest), message));
        }
    };
    if found.eq_ignore_ascii_case(digest) {
        Ok(())
    } else {
        let message = format!("The content of {name} is not the one that {manifest} was made for.");
        Err(Refusal::new("digest-mismatch", Some(name), message))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn text<'a>(name: &str, content: &'a [u8]) -> Result<&'a str, Refusal> {
    std::str::from_utf8(content)
        .map_err(|_| Refusal::new("bad-metadata", Some(name), format!("{name} is not UTF-8 text.")))
}
