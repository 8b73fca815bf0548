//! The input of requests, and the sources of a stack that result from it (docs/heat-behaviour.md §12, §13).

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_plan::Sources;
use kiln_resource::Converge;
use kiln_template::environment::{self, Environment};
use kiln_template::{Files, Template, source};
use kiln_topology::question::Questions;
use kiln_value::{Class, Diagnostic, Map, Path, Spans, Value, text};

use crate::{Error, Hidden, Limits};

/// Maximum timeout of an action in minutes: the limit of the column in Heat's database, four thousand years.
const MAX_TIMEOUT_MINS: i64 = 2_147_483_647;

/// A template and the positions of its parts, if it was a text.
#[derive(Clone, Debug)]
pub struct TemplateText {
    value: Arc<Value>,
    spans: Option<Spans>,
}

impl TemplateText {
    /// Parses a text: YAML or JSON.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, Diagnostic> {
        let document = source::parse(text, source::ROOT, limits.template)?;
        Ok(Self { value: Arc::new(document.value), spans: Some(document.spans) })
    }

    /// Takes a parsed template.
    ///
    /// # Errors
    /// [`Error::Limit`]. Heat measures the size of its Python representation.
    pub fn of_map(template: Map, limits: &Limits) -> Result<Self, Error> {
        let value = Value::Map(template);
        let (size, limit) = (text::str(&value).chars().count(), limits.template);
        if size > limit {
            let text = format!("Template size ({size} bytes) exceeds maximum allowed size ({limit} bytes).");
            return Err(Error::Limit(text));
        }
        Ok(Self { value: Arc::new(value), spans: None })
    }

    /// A stored template.
    pub(crate) fn stored(value: &Arc<Value>) -> Self {
        Self { value: Arc::clone(value), spans: None }
    }

    /// The template.
    pub(crate) fn value(&self) -> &Arc<Value> {
        &self.value
    }

    /// Adds the position in the text to an error.
    pub(crate) fn place(&self, mut error: Diagnostic) -> Diagnostic {
        if let (None, None, Some(spans)) = (error.span, &error.file, &self.spans)
            && error.path != Path::root()
        {
            let found = spans.find(&self.value, &error.path);
            error.span = Some(found.key.unwrap_or(found.value));
        }
        error
    }
}

/// The content of a stack in a request, except for the template.
#[derive(Clone, Debug, Default)]
pub struct StackContent {
    /// The sections of the environment, merged with the parameters of the request (`environment::from_request`).
    pub sections: Map,
    /// Files by name.
    pub files: Files,
    /// The environment files, in the order in which they are merged.
    pub environment_files: Vec<String>,
    /// The parameters that the cloud answers, where they are not given.
    pub questions: Questions,
}

impl StackContent {
    /// The parameters of the request itself.
    pub(crate) fn parameters(&self) -> Map {
        self.sections.get("parameters").and_then(Value::as_map).cloned().unwrap_or_default()
    }

    /// The sources of a new stack.
    pub(crate) fn sources(mut self, template: &Arc<Value>) -> Result<Sources, Error> {
        self.merge(template)?;
        let environment = Environment::from_sections(&self.sections)?;
        Ok(Sources { template: Arc::clone(template), environment: Arc::new(environment), files: Arc::new(self.files) })
    }

    /// The content over that of adopted data. Heat takes only the parameters of the data; its files and types are used
    /// where the request has none, so that the data alone is enough.
    pub(crate) fn over_adopted(mut self, data: &Map) -> Self {
        let adopted = data.get("environment").and_then(Value::as_map);
        for section in ["parameters", "parameter_defaults", "resource_registry"] {
            let Some(Value::Map(below)) = adopted.and_then(|environment| environment.get(section)) else { continue };
            let given = self.sections.entry(section.to_owned()).or_insert_with(|| Map::new().into());
            let Value::Map(given) = given else { continue };
            if section == "parameters" || given.is_empty() {
                let own = std::mem::replace(given, below.clone());
                given.extend(own);
            }
        }
        for (name, text) in data.get("files").and_then(Value::as_map).into_iter().flatten() {
            if let Value::Str(text) = text {
                self.files.0.entry(name.clone()).or_insert_with(|| text.clone());
            }
        }
        self
    }

    /// The content merged over the current sources of a stack (docs/heat-behaviour.md §20.1), or over those of a former
    /// `revision`. Parameters in `clear` are reset.
    pub(crate) fn sources_over(
        mut self,
        current: Sources,
        revision: Option<Sources>,
        template: Option<&Arc<Value>>,
        clear: &BTreeSet<String>,
    ) -> Result<Sources, Error> {
        let hidden_in = |sources: &Sources| {
            let template = Template::from_value(Arc::clone(&sources.template))?;
            Ok::<_, Error>(Hidden::of(&template, &sources.files))
        };
        let mut hidden = hidden_in(&current)?;
        let current = match revision {
            Some(revision) => {
                // Neither the hidden values of then nor of today are shown.
                hidden.extend(hidden_in(&revision)?);
                revision
            }
            None => current,
        };
        let template = template.cloned().unwrap_or(current.template);
        let mut files = Files::clone(&current.files);
        files.0.append(&mut self.files.0);
        self.files = files;
        self.merge(&template)?;
        let shown = Hidden::of(&Template::from_value(Arc::clone(&template))?, &self.files);
        let mut environment = Environment::clone(&current.environment);
        environment.parameters.retain(|name, _| !clear.contains(name));
        for (section, kept) in
            [("parameters", &environment.parameters), ("parameter_defaults", &environment.parameter_defaults)]
        {
            let given = self.sections.get(section).and_then(Value::as_map);
            let is_given = |name: &str| given.is_some_and(|given| given.contains_key(name));
            let mut names = kept.keys().map(String::as_str);
            if let Some(name) = names.find(|name| hidden.has(name) && !shown.has(name) && !is_given(name)) {
                return Err(Error::Revealed(name.to_owned()));
            }
        }
        environment.load(&self.sections)?;
        let declared = Template::from_value(Arc::clone(&template))?.parameter_schemata()?;
        environment.parameters.retain(|name, _| declared.contains_key(name));
        Ok(Sources { template, environment: Arc::new(environment), files: Arc::new(self.files) })
    }

    fn merge(&mut self, template: &Arc<Value>) -> Result<(), Error> {
        let template = Template::from_value(Arc::clone(template))?;
        environment::merge(&self.environment_files, &self.files, &mut self.sections, &template).map_err(invalid)?;
        Ok(())
    }
}

/// An error of environment files as one of the request. Heat returns 500 for a file that is missing, for values that
/// cannot be merged and for strategies that are unknown or differ.
fn invalid(mut error: Diagnostic) -> Diagnostic {
    match error.class {
        Class::KeyError => {
            error.text = format!("The environment file {} is not among the files of the request.", error.text);
        }
        Class::TypeError | Class::ConflictingMergeStrategyForParam | Class::InvalidMergeStrategyForParam => {}
        _ => return error,
    }
    error.class = Class::StackValidationFailed;
    error
}

/// Settings of a stack; `None` means not specified.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Timeout of an action in minutes; from 1.
    pub timeout_mins: Option<i64>,
    /// Whether failures are not rolled back.
    pub disable_rollback: Option<bool>,
    /// Tags.
    pub tags: Option<Vec<String>>,
    /// The resources that an update compares with their objects first.
    pub converge: Option<Converge>,
    /// The version of the stack whose plan was shown ([`crate::Service::version_of`]): an update of another one is refused.
    pub if_version: Option<String>,
    /// Whether the engine checks the request in the cloud before it begins.
    pub preflight: bool,
}

impl Settings {
    /// Rejects a pre-flight of a request that adopts objects: they exist already.
    pub(crate) fn check_preflight(&self, adopts: bool) -> Result<(), Error> {
        if self.preflight && adopts {
            return Err(Error::NotSupported("The pre-flight of a request that adopts objects".to_owned()));
        }
        Ok(())
    }

    /// Rejects timeouts out of range. Heat accepts any number and fails when it stores it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.timeout_mins {
            Some(mins) if !(1..=MAX_TIMEOUT_MINS).contains(&mins) => {
                let range = format!("from 1 to {MAX_TIMEOUT_MINS}");
                Err(Error::Value(format!("timeout_mins {mins} is out of range: it must be {range}")))
            }
            _ => Ok(()),
        }
    }
}
