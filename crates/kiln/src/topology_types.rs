//! Types of blueprints and TOSCA: those of Kiln and those of a folder with type files (docs/topology-types.md).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Error, Result, anyhow};
use kiln_topology::{Refusal, TypeFiles};

use crate::config::Config;
use crate::config::options::kiln;

/// The types of Kiln and of a folder: all files below it whose name ends with `.yaml` or `.yml`.
pub(crate) fn of_folder(folder: Option<&Path>) -> Result<Arc<TypeFiles>> {
    let shipped = TypeFiles::shipped().map_err(|refusals| refused(&refusals))?;
    let Some(folder) = folder else { return Ok(shipped) };
    // A file that is checked alone has the same name.
    let folder = std::path::absolute(folder).with_context(|| folder.display().to_string())?;
    let mut paths = Vec::new();
    walk(&folder, &mut paths)?;
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        files.push((path.display().to_string(), text));
    }
    let types = shipped.with(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    types.map(Arc::new).map_err(|refusals| refused(&refusals))
}

/// The types of a service: `[kiln] topology_types_dir`.
pub(crate) fn of_service(config: &Config) -> Result<Arc<TypeFiles>> {
    let folder = config.text(&kiln::TOPOLOGY_TYPES_DIR);
    of_folder(folder.as_deref().map(Path::new)).context("[kiln] topology_types_dir")
}

fn refused(refusals: &[Refusal]) -> Error {
    let line = |refusal: &Refusal| {
        let hints: Vec<String> = refusal.hints.iter().map(|hint| format!(" {hint}")).collect();
        format!("  {}{}", refusal.text(), hints.concat())
    };
    let lines: Vec<String> = refusals.iter().map(line).collect();
    anyhow!("invalid type files:\n{}", lines.join("\n"))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry.with_context(|| folder.display().to_string())?;
        let path = entry.path();
        if path.is_dir() {
            // Links to folders could form a circle.
            if !entry.file_type().with_context(|| path.display().to_string())?.is_symlink() {
                walk(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            found.push(path);
        }
    }
    Ok(())
}
