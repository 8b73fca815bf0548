//! Converts positions, diagnostics, symbols and so on to the types of the protocol.

use kiln_authoring::language::{Edit, Level, Sort, Symbol, Token, TokenKind, Trouble};
use kiln_authoring::lines::Lines;
use kiln_value::{Position, Span};
use serde_json::{Value, json};

/// The names of token types, in the order of their numbers.
pub(super) const TOKEN_TYPES: [&str; 7] =
    ["keyword", "type", "function", "parameter", "variable", "enumMember", "property"];
/// The names of token modifiers, by bits.
pub(super) const TOKEN_MODIFIERS: [&str; 1] = ["declaration"];

/// A text to count in as the protocol does.
pub(super) struct Measure<'t> {
    text: &'t str,
    lines: Lines,
}

impl<'t> Measure<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, lines: Lines::new(text) }
    }

    pub(super) fn range(&self, span: Span) -> Value {
        let place = |at: Position| {
            let (line, character) = self.lines.to_utf16(self.text, at);
            json!({"line": line, "character": character})
        };
        json!({"start": place(span.start), "end": place(span.end.max(span.start))})
    }

    /// All of the text.
    pub(super) fn whole(&self) -> Value {
        let end = json!({"line": self.lines.count(), "character": 0});
        json!({"start": {"line": 0, "character": 0}, "end": end})
    }

    /// The places of a range.
    pub(super) fn span(&self, range: &Value) -> Option<Span> {
        let place = |end: &str| {
            let number = |key| u32::try_from(range.get(end)?.get(key)?.as_u64()?).ok();
            Some(self.lines.of_utf16(self.text, number("line")?, number("character")?))
        };
        Some(Span { start: place("start")?, end: place("end")? })
    }

    pub(super) fn edits(&self, edits: &[Edit]) -> Value {
        edits.iter().map(|edit| json!({"range": self.range(edit.span), "newText": edit.text})).collect()
    }

    pub(super) fn diagnostic(&self, trouble: &Trouble) -> Value {
        let severity = match trouble.level {
            Level::Error => 1,
            Level::Warning => 2,
            Level::Advice => 4,
        };
        let told: Vec<&str> = std::iter::once(&trouble.message).chain(&trouble.hints).map(String::as_str).collect();
        json!({
            "range": self.range(trouble.span),
            "severity": severity,
            "code": trouble.code,
            "source": "kiln",
            "message": told.join("\n"),
        })
    }

    /// Tokens as differences to the one before.
    pub(super) fn tokens(&self, tokens: &[Token]) -> Value {
        let mut data: Vec<u32> = Vec::with_capacity(tokens.len() * 5);
        let (mut line, mut character) = (0, 0);
        for token in tokens {
            let (start_line, start) = self.lines.to_utf16(self.text, token.span.start);
            let (_, end) = self.lines.to_utf16(self.text, token.span.end);
            let kind = match token.kind {
                TokenKind::Keyword => 0,
                TokenKind::Type => 1,
                TokenKind::Function => 2,
                TokenKind::Parameter => 3,
                TokenKind::Resource => 4,
                TokenKind::Condition => 5,
                TokenKind::Property => 6,
            };
            let from = if start_line == line { character } else { 0 };
            let modifiers = u32::from(token.is_declaration);
            data.extend([start_line - line, start - from, end.saturating_sub(start), kind, modifiers]);
            (line, character) = (start_line, start);
        }
        json!({"data": data})
    }

    /// A symbol with what is in it.
    pub(super) fn symbol(&self, one: &Symbol) -> Value {
        json!({
            "name": one.name,
            "detail": one.detail,
            "kind": symbol_kind(one),
            "range": self.range(one.whole),
            "selectionRange": self.range(one.span),
            "children": one.children.iter().map(|inner| self.symbol(inner)).collect::<Vec<_>>(),
        })
    }

    /// Symbols without a tree: those in sections with the section's name.
    pub(super) fn flat(&self, url: &str, symbols: &[Symbol]) -> Vec<Value> {
        let location = |one: &Symbol| json!({"uri": url, "range": self.range(one.span)});
        let inner = |section: &Symbol, one: &Symbol| {
            let (name, container) = (one.name.as_str(), section.name.as_str());
            json!({"name": name, "kind": symbol_kind(one), "location": location(one), "containerName": container})
        };
        symbols.iter().flat_map(|section| section.children.iter().map(move |one| inner(section, one))).collect()
    }
}

/// `SymbolKind`: a namespace for sections, a variable for what they hold.
fn symbol_kind(one: &Symbol) -> i64 {
    if one.children.is_empty() { 13 } else { 3 }
}

/// The numbers of `CompletionItemKind`.
pub(super) fn completion_kind(sort: Sort) -> i64 {
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
