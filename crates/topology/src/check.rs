//! All findings in a document, for editors and `kiln template lint`.

use std::sync::Arc;

use kiln_value::{Map, Position, Span};
use kiln_yaml::Document;

use crate::tosca::Files;
use crate::type_file::{NAME, is_type_file};
use crate::user_file::{UserFile, is_topology};
use crate::{Refusal, TypeFiles};

/// The kind of findings about parts that change nothing.
pub const NO_EFFECT: &str = "no-effect";
const NOT_YAML: &str = "not-yaml";

/// An error, or a part without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind, path and text.
    pub refusal: Refusal,
    /// The range in the text; the first line for parts of other files.
    pub span: Span,
    /// Whether the document cannot be deployed.
    pub is_error: bool,
}

/// Whether a text is probably a blueprint, a plan, a service template or a type file, also while it cannot be parsed.
pub fn looks_like_topology(text: &str) -> bool {
    let starts = |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    let is_template = starts("heat_template_version") || starts("HeatTemplateFormatVersion");
    !is_template && ["tosca_definitions_version", "camp_version", "components", NAME].into_iter().any(starts)
}

/// Reads and lowers a document; `files` are those that it may import, `types` those of files. All errors of the first
/// step that fails. A type file is checked together with `types`.
///
/// `None`: it is not a blueprint, a plan, a service template or a type file.
pub fn check(text: &str, root: &str, files: &dyn Files, types: &Arc<TypeFiles>) -> Option<Vec<Finding>> {
    let document = match kiln_yaml::parse(text) {
        Ok(document) => document,
        Err(error) if looks_like_topology(text) => {
            let start = error.position.unwrap_or(FIRST);
            let refusal = Refusal::new(NOT_YAML, &kiln_value::Path::root(), error.message);
            return Some(vec![Finding { refusal, span: Span { start, end: start }, is_error: true }]);
        }
        Err(_) => return None,
    };
    let is_type = is_type_file(&document.value);
    if !is_type && !is_topology(&document.value) {
        return None;
    }
    let found = |refusal: Refusal, is_error: bool| Finding { span: place(&refusal, &document), refusal, is_error };
    if is_type {
        return Some(of_type_file(text, root, types));
    }
    Some(match lowered(text, &document, root, files, types) {
        Ok(notes) => notes.into_iter().map(|note| found(note, false)).collect(),
        Err(refusals) => refusals.into_iter().map(|refusal| found(refusal, true)).collect(),
    })
}

/// The errors of a type file. It may be one of `types` itself.
fn of_type_file(text: &str, root: &str, types: &TypeFiles) -> Vec<Finding> {
    let refusals = types.with_changed(root, text).err().unwrap_or_default();
    let found = refusals.into_iter().map(|mut refusal| {
        let span = refusal.span.take().unwrap_or(Span { start: FIRST, end: FIRST });
        if refusal.file.as_deref() == Some(root) {
            refusal.file = None;
        }
        Finding { refusal, span, is_error: true }
    });
    found.collect()
}

const FIRST: Position = Position { line: 1, column: 1 };

fn place(refusal: &Refusal, document: &Document) -> Span {
    if refusal.file.is_some() {
        return Span { start: FIRST, end: FIRST };
    }
    let spans = document.spans.find(&document.value, &refusal.at);
    spans.key.unwrap_or(spans.value)
}

/// What has no effect.
fn lowered(
    text: &str,
    document: &Document,
    root: &str,
    files: &dyn Files,
    types: &Arc<TypeFiles>,
) -> Result<Vec<Refusal>, Vec<Refusal>> {
    let file = UserFile::of_document(text.to_owned(), document.clone(), root);
    let reading = file.read(files, &Map::new(), types)?;
    let of_note = |note: crate::lower::Note| {
        let mut refusal = Refusal::new(NO_EFFECT, &note.source.at, note.message);
        refusal.file = note.source.file;
        refusal
    };
    Ok(file.lower(&reading, false)?.notes.into_iter().map(of_note).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn found(text: &str) -> Option<Vec<(String, u32, bool)>> {
        let files = HashMap::from([("t.yaml".to_owned(), text.to_owned())]);
        let found = check(text, "t.yaml", &files, &TypeFiles::shipped().unwrap())?;
        Some(found.into_iter().map(|one| (one.refusal.kind.to_owned(), one.span.start.line, one.is_error)).collect())
    }

    #[test]
    fn all_findings_have_their_place() {
        let service = "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n";
        assert_eq!(found(&format!("{service}    a: {{type: tosca.nodes.Compute}}\n")), Some(Vec::new()));
        let wrong = found(&format!("{service}    a: {{type: x}}\n    b: {{type: y}}\n")).unwrap();
        assert_eq!(wrong.iter().map(|(_, line, error)| (*line, *error)).collect::<Vec<_>>(), [(4, true), (5, true)]);
        let components = "components:\n  app: {type: com.example.java:War, content: a.war, requires: \
                          {com.example.java:WarDeploymentRequirement: c}}\n  c:\n    type: org.jetty.Server\n    \
                          requires:\n      database: {mode: x}\n";
        assert_eq!(found(components), Some(vec![("no-effect".to_owned(), 6, false)]));
        assert_eq!(found("components: {a: [\n"), Some(vec![("not-yaml".to_owned(), 2, true)]));
        assert_eq!(found("heat_template_version: 2018-08-31\ncomponents: {}\n"), None);
        assert_eq!(found("a: ["), None);
    }
}
