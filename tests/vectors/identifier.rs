//! Vectors of the kind `identifier`.

use crate::case::{Case, Outcome};

/// Runs one.
pub(crate) fn run(_case: &Case) -> Outcome {
    Outcome::NotRun
}
