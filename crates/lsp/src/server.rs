//! The state of the server: open texts, their diagnostics, and the resource types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use kiln_authoring::language::environment::{self, Neighbour, Sheet};
use kiln_authoring::language::{Trouble, diagnose, repaired};
use kiln_authoring::lines::Lines;
use kiln_authoring::{Page, type_named};
use kiln_client::address;
use kiln_plan::ResourceTypes;
use kiln_topology::TypeFiles;
use kiln_topology::check::looks_like_topology;
use kiln_value::Position;
use serde_json::{Value, json};

use super::change;
use super::family::{Family, environments, gather, looks_like_template, neighbours, stored, target};
use super::shape::{Measure, TOKEN_MODIFIERS, TOKEN_TYPES};
use super::topology;

/// What the protocol calls changed ranges instead of the full text at each change.
const INCREMENTAL_SYNC: i64 = 2;

/// The texts that are open, and the types.
pub(super) struct Server {
    pub(super) catalog: Arc<ResourceTypes>,
    pub(super) topology_types: Arc<TypeFiles>,
    pub(super) texts: BTreeMap<String, Text>,
    /// The folders that the editor has opened.
    pub(super) roots: Vec<PathBuf>,
    /// Whether files of this machine are read.
    reads_files: bool,
    /// What the editor can do with the answers.
    pub(super) client: Client,
    /// The texts that have changed since their diagnostics were published.
    unjudged: Vec<String>,
    is_shut_down: bool,
}

/// What the editor can do.
#[derive(Default)]
pub(super) struct Client {
    /// Symbols in a tree.
    pub(super) has_symbol_trees: bool,
    /// Changes of the text as code actions.
    takes_actions: bool,
    /// To ask for the name before it is changed.
    prepares_rename: bool,
}

/// An open text.
pub(super) struct Text {
    pub(super) content: String,
    version: Value,
    /// What was found last.
    pub(super) troubles: Vec<Trouble>,
    /// The files that it names, at any depth.
    files: BTreeSet<String>,
}

/// What a text is meant as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Template,
    Environment,
    /// A blueprint, a CAMP plan, a TOSCA template or a type file.
    Topology,
    Other,
}

impl Text {
    pub(super) fn meaning(&self) -> Meaning {
        if looks_like_template(&self.content) {
            Meaning::Template
        } else if looks_like_topology(&self.content) {
            Meaning::Topology
        } else if environment::is_environment(&self.content) {
            Meaning::Environment
        } else {
            Meaning::Other
        }
    }

    /// The text as a template, as far as it can be read.
    pub(super) fn page(&self) -> Option<Page> {
        if self.meaning() == Meaning::Template { repaired(&self.content) } else { None }
    }

    /// The text as an environment, as far as it can be read.
    pub(super) fn sheet(&self, at: Option<Position>) -> Option<Sheet> {
        if self.meaning() == Meaning::Environment { Sheet::read(&self.content, at) } else { None }
    }
}

impl Server {
    pub(super) fn new(catalog: Arc<ResourceTypes>, topology_types: Arc<TypeFiles>, reads_files: bool) -> Self {
        Self {
            catalog,
            topology_types,
            texts: BTreeMap::new(),
            roots: Vec::new(),
            reads_files,
            client: Client::default(),
            unjudged: Vec::new(),
            is_shut_down: false,
        }
    }

    /// Whether `exit` comes after `shutdown`, as it should.
    pub(super) fn may_exit(&self) -> bool {
        self.is_shut_down
    }

    pub(super) fn shut_down(&mut self) {
        self.is_shut_down = true;
    }

    /// Says what the server can do, as far as the editor can use it.
    pub(super) fn initialize(&mut self, params: &Value) -> Value {
        let can = |pointer: &str| {
            params.pointer(pointer).is_some_and(|value| *value != Value::Bool(false) && !value.is_null())
        };
        self.client = Client {
            has_symbol_trees: can("/capabilities/textDocument/documentSymbol/hierarchicalDocumentSymbolSupport"),
            takes_actions: can("/capabilities/textDocument/codeAction/codeActionLiteralSupport"),
            prepares_rename: can("/capabilities/textDocument/rename/prepareSupport"),
        };
        let folders = params.get("workspaceFolders").and_then(Value::as_array);
        let of_folders = folders.into_iter().flatten().filter_map(|folder| folder.get("uri")?.as_str());
        let mut roots: Vec<&str> = of_folders.collect();
        if roots.is_empty() {
            roots.extend(params.get("rootUri").and_then(Value::as_str));
        }
        if self.reads_files {
            self.roots = roots.into_iter().filter_map(address::file_of).collect();
        }
        let mut capabilities = json!({
            "textDocumentSync": {"openClose": true, "change": INCREMENTAL_SYNC, "save": {}},
            "completionProvider": {"triggerCharacters": [":", " ", "[", "{", ","]},
            "hoverProvider": true,
            "signatureHelpProvider": {"triggerCharacters": ["[", "{", ",", ":"]},
            "definitionProvider": true,
            "referencesProvider": true,
            "documentHighlightProvider": true,
            "documentSymbolProvider": true,
            "workspaceSymbolProvider": true,
            "documentLinkProvider": {},
            "documentFormattingProvider": true,
            "foldingRangeProvider": true,
            "semanticTokensProvider": {
                "legend": {"tokenTypes": TOKEN_TYPES, "tokenModifiers": TOKEN_MODIFIERS},
                "full": true,
            },
            "renameProvider": true,
        });
        if self.client.prepares_rename {
            capabilities["renameProvider"] = json!({"prepareProvider": true});
        }
        if self.client.takes_actions {
            capabilities["codeActionProvider"] = json!({"codeActionKinds": ["quickfix"]});
        }
        json!({
            "capabilities": capabilities,
            "serverInfo": {"name": "kiln", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    /// Takes note of something. What it changes is judged when [`Server::published`] is asked.
    pub(super) fn notice(&mut self, method: &str, params: &Value) {
        let Some(uri) = params.pointer("/textDocument/uri").and_then(Value::as_str) else { return };
        if self.note(method, uri, params).is_none() {
            return;
        }
        // The text, and those that name it.
        let names_it = |text: &Text| text.files.iter().any(|file| is_same(file, uri));
        let parents = self.texts.iter().filter(|(url, text)| *url != uri && names_it(text)).map(|(url, _)| url.clone());
        let touched: Vec<String> = std::iter::once(uri.to_owned()).chain(parents).collect();
        for uri in touched {
            if !self.unjudged.contains(&uri) {
                self.unjudged.push(uri);
            }
        }
    }

    /// The diagnostics of everything that has changed since they were published.
    pub(super) fn published(&mut self) -> Vec<Value> {
        let unjudged = std::mem::take(&mut self.unjudged);
        let publish = |uri: String| {
            let closed = || json!({"uri": &uri, "diagnostics": []});
            self.diagnose(&uri).unwrap_or_else(closed)
        };
        unjudged.into_iter().map(publish).collect()
    }

    fn note(&mut self, method: &str, uri: &str, params: &Value) -> Option<()> {
        let version = || params.pointer("/textDocument/version").cloned().unwrap_or_default();
        match method {
            "textDocument/didOpen" => {
                let content = params.pointer("/textDocument/text")?.as_str()?.to_owned();
                let text = Text { content, version: version(), troubles: Vec::new(), files: BTreeSet::new() };
                self.texts.insert(uri.to_owned(), text);
            }
            "textDocument/didChange" => {
                let text = self.texts.get_mut(uri)?;
                for change in params.get("contentChanges")?.as_array()? {
                    change::apply(&mut text.content, change)?;
                }
                text.version = version();
            }
            // Files that it names may have changed with it.
            "textDocument/didSave" => {}
            "textDocument/didClose" => _ = self.texts.remove(uri)?,
            _ => return None,
        }
        Some(())
    }

    fn diagnose(&mut self, uri: &str) -> Option<Value> {
        let text = self.texts.get(uri)?;
        let (troubles, files) = match text.meaning() {
            Meaning::Template => {
                let family = self.family(uri, &text.content);
                (diagnose(&text.content, &self.catalog, &family.around), family.urls)
            }
            Meaning::Environment => {
                let exists = |name: &str| self.read(&target(uri, name)).is_some();
                let links = text.sheet(None).map(|sheet| sheet.links()).unwrap_or_default();
                let files = links.iter().map(|link| target(uri, &link.name)).collect();
                (environment::diagnose(&text.content, &self.catalog, &exists, &self.neighbours(uri)), files)
            }
            Meaning::Topology => {
                topology::diagnose(uri, &text.content, &self.topology_types, &self.catalog, &|url| self.read(url))
            }
            Meaning::Other => (Vec::new(), BTreeSet::new()),
        };
        let measure = Measure::new(&text.content);
        let diagnostics: Vec<Value> = troubles.iter().map(|trouble| measure.diagnostic(trouble)).collect();
        let mut published = json!({"uri": uri, "diagnostics": diagnostics});
        if !text.version.is_null() {
            published["version"] = text.version.clone();
        }
        let text = self.texts.get_mut(uri)?;
        (text.troubles, text.files) = (troubles, files);
        Some(published)
    }

    /// The files that a template names; and, if it has types that nobody knows, those that environments beside it
    /// declare.
    pub(super) fn family(&self, uri: &str, text: &str) -> Family {
        let Some(page) = repaired(text) else { return Family::default() };
        let read = |url: &str| self.read(url);
        let is_known = |name: &str| type_named(&self.catalog, name).is_some();
        let mut family = gather(uri, &page, &read);
        if page.types().any(|name| !family.around.files.0.contains_key(name) && !is_known(name)) {
            let open: Vec<(String, Sheet)> =
                self.texts.iter().filter_map(|(url, text)| Some((url.clone(), text.sheet(None)?))).collect();
            let stored = if self.reads_files { environments(uri) } else { Vec::new() };
            let stored = stored.into_iter().filter(|(url, _)| !open.iter().any(|(open, _)| is_same(open, url)));
            for (url, sheet) in open.iter().cloned().chain(stored) {
                family.declare(&url, &sheet, &is_known, &read);
            }
        }
        family
    }

    /// The templates that an environment may belong to.
    pub(super) fn neighbours(&self, uri: &str) -> Vec<Neighbour> {
        let open = self.texts.iter().filter_map(|(url, text)| Some(Neighbour { url: url.clone(), page: text.page()? }));
        let mut found: Vec<Neighbour> = open.collect();
        if self.reads_files {
            let stored = neighbours(uri).into_iter();
            found.extend(stored.filter(|one| !self.texts.keys().any(|url| is_same(url, &one.url))));
        }
        found
    }

    /// The text of a file: as it is open, else as it is stored.
    pub(super) fn read(&self, url: &str) -> Option<String> {
        let open = self.texts.get(url).or_else(|| {
            let (_, text) = self.texts.iter().find(|(open, _)| is_same(open, url))?;
            Some(text)
        });
        let open = open.map(|text| text.content.clone());
        open.or_else(|| if self.reads_files { stored(url) } else { None })
    }

    /// The text that a request is about, and the position in it.
    pub(super) fn place(&self, params: &Value) -> Option<(&str, &Text, Position)> {
        let (uri, text) = self.text(params)?;
        let number = |key| params.pointer(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let (line, character) = (number("/position/line")?, number("/position/character")?);
        Some((uri, text, Lines::new(&text.content).of_utf16(&text.content, line, character)))
    }

    /// The text that a request is about.
    pub(super) fn text(&self, params: &Value) -> Option<(&str, &Text)> {
        let (uri, text) = self.texts.get_key_value(params.pointer("/textDocument/uri")?.as_str()?)?;
        Some((uri, text))
    }
}

/// Whether two URLs name one file, however they are written.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one == other || matches!((address::file_of(one), address::file_of(other)), (Some(one), Some(other)) if one == other)
}
