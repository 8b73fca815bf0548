//! Words for authors: what may be written at a place of a document, and what stands there.
//!
//! Editors ask while a text is being written, so it may be invalid. The place is a path, as the lines before the cursor
//! tell it.

mod component;
mod service;
mod type_file;

use std::sync::Arc;

use kiln_value::{Path, Position, Segment, Span, Spans, Value};
use kiln_yaml::Document;

use crate::TypeFiles;
use crate::blueprint::Library;
use crate::tosca::{Definitions, Files, TypeChecker, Types, with_imports};
use crate::type_file::is_type_file;

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A key of the language.
    Key,
    /// A type.
    Type,
    /// A property, an attribute or a capability.
    Property,
    /// A node, a component or an input of the document.
    Name,
}

/// A word that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub label: String,
    /// What it is.
    pub sort: Sort,
    /// A few words.
    pub detail: String,
    /// Markdown.
    pub documentation: String,
}

impl Word {
    fn new(label: impl Into<String>, sort: Sort) -> Self {
        Self { label: label.into(), sort, detail: String::new(), documentation: String::new() }
    }
}

/// Where a text is read.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The name of the document.
    pub root: &'a str,
    /// The files that it may import, with itself.
    pub files: &'a dyn Files,
    /// The types of files.
    pub types: &'a Arc<TypeFiles>,
}

/// What may be written at `path` in the line `line`: a key of the map there, or the value.
pub fn words(text: &str, line: u32, path: &Path, is_key: bool, around: Around<'_>) -> Vec<Word> {
    let Some(document) = readable(text, line) else { return Vec::new() };
    if is_type_file(&document.value) {
        return with_checker(&document.value, around, |checker| {
            type_file::words(&document.value, path, is_key, checker)
        })
        .unwrap_or_default();
    }
    if document.value.get("tosca_definitions_version").is_some() {
        return with_checker(&document.value, around, |checker| service::words(&document.value, path, is_key, checker))
            .unwrap_or_default();
    }
    // The keys of CAMP plans are few, and those of blueprints are others.
    if document.value.get("components").is_none() {
        return Vec::new();
    }
    let library = Library::of(around.types);
    library.map(|library| component::words(&document.value, path, is_key, &library)).unwrap_or_default()
}

/// What stands at a position, as Markdown with its range.
pub fn explain(text: &str, at: Position, around: Around<'_>) -> Option<(String, Span)> {
    let document = kiln_yaml::parse(text).ok()?;
    let mut path = Path::root();
    let (span, is_key) = find(&document.value, &document.spans, at, &mut path)?;
    let text = if document.value.get("components").is_some() {
        component::explain(&document.value, &path, is_key, &Library::of(around.types).ok()?, around.types)
    } else {
        with_checker(&document.value, around, |checker| {
            if is_type_file(&document.value) {
                type_file::explain(&document.value, &path, is_key, checker)
            } else {
                service::explain(&document.value, &path, is_key, checker)
            }
        })?
    };
    Some((text?, span))
}

/// Runs something with all types that a document may use.
fn with_checker<T>(document: &Value, around: Around<'_>, run: impl FnOnce(&TypeChecker<'_>) -> T) -> Option<T> {
    let mut definitions = Definitions::of_all_profiles(around.types).ok()?;
    if let Some(sections) = document.as_map() {
        definitions.custom = with_imports(around.files, around.root, sections);
    }
    let types = Types::new(&definitions);
    Some(run(&TypeChecker::new(&types)))
}

/// Lines that are left out of an invalid text, besides the one that is being written.
const MOST_OMITTED: usize = 4;

/// The document, if need be without the line that is being written and a few others around errors.
fn readable(text: &str, line: u32) -> Option<Document> {
    if let Ok(document) = kiln_yaml::parse(text) {
        return Some(document);
    }
    let mut lines: Vec<&str> = text.split('\n').collect();
    let mut omit = |line: u32| -> Option<Result<Document, u32>> {
        *lines.get_mut(usize::try_from(line.checked_sub(1)?).ok()?)? = "";
        let parsed = kiln_yaml::parse(&lines.join("\n"));
        Some(parsed.map_err(|error| error.position.map_or(0, |position| position.line)))
    };
    let mut wrong = match omit(line)? {
        Ok(document) => return Some(document),
        Err(wrong) => wrong,
    };
    for _ in 0..MOST_OMITTED {
        // The parser stops behind a key without a colon.
        match omit(wrong.checked_sub(1)?)? {
            Ok(document) => return Some(document),
            Err(next) if next == wrong => match omit(wrong)? {
                Ok(document) => return Some(document),
                Err(next) => wrong = next,
            },
            Err(next) => wrong = next,
        }
    }
    None
}

/// The innermost key or value at a position; `path` becomes its path.
fn find(value: &Value, spans: &Spans, at: Position, path: &mut Path) -> Option<(Span, bool)> {
    let contains = |span: Span| span.start <= at && at <= span.end;
    let segments: Vec<Segment> = match value {
        Value::Map(map) => map.keys().map(|key| Segment::Key(key.clone())).collect(),
        Value::List(items) => (0..items.len()).map(Segment::Index).collect(),
        _ => return contains(spans.value).then_some((spans.value, false)),
    };
    let values: Vec<&Value> = match value {
        Value::Map(map) => map.values().collect(),
        Value::List(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    for ((segment, value), spans) in segments.into_iter().zip(values).zip(&spans.children) {
        let is_key = spans.key.is_some_and(contains);
        if !is_key && !contains(spans.value) {
            continue;
        }
        path.0.push(segment);
        if let Some(key) = spans.key.filter(|_| is_key) {
            return Some((key, true));
        }
        return find(value, spans, at, path);
    }
    None
}

/// The value at a path.
fn at<'v>(value: &'v Value, path: &[Segment]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Key(key) => value.get(key),
        Segment::Index(i) => value.at(*i),
    })
}

/// The keys of a path, without indexes.
fn keys(path: &[Segment]) -> Vec<&str> {
    let keys = path.iter().filter_map(|segment| match segment {
        Segment::Key(key) => Some(key.as_str()),
        Segment::Index(_) => None,
    });
    keys.collect()
}

/// A definition of a property in one line.
fn shape(definition: &Value) -> String {
    let kind = definition.as_str().or_else(|| definition.str_at("type")).unwrap_or_default();
    match definition.get("default").filter(|default| !default.is_null()) {
        Some(default) => format!("{kind}, default {}", kiln_value::text::json(default)),
        None if !crate::tosca::is_required(definition) => format!("{kind}, optional"),
        None => kind.to_owned(),
    }
}
