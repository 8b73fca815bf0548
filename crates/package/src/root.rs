//! The root file of a package.

use std::collections::BTreeMap;

use crate::manifest::{self, META};
use crate::{Format, Refusal, member};

/// Finds the language and the root file.
pub(crate) fn find(files: &BTreeMap<String, Vec<u8>>) -> Result<(Format, String), Refusal> {
    let mut found = Vec::new();
    for (name, format) in [("heat.yaml", Format::Blueprint), ("camp.yaml", Format::Pdp), (META, Format::Csar)] {
        if files.contains_key(name) {
            found.push((name, format));
        }
    }
    match found.as_slice() {
        [] => only_root_file(files),
        [(_, Format::Csar)] => Ok((Format::Csar, entry_definitions(files)?)),
        [(name, format)] => Ok((*format, (*name).to_owned())),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            let message = format!("The package has two roots: {}.", names.join(" and "));
            Err(Refusal::new("two-roots", None, message))
        }
    }
}

/// A CSAR without metadata: the only YAML file that is in no folder.
fn only_root_file(files: &BTreeMap<String, Vec<u8>>) -> Result<(Format, String), Refusal> {
    let mut roots = files.keys().filter(|name| {
        let extension = name.rsplit('.').next().unwrap_or_default();
        !name.contains('/') && ["yaml", "yml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    });
    if let (Some(root), None) = (roots.next(), roots.next()) {
        return Ok((Format::Csar, root.clone()));
    }
    let message = "The package has no root file: heat.yaml, camp.yaml, TOSCA-Metadata/TOSCA.meta, or one YAML \
                           file in no folder.";
    Err(Refusal::new("missing-root", None, message))
}

fn entry_definitions(files: &BTreeMap<String, Vec<u8>>) -> Result<String, Refusal> {
    let meta = manifest::tosca_meta(files)?;
    let Some(entry) = meta.iter().find(|(key, _)| key == "Entry-Definitions").map(|(_, value)| value) else {
        let message = format!("{META} has no Entry-Definitions.");
        return Err(Refusal::new("bad-metadata", Some(META), message));
    };
    let name = member::normal(entry).ok_or_else(|| crate::refusal::unsafe_path(entry))?;
    if files.contains_key(&name) {
        Ok(name)
    } else {
        let message = format!("The package has no file {entry}, which Entry-Definitions of {META} names.");
        Err(Refusal::new("missing-file", Some(entry), message))
    }
}
