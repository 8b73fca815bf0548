//! Parses definition files (YAML) to [`ResourceType`]. docs/resource-types.md describes the format.

mod finder;
mod node;
mod property;
mod resource_type;
mod rest;

use std::fmt;
use std::path::{Path as FilePath, PathBuf};

use kiln_value::{Path, Position, Value};

use crate::ResourceType;
use node::{Complaints, Node};

/// An error in a definition file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DefinitionError {
    /// The file.
    pub file: String,
    /// The position; `None` if the file cannot be read at all.
    pub position: Option<Position>,
    /// The message.
    pub message: String,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// Parses a definition file; `file` is its name in errors.
///
/// # Errors
/// All errors in it.
pub fn parse(file: &str, text: &str) -> Result<ResourceType, Vec<DefinitionError>> {
    let document = kiln_yaml::parse(text).map_err(|error| {
        vec![DefinitionError { file: file.to_owned(), position: error.position, message: error.message.clone() }]
    })?;
    let complaints = Complaints::default();
    let resource_type = resource_type::read(&Node::root(&document.value, &complaints));
    let complaints = complaints.into_inner();
    match resource_type {
        Some(resource_type) if complaints.is_empty() => Ok(resource_type),
        _ => {
            let mut errors: Vec<DefinitionError> = complaints
                .into_iter()
                .map(|complaint| {
                    let spans = document.spans.find(&document.value, &complaint.path);
                    let span = spans.key.filter(|_| complaint.at_key).unwrap_or(spans.value);
                    let message = complaint.message;
                    DefinitionError { file: file.to_owned(), position: Some(span.start), message }
                })
                .collect();
            errors.sort_by_key(|error| error.position);
            Err(errors)
        }
    }
}

/// Reads a definition that is not in a file; `source` is named in errors, with the path of each.
///
/// # Errors
/// All errors in it.
pub fn of_value(source: &str, value: &Value) -> Result<ResourceType, Vec<DefinitionError>> {
    let complaints = Complaints::default();
    let resource_type = resource_type::read(&Node::root(value, &complaints));
    let complaints = complaints.into_inner();
    match resource_type {
        Some(resource_type) if complaints.is_empty() => Ok(resource_type),
        _ => {
            let error = |path: &Path, message: String| {
                let message = if path.is_root() { message } else { format!("{path}: {message}") };
                DefinitionError { file: source.to_owned(), position: None, message }
            };
            Err(complaints.into_iter().map(|complaint| error(&complaint.path, complaint.message)).collect())
        }
    }
}

/// The path of the definition file of a type in its directory: `OS/Neutron/Net.yaml`.
pub fn file_of(type_name: &str) -> PathBuf {
    format!("{}.yaml", type_name.replace("::", "/")).into()
}

/// Reads all definition files (`*.yaml`) in a directory, in the order of their paths.
///
/// # Errors
/// All errors in these files, every file whose path does not match its type, and every file that cannot be read.
pub fn load(directory: &FilePath) -> Result<Vec<ResourceType>, Vec<DefinitionError>> {
    let mut files = Vec::new();
    let mut errors = Vec::new();
    walk(directory, &mut files, &mut errors);
    files.sort();
    let mut types = Vec::new();
    for file in files {
        let name = file.display().to_string();
        match std::fs::read_to_string(&file) {
            Ok(text) => match parse(&name, &text) {
                // Each file is found by the name of its type, so no two files define the same type.
                Ok(this) if file != directory.join(file_of(&this.name)) => {
                    let message =
                        format!("the definition of {} must be in {}", this.name, file_of(&this.name).display());
                    errors.push(DefinitionError { file: name, position: None, message });
                }
                Ok(resource_type) => types.push(resource_type),
                Err(found) => errors.extend(found),
            },
            Err(error) => errors.push(unreadable(&file, &error)),
        }
    }
    if errors.is_empty() { Ok(types) } else { Err(errors) }
}

fn walk(directory: &FilePath, files: &mut Vec<PathBuf>, errors: &mut Vec<DefinitionError>) {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return errors.push(unreadable(directory, &error)),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, files, errors);
        } else if path.extension().is_some_and(|e| e == "yaml") {
            files.push(path);
        }
    }
}

fn unreadable(path: &FilePath, error: &std::io::Error) -> DefinitionError {
    DefinitionError { file: path.display().to_string(), position: None, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use kiln_value::Value;

    use super::{finder, property, resource_type, rest};

    /// The JSON schema for editors has the same keys as the parser.
    #[test]
    fn the_schema_for_editors_has_the_same_keys() {
        let schema = kiln_yaml::json::parse(include_str!("../../../../docs/resource-type.schema.json")).unwrap();
        let keys = |path: &[&str]| -> Vec<String> {
            let at = path.iter().fold(&schema, |at, key| match key.parse::<usize>() {
                Ok(index) => at.at(index).unwrap(),
                Err(_) => at.get(key).unwrap(),
            });
            at.get("properties").and_then(Value::as_map).unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&[]), resource_type::KEYS);
        assert_eq!(keys(&["definitions", "property", "anyOf", "1"]), property::KEYS);
        assert_eq!(keys(&["definitions", "rest"]), rest::KEYS);
        assert_eq!(keys(&["definitions", "finder", "anyOf", "1"]), finder::KEYS);
    }
}
