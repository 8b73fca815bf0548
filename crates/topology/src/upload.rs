//! What a client uploads: a package or a document becomes the parts of a request to create a stack.

use std::sync::Arc;

use base64::Engine as _;
pub use kiln_package::Limits;
use kiln_package::{Format, Package};
use kiln_value::{Diagnostic, Map, Path, Value};
use kiln_yaml::Document;

use crate::blueprint::Library;
use crate::graph::Graph;
use crate::lower::{Lowered, by_cloud_init, lower};
use crate::package::{Error, read_blueprint, read_csar};
use crate::tosca::Files;
use crate::{Refusal, TypeFiles, document, question};

/// The parts of a request.
#[derive(Clone, Debug, Default)]
pub struct Upload {
    /// A HOT template.
    pub template: Value,
    /// Nested templates and files by the name that the template uses; all are texts.
    pub files: Map,
    /// What only the cloud can answer, as JSON by parameter.
    pub questions: Map,
    /// Whether the template was made from another document.
    pub is_lowered: bool,
}

/// A document without files.
struct Alone<'t> {
    text: &'t str,
}

impl Files for Alone<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (name == ROOT).then(|| self.text.to_owned())
    }
}

const ROOT: &str = "template.yaml";

/// Whether a document is a blueprint, a plan or a service template, by its first keys.
pub fn is_topology(document: &Value) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let is_template =
        has("heat_template_version") || has("HeatTemplateFormatVersion") || has("AWSTemplateFormatVersion");
    !is_template && (has("tosca_definitions_version") || has("camp_version") || has("components"))
}

/// Reads a package or a document: blueprint, plan, service template, or template. `given` are values for inputs.
///
/// Errors: all of the document, with their positions and files.
///
/// With `cloud_init`, software runs as user data instead of by an agent. `types` are those of files; a package may add
/// others.
pub fn read(
    bytes: &[u8],
    given: &Map,
    cloud_init: bool,
    limits: &Limits,
    types: &Arc<TypeFiles>,
) -> Result<Upload, Vec<Diagnostic>> {
    if Package::is_archive(bytes) {
        return read_package(bytes, given, cloud_init, limits, types);
    }
    let text = text_of("The upload", bytes).map_err(|error| vec![error])?;
    let document = parse(text)?;
    if !is_topology(&document.value) {
        return Ok(Upload { template: document.value, ..Upload::default() });
    }
    let graph = document::graph(text, &document, ROOT, &Alone { text }, given, types);
    let (graph, _) = graph.map_err(|refusals| placed(&refusals, &document, None))?;
    let lowered = lowered(&graph, ROOT, cloud_init).map_err(|refusals| placed(&refusals, &document, None))?;
    if let Some(file) = lowered.files.first() {
        let message = format!("{} is not part of the upload: send a package with it.", file.from);
        return Err(vec![Diagnostic::invalid(message)]);
    }
    Ok(finish(lowered, Map::new()))
}

fn read_package(
    bytes: &[u8],
    given: &Map,
    cloud_init: bool,
    limits: &Limits,
    types: &Arc<TypeFiles>,
) -> Result<Upload, Vec<Diagnostic>> {
    let of_archive = |refusal: &kiln_package::Refusal| {
        let mut error = Diagnostic::invalid(refusal.message.clone());
        error.file.clone_from(&refusal.member);
        vec![error]
    };
    let package = Package::open(bytes, limits).map_err(|refusal| of_archive(&refusal))?;
    let root = package.root.clone();
    let content = package.files.get(&root).map(Vec::as_slice).unwrap_or_default();
    let document = parse(text_of(&root, content).map_err(|error| vec![error])?)?;
    if package.format == Format::Blueprint && !is_topology(&document.value) {
        return Ok(of_template(&package, document.value));
    }
    let wrong = |error: Error| match error {
        Error::Package { refusal, at } => {
            placed(&[Refusal::new(refusal.kind, &at, refusal.message)], &document, Some(&root))
        }
        Error::Document(_, refusals) => placed(&refusals, &document, Some(&root)),
    };
    let graph = if package.format == Format::Csar {
        read_csar(&package, given, types).map_err(wrong)?.graph
    } else {
        let blueprint = read_blueprint(&package, &library(types)?).map_err(wrong)?;
        blueprint.graph().map_err(|refusals| placed(&refusals, &document, Some(&root)))?.0
    };
    let lowered = lowered(&graph, &root, cloud_init).map_err(|refusals| placed(&refusals, &document, Some(&root)))?;
    let mut contents = Map::new();
    for file in &lowered.files {
        let Some(bytes) = package.files.get(&file.from) else {
            let message = format!("The package has no file {}.", file.from);
            return Err(vec![Diagnostic::invalid(message)]);
        };
        let content = if file.is_base64 {
            base64::engine::general_purpose::STANDARD.encode(bytes)
        } else {
            text_of(&file.from, bytes).map_err(|error| vec![error])?.to_owned()
        };
        contents.insert(file.name.clone(), content.into());
    }
    Ok(finish(lowered, contents))
}

fn lowered(graph: &Graph, root: &str, cloud_init: bool) -> Result<Lowered, Vec<Refusal>> {
    let lowered = lower(graph, root)?;
    if cloud_init { by_cloud_init(lowered) } else { Ok(lowered) }
}

/// A package with a HOT template: all members that are texts are its files.
fn of_template(package: &Package, template: Value) -> Upload {
    let files = package.texts().map(|(name, text)| (name.to_owned(), text.into())).collect();
    Upload { template, files, ..Upload::default() }
}

fn finish(lowered: Lowered, mut files: Map) -> Upload {
    for (name, template) in &lowered.nested {
        files.insert(name.clone(), kiln_value::text::json(template).into());
    }
    Upload { template: lowered.template, files, questions: question::to_map(&lowered.questions), is_lowered: true }
}

fn library(types: &Arc<TypeFiles>) -> Result<Library, Vec<Diagnostic>> {
    Library::of(types)
        .map_err(|refusals| refusals.iter().map(|refusal| Diagnostic::invalid(refusal.message.clone())).collect())
}

fn parse(text: &str) -> Result<Document, Vec<Diagnostic>> {
    kiln_yaml::parse(text).map_err(|error| vec![Diagnostic::invalid(error.message).at(Path::root())])
}

fn text_of<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str, Diagnostic> {
    std::str::from_utf8(bytes).map_err(|_| Diagnostic::invalid(format!("{name} is not UTF-8 text.")))
}

/// The refusals with their positions; those without a file are about `file`.
fn placed(refusals: &[Refusal], document: &Document, file: Option<&str>) -> Vec<Diagnostic> {
    let placed = refusals.iter().map(|refusal| {
        let mut error = refusal.diagnostic(document);
        error.file = error.file.take().or_else(|| file.map(str::to_owned));
        error
    });
    placed.collect()
}
