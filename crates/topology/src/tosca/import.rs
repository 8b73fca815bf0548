//! Imports: the documents of a service template.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use kiln_value::{Map, Path, Value};
use kiln_yaml::Document;

use super::types::Section;
use super::version_2;
use crate::Refusal;

/// Where imported files are from.
pub trait Files {
    /// The text of a file by its name from the root, or of a URL; `None` if there is none.
    fn text(&self, name: &str) -> Option<String>;
}

impl<S: BuildHasher> Files for HashMap<String, String, S> {
    fn text(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }
}

/// Versions of the language that are read.
pub(crate) const VERSIONS: [&str; 7] = [
    "tosca_simple_yaml_1_0",
    "tosca_simple_yaml_1_1",
    "tosca_simple_yaml_1_2",
    "tosca_simple_yaml_1_3",
    "tosca_simple_profile_for_nfv_1_0_0",
    "tosca_simple_profile_for_mec_1_0_0",
    "tosca_2_0",
];

/// Documents beyond this number are refused.
const MOST_IMPORTS: usize = 500;

/// The keys of imported documents.
const IMPORTED_KEYS: [&str; 20] = [
    "tosca_definitions_version",
    "description",
    "imports",
    "dsl_definitions",
    "node_types",
    "repositories",
    "data_types",
    "artifact_types",
    "group_types",
    "relationship_types",
    "capability_types",
    "interface_types",
    "policy_types",
    "topology_template",
    "service_template",
    "metadata",
    "namespace",
    "template_name",
    "template_author",
    "template_version",
];

/// An imported document with a topology, which may substitute nodes.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) file: String,
    pub(crate) document: Document,
}

/// Loads the documents that a template imports, and collects their types.
pub(crate) struct Loader<'f> {
    files: &'f dyn Files,
    pub(crate) types: HashMap<String, Value>,
    pub(crate) with_topology: Vec<Imported>,
    pub(crate) refusals: Vec<Refusal>,
    seen: HashSet<(String, String)>,
}

impl<'f> Loader<'f> {
    pub(crate) fn new(files: &'f dyn Files) -> Self {
        Self { files, types: HashMap::new(), with_topology: Vec::new(), refusals: Vec::new(), seen: HashSet::new() }
    }

    fn refuse(&mut self, kind: &'static str, file: &str, at: &Path, message: impl Into<String>) {
        let mut refusal = Refusal::new(kind, at, message);
        refusal.file = Some(file.to_owned());
        self.refusals.push(refusal);
    }

    /// Loads the types of the template `root` and of everything that it imports; its own types win.
    pub(crate) fn load(&mut self, root: &str, template: &Map) {
        // Files whose imports are to be read, with their documents. Types of deeper imports replace those of others.
        let mut queue = vec![(root.to_owned(), template.clone())];
        while let Some((file, document)) = queue.pop() {
            let repositories = document.get("repositories").and_then(Value::as_map).cloned().unwrap_or_default();
            for import in self.imports(&file, document.get("imports"), &repositories) {
                if !self.seen.insert((import.name.clone(), import.prefix.clone().unwrap_or_default())) {
                    continue;
                }
                if self.seen.len() > MOST_IMPORTS {
                    let message = format!("More than {MOST_IMPORTS} files are imported.");
                    return self.refuse("bad-import", &file, &import.at, message);
                }
                queue.extend(self.read(&file, &import));
            }
        }
        self.collect(template, None);
    }

    fn collect(&mut self, document: &Map, prefix: Option<&str>) {
        for key in Section::KEYS {
            for (name, definition) in document.get(key).and_then(Value::as_map).into_iter().flatten() {
                let name = prefix.map_or_else(|| name.clone(), |prefix| format!("{prefix}.{name}"));
                self.types.insert(name, definition.clone());
            }
        }
    }

    fn read(&mut self, from: &str, import: &Import) -> Option<(String, Map)> {
        let Some(text) = self.files.text(&import.name) else {
            let (kind, message) = if import.name.contains("://") {
                ("unreachable", format!("The address \"{}\" cannot be read.", import.name))
            } else {
                ("bad-import", format!("The import \"{}\" is not a file of the template.", import.written))
            };
            self.refuse(kind, from, &import.at, message);
            return None;
        };
        let mut document = match kiln_yaml::parse(&text) {
            Ok(document) => document,
            Err(error) => {
                self.refuse("not-yaml", &import.name, &Path::root(), error.message);
                return None;
            }
        };
        for unsupported in version_2::rewrite(&mut document.value) {
            self.refuse(unsupported.kind, &import.name, &unsupported.at, unsupported.message);
        }
        let Some(sections) = document.value.as_map().cloned() else {
            self.refuse("wrong-shape", &import.name, &Path::root(), "An imported document must be a map.");
            return None;
        };
        if let Some(version) = sections.get("tosca_definitions_version").and_then(Value::as_str)
            && !VERSIONS.contains(&version)
        {
            let message = format!(
                "\"{}\" has the version \"{version}\": the versions are {}.",
                import.written,
                VERSIONS.join(", ")
            );
            self.refuse("unknown-version", &import.name, &Path::root().key("tosca_definitions_version"), message);
        }
        for key in sections.keys().filter(|key| !IMPORTED_KEYS.contains(&key.as_str())) {
            let message = format!("The template {} has no field \"{key}\".", import.written);
            self.refuse("unknown-field", &import.name, &Path::root().key(key), message);
        }
        self.collect(&sections, import.prefix.as_deref());
        if sections.contains_key("topology_template") || sections.contains_key("service_template") {
            self.with_topology.push(Imported { file: import.name.clone(), document });
        }
        Some((import.name.clone(), sections))
    }

    /// The entries of `imports`: file names, maps of names to files, or maps with `file` and `repository`.
    fn imports(&mut self, file: &str, imports: Option<&Value>, repositories: &Map) -> Vec<Import> {
        let at = Path::root().key("imports");
        let items = match imports {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::List(items)) => items,
            Some(_) => {
                self.refuse("wrong-shape", file, &at, "The \"imports\" must be a list.");
                return Vec::new();
            }
        };
        let (mut found, mut names) = (Vec::new(), HashSet::new());
        for (i, item) in items.iter().enumerate() {
            let at = at.index(i);
            match item {
                Value::Str(name) => found.extend(self.import(file, &at, name, name, None, repositories)),
                Value::Map(entry) if entry.contains_key("profile") && !entry.contains_key("url") => {
                    let profile = entry.get("profile").map(kiln_value::text::str).unwrap_or_default();
                    // Its types are always known.
                    if !profile.starts_with("org.oasis-open.simple:") {
                        let message = format!("The profile \"{profile}\" is unknown: import it as a file.");
                        self.refuse("bad-import", file, &at.key("profile"), message);
                    }
                }
                Value::Map(entry) if entry.contains_key("file") || entry.contains_key("url") => {
                    found.extend(self.import_in_full(file, &at, "file", entry, repositories));
                }
                Value::Map(entries) => {
                    for (name, import) in entries {
                        if !names.insert(name.clone()) {
                            let message = format!("Two imports are named \"{name}\".");
                            self.refuse("invalid", file, &at, message);
                        }
                        let at = at.key(name);
                        match import {
                            Value::Str(text) => {
                                found.extend(self.import(file, &at, text, text, None, repositories));
                            }
                            Value::Map(entry) => {
                                found.extend(self.import_in_full(file, &at, name, entry, repositories));
                            }
                            _ => {
                                let message = format!("The import \"{name}\" has no file.");
                                self.refuse("invalid", file, &at, message);
                            }
                        }
                    }
                }
                _ => self.refuse("wrong-shape", file, &at, "An import must be a file name or a map."),
            }
        }
        found
    }

    fn import_in_full(&mut self, file: &str, at: &Path, name: &str, entry: &Map, repositories: &Map) -> Option<Import> {
        const KEYS: [&str; 8] =
            ["file", "url", "repository", "namespace_uri", "namespace_prefix", "namespace", "profile", "description"];
        for key in entry.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let message = format!("The import \"{name}\" has no field \"{key}\".");
            self.refuse("unknown-field", file, &at.key(key), message);
        }
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let Some(target) = text("file").or_else(|| text("url")) else {
            let message = format!("The import \"{name}\" must have the field \"file\".");
            self.refuse("missing-field", file, at, message);
            return None;
        };
        let prefix = text("namespace_prefix").or_else(|| text("namespace")).map(str::to_owned);
        let target = match text("repository") {
            None => target.to_owned(),
            Some(repository) => {
                let known = repositories.get(repository);
                let url = known.and_then(|known| known.as_str().or_else(|| known.str_at("url")));
                let Some(url) = url else {
                    let message = format!("No repository is named \"{repository}\".");
                    self.refuse("bad-import", file, &at.key("repository"), message);
                    return None;
                };
                format!("{}/{target}", url.trim().trim_end_matches('/'))
            }
        };
        let mut import = self.import(file, at, &target, &target, None, repositories)?;
        import.prefix = prefix;
        Some(import)
    }

    fn import(
        &mut self,
        file: &str,
        at: &Path,
        target: &str,
        written: &str,
        prefix: Option<String>,
        _: &Map,
    ) -> Option<Import> {
        let place = |name: String| Import { at: at.clone(), name, written: written.to_owned(), prefix };
        if target.contains("://") {
            return Some(place(target.to_owned()));
        }
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let relative = join(folder, target);
        if let Some(name) = relative.clone().filter(|name| self.files.text(name).is_some()) {
            return Some(place(name));
        }
        // A CSAR may name its files from the root.
        if let Some((named, base)) = target.rsplit_once('/')
            && !named.is_empty()
            && folder.ends_with(named)
        {
            return Some(place(format!("{folder}/{base}")));
        }
        if let Some(name) = relative {
            return Some(place(name));
        }
        self.refuse("bad-import", file, at, format!("The import \"{written}\" is not a file of the template."));
        None
    }
}

/// The types of a document and of everything that it imports, as far as these can be read.
pub(crate) fn with_imports(files: &dyn Files, root: &str, document: &Map) -> HashMap<String, Value> {
    let mut loader = Loader::new(files);
    loader.load(root, document);
    loader.types
}

struct Import {
    at: Path,
    /// The name from the root, or a URL.
    name: String,
    written: String,
    prefix: Option<String>,
}

/// The file that `name` means in a folder, from the root; `None` if it is outside.
pub(crate) fn join(folder: &str, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return None;
    }
    // The address of a file that was imported from a URL.
    let (server, folder) = match folder.find("://").and_then(|i| folder[i + 3..].find('/').map(|j| i + 3 + j)) {
        Some(end) => folder.split_at(end),
        None => ("", folder),
    };
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    Some(if server.is_empty() { path } else { format!("{server}/{path}") })
}
