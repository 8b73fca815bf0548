//! All that is wrong, and all that could be better.

use std::sync::Arc;

use kiln_plan::{Blueprint, Catalog, Place, Rules, Sources};
use kiln_resource::translation::Answers;
use kiln_template::constraint::AcceptAll;
use kiln_template::environment::Environment;
use kiln_template::{Bound, Files};
use kiln_value::{Diagnostic, Path, Position, Span};

use crate::Page;
use crate::lint::{Severity, lint};

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

/// Everything that can be told of a text without a cloud: errors in Heat's order, then what the rules find that are on
/// by default. `files` are those that the template names, by the names that it uses.
pub fn diagnose(text: &str, catalog: &Catalog, files: &Files) -> Vec<Trouble> {
    let page = match Page::read(text) {
        Ok(page) => page,
        Err(error) => {
            let nowhere = Position { line: 1, column: 1 };
            let span = error.span.unwrap_or(Span { start: nowhere, end: nowhere });
            return vec![trouble(&error, span)];
        }
    };
    let errors = errors(&page, catalog, files);
    let mut troubles: Vec<Trouble> =
        errors.iter().map(|error| trouble(error, error.span.unwrap_or_else(|| page.span(&error.path)))).collect();
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

fn trouble(error: &Diagnostic, span: Span) -> Trouble {
    Trouble {
        level: Level::Error,
        code: error.class.to_string(),
        message: error.message.clone(),
        path: error.path.clone(),
        span,
        hints: error.hints.clone(),
    }
}

fn errors(page: &Page, catalog: &Catalog, files: &Files) -> Vec<Diagnostic> {
    let sources = Sources {
        template: Arc::new(page.value().clone()),
        environment: Arc::new(Environment::default()),
        files: Arc::new(files.clone()),
    };
    let mut errors = match Blueprint::build(sources, catalog, None, Place::default()) {
        Ok(blueprint) => {
            let rules = Rules {
                catalog,
                custom: &AcceptAll,
                answers: &Answers::default(),
                strict: false,
                values: true,
                max_depth: 5,
            };
            blueprint.validate(&rules)
        }
        Err(first) => {
            let mut errors = unbuilt(page, files);
            if !errors.iter().any(|error| error.message == first.message || error.path == first.path) {
                errors.insert(0, first);
            }
            errors
        }
    };
    // A value that only a create must give is not wrong here, wherever it is used.
    let declared = page.section(page.template.words().parameters);
    let missing: Vec<String> = declared.map(|(name, _)| format!("The Parameter ({name}) was not provided.")).collect();
    errors.retain(|error| !missing.iter().any(|text| error.message.contains(text)));
    errors
}

/// What is wrong with a template that cannot be built, as far as it can be told without the types.
fn unbuilt(page: &Page, files: &Files) -> Vec<Diagnostic> {
    let nothing = kiln_value::Map::new();
    match page.template.parameters(None, &nothing, &nothing) {
        Ok(parameters) => {
            let bound = Bound::new(Arc::new(page.template.clone()), Arc::new(parameters), Arc::new(files.clone()));
            bound.validate(&AcceptAll, false)
        }
        Err(error) => vec![error],
    }
}
