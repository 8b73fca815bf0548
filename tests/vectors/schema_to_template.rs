//! Vectors of the kind `schema_to_template`.

use crate::case::{Case, Outcome};

/// Runs one.
pub(crate) fn run(_case: &Case) -> Outcome {
    Outcome::NotRun
}
