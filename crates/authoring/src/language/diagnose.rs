//! Diagnostics: errors and lint findings.

use std::sync::Arc;

use kiln_plan::{ResourceTypes, Sources};
use kiln_value::{Diagnostic, Path, Span};

use super::suggest::suggest;
use super::surroundings::Surroundings;
use crate::lint::{Severity, lint};
use crate::offline::{MAX_DEPTH, examine};
use crate::page::{BEGINNING, Page};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The service would refuse the template.
    Error,
    /// A lint warning.
    Warning,
    /// Lint advice.
    Advice,
}

/// A diagnostic at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The severity.
    pub level: Level,
    /// The class of the error or the name of the rule.
    pub code: String,
    /// The message.
    pub message: String,
    /// Path in the document.
    pub path: Path,
    /// Range in the text.
    pub span: Span,
    /// The name that nothing has, if it is about one.
    pub name: Option<String>,
    /// Hints to fix it.
    pub hints: Vec<String>,
}

impl Trouble {
    /// An error of the service.
    pub(super) fn error(error: &Diagnostic, span: Span) -> Self {
        Self {
            level: Level::Error,
            code: error.class.to_string(),
            message: error.to_string(),
            path: error.path.clone(),
            span,
            name: error.unknown_name().map(str::to_owned),
            hints: error.hints.clone(),
        }
    }
}

/// All diagnostics that are possible without a cloud: errors in Heat's order, then findings of the lint rules that are
/// enabled by default. `around` contains the files of the template, by their names in the template.
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
            name: None,
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
    examine(&sources, catalog, MAX_DEPTH).1
}
