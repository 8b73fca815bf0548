//! Definition, references and rename.

use kiln_value::{Path, Position, Span};

use super::links::link_at;
use super::mention_at;
use crate::Page;
use crate::mention::{Manner, Mention, Role, mentions};

/// The location of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// In the same text.
    Here(Span),
    /// In a file, with its name in the template.
    File(String),
}

/// The declaration of the name at a position: a parameter, a resource, a condition or a file.
pub fn definition(page: &Page, at: Position) -> Option<Target> {
    if let Some(mention) = mention_at(page, at) {
        return family(page, &mention)
            .find(|other| other.manner == Manner::Declared)
            .map(|other| Target::Here(other.span));
    }
    link_at(page, at).map(|link| Target::File(link.name))
}

/// A declaration or use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The range.
    pub span: Span,
    /// Whether it is the declaration.
    pub is_declaration: bool,
}

/// All declarations and uses of the name at a position.
pub fn references(page: &Page, at: Position) -> Vec<Occurrence> {
    let Some(mention) = mention_at(page, at) else { return Vec::new() };
    let occurrence = |other: Mention| Occurrence { span: other.span, is_declaration: other.manner == Manner::Declared };
    let mut found: Vec<Occurrence> = family(page, &mention).map(occurrence).collect();
    found.sort_by_key(|one| one.span.start);
    // An alias is read at every use, but has one position.
    found.dedup();
    found
}

/// All mentions of the same parameter, resource or condition.
fn family(page: &Page, of: &Mention) -> impl Iterator<Item = Mention> {
    let (role, name) = (of.role.clone(), of.name.clone());
    mentions(page).into_iter().filter(move |other| other.role == role && other.name == name)
}

/// A replacement in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The replaced range.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// The reason why a name cannot be renamed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// There is no name at the position that the template declares.
    #[error("no parameter, resource or condition of this template at this position")]
    Nothing,
    /// The new name is invalid or requires quotes.
    #[error("\"{0}\" is not a valid name: use letters, digits, '_', '-' and '.', starting with a letter")]
    Invalid(String),
    /// The new name is in use.
    #[error("\"{0}\" already exists")]
    Taken(String),
    /// The name is written in an unsupported form, such as an alias.
    #[error("the name is not written literally at every use")]
    Unclear,
}

/// The name at a position that can be renamed, and its range.
///
/// # Errors
/// [`RenameError::Nothing`].
pub fn renamed(page: &Page, at: Position) -> Result<(Span, String), RenameError> {
    let mention = mention_at(page, at).ok_or(RenameError::Nothing)?;
    if !family(page, &mention).any(|other| other.manner == Manner::Declared) {
        return Err(RenameError::Nothing);
    }
    Ok((unquoted(mention.span, page.slice(mention.span)), mention.name))
}

/// The range of a name without quotes.
pub(super) fn unquoted(span: Span, written: &str) -> Span {
    let Span { start, end } = span;
    if !written.starts_with(['"', '\'']) || start.line != end.line {
        return span;
    }
    let inner = |column: u32, line| Position { line, column };
    Span { start: inner(start.column + 1, start.line), end: inner(end.column.saturating_sub(1), end.line) }
}

/// Renames the parameter, resource or condition at a position everywhere.
///
/// # Errors
/// See [`RenameError`].
pub fn rename(page: &Page, at: Position, new: &str) -> Result<Vec<Edit>, RenameError> {
    let mention = mention_at(page, at).ok_or(RenameError::Nothing)?;
    if !family(page, &mention).any(|other| other.manner == Manner::Declared) {
        return Err(RenameError::Nothing);
    }
    if !is_name(new) {
        return Err(RenameError::Invalid(new.to_owned()));
    }
    // Parameters and resources cannot have the same name.
    let clashes = |other: &Mention| match mention.role {
        Role::Condition => other.role == Role::Condition,
        _ => matches!(other.role, Role::Parameter | Role::Resource),
    };
    let taken = |other: &Mention| other.manner == Manner::Declared && other.name == new && clashes(other);
    if mentions(page).iter().any(taken) {
        return Err(RenameError::Taken(new.to_owned()));
    }
    let edit = |span: Span| {
        let written = page.slice(span);
        let quote = written.chars().next().filter(|c| matches!(c, '"' | '\''));
        let inner = quote.map_or(written, |quote| written.trim_matches(quote));
        if inner != mention.name {
            return Err(RenameError::Unclear);
        }
        let quote = quote.map(String::from).unwrap_or_default();
        Ok(Edit { span, text: format!("{quote}{new}{quote}") })
    };
    references(page, at).into_iter().map(|one| edit(one.span)).collect()
}

/// Whether a string can be written as a name without quotes.
pub(super) fn is_name(new: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_text = kiln_yaml::parse(new).is_ok_and(|document| document.value.as_str() == Some(new));
    new.starts_with(|c: char| c.is_ascii_alphabetic()) && new.chars().all(is_plain) && is_text
}

/// A part of the template in an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its type, if it has one.
    pub detail: Option<String>,
    /// The range of the name.
    pub span: Span,
    /// The complete range.
    pub whole: Span,
    /// Its parts.
    pub children: Vec<Symbol>,
}

/// The sections with their declarations.
pub fn outline(page: &Page) -> Vec<Symbol> {
    let words = page.template.words();
    let sections = [words.parameters, words.conditions, words.resources, words.outputs];
    let symbol = |path: &Path, name: &str, detail: Option<&str>, children| {
        let (span, value) = (page.span(path), page.value_span(path));
        let whole = Span { start: span.start, end: value.end.max(span.end) };
        Symbol { name: name.to_owned(), detail: detail.map(str::to_owned), span, whole, children }
    };
    let section = |name: &'static str| {
        page.value().get(name)?;
        let path = Path::root().key(name);
        let entry = |(key, value): (&String, &kiln_value::Value)| {
            let detail = value.str_at(words.resource_type).or_else(|| value.str_at("type"));
            symbol(&path.key(key.as_str()), key, detail, Vec::new())
        };
        Some(symbol(&path, name, None, page.section(name).map(entry).collect()))
    };
    sections.into_iter().filter_map(section).collect()
}
