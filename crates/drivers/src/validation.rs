//! Heat's checks of dependent properties.

use kiln_resource::Facts;
use kiln_value::{Class, Diagnostic};

/// Whether the template specifies a property, even if its value is unknown.
pub(crate) fn is_given(facts: &Facts, name: &str) -> bool {
    !facts.property(name).is_null() || facts.given.iter().any(|given| given == name)
}

/// `StackValidationFailed`.
pub(crate) fn failed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::invalid(message)
}

/// `ResourcePropertyConflict`: only one of the properties may be specified.
pub(crate) fn conflict(names: &[&str]) -> Diagnostic {
    let message = format!("Cannot define the following properties at the same time: {}.", names.join(", "));
    Diagnostic::new(Class::ResourcePropertyConflict, message)
}

/// `PropertyUnspecifiedError`: one of the properties is required.
pub(crate) fn unspecified(names: &[&str]) -> Diagnostic {
    let message = format!("At least one of the following properties must be specified: {}.", names.join(", "));
    Diagnostic::new(Class::PropertyUnspecifiedError, message)
}

/// `ResourcePropertyDependency`: the first property requires the second.
pub(crate) fn dependency(name: &str, needed: &str) -> Diagnostic {
    Diagnostic::new(Class::ResourcePropertyDependency, format!("{name} cannot be specified without {needed}."))
}

/// Fails if both properties have a value.
pub(crate) fn not_both(facts: &Facts, one: &str, other: &str) -> Result<(), Diagnostic> {
    if facts.property(one).is_truthy() && facts.property(other).is_truthy() {
        return Err(conflict(&[one, other]));
    }
    Ok(())
}

/// Fails if neither property is specified.
pub(crate) fn one_of(facts: &Facts, one: &str, other: &str) -> Result<(), Diagnostic> {
    if is_given(facts, one) || is_given(facts, other) { Ok(()) } else { Err(unspecified(&[one, other])) }
}

/// `ResourcePropertyValueDependency`: the first property requires a value of the second.
pub(crate) fn value_dependency(name: &str, other: &str, value: &str) -> Diagnostic {
    let message = format!("{name} property should only be specified for {other} with value {value}.");
    Diagnostic::new(Class::ResourcePropertyValueDependency, message)
}
