//! Diagnostics: errors and lint findings.

use std::sync::Arc;

use kiln_plan::{ResourceTypes, Sources};
use kiln_value::{Diagnostic, Path, Position, Span};

use super::suggest::suggest;
use super::surroundings::Surroundings;
use crate::Page;
use crate::lint::{Severity, lint};
use crate::offline::examine;

/// How much a trouble matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The service would refuse the template.
    Error,
    /// A lint warning.
    Warning,
    /// Lint advice.
    Advice,
}

/// Something to be shown at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// How much it matters.
    pub level: Level,
    /// The error's class or the rule's name.
    pub code: String,
    /// What it is.
    pub message: String,
    /// Where in the document.
    pub path: Path,
    /// Where in the text.
    pub span: Span,
    /// What may help.
    pub hints: Vec<String>,
}

/// Where errors stand that have no place.
pub(super) const BEGINNING: Span = {
    let first = Position { line: 1, column: 1 };
    Span { start: first, end: first }
};

impl Trouble {
    /// What the service would refuse.
    pub(super) fn error(error: &Diagnostic, span: Span) -> Self {
        Self {
            level: Level::Error,
            code: error.class.to_string(),
            message: error.message.clone(),
            path: error.path.clone(),
            span,
            hints: error.hints.clone(),
        }
    }
}

/// Everything that can be told of a text without a cloud: errors in Heat's order, then what the rules find that are on
/// by default. `around` has the files that the template names, by
/// the names that it uses.
pub fn diagnose(text: &str, catalog: &ResourceTypes, around: &Surroundings) -> Vec<Trouble> {
    let page = match Page::read(text) {
        Ok(page) => page,
        Err(error) => {
            let span = error.span.unwrap_or(BEGINNING);
            return vec![Trouble::error(&error, span)];
        }
    };
    let errors = errors(&page, catalog, around);
    let mut troubles: Vec<Trouble> = errors
        .iter()
        .map(|error| Trouble::error(error, error.span.unwrap_or_else(|| page.span(&error.path))))
        .collect();
    suggest(&page, &mut troubles, catalog, around);
    for finding in lint(&page, catalog, |rule| rule.default) {
        let level = match finding.severity {
            Severity::Warning => Level::Warning,
            Severity::Advice => Level::Advice,
        };
        troubles.push(Trouble {
            level,
            code: finding.rule.to_owned(),
            message: finding.message,
            path: finding.path,
            span: finding.span,
            hints: finding.hint.into_iter().collect(),
        });
    }
    troubles
}

fn errors(page: &Page, catalog: &ResourceTypes, around: &Surroundings) -> Vec<Diagnostic> {
    let sources = Sources {
        template: Arc::new(page.value().clone()),
        environment: Arc::new(around.environment.clone()),
        files: Arc::new(around.files.clone()),
    };
    examine(&sources, catalog).1
}
