//! What the server knows and answers.

use std::collections::BTreeMap;

use kiln_authoring::language::{
    Level, Sort, Suggestion, Symbol, Target, Trouble, complete, definition, diagnose, environment, files, hover,
    outline, references, rename,
};
use kiln_authoring::lines::Lines;
use kiln_authoring::{Page, format};
use kiln_client::address;
use kiln_plan::ResourceTypes;
use kiln_template::Files;
use kiln_value::{Position, Span};
use serde_json::{Value, json};

use super::change;

/// JSON-RPC: there is no such method.
const METHOD_NOT_FOUND: i64 = -32601;
/// LSP: the request is right, but nothing can be done.
const REQUEST_FAILED: i64 = -32803;

/// What a request comes to.
pub(super) enum Answer {
    /// What was asked for, null if there is nothing.
    Result(Value),
    /// It cannot be done.
    Error { code: i64, message: String },
}

/// The texts that are open, and the types.
pub(super) struct Server {
    catalog: ResourceTypes,
    texts: BTreeMap<String, String>,
    is_shut_down: bool,
}

/// What the protocol calls changed ranges instead of the full text at each change.
const INCREMENTAL_SYNC: i64 = 2;

impl Server {
    pub(super) fn new(catalog: ResourceTypes) -> Self {
        Self { catalog, texts: BTreeMap::new(), is_shut_down: false }
    }

    /// Whether `exit` comes after `shutdown`, as it should.
    pub(super) fn may_exit(&self) -> bool {
        self.is_shut_down
    }

    /// Answers a request.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Answer {
        let result = match method {
            "initialize" => json!({
                "capabilities": {
                    "textDocumentSync": {"openClose": true, "change": INCREMENTAL_SYNC},
                    "completionProvider": {"triggerCharacters": [":", " ", "[", "{", ","]},
                    "hoverProvider": true,
                    "definitionProvider": true,
                    "referencesProvider": true,
                    "renameProvider": true,
                    "documentSymbolProvider": true,
                    "documentFormattingProvider": true,
                },
                "serverInfo": {"name": "kiln", "version": env!("CARGO_PKG_VERSION")},
            }),
            "shutdown" => {
                self.is_shut_down = true;
                Value::Null
            }
            "textDocument/completion" => self.complete(params).unwrap_or_default(),
            "textDocument/hover" => self.hover(params).unwrap_or_default(),
            "textDocument/definition" => self.definition(params).unwrap_or_default(),
            "textDocument/references" => self.references(params).unwrap_or_default(),
            "textDocument/documentSymbol" => self.symbols(params).unwrap_or_default(),
            "textDocument/rename" => return self.rename(params),
            "textDocument/formatting" => return self.format(params),
            _ => return Answer::Error { code: METHOD_NOT_FOUND, message: format!("there is no method {method}") },
        };
        Answer::Result(result)
    }

    /// Takes note of something; the diagnostics to be published, if that changes them.
    pub(super) fn notice(&mut self, method: &str, params: &Value) -> Option<Value> {
        let uri = params.pointer("/textDocument/uri")?.as_str()?.to_owned();
        match method {
            "textDocument/didOpen" => {
                let text = params.pointer("/textDocument/text")?.as_str()?;
                self.texts.insert(uri.clone(), text.to_owned());
            }
            "textDocument/didChange" => {
                let text = self.texts.get_mut(&uri)?;
                for change in params.get("contentChanges")?.as_array()? {
                    change::apply(text, change)?;
                }
            }
            // Files that it names may have changed with it.
            "textDocument/didSave" => {}
            "textDocument/didClose" => {
                self.texts.remove(&uri);
                return Some(json!({"uri": uri, "diagnostics": []}));
            }
            _ => return None,
        }
        let diagnostics = self.diagnose(&uri)?;
        Some(json!({"uri": uri, "diagnostics": diagnostics}))
    }

    fn diagnose(&self, uri: &str) -> Option<Vec<Value>> {
        let text = self.texts.get(uri)?;
        let troubles = if is_template(text) {
            let named = Page::read(text.as_str()).map(|page| files(&page)).unwrap_or_default();
            let contents = named.into_iter().filter_map(|name| {
                let content = self.beside(uri, &name)?;
                Some((name, content))
            });
            diagnose(text, &self.catalog, &Files(contents.collect()))
        } else if environment::is_environment(text) {
            environment::diagnose(text, &self.catalog, &|name| self.beside(uri, name).is_some())
        } else {
            Vec::new()
        };
        let lines = Lines::new(text);
        Some(troubles.iter().map(|trouble| diagnostic(trouble, text, &lines)).collect())
    }

    /// The text of a file that a template names: as it is open, else as it is stored.
    fn beside(&self, uri: &str, name: &str) -> Option<String> {
        let url = address::join(&address::with_slash(address::base_of(uri)), name);
        if let Some(open) = self.texts.get(&url) {
            return Some(open.clone());
        }
        std::fs::read_to_string(address::file_of(&url)?).ok()
    }

    /// The text that a request is about, and the position in it.
    fn place(&self, params: &Value) -> Option<(&str, &str, Position)> {
        let (uri, text) = self.texts.get_key_value(params.pointer("/textDocument/uri")?.as_str()?)?;
        let number = |key| params.pointer(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let (line, character) = (number("/position/line")?, number("/position/character")?);
        Some((uri, text, Lines::new(text).of_utf16(text, line, character)))
    }

    fn complete(&self, params: &Value) -> Option<Value> {
        let (_, text, at) = self.place(params)?;
        let lines = Lines::new(text);
        let item = |suggestion: &Suggestion| {
            json!({
                "label": suggestion.label,
                "kind": kind(suggestion.sort),
                "detail": suggestion.detail,
                "documentation": {"kind": "markdown", "value": suggestion.documentation},
                "deprecated": suggestion.deprecated,
                "textEdit": {"range": range(suggestion.replace, text, &lines), "newText": suggestion.insert},
            })
        };
        Some(complete(text, at, &self.catalog).iter().map(item).collect())
    }

    fn hover(&self, params: &Value) -> Option<Value> {
        let (_, text, at) = self.place(params)?;
        let page = Page::read(text).ok()?;
        let hover = hover(&page, at, &self.catalog)?;
        let contents = json!({"kind": "markdown", "value": hover.text});
        Some(json!({"contents": contents, "range": range(hover.span, text, page.lines())}))
    }

    fn definition(&self, params: &Value) -> Option<Value> {
        let (uri, text, at) = self.place(params)?;
        let page = Page::read(text).ok()?;
        Some(match definition(&page, at)? {
            Target::Here(span) => json!({"uri": uri, "range": range(span, text, page.lines())}),
            Target::File(name) => {
                let url = address::join(&address::with_slash(address::base_of(uri)), &name);
                let start = json!({"line": 0, "character": 0});
                json!({"uri": url, "range": {"start": start, "end": start}})
            }
        })
    }

    fn references(&self, params: &Value) -> Option<Value> {
        let (uri, text, at) = self.place(params)?;
        let page = Page::read(text).ok()?;
        let location = |span: Span| json!({"uri": uri, "range": range(span, text, page.lines())});
        Some(references(&page, at).into_iter().map(location).collect())
    }

    fn symbols(&self, params: &Value) -> Option<Value> {
        let text = self.texts.get(params.pointer("/textDocument/uri")?.as_str()?)?;
        let page = Page::read(text.as_str()).ok()?;
        Some(outline(&page).iter().map(|one| symbol(one, &page)).collect())
    }

    fn rename(&self, params: &Value) -> Answer {
        let failed = |message: String| Answer::Error { code: REQUEST_FAILED, message };
        let Some((uri, text, at)) = self.place(params) else { return Answer::Result(Value::Null) };
        let Some(new) = params.get("newName").and_then(Value::as_str) else {
            return failed("a new name is needed".to_owned());
        };
        let page = match Page::read(text) {
            Ok(page) => page,
            Err(error) => return failed(format!("the template must be right first: {}", error.message)),
        };
        match rename(&page, at, new) {
            Ok(edits) => {
                let edit = |edit: &kiln_authoring::language::Edit| json!({"range": range(edit.span, text, page.lines()), "newText": edit.text});
                Answer::Result(json!({"changes": {uri: edits.iter().map(edit).collect::<Vec<_>>()}}))
            }
            Err(error) => failed(error.to_string()),
        }
    }

    fn format(&self, params: &Value) -> Answer {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str).unwrap_or_default();
        let Some(text) = self.texts.get(uri) else { return Answer::Result(Value::Null) };
        match format::format(text) {
            Ok(formatted) => {
                let end = json!({"line": Lines::new(text).count(), "character": 0});
                let whole = json!({"start": {"line": 0, "character": 0}, "end": end});
                Answer::Result(json!([{"range": whole, "newText": formatted}]))
            }
            Err(error) => Answer::Error { code: REQUEST_FAILED, message: error.to_string() },
        }
    }
}

/// Editors open all kinds of YAML here: only what looks like a template or an environment is judged.
fn is_template(text: &str) -> bool {
    text.contains("heat_template_version") || text.contains("TemplateFormatVersion")
}

fn range(span: Span, text: &str, lines: &Lines) -> Value {
    let place = |at: Position| {
        let (line, character) = lines.to_utf16(text, at);
        json!({"line": line, "character": character})
    };
    json!({"start": place(span.start), "end": place(span.end.max(span.start))})
}

fn diagnostic(trouble: &Trouble, text: &str, lines: &Lines) -> Value {
    let severity = match trouble.level {
        Level::Error => 1,
        Level::Warning => 2,
        Level::Advice => 4,
    };
    let told: Vec<&str> = std::iter::once(&trouble.message).chain(&trouble.hints).map(String::as_str).collect();
    json!({
        "range": range(trouble.span, text, lines),
        "severity": severity,
        "code": trouble.code,
        "source": "kiln",
        "message": told.join("\n"),
    })
}

/// The numbers of `CompletionItemKind`.
fn kind(sort: Sort) -> i64 {
    match sort {
        Sort::Function => 3,
        Sort::Attribute => 5,
        Sort::Parameter => 6,
        Sort::Type => 7,
        Sort::Property => 10,
        Sort::Value => 12,
        Sort::Keyword => 14,
        Sort::Resource => 18,
        Sort::Condition => 21,
    }
}

fn symbol(one: &Symbol, page: &Page) -> Value {
    // `SymbolKind`: a namespace for sections, a variable for what they hold.
    let kind = if one.children.is_empty() { 13 } else { 3 };
    let range = |span| range(span, &page.text, page.lines());
    json!({
        "name": one.name,
        "detail": one.detail,
        "kind": kind,
        "range": range(one.whole),
        "selectionRange": range(one.span),
        "children": one.children.iter().map(|inner| symbol(inner, page)).collect::<Vec<_>>(),
    })
}
