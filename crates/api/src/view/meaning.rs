//! Names that mean other objects than at the last change of a resource, in plans and comparisons.

use kiln_stack::meaning::NewMeaning;
use kiln_value::{Value, value};

/// The names in the properties of a resource.
pub(crate) fn names(meanings: &[NewMeaning]) -> Value {
    let name = |one: &NewMeaning| {
        value!({
            "property": (&one.property), "name": (&one.name), "kept": (&one.kept), "current": (&one.current),
        })
    };
    meanings.iter().map(name).collect()
}
