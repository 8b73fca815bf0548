//! Types of blueprints and TOSCA: those of Kiln and those of a folder with type files (docs/topology-types.md).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Error, Result, anyhow};
use kiln_topology::type_file::TypeFile;
use kiln_topology::{Refusal, TypeFiles};

use kiln_config::Config;
use kiln_config::options::kiln;

/// What the names of files begin with that a service has told.
const OF_SERVICE: &str = "service:";

/// The types of Kiln and of a folder: all files below it whose name ends with `.yaml` or `.yml`.
pub fn of_folder(folder: Option<&Path>) -> Result<Arc<TypeFiles>> {
    with_others(folder, Vec::new())
}

/// The same with the types that a service has: name and text of the file. A file of the folder takes the place of one of the
/// service for the same type.
pub fn with_others(folder: Option<&Path>, others: Vec<(String, String)>) -> Result<Arc<TypeFiles>> {
    let shipped = TypeFiles::shipped().map_err(|refusals| refused(&refusals))?;
    let mut files = folder.map_or_else(|| Ok(Vec::new()), read)?;
    let own: HashSet<String> = files.iter().filter_map(|(_, text)| type_of(text)).collect();
    let others = others.into_iter().filter(|(name, _)| !own.contains(name));
    files.extend(others.map(|(name, text)| (format!("{OF_SERVICE}{name}"), text)));
    if files.is_empty() {
        return Ok(shipped);
    }
    let types = shipped.with(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    types.map(Arc::new).map_err(|refusals| refused(&refusals))
}

/// The type of a file.
fn type_of(text: &str) -> Option<String> {
    kiln_yaml::parse(text).ok()?.value.str_at("topology_type").map(str::to_owned)
}

/// The files of a folder: names and texts.
fn read(folder: &Path) -> Result<Vec<(String, String)>> {
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
    Ok(files)
}

/// Whether a type is one that a service has told.
pub fn is_of_operator(this: &TypeFile) -> bool {
    this.file.starts_with(OF_SERVICE)
}

/// The types of a service: `[kiln] topology_types_dir`.
pub fn of_service(config: &Config) -> Result<Arc<TypeFiles>> {
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
