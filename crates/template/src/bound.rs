//! A template with its parameters.

use std::sync::{Arc, OnceLock};

use kiln_value::{Diagnostic, Value};

use crate::condition::Conditions;
use crate::parameter::{Parameter, Parameters};
use crate::version::Release;
use crate::{Files, Template};

/// A template with its parameters and files: conditions can be decided, definitions and outputs read.
///
/// Cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct Bound(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    template: Arc<Template>,
    parameters: Arc<Parameters>,
    files: Arc<Files>,
    conditions: OnceLock<Result<Conditions, Diagnostic>>,
}

impl Bound {
    /// Binds a template to its parameters and files.
    pub fn new(template: Arc<Template>, parameters: Arc<Parameters>, files: Arc<Files>) -> Self {
        Self(Arc::new(Inner { template, parameters, files, conditions: OnceLock::new() }))
    }

    /// The template.
    pub fn template(&self) -> &Arc<Template> {
        &self.0.template
    }

    /// The parameters.
    pub fn parameters(&self) -> &Arc<Parameters> {
        &self.0.parameters
    }

    /// The files.
    pub fn files(&self) -> &Arc<Files> {
        &self.0.files
    }

    /// The template's conditions. They are parsed here and each is decided when it is asked for.
    ///
    /// Fails with `StackValidationFailed` if the section is no map or a definition does not parse.
    pub fn conditions(&self) -> Result<&Conditions, Diagnostic> {
        let conditions = self.0.conditions.get_or_init(|| Conditions::parse(self));
        conditions.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn release(&self) -> Release {
        self.0.template.release()
    }

    /// A parameter's value; `None` if there is no such parameter.
    pub(crate) fn parameter(&self, name: &str) -> Result<Option<&Value>, Diagnostic> {
        self.0.parameters.get(name).map(Parameter::value).transpose()
    }

    pub(crate) fn mappings(&self) -> &Value {
        self.0.template.mappings()
    }

    /// Whether the template has such a resource, be its condition true or false.
    pub fn has_resource(&self, name: &str) -> bool {
        self.0.template.has_resource(name)
    }
}
