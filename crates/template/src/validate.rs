//! Validation of a template without knowledge of the resource types.

use kiln_value::{Diagnostic, Path, text};

use crate::Bound;
use crate::constraint::CustomConstraints;

impl Bound {
    /// All errors of the template and its parameters, in the order in which Heat checks them: the first is the one that
    /// Heat reports (`docs/heat-behaviour.md` §4).
    ///
    /// `custom` evaluates custom constraints; `strict` requires values of all parameters. Resources
    /// ([`crate::Definition::validate`] and their properties) and outputs ([`crate::Output::validate`]) are validated
    /// afterwards, when the resource types are known.
    pub fn validate(&self, custom: &dyn CustomConstraints, strict: bool) -> Vec<Diagnostic> {
        let template = self.template();
        let mut errors: Vec<Diagnostic> = template.validate_sections().err().into_iter().collect();
        errors.extend(self.parameters().validate(custom, strict));
        errors.extend(template.parameter_groups().err());
        match self.conditions() {
            Ok(conditions) => errors.extend(conditions.errors(self)),
            Err(error) => errors.push(error),
        }
        let section = Path::root().key(template.words().resources);
        match self.definitions_and_errors() {
            Ok((definitions, wrong)) => {
                errors.extend(wrong);
                for name in definitions.keys().filter(|name| name.contains('/')) {
                    let error = Diagnostic::invalid("Resource name may not contain \"/\"");
                    errors.push(error.at(section.key(name.as_str())));
                }
                for name in definitions.keys().filter(|name| self.parameters().get(name).is_some()) {
                    let message = format!("Duplicate names {{{}}}", text::quote(name));
                    errors.push(Diagnostic::invalid(message).at(section.key(name.as_str())));
                }
            }
            Err(error) => errors.push(error),
        }
        match self.outputs_and_errors() {
            Ok((_, wrong)) => errors.extend(wrong),
            Err(error) => errors.push(error),
        }
        without_repeats(errors)
    }
}

/// The first error of each location: malformed conditions cause errors in every section that uses them, and a resource
/// that failed the check of the sections fails again when it is read.
fn without_repeats(errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(errors.len());
    for error in errors {
        let repeats = |other: &Diagnostic| {
            if error.path.is_root() { other.says(&error) } else { other.path == error.path }
        };
        if !kept.iter().any(repeats) {
            kept.push(error);
        }
    }
    kept
}
