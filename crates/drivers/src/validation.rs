//! Heat's checks of properties that depend on each other.

use kiln_resource::Facts;
use kiln_value::Diagnostic;

/// Whether the template gives a property, though its value may not be known yet.
pub(crate) fn is_given(facts: &Facts, name: &str) -> bool {
    !facts.property(name).is_null() || facts.given.iter().any(|given| given == name)
}

/// `StackValidationFailed`.
pub(crate) fn failed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new("StackValidationFailed", message)
}

/// `ResourcePropertyConflict`: only one of the properties may be given.
pub(crate) fn conflict(names: &[&str]) -> Diagnostic {
    let message = format!("Cannot define the following properties at the same time: {}.", names.join(", "));
    Diagnostic::new("ResourcePropertyConflict", message)
}

/// `PropertyUnspecifiedError`: one of the properties must be given.
pub(crate) fn unspecified(names: &[&str]) -> Diagnostic {
    let message = format!("At least one of the following properties must be specified: {}.", names.join(", "));
    Diagnostic::new("PropertyUnspecifiedError", message)
}

/// `ResourcePropertyDependency`: the first property needs the second.
pub(crate) fn dependency(name: &str, needed: &str) -> Diagnostic {
    Diagnostic::new("ResourcePropertyDependency", format!("{name} cannot be specified without {needed}."))
}

/// Fails if both properties have a value.
pub(crate) fn not_both(facts: &Facts, one: &str, other: &str) -> Result<(), Diagnostic> {
    if facts.property(one).is_truthy() && facts.property(other).is_truthy() {
        return Err(conflict(&[one, other]));
    }
    Ok(())
}

/// Fails if neither property is given.
pub(crate) fn one_of(facts: &Facts, one: &str, other: &str) -> Result<(), Diagnostic> {
    if is_given(facts, one) || is_given(facts, other) { Ok(()) } else { Err(unspecified(&[one, other])) }
}
