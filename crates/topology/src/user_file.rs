//! What a user wrote, a document or a package with one, on its way to a template.
//!
//! The steps are the same for a command and for an upload: [`UserFile::read`], [`UserFile::lower`], [`UserFile::contents`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use kiln_package::{Format, Limits, Package, zip_of};
use kiln_value::{Map, Span, Spans, Value};
use kiln_yaml::Document;

use crate::blueprint::{Application, Library};
use crate::graph::Graph;
use crate::lower::{Lowered, Note, Source, by_cloud_init, lower};
use crate::package::{read_blueprint, read_csar};
use crate::tosca::{self, Files};
use crate::type_file::TypeFile;
use crate::{Refusal, TypeFiles, blueprint, camp};

/// A document or a package.
#[derive(Clone, Debug)]
pub struct UserFile {
    /// The text of the root file.
    pub text: String,
    /// The text as data; `None` if it is not YAML.
    pub document: Option<Document>,
    /// The root file: its name in the package, or for [`Files`].
    pub root: String,
    /// The package, unless it is a document.
    pub package: Option<Package>,
    /// The file as it is.
    pub content: Vec<u8>,
}

/// What a document says.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What it describes.
    pub graph: Graph,
    /// The document with its references, types and defaults resolved.
    pub value: Value,
    /// What has no effect, and why.
    pub notes: Vec<Note>,
}

/// Whether a document is a blueprint, a plan or a service template, by its first keys.
pub fn is_topology(document: &Value) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let is_template =
        has("heat_template_version") || has("HeatTemplateFormatVersion") || has("AWSTemplateFormatVersion");
    !is_template && (has("tosca_definitions_version") || has("camp_version") || has("components"))
}

impl UserFile {
    /// Opens a package.
    ///
    /// Errors: what is wrong with the archive or its metadata.
    pub fn of_package(content: Vec<u8>, limits: &Limits) -> Result<Self, kiln_package::Refusal> {
        let package = Package::open(&content, limits)?;
        let root = package.root.clone();
        let text = package.files.get(&root).and_then(|content| String::from_utf8(content.clone()).ok());
        let document = text.as_ref().and_then(|text| kiln_yaml::parse(text).ok());
        let text = text.unwrap_or_default();
        Ok(Self { text, document, root, package: Some(package), content })
    }

    /// A document; `root` is its name for [`Files`].
    pub fn of_document(text: String, document: Document, root: impl Into<String>) -> Self {
        let content = text.clone().into_bytes();
        Self { text, document: Some(document), root: root.into(), package: None, content }
    }

    /// The HOT template, if it is one, or a package with one.
    pub fn template(&self) -> Option<&Value> {
        let template = &self.document.as_ref()?.value;
        let may_be = self.package.as_ref().is_none_or(|package| package.format == Format::Blueprint);
        (may_be && !is_topology(template)).then_some(template)
    }

    /// Reads it in its language. `files` are those beside a document, with itself as `root`; `given` are values for inputs;
    /// `types` are those of files, to which a package may add others.
    ///
    /// Errors: all of the document, with their positions and files.
    pub fn read(&self, files: &dyn Files, given: &Map, types: &Arc<TypeFiles>) -> Result<Reading, Vec<Refusal>> {
        match &self.package {
            Some(package) if package.format == Format::Csar => {
                Ok(Reading::of_service_template(read_csar(package, given, types)?.graph))
            }
            Some(package) => Reading::of_application(&read_blueprint(package, &Library::of(types)?)?),
            None if self.has("tosca_definitions_version") => {
                let template = tosca::read_with(files, &self.root, given, types);
                Ok(Reading::of_service_template(template.map_err(|(_, refusals)| refusals)?.graph))
            }
            None => {
                let read = if self.has("camp_version") { camp::read } else { blueprint::read };
                Reading::of_application(&read(&self.text, &Library::of(types)?).map_err(|(_, refusals)| refusals)?)
            }
        }
    }

    fn has(&self, key: &str) -> bool {
        self.document.as_ref().is_some_and(|document| document.value.get(key).is_some())
    }

    /// Lowers what was read. With `cloud_init`, software runs as user data instead of by an agent.
    pub fn lower(&self, reading: &Reading, cloud_init: bool) -> Result<Lowered, Vec<Refusal>> {
        let mut lowered = lower(&reading.graph, &self.root)?;
        if cloud_init {
            lowered = by_cloud_init(lowered)?;
        }
        lowered.notes.splice(0..0, reading.notes.iter().cloned());
        Ok(lowered)
    }

    /// The contents of the files that the templates name, and the nested templates. `beside` are the files beside a document;
    /// below its folder, their names become relative.
    ///
    /// Errors: the text for a file that is missing, or that is not a text.
    pub fn contents(
        &self,
        lowered: &mut Lowered,
        beside: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Map, String> {
        let mut contents = Map::new();
        let mut names = BTreeMap::new();
        for file in &lowered.files {
            let bytes = match &self.package {
                Some(package) => {
                    let content = package.files.get(&file.from).cloned();
                    content.ok_or_else(|| format!("The package has no file {}.", file.from))?
                }
                None => beside(&file.from)?,
            };
            let content = if file.is_base64 {
                base64::engine::general_purpose::STANDARD.encode(&bytes)
            } else {
                let shown = self.below_folder(&file.from).unwrap_or(&file.from);
                String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8 text."))?
            };
            let name = match self.below_folder(&file.name) {
                _ if self.package.is_some() => file.name.clone(),
                Some(relative) => relative.to_owned(),
                None if file.name.contains("://") => file.name.clone(),
                None => format!("/{}", file.name),
            };
            contents.insert(name.clone(), content.into());
            names.insert(file.name.clone(), name);
        }
        rename(&mut lowered.template, &names);
        for (name, template) in &mut lowered.nested {
            rename(template, &names);
            contents.insert(name.clone(), kiln_value::text::json(template).into());
        }
        Ok(contents)
    }

    /// The name of a file from the folder of the root file; `None` if it is elsewhere.
    pub fn below_folder<'n>(&self, name: &'n str) -> Option<&'n str> {
        match self.root.rsplit_once('/') {
            Some((folder, _)) => name.strip_prefix(folder)?.strip_prefix('/'),
            None => Some(name),
        }
    }

    /// Positions for the template: each resource, parameter and output has that of the part that it is from.
    pub fn spans(&self, lowered: &Lowered) -> Spans {
        let span = |key: &str| -> Option<Span> {
            let source = lowered.sources.get(key).filter(|source| source.file.is_none())?;
            let document = self.document.as_ref()?;
            let spans = document.spans.find(&document.value, &source.at);
            Some(spans.key.unwrap_or(spans.value))
        };
        let mut root = spread(&lowered.template, Span::default());
        let sections = lowered.template.as_map().into_iter().flatten().zip(&mut root.children);
        for ((section, entries), spans) in sections {
            for ((name, entry), child) in entries.as_map().into_iter().flatten().zip(&mut spans.children) {
                *child = spread(entry, span(&format!("{section}.{name}")).unwrap_or_default());
            }
        }
        root
    }

    /// The document or package; a document that uses other files, or types of files, as a package with these.
    ///
    /// Errors: the text of the archive's.
    pub fn packed(
        self,
        mut beside: BTreeMap<String, Vec<u8>>,
        types: BTreeMap<String, Vec<u8>>,
    ) -> Result<Vec<u8>, String> {
        if let Some(package) = self.package {
            if types.is_empty() {
                return Ok(self.content);
            }
            let mut files = package.files;
            files.extend(types);
            return zip_of(&files);
        }
        beside.remove(&self.root);
        let relative =
            |(name, content): (&String, &Vec<u8>)| Some((self.below_folder(name)?.to_owned(), content.clone()));
        let others: Option<BTreeMap<String, Vec<u8>>> = beside.iter().map(relative).collect();
        // What is outside of its folder cannot be part of a package.
        let Some(mut files) = others.filter(|others| !others.is_empty() || !types.is_empty()) else {
            return Ok(self.content);
        };
        files.extend(types);
        let root = if self.has("tosca_definitions_version") {
            let name = self.below_folder(&self.root).unwrap_or(&self.root);
            let metadata = format!(
                "TOSCA-Meta-File-Version: 1.1\nCSAR-Version: 1.1\nCreated-By: Kiln\nEntry-Definitions: {name}\n"
            );
            files.insert("TOSCA-Metadata/TOSCA.meta".to_owned(), metadata.into_bytes());
            name
        } else if self.has("camp_version") {
            "camp.yaml"
        } else {
            "heat.yaml"
        };
        files.insert(root.to_owned(), self.content.clone());
        zip_of(&files)
    }
}

impl Reading {
    fn of_service_template(graph: Graph) -> Self {
        let value = graph.model();
        Self { graph, value, notes: Vec::new() }
    }

    fn of_application(application: &Application) -> Result<Self, Vec<Refusal>> {
        let (graph, notes) = application.graph()?;
        let note = |(at, message)| Note { source: Source { file: None, at }, message };
        Ok(Self { graph, value: application.reading(), notes: notes.into_iter().map(note).collect() })
    }

    /// The type files that it uses and that `is_own` accepts, by their names in a package.
    pub fn types(&self, types: &TypeFiles, is_own: impl Fn(&TypeFile) -> bool) -> BTreeMap<String, Vec<u8>> {
        let (mut names, mut graphs) = (BTreeSet::new(), vec![&self.graph]);
        while let Some(graph) = graphs.pop() {
            let of_nodes = graph.nodes.iter().flat_map(|node| std::iter::once(&node.type_name).chain(&node.ancestors));
            names.extend(of_nodes.map(String::as_str));
            graphs.extend(graph.nested.iter().map(|nested| &nested.graph));
        }
        let texts =
            types.texts().filter(|(name, _)| names.contains(name) && types.get(name).is_some_and(|this| is_own(this)));
        texts.map(|(name, text)| (format!("topology-types/{name}.yaml"), text.as_bytes().to_vec())).collect()
    }
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::List(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Map(map) => {
            for (key, value) in map.iter_mut() {
                match (key.as_str(), &*value) {
                    ("get_file", Value::Str(name)) if names.contains_key(name) => {
                        *value = names.get(name).cloned().unwrap_or_default().into();
                    }
                    _ => rename(value, names),
                }
            }
        }
        _ => {}
    }
}

/// The same position for every part of a value.
fn spread(value: &Value, span: Span) -> Spans {
    let children = match value {
        Value::List(items) => items.iter().map(|item| spread(item, span)).collect(),
        Value::Map(map) => map.values().map(|item| spread(item, span)).collect(),
        _ => Vec::new(),
    };
    Spans { key: Some(span), value: span, children }
}
