//! The resource types that exist, and what else stands for a type in every stack.

use kiln_resource::Registry;
use kiln_template::environment::{Environment, Globals};
use kiln_template::{Files, YaqlLimits};
use kiln_value::{Diagnostic, Map};

/// The types with their drivers, the operator's environment and limits. Made once, then only read.
pub struct Catalog {
    /// The types.
    pub types: Registry,
    /// Their names, Heat's aliases, and what the operator's environment maps and presets.
    pub globals: Globals,
    /// The templates that the operator's environment maps types to, by the URL that it names.
    pub files: Files,
    /// How much a YAQL expression may use.
    pub yaql: YaqlLimits,
}

impl Catalog {
    /// The types, with the aliases that Heat ships.
    pub fn new(types: Registry) -> Self {
        let globals = Globals::new(types.names().map(str::to_owned)).with_default_aliases();
        Self { types, globals, files: Files::default(), yaql: YaqlLimits::default() }
    }

    /// The values in place of templates' defaults: a stack's own on top of the operator's.
    pub fn defaults(&self, environment: &Environment) -> Map {
        let mut defaults = self.globals.parameter_defaults.clone();
        defaults.extend(environment.parameter_defaults.clone());
        defaults
    }

    /// Adds an environment file of the operator (`environment_dir`).
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn load(&mut self, text: &str) -> Result<(), Diagnostic> {
        self.globals.load(text)
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Catalog of {} types", self.types.names().count())
    }
}
