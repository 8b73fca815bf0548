//! Blueprints, CAMP plans, TOSCA templates and packages in the place of templates: lowered before they are sent.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use clap::ValueEnum;
use kiln_client::{Bundle, Client, ErrorLocation, Origin, Source, address};
use kiln_package::{Limits, Package};
use kiln_server::topology_types::is_of_operator;
use kiln_topology::lower::{Lowered, Source as Place};
use kiln_topology::tosca::Files;
use kiln_topology::user_file::{Reading, is_topology};
use kiln_topology::{Refusal, TypeFiles, UserFile, question};
use kiln_value::{Map, Value};

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
    let Some((url, file)) = opened(url, bytes)? else { return Ok(None) };
    let mut made = make(by, &url, file, given).await?;
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

/// The file, with the address of its document.
fn opened(url: String, bytes: Vec<u8>) -> Outcome<Option<(String, UserFile)>> {
    if Package::is_archive(&bytes) {
        let file = UserFile::of_package(bytes, &Limits::default()).map_err(|refusal| {
            Failure::new(format!("{url}: {refusal}")).hint(format!("the kind of error is {}", refusal.kind))
        })?;
        return Ok(Some((format!("{url}/{}", file.root), file)));
    }
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    let Ok(document) = kiln_yaml::parse(&text) else { return Ok(None) };
    if !is_topology(&document.value) {
        return Ok(None);
    }
    let root = match address::file_of(&url) {
        Some(path) => path.to_string_lossy().trim_start_matches('/').to_owned(),
        None => url.clone(),
    };
    Ok(Some((url, UserFile::of_document(text, document, root))))
}

async fn make(by: &Lowering<'_>, url: &str, file: UserFile, given: &Map) -> Outcome<Made> {
    if let Some(template) = file.template() {
        return Ok(of_template(url, &file, template));
    }
    let types = match by.service {
        Some(client) => by.settings.topology_types_with(client).await?,
        None => by.settings.topology_types()?,
    };
    let wrong = |refusals: Vec<Refusal>| failure(url, &file, &refusals);
    let mut shelf = Shelf::of(by.source, url, &file);
    let reading = shelf.reading(&file, given, &types).await?.map_err(wrong)?;
    let mut lowered = file.lower(&reading, by.software == Some(Software::CloudInit)).map_err(wrong)?;
    shelf.fetch(lowered.files.iter().map(|file| file.from.clone()).filter(|from| from.contains("://")).collect()).await;
    let beside = |name: &str| {
        let shown = file.below_folder(name).unwrap_or(name);
        shelf.bytes(name).map_err(|reason| format!("Could not read {shown}: {reason}"))
    };
    let files = file.contents(&mut lowered, &beside).map_err(Failure::new)?;
    let origin = Origin::new(url.to_owned(), file.text.clone(), lowered.template.clone(), file.spans(&lowered));
    let questions = question::to_map(&lowered.questions);
    let bundle = Bundle { template: Some(lowered.template.clone()), origin, files, questions, ..Bundle::default() };
    let own = reading.types(&types, |this| !is_of_operator(this));
    let kept = file.packed(shelf.local.into_inner(), own);
    let kept = kept.map_err(|error| Failure::new(format!("Could not make a package of {url}: {error}")))?;
    Ok(Made { bundle, lowered, reading: reading.value, original: Some(kept) })
}

/// A package with a HOT template: all members that are texts are its files.
fn of_template(url: &str, file: &UserFile, template: &Value) -> Made {
    let texts = file.package.iter().flat_map(Package::texts);
    let bundle = Bundle {
        template: Some(template.clone()),
        origin: origin(url, file),
        files: texts.map(|(name, text)| (name.to_owned(), text.into())).collect(),
        ..Bundle::default()
    };
    let lowered = Lowered { template: template.clone(), ..Lowered::default() };
    Made { bundle, lowered, reading: template.clone(), original: None }
}

fn origin(url: &str, file: &UserFile) -> Origin {
    let (value, spans) = file.document.clone().map(|document| (document.value, document.spans)).unwrap_or_default();
    Origin::new(url.to_owned(), file.text.clone(), value, spans)
}

/// The failure for errors in a document, shown in its text.
pub(crate) fn failure(url: &str, file: &UserFile, refusals: &[Refusal]) -> Failure {
    let message = refusals.first().map(Refusal::text).unwrap_or_default();
    let places = refusals.iter().map(|refusal| ErrorLocation {
        message: refusal.text(),
        path: if refusal.file.is_none() { refusal.at.to_string() } else { String::new() },
        hints: refusal.hints.clone(),
        ..ErrorLocation::default()
    });
    let failure = Failure::new(message).and(places.collect());
    if file.document.is_none() {
        return failure;
    }
    let bundle = Bundle { origin: origin(url, file), ..Bundle::default() };
    failure.in_files(Sent { bundle: &bundle, given: &Map::new(), catalog: None })
}

/// Files by their path from the root of the file system, without the first slash.
pub(crate) struct LocalFiles;

impl Files for LocalFiles {
    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(format!("/{name}")).ok()
    }
}

/// The files beside a document. Addresses are collected first, as they are read asynchronously.
struct Shelf<'a> {
    source: &'a Source,
    /// The address of the document.
    url: &'a str,
    /// Whether it is a local file: others do not read local files.
    is_local: bool,
    fetched: HashMap<String, Result<Vec<u8>, String>>,
    wanted: RefCell<BTreeSet<String>>,
    /// The local files that were read.
    local: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Files for Shelf<'_> {
    fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.bytes(name).ok()?).ok()
    }
}

impl<'a> Shelf<'a> {
    fn of(source: &'a Source, url: &'a str, file: &UserFile) -> Self {
        let is_local = !file.root.contains("://");
        let root = (file.root.clone(), Ok(file.content.clone()));
        let fetched = if is_local { HashMap::new() } else { HashMap::from([root]) };
        Self { source, url, is_local, fetched, wanted: RefCell::default(), local: RefCell::default() }
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        if name.contains("://") {
            return self.fetched.get(name).cloned().unwrap_or_else(|| {
                self.wanted.borrow_mut().insert(name.to_owned());
                Err("it was not read yet".to_owned())
            });
        }
        if !self.is_local {
            return Err(format!("{} cannot use local files", self.url));
        }
        let content = std::fs::read(format!("/{name}")).map_err(|error| error.to_string())?;
        self.local.borrow_mut().insert(name.to_owned(), content.clone());
        Ok(content)
    }

    async fn fetch(&mut self, addresses: BTreeSet<String>) {
        for address in addresses {
            let bytes = self.source.read_reference(&address, self.url).await;
            self.fetched.insert(address, bytes);
        }
    }

    /// Reads the document until all addresses that it imports are known.
    async fn reading(
        &mut self,
        file: &UserFile,
        given: &Map,
        types: &Arc<TypeFiles>,
    ) -> Outcome<Result<Reading, Vec<Refusal>>> {
        for _ in 0..MOST_ROUNDS {
            let read = file.read(self, given, types);
            let wanted = self.wanted.take();
            if wanted.is_empty() {
                return Ok(read);
            }
            self.fetch(wanted).await;
        }
        Err(Failure::new(format!("{}: the imports refer to too many other addresses", self.url)))
    }
}
