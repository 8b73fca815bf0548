//! The sources of a stack as they are read from the store: an engine may begin with those that the request was accepted
//! with, or with the stored ones, and must do the same.

use kiln_plan::Blueprint;
use kiln_stack::load;

use crate::Verdict;

/// Checks that the sources do not change when they are stored.
pub(crate) fn judge(blueprint: &Blueprint) -> Vec<(&'static str, Verdict)> {
    let accepted = blueprint.sources();
    let verdict = match load::sources(&load::texts(accepted)) {
        Err(error) => Some(error.to_string()),
        Ok(stored) if stored.template != accepted.template => Some("another template".to_owned()),
        Ok(stored) if stored.environment != accepted.environment => Some("another environment".to_owned()),
        Ok(stored) if stored.files != accepted.files => Some("other files".to_owned()),
        Ok(_) => None,
    };
    vec![("stored", verdict)]
}
