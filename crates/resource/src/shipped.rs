//! The definition files that are compiled into the binary.

use std::sync::LazyLock;

use crate::definition::{self, DefinitionError};
use crate::{Finders, ResourceType};

/// A file of `resource-types/`: its path and its text.
struct File {
    path: &'static str,
    text: &'static str,
}

/// All built-in types.
///
/// # Errors
/// All errors in the files; tests ensure that there are none.
pub fn types() -> Result<Vec<ResourceType>, Vec<DefinitionError>> {
    let mut types = Vec::with_capacity(FILES.len());
    let mut errors = Vec::new();
    for file in FILES {
        match definition::parse(file.path, file.text) {
            Ok(resource_type) => types.push(resource_type),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(types) } else { Err(errors) }
}

/// The finders of the built-in types, which are read at the first call.
pub fn finders() -> &'static Finders {
    static FINDERS: LazyLock<Finders> = LazyLock::new(|| Finders::of(&types().unwrap_or_default()));
    &FINDERS
}

/// All files, in order (`build.rs`).
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));
