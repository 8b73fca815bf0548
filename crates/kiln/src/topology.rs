//! Blueprints, CAMP plans, TOSCA templates and packages in the place of templates: lowered before they are sent.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use clap::ValueEnum;
use kiln_client::{Bundle, Client, ErrorLocation, Origin, Source, address};
use kiln_package::{Format, Limits, Package, zip_of};
use kiln_server::topology_types::is_of_operator;
use kiln_topology::blueprint::{self, Blueprint, Library};
use kiln_topology::graph::Graph;
use kiln_topology::lower::{Lowered, Note, Source as Place, by_cloud_init, lower};
use kiln_topology::package::{Error, read_blueprint, read_csar};
use kiln_topology::tosca::{self, Files};
use kiln_topology::upload::is_topology;
use kiln_topology::{Refusal, TypeFiles, camp, question};
use kiln_value::{Map, Span, Spans, Value};
use kiln_yaml::Document;

use crate::cli::LocalArgs;
use crate::failure::{Failure, Outcome};
use crate::mistakes::Sent;

/// Imports of imports of addresses, and so on.
const MOST_ROUNDS: usize = 20;

/// How software gets to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Software {
    /// Software deployments; the image needs an agent (os-collect-config)
    Deployments,
    /// User data of cloud-init, with a report to a wait condition; the image needs Python
    CloudInit,
}

/// How documents are lowered.
pub(crate) struct Lowering<'a> {
    /// Reads files and URLs.
    pub(crate) source: &'a Source,
    /// Where type files are from.
    pub(crate) settings: &'a LocalArgs,
    /// A service whose operator may have more types.
    pub(crate) service: Option<&'a Client>,
    /// How software gets to servers; `None`: as software deployments.
    pub(crate) software: Option<Software>,
}

/// What a file became.
pub(crate) struct Made {
    /// The template with its files, and the positions of the original.
    pub(crate) bundle: Bundle,
    /// Template, questions, notes.
    pub(crate) lowered: Lowered,
    /// What was read: `model` or `reading`.
    pub(crate) reading: Value,
    /// The document or package; `None` if it has a template, which was not lowered.
    pub(crate) original: Option<Vec<u8>>,
}

/// The original: its text and where its files are.
pub(crate) struct UserFile {
    url: String,
    text: String,
    document: Option<Document>,
    /// The root file: in the package, or the path from the root of the file system without the first slash.
    root: String,
    package: Option<Package>,
    /// The file as it is.
    content: Vec<u8>,
}

/// Reads a file and lowers it, if it is not a template; `None` if it is one.
///
/// The environments are those of the user; `given` are values for inputs.
pub(crate) async fn read(by: &Lowering<'_>, name: &str, environments: &[String], given: &Map) -> Outcome<Option<Made>> {
    let made = read_unless_template(by, name, environments, given).await?;
    if made.is_none() && by.software.is_some() {
        return Err(Failure::new("--software is for blueprints, CAMP plans and TOSCA only"));
    }
    Ok(made)
}

async fn read_unless_template(
    by: &Lowering<'_>,
    name: &str,
    environments: &[String],
    given: &Map,
) -> Outcome<Option<Made>> {
    let url = address::url_of(name);
    // Problems of reading are reported with those of templates.
    let Ok(bytes) = by.source.read(&url).await else { return Ok(None) };
    let Some(original) = opened(&url, bytes)? else { return Ok(None) };
    let mut made = make(by, &original, given).await?;
    let rest = Bundle::read(by.source, None, environments).await?;
    made.bundle.environment = rest.environment;
    made.bundle.environment_files = rest.environment_files;
    made.bundle.others = rest.others;
    made.bundle.files.extend(rest.files);
    for note in &made.lowered.notes {
        anstream::eprintln!("warning: {}: {}", place(&note.source), note.message);
    }
    Ok(Some(made))
}

fn place(source: &Place) -> String {
    let file = source.file.as_ref().map(|file| format!("{file}: ")).unwrap_or_default();
    format!("{file}{}", source.at)
}

fn opened(url: &str, bytes: Vec<u8>) -> Outcome<Option<UserFile>> {
    if Package::is_archive(&bytes) {
        let package = Package::open(&bytes, &Limits::default()).map_err(|refusal| {
            Failure::new(format!("{url}: {refusal}")).hint(format!("the kind of error is {}", refusal.kind))
        })?;
        let text = package.files.get(&package.root).map(|content| String::from_utf8_lossy(content).into_owned());
        let (text, root) = (text.unwrap_or_default(), package.root.clone());
        let document = kiln_yaml::parse(&text).ok();
        let url = format!("{url}/{root}");
        return Ok(Some(UserFile { url, text, document, root, package: Some(package), content: bytes }));
    }
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    let Ok(document) = kiln_yaml::parse(&text) else { return Ok(None) };
    if !is_topology(&document.value) {
        return Ok(None);
    }
    let root = match address::file_of(url) {
        Some(path) => path.to_string_lossy().trim_start_matches('/').to_owned(),
        None => url.to_owned(),
    };
    let content = text.clone().into_bytes();
    Ok(Some(UserFile { url: url.to_owned(), text, document: Some(document), root, package: None, content }))
}

async fn make(by: &Lowering<'_>, original: &UserFile, given: &Map) -> Outcome<Made> {
    let is_plan = |key: &str| original.document.as_ref().is_some_and(|document| document.value.get(key).is_some());
    if let (Some(package), Some(document)) = (&original.package, &original.document)
        && package.format == Format::Blueprint
        && !is_topology(&document.value)
    {
        return Ok(of_template(original, package, document));
    }
    let types = match by.service {
        Some(client) => by.settings.topology_types_with(client).await?,
        None => by.settings.topology_types()?,
    };
    let library = || Library::of(&types).map_err(|refusals| wrong(original, &refusals));
    let mut read_files = BTreeMap::new();
    let (graph, reading, notes) = match &original.package {
        Some(package) if package.format == Format::Csar => {
            let template = read_csar(package, given, &types).map_err(|error| in_package(original, error))?;
            let model = template.graph.model();
            (template.graph, model, Vec::new())
        }
        Some(package) => {
            let blueprint = read_blueprint(package, &library()?).map_err(|error| in_package(original, error))?;
            of_blueprint(original, &blueprint)?
        }
        None if is_plan("tosca_definitions_version") => {
            let graph = of_service_template(by.source, original, given, &types, &mut read_files).await?;
            let model = graph.model();
            (graph, model, Vec::new())
        }
        None => {
            let read = if is_plan("camp_version") { camp::read } else { blueprint::read };
            let blueprint = read(&original.text, &library()?).map_err(|(_, refusals)| wrong(original, &refusals))?;
            of_blueprint(original, &blueprint)?
        }
    };
    let mut lowered = lower(&graph, &original.root).map_err(|refusals| wrong(original, &refusals))?;
    if by.software == Some(Software::CloudInit) {
        lowered = by_cloud_init(lowered).map_err(|refusals| wrong(original, &refusals))?;
    }
    lowered.notes.splice(0..0, notes);
    let files = files(by.source, original, &mut lowered, &mut read_files).await?;
    let spans = original.document.as_ref().map(|document| mapped(&lowered, document)).unwrap_or_default();
    let bundle = Bundle {
        template: Some(lowered.template.clone()),
        origin: Origin::new(original.url.clone(), original.text.clone(), lowered.template.clone(), spans),
        files,
        questions: question::to_map(&lowered.questions),
        ..Bundle::default()
    };
    let kept = packed(original, read_files, used(&graph, &types))?;
    Ok(Made { bundle, lowered, reading, original: Some(kept) })
}

/// The type files of the user that a topology uses, by their names in a package. Those of Kiln and of the service's operator
/// are not part of it.
fn used(graph: &Graph, types: &TypeFiles) -> BTreeMap<String, Vec<u8>> {
    let (mut names, mut graphs) = (BTreeSet::new(), vec![graph]);
    while let Some(graph) = graphs.pop() {
        let of_nodes = graph.nodes.iter().flat_map(|node| std::iter::once(&node.type_name).chain(&node.ancestors));
        names.extend(of_nodes.map(String::as_str));
        graphs.extend(graph.nested.iter().map(|nested| &nested.graph));
    }
    let is_own = |name: &str| types.get(name).is_some_and(|this| !is_of_operator(this));
    let texts = types.texts().filter(|(name, _)| names.contains(name) && is_own(name));
    texts.map(|(name, text)| (format!("topology-types/{name}.yaml"), text.as_bytes().to_vec())).collect()
}

/// The document or package; a document that uses other files, or types of the user, as a package with these.
fn packed(
    original: &UserFile,
    read_files: BTreeMap<String, Vec<u8>>,
    types: BTreeMap<String, Vec<u8>>,
) -> Outcome<Vec<u8>> {
    let failed = |error: String| Failure::new(format!("Could not make a package of {}: {error}", original.url));
    if let Some(package) = &original.package {
        if types.is_empty() {
            return Ok(original.content.clone());
        }
        let mut files = package.files.clone();
        files.extend(types);
        return zip_of(&files).map_err(failed);
    }
    let folder = original.root.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let others = read_files.into_iter().filter(|(name, _)| *name != original.root);
    let relative = |(name, content): (String, Vec<u8>)| Some((name.strip_prefix(&folder)?.to_owned(), content));
    let others: Option<BTreeMap<String, Vec<u8>>> = others.map(relative).collect();
    // What is outside of its folder cannot be part of a package.
    let Some(mut files) = others.filter(|others| !others.is_empty() || !types.is_empty()) else {
        return Ok(original.content.clone());
    };
    files.extend(types);
    let has = |key: &str| original.document.as_ref().is_some_and(|document| document.value.get(key).is_some());
    let root = if has("tosca_definitions_version") {
        let name = original.root.strip_prefix(&folder).unwrap_or(&original.root);
        let metadata =
            format!("TOSCA-Meta-File-Version: 1.1\nCSAR-Version: 1.1\nCreated-By: Kiln\nEntry-Definitions: {name}\n");
        files.insert("TOSCA-Metadata/TOSCA.meta".to_owned(), metadata.into_bytes());
        name
    } else if has("camp_version") {
        "camp.yaml"
    } else {
        "heat.yaml"
    };
    files.insert(root.to_owned(), original.content.clone());
    zip_of(&files).map_err(failed)
}

/// A package with a HOT template: all members that are texts are its files.
fn of_template(original: &UserFile, package: &Package, document: &Document) -> Made {
    let bundle = Bundle {
        template: Some(document.value.clone()),
        origin: origin(original, document),
        files: package.texts().map(|(name, text)| (name.to_owned(), text.into())).collect(),
        ..Bundle::default()
    };
    let lowered = Lowered { template: document.value.clone(), ..Lowered::default() };
    Made { bundle, lowered, reading: document.value.clone(), original: None }
}

fn origin(original: &UserFile, document: &Document) -> Origin {
    Origin::new(original.url.clone(), original.text.clone(), document.value.clone(), document.spans.clone())
}

fn of_blueprint(original: &UserFile, blueprint: &Blueprint) -> Outcome<(Graph, Value, Vec<Note>)> {
    let (graph, notes) = blueprint.graph().map_err(|refusals| wrong(original, &refusals))?;
    let notes = notes.into_iter().map(|(at, message)| Note { source: Place { file: None, at }, message });
    Ok((graph, blueprint.reading(), notes.collect()))
}

/// Files by their path from the root of the file system, without the first slash.
pub(crate) struct LocalFiles;

impl Files for LocalFiles {
    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(format!("/{name}")).ok()
    }
}

/// The files beside a service template; addresses are collected first, as they are read asynchronously.
struct Shelf {
    is_local: bool,
    fetched: HashMap<String, Option<String>>,
    wanted: RefCell<Vec<String>>,
    /// The local files that were read.
    read: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Files for Shelf {
    fn text(&self, name: &str) -> Option<String> {
        if name.contains("://") {
            let known = self.fetched.get(name);
            if known.is_none() {
                self.wanted.borrow_mut().push(name.to_owned());
            }
            return known.cloned().flatten();
        }
        let text = LocalFiles.text(name).filter(|_| self.is_local)?;
        self.read.borrow_mut().insert(name.to_owned(), text.clone().into_bytes());
        Some(text)
    }
}

async fn of_service_template(
    source: &Source,
    original: &UserFile,
    given: &Map,
    types: &Arc<TypeFiles>,
    read_files: &mut BTreeMap<String, Vec<u8>>,
) -> Outcome<Graph> {
    let mut fetched = HashMap::new();
    if original.root.contains("://") {
        fetched.insert(original.root.clone(), Some(original.text.clone()));
    }
    let is_local = !original.root.contains("://");
    let mut shelf = Shelf { is_local, fetched, wanted: RefCell::default(), read: RefCell::default() };
    for _ in 0..MOST_ROUNDS {
        let read = tosca::read_with(&shelf, &original.root, given, types);
        let wanted = shelf.wanted.take();
        if wanted.is_empty() {
            *read_files = shelf.read.take();
            return read.map(|template| template.graph).map_err(|(_, refusals)| wrong(original, &refusals));
        }
        for address in wanted {
            let bytes = source.read_reference(&address, &original.url).await;
            let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            shelf.fetched.insert(address, text);
        }
    }
    Err(Failure::new(format!("{}: the imports refer to too many other addresses", original.url)))
}

/// The contents of the files, by the names that the templates use; paths beside the template become relative.
async fn files(
    source: &Source,
    original: &UserFile,
    lowered: &mut Lowered,
    read_files: &mut BTreeMap<String, Vec<u8>>,
) -> Outcome<Map> {
    let folder = original.root.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let mut contents = Map::new();
    let mut names = BTreeMap::new();
    for file in &lowered.files {
        let bytes = match &original.package {
            Some(package) => {
                package.files.get(&file.from).cloned().ok_or_else(|| "the package has no such file".to_owned())
            }
            None if file.from.contains("://") => source.read_reference(&file.from, &original.url).await,
            None => std::fs::read(format!("/{}", file.from)).map_err(|error| error.to_string()),
        };
        let shown = file.from.strip_prefix(&folder).unwrap_or(&file.from);
        let bytes = bytes.map_err(|reason| Failure::new(format!("Could not read {shown}: {reason}")))?;
        if original.package.is_none() && !file.from.contains("://") {
            read_files.insert(file.from.clone(), bytes.clone());
        }
        let content = if file.is_base64 {
            base64::engine::general_purpose::STANDARD.encode(&bytes)
        } else {
            String::from_utf8(bytes).map_err(|_| Failure::new(format!("{shown} is not UTF-8 text")))?
        };
        let name = match file.name.strip_prefix(&folder).filter(|_| original.package.is_none()) {
            Some(relative) => relative.to_owned(),
            None if original.package.is_none() && !file.name.contains("://") => format!("/{}", file.name),
            None => file.name.clone(),
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

/// Positions for the template: each resource, parameter and output has that of the part that it is from.
fn mapped(lowered: &Lowered, document: &Document) -> Spans {
    let span = |key: &str| -> Span {
        let source = lowered.sources.get(key).filter(|source| source.file.is_none());
        source
            .map(|source| {
                let spans = document.spans.find(&document.value, &source.at);
                spans.key.unwrap_or(spans.value)
            })
            .unwrap_or_default()
    };
    let mut root = spread(&lowered.template, Span::default());
    let sections = lowered.template.as_map().into_iter().flatten().zip(&mut root.children);
    for ((section, entries), spans) in sections {
        for ((name, entry), child) in entries.as_map().into_iter().flatten().zip(&mut spans.children) {
            *child = spread(entry, span(&format!("{section}.{name}")));
        }
    }
    root
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

fn wrong(original: &UserFile, refusals: &[Refusal]) -> Failure {
    original.failure(refusals)
}

impl UserFile {
    /// A text that is not lowered.
    pub(crate) fn of_text(url: String, text: &str, document: Document) -> Self {
        Self {
            url,
            text: text.to_owned(),
            document: Some(document),
            root: String::new(),
            package: None,
            content: Vec::new(),
        }
    }

    /// The failure for errors in it, shown in its text.
    pub(crate) fn failure(&self, refusals: &[Refusal]) -> Failure {
        let message = refusals.first().map(Refusal::text).unwrap_or_default();
        let places = refusals.iter().map(|refusal| ErrorLocation {
            message: refusal.text(),
            path: if refusal.file.is_none() { refusal.at.to_string() } else { String::new() },
            hints: refusal.hints.clone(),
            ..ErrorLocation::default()
        });
        let failure = Failure::new(message).and(places.collect());
        let Some(document) = &self.document else { return failure };
        let bundle = Bundle { origin: origin(self, document), ..Bundle::default() };
        failure.in_files(Sent { bundle: &bundle, given: &Map::new(), catalog: None })
    }
}

fn in_package(original: &UserFile, error: Error) -> Failure {
    match error {
        Error::Document(_, refusals) => wrong(original, &refusals),
        Error::Package { refusal, at } => {
            let refusal = Refusal::new(refusal.kind, &at, refusal.message);
            wrong(original, &[refusal])
        }
    }
}
