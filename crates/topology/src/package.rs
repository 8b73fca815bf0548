//! Templates in packages: the root file, and the files that it names.

use std::sync::Arc;

use kiln_package::{Format, Package};
use kiln_value::{Map, Path, Value};
use kiln_yaml::Document;

use crate::blueprint::{Application, Component, Fulfilment, Library, Requirement};
use crate::graph::Graph;
use crate::lower::IMAGE;
use crate::tosca::{Files, Template};
use crate::{Refusal, TypeFiles, blueprint, camp, tosca};

/// Why a package is refused.
#[derive(Clone, Debug)]
pub enum Error {
    /// The archive, its metadata, or a file that is missing; `at` is the place in the root file that names it.
    Package {
        /// The problem.
        refusal: kiln_package::Refusal,
        /// The place in the root file; the root if it is not about one.
        at: Path,
    },
    /// A file of it; the document is missing if it is not YAML.
    Document(Option<Document>, Vec<Refusal>),
}

impl From<kiln_package::Refusal> for Error {
    fn from(refusal: kiln_package::Refusal) -> Self {
        Self::Package { refusal, at: Path::root() }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Document(None, vec![refusal])
    }
}

impl From<Error> for Vec<Refusal> {
    fn from(error: Error) -> Self {
        match error {
            Error::Package { refusal, at } => vec![Refusal::new(refusal.kind, &at, refusal.message)],
            Error::Document(_, refusals) => refusals,
        }
    }
}

/// Reads a package with `heat.yaml` or `camp.yaml`, with the types of `library` and those of the package.
///
/// Errors: those of the document and of type files; `unsafe-path` and `missing-file` for content that is no URL.
pub fn read_blueprint(package: &Package, library: &Library) -> Result<Application, Error> {
    let text = text(package, &package.root)?;
    let read = if package.format == Format::Pdp { camp::read } else { blueprint::read };
    let types = Arc::new(library.types.of_package(package).map_err(|refusals| Error::Document(None, refusals))?);
    let own;
    let library = if types == library.types {
        library
    } else {
        own = Library::of(&types).map_err(|refusals| Error::Document(None, refusals))?;
        &own
    };
    let blueprint = read(text, library).map_err(|(document, refusals)| Error::Document(document, refusals))?;
    for component in &blueprint.components {
        check_content(package, component)?;
    }
    Ok(blueprint)
}

/// The text of a file.
pub(crate) fn text<'p>(package: &'p Package, name: &str) -> Result<&'p str, Error> {
    let (_, content) = package.resolve("", name)?;
    std::str::from_utf8(content).map_err(|_| {
        let message = format!("{name} is not UTF-8 text.");
        Error::Document(None, vec![Refusal::new("not-yaml", &Path::root(), message)])
    })
}

fn check_content(package: &Package, component: &Component) -> Result<(), Error> {
    if let Some(content) = component.content.as_deref().filter(|content| !content.contains("://")) {
        let at = component.at.key("content");
        package.resolve("", content).map_err(|refusal| Error::Package { refusal, at })?;
    }
    for (_, spec) in &component.specs {
        check_content(package, spec)?;
    }
    let inside = |requirement: &Requirement| {
        requirement.fulfilled_by.iter().try_for_each(|by| match by {
            Fulfilment::InLine(inline) => check_content(package, inline),
            _ => Ok(()),
        })
    };
    component.requires.iter().try_for_each(inside)
}

/// The files of a package, for imports.
struct Members<'p>(&'p Package);

impl Files for Members<'_> {
    fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.0.files.get(name)?.clone()).ok()
    }
}

/// Reads a CSAR with values for its inputs.
///
/// `types` are those of files besides those of the package.
///
/// Errors: those of the template and its imports; artifacts and implementations that are no files of the package.
pub fn read_csar(package: &Package, given: &Map, types: &Arc<TypeFiles>) -> Result<Template, Error> {
    let has_metadata = package.files.keys().any(|name| name.starts_with("TOSCA-Metadata/"));
    let is_first = |version: &str| version.contains("tosca_definitions_version: tosca_simple_yaml_1_0");
    if !has_metadata && text(package, &package.root)?.lines().any(is_first) {
        let message =
            "A package of version tosca_simple_yaml_1_0 must have the file \"TOSCA.meta\" in \"TOSCA-Metadata\".";
        return Err(Refusal::new("invalid", &Path::root(), message).into());
    }
    let types = Arc::new(types.of_package(package).map_err(|refusals| Error::Document(None, refusals))?);
    let template = tosca::read_with(&Members(package), &package.root, given, &types)
        .map_err(|(document, refusals)| Error::Document(document, refusals))?;
    let mut refusals = Vec::new();
    check_files(package, &template.graph, &mut refusals);
    if refusals.is_empty() { Ok(template) } else { Err(Error::Document(Some(template.document), refusals)) }
}

/// The artifacts and implementations of all nodes must be files, URLs, or names of artifacts.
fn check_files(package: &Package, graph: &Graph, refusals: &mut Vec<Refusal>) {
    let file = graph.file.as_deref().unwrap_or(&package.root);
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut check = |name: &str, at: &Path| {
        if !name.contains("://")
            && let Err(refusal) = package.resolve(folder, name)
        {
            let kind = if refusal.kind == "missing-file" { "bad-value" } else { refusal.kind };
            let mut refusal = Refusal::new(kind, at, format!("The package has no file \"{name}\"."));
            refusal.file.clone_from(&graph.file);
            refusals.push(refusal);
        }
    };
    for node in &graph.nodes {
        for (name, artifact) in node.artifacts.iter().flatten() {
            // Images of containers are in a registry.
            let is_image = artifact.str_at("type") == Some(IMAGE);
            if let Some(file) = artifact.as_str().or_else(|| artifact.str_at("file")).filter(|_| !is_image) {
                check(file, &node.at.key("artifacts").key(name));
            }
        }
        for operation in &node.operations {
            let named = |name: &str| node.artifacts.as_ref().is_some_and(|artifacts| artifacts.contains_key(name));
            for file in implementations(operation.implementation.as_ref()).filter(|name| !named(name)) {
                check(file, &operation.at);
            }
        }
    }
    graph.nested.iter().for_each(|nested| check_files(package, &nested.graph, refusals));
}

/// The files or artifacts that an implementation names.
pub(crate) fn implementations(implementation: Option<&Value>) -> impl Iterator<Item = &str> {
    let named = |key: &str| implementation.and_then(|implementation| implementation.get(key));
    let more = match named("dependencies") {
        Some(Value::List(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let first = implementation.into_iter().chain(named("primary"));
    first.chain(more).filter_map(|item| item.as_str().or_else(|| item.str_at("file")))
}
