//! A template with text, value and positions.

use std::sync::Arc;

use kiln_template::source::{self, VERSION_KEYS};
use kiln_template::{Release, Template};
use kiln_value::{Diagnostic, Map, Path, Position, Span, Spans, Value};

use crate::lines::Lines;

/// The range of errors about a whole text.
pub(crate) const BEGINNING: Span = {
    let first = Position { line: 1, column: 1 };
    Span { start: first, end: first }
};

/// The text of a template with its value and positions.
#[derive(Clone, Debug)]
pub struct Page {
    /// The text.
    pub text: String,
    /// Its value.
    pub template: Template,
    /// The positions of its parts.
    pub spans: Spans,
    lines: Lines,
}

impl Page {
    /// Parses a text.
    ///
    /// # Errors
    /// Errors of the parser, or the version is missing or unknown; always with a position.
    pub fn read(text: impl Into<String>) -> Result<Self, Diagnostic> {
        let text = text.into();
        let placed = |mut error: Diagnostic, span| {
            error.span.get_or_insert(span);
            error
        };
        let document = source::parse(&text, source::ROOT, usize::MAX).map_err(|error| placed(error, BEGINNING))?;
        let (value, spans) = (Arc::new(document.value), document.spans);
        let template = Template::from_value(Arc::clone(&value)).map_err(|error| {
            let key = VERSION_KEYS.into_iter().find(|key| value.get(key).is_some());
            placed(error, key.map_or(BEGINNING, |key| spans.find(&value, &Path::root().key(key)).value))
        })?;
        let lines = Lines::new(&text);
        Ok(Self { text, template, spans, lines })
    }

    /// The value of the text.
    pub fn value(&self) -> &Value {
        self.template.as_value()
    }

    /// The version of its language.
    pub fn release(&self) -> Release {
        self.template.release()
    }

    /// The positions of its lines.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Whether the text is JSON rather than YAML.
    pub fn is_json(&self) -> bool {
        self.text.trim_start().starts_with('{') && kiln_yaml::json::parse_with_spans(&self.text).is_ok()
    }

    /// The entries of a section; none if it is missing or not a map.
    pub fn section(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.value().get(name).and_then(Value::as_map).into_iter().flat_map(Map::iter)
    }

    /// The range of the part at a path: its key, else its value.
    pub fn span(&self, path: &Path) -> Span {
        let spans = self.spans.find(self.value(), path);
        spans.key.unwrap_or(spans.value)
    }

    /// The range of the value at a path.
    pub fn value_span(&self, path: &Path) -> Span {
        self.spans.find(self.value(), path).value
    }

    /// The text of a range.
    pub fn slice(&self, span: Span) -> &str {
        self.lines.range(&self.text, span).and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    /// The type of a resource as written; `None` if the resource does not exist or its type is not a string.
    pub fn type_of(&self, resource: &str) -> Option<&str> {
        let words = self.template.words();
        self.value().get(words.resources)?.get(resource)?.str_at(words.resource_type)
    }

    /// The types of the resources, as written.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let words = self.template.words();
        self.section(words.resources).filter_map(|(_, resource)| resource.str_at(words.resource_type))
    }

    /// The path of the innermost part at a position, and whether the position is on its key.
    pub fn at(&self, position: Position) -> (Path, bool) {
        let (mut path, mut value, mut spans) = (Path::root(), self.value(), &self.spans);
        loop {
            let holds = |child: &Spans| {
                let on_key = child.key.is_some_and(|key| touches(key, position));
                on_key || touches(child.value, position)
            };
            let children: Vec<_> = match value {
                Value::Map(map) => map.iter().map(|(key, value)| (path.key(key.as_str()), value)).collect(),
                Value::List(list) => list.iter().enumerate().map(|(i, value)| (path.index(i), value)).collect(),
                _ => Vec::new(),
            };
            // The last one that begins before: the end of a block is at the start of the next token.
            let found = children.into_iter().zip(&spans.children).rfind(|(_, child)| holds(child));
            let Some(((inner, inside), child)) = found else { return (path, false) };
            if child.key.is_some_and(|key| touches(key, position)) {
                return (inner, true);
            }
            (path, value, spans) = (inner, inside, child);
        }
    }
}

fn touches(span: Span, position: Position) -> bool {
    span.start <= position && position <= span.end
}
