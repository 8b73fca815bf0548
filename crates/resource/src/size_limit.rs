//! Limits on the size of what one request makes of a template.
//!
//! Functions, attributes and groups repeat values: without limits, a template of one kilobyte could exhaust the memory of
//! every engine that takes over its stack.

use kiln_value::{Class, Diagnostic};

use crate::StoredDefinition;

/// The class of the errors, and the begin of their texts.
const PREFIX: &str = "Request limit exceeded: ";
/// The largest definition of a resource, in bytes.
const OF_RESOURCE: usize = 4 << 20;
/// The largest total of the values of a stack's outputs, in bytes.
const OF_OUTPUTS: usize = 4 << 20;
/// The largest total of the definitions of a stack with few resources, in bytes …
const OF_STACK: usize = 64 << 20;
/// … and for each resource of a stack with many.
const FOR_EACH: usize = 128 << 10;

/// The largest total of the definitions of a stack with this number of resources, in bytes.
fn of_stack(resources: usize) -> usize {
    resources.saturating_mul(FOR_EACH).max(OF_STACK)
}

/// Refuses a definition that is too large.
///
/// # Errors
/// `RequestLimitExceeded`
pub fn check_resource(definition: &StoredDefinition) -> Result<(), Diagnostic> {
    match definition.size() {
        size if size > OF_RESOURCE => {
            Err(refusal(&format!("The properties and metadata of a resource have {size} bytes"), OF_RESOURCE))
        }
        _ => Ok(()),
    }
}

/// Refuses an output that makes those of its stack too large: `size` is their total.
///
/// # Errors
/// `RequestLimitExceeded`
pub fn check_outputs(size: usize) -> Result<(), Diagnostic> {
    if size > OF_OUTPUTS {
        return Err(refusal(&format!("The outputs of a stack have {size} bytes together"), OF_OUTPUTS));
    }
    Ok(())
}

/// Refuses metadata of a resource that signals have made too large.
///
/// # Errors
/// The text of a `RequestLimitExceeded`, without its beginning.
pub fn check_metadata(size: usize) -> Result<(), String> {
    if size > OF_RESOURCE {
        return Err(format!(
            "The metadata of a resource have {size} bytes with this signal, the maximum is {OF_RESOURCE}."
        ));
    }
    Ok(())
}

/// Refuses a text that a driver puts together from other resources.
///
/// # Errors
/// The text of a `RequestLimitExceeded`.
pub fn check_text(size: usize) -> Result<(), String> {
    if size > OF_RESOURCE {
        return Err(format!("{PREFIX}The parts have more than {OF_RESOURCE} bytes together."));
    }
    Ok(())
}

/// Refuses definitions that are too large together: `size` is their total.
///
/// # Errors
/// `RequestLimitExceeded`
pub fn check_stack(resources: usize, size: usize) -> Result<(), Diagnostic> {
    let limit = of_stack(resources);
    if size > limit {
        let what = format!("The properties and metadata of the resources of a stack have {size} bytes together");
        return Err(refusal(&what, limit));
    }
    Ok(())
}

/// Refuses a group whose members are too large together: each has about `size` bytes.
///
/// # Errors
/// `RequestLimitExceeded`
pub fn check_group(members: usize, size: usize) -> Result<(), Diagnostic> {
    let (size, limit) = (members.saturating_mul(size), of_stack(members));
    if size > limit {
        return Err(refusal(&format!("The definitions of the members of a group have {size} bytes together"), limit));
    }
    Ok(())
}

/// The error for a row that the database cannot store.
pub fn refusal_of(reason: &str) -> Diagnostic {
    Diagnostic::new(Class::RequestLimitExceeded, format!("{PREFIX}{reason}."))
}

fn refusal(what: &str, limit: usize) -> Diagnostic {
    Diagnostic::new(Class::RequestLimitExceeded, format!("{PREFIX}{what}, the maximum is {limit}."))
}
