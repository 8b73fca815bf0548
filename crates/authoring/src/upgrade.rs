//! Upgrades a template to the latest version of HOT, and proves that the meaning does not change.
//!
//! Renamed functions, keys and sections are converted; features without a successor are reported with their position.
//! Only the affected parts of the text are changed, so comments are kept. JSON is converted to YAML.

mod convert;
mod proof;
mod shape;

use kiln_template::Release;
use kiln_value::{Path, Span, Value};

use crate::{Page, emit, patch};
pub use proof::Proof;

/// The version of upgraded templates.
pub const NEWEST: Release = Release::Hot20210416;

/// A message about a location in the old template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Path in the document.
    pub path: Path,
    /// Range in the text.
    pub span: Span,
    /// The message.
    pub message: String,
}

/// An upgraded template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// Its text.
    pub text: String,
    /// Messages for the author.
    pub notes: Vec<Note>,
    /// The extent of the comparison.
    pub proof: Proof,
}

/// Upgrades a template.
///
/// # Errors
/// Everything that cannot be converted, or the locations where the results of both versions would differ.
pub fn upgrade(page: &Page) -> Result<Upgrade, Vec<Note>> {
    let note = |(path, message): (Path, String)| Note { span: page.span(&path), path, message };
    let converted = convert::convert(page).map_err(|found| found.into_iter().map(note).collect::<Vec<_>>())?;
    let whole = |message: String| vec![note((Path::root(), message))];
    let mut notes: Vec<Note> = converted.notes.into_iter().map(note).collect();
    let patched = if page.is_json() { None } else { patch::patch(page, &converted.value) };
    let text = if let Some(text) = patched {
        text
    } else {
        if !page.is_json() && page.text.contains('#') {
            notes.push(note((
                Path::root(),
                "comments are lost, because the text is generated from its value".to_owned(),
            )));
        }
        emit::document(&converted.value)
            .ok_or_else(|| whole("the template contains a value that cannot be written as YAML".to_owned()))?
    };
    let upgraded = Page::read(text.as_str()).map_err(|error| whole(error.to_string()))?;
    let (proof, unresolved) = proof::compare(page, &upgraded, &converted.mappings)
        .map_err(|different| different.into_iter().map(note).collect::<Vec<_>>())?;
    let unresolved: Vec<Note> = unresolved.into_iter().map(note).collect();
    if !unresolved.is_empty() && !is_same_but_version(page.value(), &converted.value) {
        return Err(unresolved);
    }
    // Only the version changes there, so there is nothing that could be converted wrongly.
    notes
        .extend(unresolved.into_iter().map(|note| Note { message: format!("not compared: {}", note.message), ..note }));
    Ok(Upgrade { text, notes, proof })
}

/// Whether two templates of HOT differ in their version only.
fn is_same_but_version(old: &Value, new: &Value) -> bool {
    let (Value::Map(old), Value::Map(new)) = (old, new) else { return false };
    let rest = |entry: &(&String, &Value)| entry.0 != "heat_template_version";
    old.contains_key("heat_template_version") && old.iter().filter(rest).eq(new.iter().filter(rest))
}
