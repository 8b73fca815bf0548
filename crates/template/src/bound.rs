//! A template with its parameters.

use std::sync::{Arc, OnceLock};

use kiln_value::{Diagnostic, Value};
use kiln_yaql::Limits;

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
    yaql: Limits,
    has_unknown: bool,
    conditions: OnceLock<Result<Conditions, Diagnostic>>,
}

impl Bound {
    /// Binds a template to its parameters and files.
    pub fn new(template: Arc<Template>, parameters: Arc<Parameters>, files: Arc<Files>) -> Self {
        Self::within(template, parameters, files, Limits::default())
    }

    /// [`Bound::new`] with the operator's limits on YAQL expressions.
    pub fn within(template: Arc<Template>, parameters: Arc<Parameters>, files: Arc<Files>, yaql: Limits) -> Self {
        let has_unknown = parameters.has_unknown();
        Self(Arc::new(Inner { template, parameters, files, yaql, has_unknown, conditions: OnceLock::new() }))
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

    pub(crate) fn yaql(&self) -> &Limits {
        &self.0.yaql
    }

    /// The conditions of the template. They are parsed here; each is evaluated on first use.
    ///
    /// Fails with `StackValidationFailed` if the section is not a map or a definition cannot be parsed.
    pub fn conditions(&self) -> Result<&Conditions, Diagnostic> {
        let conditions = self.0.conditions.get_or_init(|| Conditions::parse(self));
        conditions.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn release(&self) -> Release {
        self.0.template.release()
    }

    /// The value of a parameter; `None` if the parameter does not exist.
    pub(crate) fn parameter(&self, name: &str) -> Result<Option<&Value>, Diagnostic> {
        self.0.parameters.get(name).map(Parameter::value).transpose()
    }

    /// Whether the value of a parameter is unknown or partly unknown.
    pub fn has_unknown(&self) -> bool {
        self.0.has_unknown
    }

    pub(crate) fn mappings(&self) -> &Value {
        self.0.template.mappings()
    }

    /// Whether the template has such a resource, regardless of its condition.
    pub fn has_resource(&self, name: &str) -> bool {
        self.0.template.has_resource(name)
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::{Map, value};

    use super::*;
    use crate::Unbuilt;

    #[test]
    fn yaql_respects_the_operators_limits() {
        let template = value!({
            "heat_template_version": "2021-04-16",
            "outputs": {"o": {"value": {"yaql": {"expression": "range(5)", "data": {}}}}}
        });
        let template = Arc::new(Template::from_value(Arc::new(template)).unwrap());
        let parameters = Arc::new(template.parameters(None, &Map::new(), &Map::new()).unwrap());
        let value = |yaql| {
            let bound = Bound::within(Arc::clone(&template), Arc::clone(&parameters), Arc::default(), yaql);
            let outputs = bound.outputs().unwrap();
            outputs["o"].value.value(&Unbuilt::empty(&bound)).map_err(|problem| problem.to_string())
        };
        assert_eq!(value(Limits::default()), Ok(value!([0, 1, 2, 3, 4])));
        let narrow = Limits { iterations: Some(4), ..Limits::default() };
        assert_eq!(value(narrow), Err("Collection length exceeds 4 elements".to_owned()));
    }
}
