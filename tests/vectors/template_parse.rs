//! Vectors of the kind `template_parse`.

use crate::case::{Case, Outcome};

/// Runs one.
pub(crate) fn run(_case: &Case) -> Outcome {
    Outcome::NotRun
}
