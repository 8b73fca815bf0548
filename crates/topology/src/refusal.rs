//! Errors in documents of the topology languages.

use std::fmt;

use kiln_value::{Diagnostic, Path, Span, Value};
use kiln_yaml::Document;

/// Why a document is refused: a kind for programs, a place and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A stable word, such as `unknown-type`; listed in `docs/topology.md`.
    pub kind: &'static str,
    /// The file, if it is not the one that was given.
    pub file: Option<String>,
    /// The path in the document.
    pub at: Path,
    /// The position, if the document is not that of the caller.
    pub span: Option<Span>,
    /// The complete text.
    pub message: String,
    /// Suggestions.
    pub hints: Vec<String>,
}

impl Refusal {
    /// A refusal of the part at `at`.
    pub fn new(kind: &'static str, at: &Path, message: impl Into<String>) -> Self {
        Self { kind, file: None, at: at.clone(), span: None, message: message.into(), hints: Vec::new() }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The refusal with its position in `document`, which is the file `file`.
    #[must_use]
    pub(crate) fn placed(mut self, file: &str, document: &Document) -> Self {
        let spans = document.spans.find(&document.value, &self.at);
        self.span = Some(spans.key.unwrap_or(spans.value));
        self.file = Some(file.to_owned());
        self
    }

    /// The text, with file and place if it is about another file than the one that was given.
    pub fn text(&self) -> String {
        match (&self.file, self.span) {
            (Some(file), Some(Span { start, .. })) => {
                format!("{file}:{}:{}: {}", start.line, start.column, self.message)
            }
            (Some(file), None) => format!("{file}: {}: {}", self.at, self.message),
            (None, _) => self.message.clone(),
        }
    }

    /// The refusal with its position in the text of `document`.
    pub(crate) fn diagnostic(&self, document: Option<&Document>) -> Diagnostic {
        let mut diagnostic = Diagnostic::invalid(self.message.clone()).at(self.at.clone());
        // Positions in other files may not be known here.
        diagnostic.span = self.span;
        if let (None, Some(document)) = (&self.file, document) {
            let spans = document.spans.find(&document.value, &self.at);
            diagnostic.span = Some(spans.key.unwrap_or(spans.value));
        }
        diagnostic.hints.clone_from(&self.hints);
        diagnostic.file.clone_from(&self.file);
        diagnostic
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Sorts refusals by their position in the document.
pub(crate) fn sort(refusals: &mut [Refusal], document: &Document) {
    refusals.sort_by_cached_key(|refusal| {
        let spans = document.spans.find(&document.value, &refusal.at);
        let span = spans.key.unwrap_or(spans.value);
        (span.start.line, span.start.column)
    });
}

/// What a value is, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Unknown(_) => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::BigInt(_) | Value::Float(_) => "a number",
        Value::Str(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}
