//! The files and the environment of a template.

use kiln_template::Files;
use kiln_template::environment::Environment;

/// The files and the environment of a template.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The contents of files, by their names in the template and the environment.
    pub files: Files,
    /// Mappings of types to other types, or to templates among the files.
    pub environment: Environment,
}

impl From<Files> for Surroundings {
    fn from(files: Files) -> Self {
        Self { files, environment: Environment::default() }
    }
}
