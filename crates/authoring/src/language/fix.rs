//! Quick fixes: text changes that apply a hint.

use kiln_template::hint::nearest;
use kiln_value::{Path, Position, Segment, Span, Spans, Value};

use super::diagnose::Trouble;
use super::navigate::Edit;
use crate::lines::Lines;
use crate::walk::{literal_texts, value_at};

/// A quick fix of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The title.
    pub title: String,
    /// The index of the diagnostic.
    pub trouble: usize,
    /// The edits, which do not overlap.
    pub edits: Vec<Edit>,
}

/// The quick fixes of the diagnostics of a text.
pub fn fixes(text: &str, troubles: &[Trouble]) -> Vec<Fix> {
    let Ok(document) = kiln_yaml::parse(text) else { return Vec::new() };
    let lines = Lines::new(text);
    let surgeon = Surgeon { text, lines, root: &document.value, spans: &document.spans };
    let fix = |(index, trouble): (usize, &Trouble)| {
        let (title, edits) = surgeon.fix(trouble)?;
        Some(Fix { title, trouble: index, edits })
    };
    troubles.iter().enumerate().filter_map(fix).collect()
}

struct Surgeon<'t> {
    text: &'t str,
    lines: Lines,
    root: &'t Value,
    spans: &'t Spans,
}

impl Surgeon<'_> {
    fn fix(&self, trouble: &Trouble) -> Option<(String, Vec<Edit>)> {
        let path = &trouble.path;
        match trouble.code.as_str() {
            // The entry of the group would refer to a missing parameter.
            "unused-parameter" if self.is_grouped(path) => None,
            "unused-parameter" | "unused-condition" | "unused-mapping" | "redundant-depends-on" | "empty-section" => {
                self.without(path)
            }
            "visible-secret" => self.hidden(path),
            "surprising-value" => {
                let span = self.spans.find(self.root, path).value;
                let quoted = format!("\"{}\"", self.slice(span));
                Some((format!("Change it to the string {quoted}"), vec![Edit { span, text: quoted }]))
            }
            _ => self.meant(trouble),
        }
    }

    fn slice(&self, span: Span) -> &str {
        self.lines.range(self.text, span).and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    /// Whether a parameter is listed in a parameter group.
    fn is_grouped(&self, path: &Path) -> bool {
        let Some(Segment::Key(name)) = path.0.last() else { return false };
        let groups = self.root.get("parameter_groups").or_else(|| self.root.get("ParameterGroups"));
        groups.is_some_and(|groups| literal_texts(groups).contains(&name.as_str()))
    }

    /// "Did you mean …?": the misspelled word is at the path of the diagnostic or below it.
    fn meant(&self, trouble: &Trouble) -> Option<(String, Vec<Edit>)> {
        let word = trouble.hints.iter().find_map(|hint| {
            let (_, rest) = hint.split_once("id you mean ")?;
            Some(rest.trim_end().trim_end_matches('?').trim_matches('"').to_owned())
        })?;
        let start = value_at(self.root, &trouble.path)?;
        let spans = self.spans.find(self.root, &trouble.path);
        let mut candidates: Vec<(String, Span)> = Vec::new();
        if let (Some(Segment::Key(key)), Some(span)) = (trouble.path.0.last(), spans.key) {
            candidates.push((key.clone(), span));
        }
        words(start, spans, &mut candidates);
        let is_wrong = |candidate: &str| {
            candidate != word && names(&trouble.message, candidate) && nearest(candidate, [word.as_str()]).is_some()
        };
        let (wrong, span) = candidates.into_iter().find(|(candidate, _)| is_wrong(candidate))?;
        let written = self.slice(span);
        // Other forms, such as an alias, are not supported.
        let text = match written.strip_prefix(['"', '\'']).and_then(|rest| rest.strip_suffix(['"', '\''])) {
            Some(inner) if inner == wrong => written.replacen(&wrong, &word, 1),
            None if written == wrong => word.clone(),
            _ => return None,
        };
        Some((format!("Change {wrong} to {word}"), vec![Edit { span, text }]))
    }

    /// Removes the lines of an entry or an item, if it has its own lines.
    fn without(&self, path: &Path) -> Option<(String, Vec<Edit>)> {
        let (_, parent) = path.0.split_last()?;
        let parent = Path(parent.to_vec());
        let siblings = match value_at(self.root, &parent)? {
            Value::Map(map) => map.len(),
            Value::List(list) => list.len(),
            _ => return None,
        };
        // A section that would become empty is removed with its last entry.
        if siblings < 2 && parent.0.len() != 2 && !parent.is_root() {
            return self.without(&parent);
        }
        let spans = self.spans.find(self.root, path);
        let head = spans.key.unwrap_or(spans.value);
        let before: String = self.prefix(head.start);
        if !matches!(before.trim(), "" | "-") || (before.trim() == "-" && spans.key.is_some()) {
            return None;
        }
        let mut last = spans.value.end.max(head.end);
        if last.line > head.start.line && self.prefix(last).trim().is_empty() {
            // The end of a block is at the start of the next token.
            last.line -= 1;
        }
        let line = |number: u32| self.lines.line(self.text, number).trim();
        while last.line > head.start.line && (line(last.line).is_empty() || line(last.line).starts_with('#')) {
            last.line -= 1;
        }
        let at = |line: u32| Position { line, column: 1 };
        let span = Span { start: at(head.start.line), end: at(last.line + 1) };
        let name = match path.0.last()? {
            Segment::Key(key) => key.clone(),
            Segment::Index(_) => self.slice(spans.value).to_owned(),
        };
        Some((format!("Remove {name}"), vec![Edit { span, text: String::new() }]))
    }

    /// The part of the line before a position.
    fn prefix(&self, at: Position) -> String {
        let width = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
        self.lines.line(self.text, at.line).chars().take(width).collect()
    }

    /// Makes a parameter hidden.
    fn hidden(&self, path: &Path) -> Option<(String, Vec<Edit>)> {
        let declared = value_at(self.root, path)?.as_map()?;
        let (key, value) = if declared.contains_key("Type") { ("NoEcho", "true") } else { ("hidden", "true") };
        if declared.contains_key(key) {
            return None;
        }
        let (first, _) = declared.first()?;
        let start = self.spans.find(self.root, &path.key(first.as_str())).key?.start;
        let before = self.prefix(start);
        let text =
            if before.trim().is_empty() { format!("{key}: {value}\n{before}") } else { format!("{key}: {value}, ") };
        Some((format!("Add {key}: {value}"), vec![Edit { span: Span { start, end: start }, text }]))
    }
}

/// The keys and strings below a value, nearest first.
fn words(value: &Value, spans: &Spans, found: &mut Vec<(String, Span)>) {
    let mut level = vec![(value, spans)];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (value, spans) in level {
            match value {
                Value::Str(text) => found.push((text.clone(), spans.value)),
                Value::Map(map) => {
                    for ((key, inner), child) in map.iter().zip(&spans.children) {
                        found.extend(child.key.map(|span| (key.clone(), span)));
                        next.push((inner, child));
                    }
                }
                Value::List(list) => next.extend(list.iter().zip(&spans.children)),
                _ => {}
            }
        }
        level = next;
    }
}

/// Whether a message contains a word, not as a part of another one.
fn names(message: &str, word: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    message.match_indices(word).any(|(at, _)| {
        let before = message.get(..at).and_then(|text| text.chars().next_back());
        let behind = message.get(at + word.len()..).and_then(|text| text.chars().next());
        !word.is_empty() && !before.is_some_and(is_inside) && !behind.is_some_and(is_inside)
    })
}
