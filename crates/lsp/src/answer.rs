//! Responses to requests of an editor.

use kiln_authoring::language::environment::{self, Origin};
use kiln_authoring::language::{
    Occurrence, RenameError, Suggestion, Target, child_part, complete, definition, fixes, folds, hover, links, outline,
    references, rename, renamed, repaired, signature, tokens,
};
use kiln_authoring::{Page, format};
use kiln_value::Span;
use serde_json::{Value, json};

use super::family::{target, templates_below};
use super::server::{Meaning, Server, is_same};
use super::shape::{Measure, completion_kind};
use super::topology;

/// JSON-RPC: there is no such method.
const METHOD_NOT_FOUND: i64 = -32601;
/// LSP: the request is right, but nothing can be done.
const REQUEST_FAILED: i64 = -32803;
/// More symbols of a workspace are not given at once.
const MOST_SYMBOLS: usize = 500;

/// What a request comes to.
pub(super) enum Answer {
    /// What was asked for, null if there is nothing.
    Result(Value),
    /// It cannot be done.
    Error { code: i64, message: String },
}

fn failed(message: impl Into<String>) -> Answer {
    Answer::Error { code: REQUEST_FAILED, message: message.into() }
}

impl Server {
    /// Answers a request.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Answer {
        let result = match method {
            "initialize" => Some(self.initialize(params)),
            "shutdown" => {
                self.shut_down();
                None
            }
            "textDocument/completion" => self.complete(params),
            "textDocument/hover" => self.hover(params),
            "textDocument/signatureHelp" => self.signature(params),
            "textDocument/definition" => self.definition(params),
            "textDocument/references" => self.references(params),
            "textDocument/documentHighlight" => self.highlights(params),
            "textDocument/documentSymbol" => self.symbols(params),
            "workspace/symbol" => Some(self.workspace_symbols(params)),
            "textDocument/documentLink" => self.links(params),
            "textDocument/foldingRange" => self.folds(params),
            "textDocument/semanticTokens/full" => self.tokens(params),
            "textDocument/codeAction" => self.actions(params),
            "textDocument/prepareRename" => return self.prepare_rename(params),
            "textDocument/rename" => return self.rename(params),
            "textDocument/formatting" => return self.format(params),
            _ => return Answer::Error { code: METHOD_NOT_FOUND, message: format!("there is no method {method}") },
        };
        Answer::Result(result.unwrap_or_default())
    }

    fn complete(&self, params: &Value) -> Option<Value> {
        let (uri, text, at) = self.place(params)?;
        let suggestions = match text.meaning() {
            Meaning::Template => {
                let around = self.family(uri, &text.content).around;
                complete(&text.content, at, &self.catalog, &around)
            }
            Meaning::Environment => environment::complete(&text.content, at, &self.catalog, &self.neighbours(uri)),
            Meaning::Topology => {
                let read = |url: &str| self.read(url);
                topology::complete(uri, &text.content, at, &self.topology_types, &self.catalog, &read)
            }
            Meaning::Other => return None,
        };
        let measure = Measure::new(&text.content);
        let item = |suggestion: &Suggestion| {
            json!({
                "label": suggestion.label,
                "kind": completion_kind(suggestion.sort),
                "detail": suggestion.detail,
                "documentation": {"kind": "markdown", "value": suggestion.documentation},
                "deprecated": suggestion.deprecated,
                "textEdit": {"range": measure.range(suggestion.replace), "newText": suggestion.insert},
            })
        };
        Some(suggestions.iter().map(item).collect())
    }

    fn hover(&self, params: &Value) -> Option<Value> {
        let (uri, text, at) = self.place(params)?;
        if text.meaning() == Meaning::Topology {
            let (shown, span) =
                topology::hover(uri, &text.content, at, &self.topology_types, &|url: &str| self.read(url))?;
            let contents = json!({"kind": "markdown", "value": shown});
            return Some(json!({"contents": contents, "range": Measure::new(&text.content).range(span)}));
        }
        let hover = match text.page() {
            Some(page) => hover(&page, at, &self.catalog, &self.family(uri, &text.content).around)?,
            None => environment::hover(&text.sheet(Some(at))?, at, &self.catalog, &self.neighbours(uri))?,
        };
        let contents = json!({"kind": "markdown", "value": hover.text});
        Some(json!({"contents": contents, "range": Measure::new(&text.content).range(hover.span)}))
    }

    fn signature(&self, params: &Value) -> Option<Value> {
        let (_, text, at) = self.place(params)?;
        if text.meaning() != Meaning::Template {
            return None;
        }
        let found = signature(&text.content, at)?;
        let arguments: Vec<Value> = found.arguments.iter().map(|argument| json!({"label": argument})).collect();
        let one = json!({"label": found.label, "documentation": found.summary, "parameters": arguments});
        let mut help = json!({"signatures": [one], "activeSignature": 0});
        // Behind the last one is none.
        help["activeParameter"] = found.active.unwrap_or(found.arguments.len()).into();
        Some(help)
    }

    fn definition(&self, params: &Value) -> Option<Value> {
        let (uri, text, at) = self.place(params)?;
        let measure = Measure::new(&text.content);
        let file = |name: &str| {
            let start = json!({"line": 0, "character": 0});
            json!({"uri": target(uri, name), "range": {"start": start, "end": start}})
        };
        if let Some(page) = text.page() {
            return Some(match definition(&page, at) {
                Some(Target::Here(span)) => json!({"uri": uri, "range": measure.range(span)}),
                Some(Target::File(name)) => file(&name),
                None => {
                    let around = self.family(uri, &text.content).around;
                    let part = child_part(&page, at, &self.catalog, &around)?;
                    let url = target(uri, &part.file);
                    let child = repaired(&self.read(&url)?)?;
                    json!({"uri": url, "range": Measure::new(&child.text).range(part.place(&child)?)})
                }
            });
        }
        let neighbours = self.neighbours(uri);
        let location = |origin: Origin| match origin {
            Origin::Here(span) => Some(json!({"uri": uri, "range": measure.range(span)})),
            Origin::File(name) => Some(file(&name)),
            Origin::Template(url, span) => {
                let page = &neighbours.iter().find(|one| one.url == url)?.page;
                Some(json!({"uri": url, "range": Measure::new(&page.text).range(span)}))
            }
        };
        let found = environment::definition(&text.sheet(Some(at))?, at, &neighbours);
        Some(found.into_iter().filter_map(location).collect())
    }

    fn occurrences(&self, params: &Value) -> Option<(&str, Measure<'_>, Vec<Occurrence>)> {
        let (uri, text, at) = self.place(params)?;
        let found = match text.page() {
            Some(page) => references(&page, at),
            None => text.sheet(Some(at))?.references(at),
        };
        Some((uri, Measure::new(&text.content), found))
    }

    fn references(&self, params: &Value) -> Option<Value> {
        let (uri, measure, found) = self.occurrences(params)?;
        let declaration = params.pointer("/context/includeDeclaration").and_then(Value::as_bool).unwrap_or(true);
        let wanted = found.into_iter().filter(|one| declaration || !one.is_declaration);
        Some(wanted.map(|one| json!({"uri": uri, "range": measure.range(one.span)})).collect())
    }

    fn highlights(&self, params: &Value) -> Option<Value> {
        let (_, measure, found) = self.occurrences(params)?;
        // `DocumentHighlightKind`: 2 is read, 3 is written.
        let kind = |one: &Occurrence| if one.is_declaration { 3 } else { 2 };
        Some(found.iter().map(|one| json!({"range": measure.range(one.span), "kind": kind(one)})).collect())
    }

    fn symbols(&self, params: &Value) -> Option<Value> {
        let (uri, text) = self.text(params)?;
        let symbols = match text.page() {
            Some(page) => outline(&page),
            None => text.sheet(None)?.outline(),
        };
        let measure = Measure::new(&text.content);
        if self.client.has_symbol_trees {
            return Some(symbols.iter().map(|one| measure.symbol(one)).collect());
        }
        Some(measure.flat(uri, &symbols).into())
    }

    fn workspace_symbols(&self, params: &Value) -> Value {
        let query = params.get("query").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let mut found = Vec::new();
        let mut add = |url: &str, page: &Page| {
            let symbols = Measure::new(&page.text).flat(url, &outline(page));
            let fits = |symbol: &Value| symbol["name"].as_str().unwrap_or_default().to_lowercase().contains(&query);
            found.extend(symbols.into_iter().filter(fits));
        };
        for (url, text) in &self.texts {
            if let Some(page) = text.page() {
                add(url, &page);
            }
        }
        for stored in self.roots.iter().flat_map(|root| templates_below(root)) {
            if !self.texts.keys().any(|open| is_same(open, &stored.url)) {
                add(&stored.url, &stored.page);
            }
        }
        found.truncate(MOST_SYMBOLS);
        found.into()
    }

    fn links(&self, params: &Value) -> Option<Value> {
        let (uri, text) = self.text(params)?;
        let found = match text.page() {
            Some(page) => links(&page),
            None => text.sheet(None)?.links(),
        };
        let measure = Measure::new(&text.content);
        let link = |name: &str, span: Span| json!({"range": measure.range(span), "target": target(uri, name)});
        Some(found.iter().map(|one| link(&one.name, one.span)).collect())
    }

    fn folds(&self, params: &Value) -> Option<Value> {
        let page = self.text(params)?.1.page()?;
        let fold = |fold: kiln_authoring::language::Fold| {
            let kind = if fold.is_comment { "comment" } else { "region" };
            json!({"startLine": fold.first - 1, "endLine": fold.last - 1, "kind": kind})
        };
        Some(folds(&page).into_iter().map(fold).collect())
    }

    fn tokens(&self, params: &Value) -> Option<Value> {
        let (_, text) = self.text(params)?;
        Some(Measure::new(&text.content).tokens(&tokens(&text.page()?)))
    }

    fn actions(&self, params: &Value) -> Option<Value> {
        let (uri, text) = self.text(params)?;
        let only = params.pointer("/context/only").and_then(Value::as_array);
        if only.is_some_and(|kinds| !kinds.iter().any(|kind| kind == "quickfix" || kind == "")) {
            return Some(json!([]));
        }
        let measure = Measure::new(&text.content);
        let wanted = measure.span(params.get("range")?)?;
        let mut actions = Vec::new();
        for fix in fixes(&text.content, &text.troubles) {
            let Some(trouble) = text.troubles.get(fix.trouble) else { continue };
            if trouble.span.end < wanted.start || wanted.end < trouble.span.start {
                continue;
            }
            actions.push(json!({
                "title": fix.title,
                "kind": "quickfix",
                "diagnostics": [measure.diagnostic(trouble)],
                "edit": {"changes": {uri: measure.edits(&fix.edits)}},
            }));
        }
        Some(actions.into())
    }

    fn prepare_rename(&self, params: &Value) -> Answer {
        let Some((_, text, at)) = self.place(params) else { return Answer::Result(Value::Null) };
        let found = match text.page() {
            Some(page) => renamed(&page, at),
            None => text.sheet(Some(at)).map_or(Err(RenameError::Nothing), |sheet| sheet.renamed(at)),
        };
        match found {
            Ok((span, name)) => {
                Answer::Result(json!({"range": Measure::new(&text.content).range(span), "placeholder": name}))
            }
            Err(error) => failed(error.to_string()),
        }
    }

    fn rename(&self, params: &Value) -> Answer {
        let Some((uri, text, at)) = self.place(params) else { return Answer::Result(Value::Null) };
        let Some(new) = params.get("newName").and_then(Value::as_str) else {
            return failed("a new name is needed");
        };
        // A part that cannot be read may hold the name too.
        let edits = match (text.meaning(), Page::read(text.content.as_str()), text.sheet(None)) {
            (Meaning::Template, Ok(page), _) => rename(&page, at, new),
            (Meaning::Template, Err(error), _) => {
                return failed(format!("the template must be right first: {error}"));
            }
            (Meaning::Environment, _, Some(sheet)) if sheet.is_whole(&text.content) => sheet.rename(at, new),
            (Meaning::Environment, ..) => return failed("the environment must be right first"),
            _ => Err(RenameError::Nothing),
        };
        match edits {
            Ok(edits) => Answer::Result(json!({"changes": {uri: Measure::new(&text.content).edits(&edits)}})),
            Err(error) => failed(error.to_string()),
        }
    }

    fn format(&self, params: &Value) -> Answer {
        let Some((_, text)) = self.text(params) else { return Answer::Result(Value::Null) };
        match format::format(&text.content) {
            Ok(formatted) => {
                let whole = Measure::new(&text.content).whole();
                Answer::Result(json!([{"range": whole, "newText": formatted}]))
            }
            Err(error) => failed(error.to_string()),
        }
    }
}
