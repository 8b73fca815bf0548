//! Types of blueprints and TOSCA: those of Kiln and those of a folder with type files (docs/topology-types.md).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Error, Result, anyhow};
use kiln_authoring::type_named;
use kiln_plan::ResourceTypes;
use kiln_topology::type_file::{TypeFile, is_type_file};
use kiln_topology::{Refusal, TypeFiles};
use kiln_value::{Path as Place, Span, Value};

use crate::failure::nearest;
use kiln_config::Config;
use kiln_config::options::kiln;

/// What the names of files begin with that a service has told.
const OF_SERVICE: &str = "service:";

/// The types of Kiln and of a folder: all files below it whose name ends with `.yaml` or `.yml`.
pub(crate) fn of_folder(folder: Option<&Path>) -> Result<Arc<TypeFiles>> {
    with_others(folder, Vec::new())
}

/// The same with the types that a service has: name and text of the file. A file of the folder takes the place of one of the
/// service for the same type.
pub(crate) fn with_others(folder: Option<&Path>, others: Vec<(String, String)>) -> Result<Arc<TypeFiles>> {
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
pub(crate) fn is_of_operator(this: &TypeFile) -> bool {
    this.file.starts_with(OF_SERVICE)
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

/// Resource types that do not exist, and properties that they do not have.
pub(crate) fn unknown_resources(this: &TypeFile, catalog: &ResourceTypes) -> Vec<Refusal> {
    let mut wrong = Vec::new();
    for (suffix, resource) in this.resources() {
        let at = Place::root().key("hot").key("resources").key(suffix);
        let Some(name) = resource.str_at("type") else { continue };
        let Some(known) = type_named(catalog, name) else {
            let refusal = Refusal::new("unknown-type", &at.key("type"), format!("No resource type is named {name}."));
            let all = catalog.types.iter().map(|known| known.resource_type.name.as_str());
            wrong.push(match nearest(name, all) {
                Some(near) => refusal.hint(format!("did you mean {near}?")),
                None => refusal,
            });
            continue;
        };
        for property in resource.get("properties").and_then(Value::as_map).into_iter().flatten().map(|(name, _)| name) {
            if known.properties.contains_key(property) {
                continue;
            }
            let place = at.key("properties").key(property);
            let refusal = Refusal::new("unknown-field", &place, format!("{name} has no property {property}."));
            wrong.push(match nearest(property, known.properties.keys().map(String::as_str)) {
                Some(near) => refusal.hint(format!("did you mean {near}?")),
                None => refusal,
            });
        }
    }
    wrong
}

/// The same for the text of a type file, if it has no other errors; with their ranges in it.
pub(crate) fn unknown_resources_of(
    text: &str,
    file: &str,
    types: &TypeFiles,
    catalog: &ResourceTypes,
) -> Vec<(Refusal, Span)> {
    let (Ok(document), Ok(with)) = (kiln_yaml::parse(text), types.with_changed(file, text)) else { return Vec::new() };
    let this = with.all().rev().find(|this| this.file == file).filter(|_| is_type_file(&document.value));
    let wrong = this.map(|this| unknown_resources(this, catalog)).unwrap_or_default();
    let placed = wrong.into_iter().map(|refusal| {
        let spans = document.spans.find(&document.value, &refusal.at);
        let span = spans.key.unwrap_or(spans.value);
        (refusal, span)
    });
    placed.collect()
}
