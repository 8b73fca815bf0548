//! Vectors of the kind `structured_config`.

use crate::case::{Case, Outcome};

/// Runs one.
pub(crate) fn run(_case: &Case) -> Outcome {
    Outcome::NotRun
}
