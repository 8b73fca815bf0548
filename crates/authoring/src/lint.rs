//! Lint rules: valid templates that probably do not do what the author intends.
//!
//! The table [`RULES`] contains all rules, for the help of the command, `docs/linting.md` and the tests.

mod moved;
mod secret;
mod status;
mod style;
mod twice;
mod unused;

use std::collections::HashSet;
use std::fmt;

use kiln_plan::ResourceTypes;
use kiln_value::{Path, Span};

use crate::Page;
use crate::mention::{Mention, mentions};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A possible improvement.
    Advice,
    /// Probably a mistake, or a feature that will be removed.
    Warning,
}

impl Severity {
    /// Its name: `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rule.
pub struct Rule {
    /// The name used to enable and disable it: `unused-parameter`.
    pub name: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// Whether it is enabled by default.
    pub default: bool,
    /// A description in one line.
    pub summary: &'static str,
    check: fn(&Subject, &mut Findings),
}

macro_rules! rules {
    ($($name:literal $severity:ident $default:ident $check:path: $summary:literal,)*) => {
        &[$(Rule {
            name: $name,
            severity: Severity::$severity,
            default: $default,
            summary: $summary,
            check: $check,
        },)*]
    };
}

const ON: bool = true;
const OFF: bool = false;

/// Every rule.
pub const RULES: &[Rule] = rules![
    "unused-parameter" Warning ON unused::parameters: "A parameter that nothing uses.",
    "unused-condition" Warning ON unused::conditions: "A condition that nothing uses.",
    "unused-mapping" Warning ON unused::mappings: "A CFN mapping that nothing uses.",
    "unused-replacement" Warning ON unused::replacements: "A key of str_replace that does not occur in its template.",
    "unreachable-resource" Advice OFF unused::resources: "A resource without references in either direction.",
    "duplicate-key" Warning ON twice::keys: "A duplicate key in a map: only the last one is used.",
    "redundant-depends-on" Advice ON twice::depends_on: "A depends_on that a reference already implies.",
    "deprecated-type" Warning ON status::types: "A resource type that is deprecated or no longer supported.",
    "unimplemented-type" Warning ON status::unimplemented: "A resource type that Kiln cannot create yet.",
    "deprecated-property" Warning ON status::properties: "A property that is deprecated or no longer supported.",
    "deprecated-attribute" Warning ON status::attributes: "An attribute that is deprecated or no longer supported.",
    "old-version" Advice OFF style::old_version: "A template version that is not the newest.",
    "simpler-function" Advice ON style::simpler: "A call that a simpler function can replace, in this version or a newer one.",
    "misspelt-function" Warning ON style::misspelt: "A map with one key that is nearly the name of a function.",
    "surprising-value" Warning ON style::surprising: "An unquoted yes, no, on, off or octal number, which YAML 1.1 does not read as a string.",
    "moved-resource" Advice ON moved::moves: "A move of a resource to another name, which Heat refuses.",
    "empty-section" Advice ON style::empty: "An empty section, or empty properties of a resource.",
    "missing-description" Advice OFF style::undescribed: "A parameter or an output without a description.",
    "visible-secret" Warning ON secret::visible: "A parameter named like a secret that is not hidden.",
    "plain-secret" Warning ON secret::plain: "A password or key in plain text, as a default or as a property.",
    "secret-output" Warning ON secret::output: "An output that shows a hidden parameter.",
];

/// The rule with this name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The message.
    pub message: String,
    /// Path in the document.
    pub path: Path,
    /// Range in the text.
    pub span: Span,
    /// The recommended change.
    pub hint: Option<String>,
}

/// The input of the rules.
struct Subject<'a> {
    page: &'a Page,
    mentions: Vec<Mention>,
    catalog: &'a ResourceTypes,
}

/// Collects the findings of the rules.
struct Findings {
    rule: &'static Rule,
    found: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, message: impl Into<String>, path: Path, span: Span, hint: Option<String>) {
        let Rule { name, severity, .. } = self.rule;
        self.found.push(Finding { rule: name, severity: *severity, message: message.into(), path, span, hint });
    }
}

/// Runs rules on a template; the findings are in the order of the text.
///
/// `wanted` selects the rules; use `|rule| rule.default` for the default ones.
pub fn lint(page: &Page, catalog: &ResourceTypes, wanted: impl Fn(&Rule) -> bool) -> Vec<Finding> {
    let subject = Subject { page, mentions: mentions(page), catalog };
    let mut found = Vec::new();
    for rule in RULES.iter().filter(|rule| wanted(rule)) {
        let mut findings = Findings { rule, found };
        (rule.check)(&subject, &mut findings);
        found = findings.found;
    }
    found.sort_by_key(|finding| finding.span.start);
    // What several aliases stand for is in the text once.
    let mut seen = HashSet::new();
    found.retain(|finding| seen.insert((finding.rule, finding.span, finding.message.clone())));
    found
}
