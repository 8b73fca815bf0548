//! A template with text, value and positions.

use kiln_template::{Release, Template, source};
use kiln_value::{Diagnostic, Map, Path, Position, Span, Spans, Value};

use crate::lines::Lines;

/// A template's text with what it says and where.
#[derive(Clone, Debug)]
pub struct Page {
    /// The text.
    pub text: String,
    /// What it says.
    pub template: Template,
    /// Where its parts stand.
    pub spans: Spans,
    lines: Lines,
}

impl Page {
    /// Reads a text.
    ///
    /// # Errors
    /// The reader's, or that there is no version that Kiln knows; with a place where there is one.
    pub fn read(text: impl Into<String>) -> Result<Self, Diagnostic> {
        let text = text.into();
        let document = source::parse(&text, source::ROOT, usize::MAX)?;
        let spans = document.spans;
        let template = Template::from_value(document.value)?;
        let lines = Lines::new(&text);
        Ok(Self { text, template, spans, lines })
    }

    /// What the text says.
    pub fn value(&self) -> &Value {
        self.template.as_value()
    }

    /// The version of its language.
    pub fn release(&self) -> Release {
        self.template.release()
    }

    /// Where its lines begin.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Whether the text is JSON rather than YAML.
    pub fn is_json(&self) -> bool {
        self.text.trim_start().starts_with('{') && kiln_yaml::json::parse_with_spans(&self.text).is_ok()
    }

    /// The entries of a section; none if it is missing or no map.
    pub fn section(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.value().get(name).and_then(Value::as_map).into_iter().flat_map(Map::iter)
    }

    /// Where the part at a path stands: its key, else its value.
    pub fn span(&self, path: &Path) -> Span {
        let spans = self.spans.find(self.value(), path);
        spans.key.unwrap_or(spans.value)
    }

    /// Where the value at a path stands.
    pub fn value_span(&self, path: &Path) -> Span {
        self.spans.find(self.value(), path).value
    }

    /// The text of a place.
    pub fn slice(&self, span: Span) -> &str {
        self.lines.range(&self.text, span).and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    /// The type of a resource as written; `None` if there is no such resource or its type is no text.
    pub fn type_of(&self, resource: &str) -> Option<&str> {
        let words = self.template.words();
        self.value().get(words.resources)?.get(resource)?.str_at(words.resource_type)
    }

    /// The types of the resources, as written.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let words = self.template.words();
        self.section(words.resources).filter_map(|(_, resource)| resource.str_at(words.resource_type))
    }

    /// The path from the root to the innermost part that holds a position, and whether the position is on its key.
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
            // The last that begins before: a block's end mark reaches to the next token.
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
