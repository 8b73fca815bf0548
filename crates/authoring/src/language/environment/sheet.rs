//! An environment with text, value and positions.

use kiln_template::environment::SECTIONS;
use kiln_value::{Path, Position, Segment, Span, Spans, Value};

use super::super::links::{Link, is_template};
use super::super::navigate::{Edit, Occurrence, RenameError, Symbol, is_name, unquoted};
use super::NO_TYPES;
use crate::lines::Lines;

/// The text of an environment with its value and positions.
#[derive(Clone, Debug)]
pub struct Sheet {
    text: String,
    value: Value,
    spans: Spans,
    lines: Lines,
}

/// The kind of a name in an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// A parameter of the template.
    Parameter,
    /// A resource type.
    Type,
    /// A template.
    File,
}

/// A name with its position.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) sense: Sense,
    pub(super) text: String,
    pub(super) span: Span,
    /// Whether the environment defines the name here.
    pub(super) is_declaration: bool,
}

impl Sheet {
    /// Reads a text; if it is invalid, without the line that is being written, or else up to it. `None` if that fails
    /// too.
    pub fn read(text: &str, at: Option<Position>) -> Option<Self> {
        let lines: Vec<&str> = text.split('\n').collect();
        let current = at.and_then(|at| usize::try_from(at.line).ok()?.checked_sub(1));
        let broken = || kiln_yaml::parse(text).err().and_then(|error| error.position);
        let whole = || kiln_yaml::parse(text).ok().map(|document| (text.to_owned(), document));
        let around = |line: usize| {
            let before = lines.get(..line)?;
            let after = lines.get(line + 1..).unwrap_or_default();
            let read = |text: String| Some((text.clone(), kiln_yaml::parse(&text).ok()?));
            read([before, &[""], after].concat().join("\n")).or_else(|| read(before.join("\n")))
        };
        let (text, document) = whole().or_else(|| around(current?)).or_else(|| {
            let line = usize::try_from(broken()?.line).ok()?;
            (line.saturating_sub(4)..line).rev().find_map(around)
        })?;
        let lines = Lines::new(&text);
        Some(Self { text, value: document.value, spans: document.spans, lines })
    }

    /// Whether this is the complete text: no lines were left out because they are invalid.
    pub fn is_whole(&self, text: &str) -> bool {
        self.text == text
    }

    fn key_span(&self, path: &Path) -> Span {
        let spans = self.spans.find(&self.value, path);
        spans.key.unwrap_or(spans.value)
    }

    fn slice(&self, span: Span) -> &str {
        self.lines.range(&self.text, span).and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    /// All names, in the order of the text.
    pub(super) fn names(&self) -> Vec<Name> {
        let mut found = Vec::new();
        for (section, value) in self.value.as_map().into_iter().flatten() {
            let at = Path::root().key(section.as_str());
            match (section.as_str(), value) {
                ("parameters" | "parameter_defaults" | "parameter_merge_strategies", Value::Map(entries)) => {
                    for name in
                        entries.keys().filter(|name| section != "parameter_merge_strategies" || *name != "default")
                    {
                        let span = self.key_span(&at.key(name.as_str()));
                        let is_declaration = section != "parameter_merge_strategies";
                        found.push(Name { sense: Sense::Parameter, text: name.clone(), span, is_declaration });
                    }
                }
                ("encrypted_param_names", Value::List(names)) => {
                    for (index, name) in names.iter().enumerate() {
                        let span = self.key_span(&at.index(index));
                        let name = name.as_str().unwrap_or_default().to_owned();
                        found.push(Name { sense: Sense::Parameter, text: name, span, is_declaration: false });
                    }
                }
                ("resource_registry", value) => self.registry(&at, value, &mut found),
                _ => {}
            }
        }
        found
    }

    fn registry(&self, at: &Path, value: &Value, found: &mut Vec<Name>) {
        for (name, entry) in value.as_map().into_iter().flatten() {
            let at = at.key(name.as_str());
            match entry {
                Value::Map(_) => self.registry(&at, entry, found),
                Value::Str(target) if !NO_TYPES.contains(&name.as_str()) => {
                    let span = self.key_span(&at);
                    found.push(Name { sense: Sense::Type, text: name.clone(), span, is_declaration: true });
                    let sense = if is_template(target) { Sense::File } else { Sense::Type };
                    let span = self.spans.find(&self.value, &at).value;
                    found.push(Name { sense, text: target.clone(), span, is_declaration: false });
                }
                _ => {}
            }
        }
    }

    pub(super) fn name_at(&self, at: Position) -> Option<Name> {
        self.names().into_iter().find(|name| name.span.start <= at && at <= name.span.end)
    }

    fn family(&self, at: Position) -> Vec<Name> {
        let Some(one) = self.name_at(at).filter(|one| one.sense != Sense::File) else { return Vec::new() };
        let mut names = self.names();
        names.retain(|other| other.sense == one.sense && other.text == one.text);
        names
    }

    /// All occurrences of the parameter or type at a position.
    pub fn references(&self, at: Position) -> Vec<Occurrence> {
        let occurrence = |name: Name| Occurrence { span: name.span, is_declaration: name.is_declaration };
        self.family(at).into_iter().map(occurrence).collect()
    }

    /// The name at a position that can be renamed, and its range.
    ///
    /// # Errors
    /// [`RenameError::Nothing`], also for types of the service.
    pub fn renamed(&self, at: Position) -> Result<(Span, String), RenameError> {
        let name = self.name_at(at).ok_or(RenameError::Nothing)?;
        if !self.family(at).iter().any(|other| other.is_declaration) {
            return Err(RenameError::Nothing);
        }
        Ok((unquoted(name.span, self.slice(name.span)), name.text))
    }

    /// Renames the parameter or type at a position everywhere in this environment.
    ///
    /// # Errors
    /// See [`RenameError`].
    pub fn rename(&self, at: Position, new: &str) -> Result<Vec<Edit>, RenameError> {
        let (_, old) = self.renamed(at)?;
        let family = self.family(at);
        let is_type = family.iter().any(|name| name.sense == Sense::Type);
        let parts: Vec<&str> = if is_type { new.split("::").collect() } else { vec![new] };
        if !parts.iter().all(|part| is_name(part)) {
            return Err(RenameError::Invalid(new.to_owned()));
        }
        let declared = self.names();
        let is_taken = |other: &Name| {
            other.is_declaration && other.text == new && family.first().is_some_and(|one| one.sense == other.sense)
        };
        if declared.iter().any(is_taken) {
            return Err(RenameError::Taken(new.to_owned()));
        }
        let edit = |name: &Name| {
            let span = unquoted(name.span, self.slice(name.span));
            if self.slice(span) != old {
                return Err(RenameError::Unclear);
            }
            Ok(Edit { span, text: new.to_owned() })
        };
        family.iter().map(edit).collect()
    }

    /// The templates in the registry.
    pub fn links(&self) -> Vec<Link> {
        let files = self.names().into_iter().filter(|name| name.sense == Sense::File);
        files.map(|name| Link { span: name.span, name: name.text }).collect()
    }

    /// The types of the registry with their mappings, without entries for single resources and patterns.
    pub fn types(&self) -> Vec<(String, String)> {
        let entries = self.value.get("resource_registry").and_then(Value::as_map).into_iter().flatten();
        let entries = entries.filter(|(name, _)| !NO_TYPES.contains(&name.as_str()) && !name.ends_with('*'));
        entries.filter_map(|(name, entry)| Some((name.clone(), entry.as_str()?.to_owned()))).collect()
    }

    /// The sections with their entries.
    pub fn outline(&self) -> Vec<Symbol> {
        let symbol = |path: &Path, name: &str, value: &Value, children| {
            let (span, whole) = (self.key_span(path), self.spans.find(&self.value, path).value);
            let whole = Span { start: span.start, end: whole.end.max(span.end) };
            Symbol { name: name.to_owned(), detail: value.as_str().map(str::to_owned), span, whole, children }
        };
        let sections = self.value.as_map().into_iter().flatten();
        let sections = sections.filter(|(name, _)| SECTIONS.contains(&name.as_str()));
        let section = |(name, value): (&String, &Value)| {
            let path = Path::root().key(name.as_str());
            let entries = value.as_map().into_iter().flatten();
            let children =
                entries.map(|(key, inner)| symbol(&path.key(key.as_str()), key, inner, Vec::new())).collect();
            symbol(&path, name, &Value::Null, children)
        };
        sections.map(section).collect()
    }

    /// The path of the innermost entry on the path of a cursor.
    pub(super) fn given(&self, path: &[Segment]) -> Vec<&str> {
        let leads = path.iter().try_fold(&self.value, |value, segment| match segment {
            Segment::Key(key) => value.get(key),
            Segment::Index(index) => value.at(*index),
        });
        leads.and_then(Value::as_map).into_iter().flat_map(|map| map.keys()).map(String::as_str).collect()
    }
}
