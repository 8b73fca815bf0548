//! The body of a request that makes, changes, previews or validates a stack (semantics.md §12, §13).

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_plan::Sources;
use kiln_template::environment::{self, Environment};
use kiln_template::{Files, Template, source};
use kiln_value::{Diagnostic, Map, Spans, Value, text};

use crate::error::ApiError;
use crate::http::query;
use crate::options::Limits;

/// A request's body, read step by step: each step fails with Heat's error.
pub(crate) struct Instantiation<'a> {
    body: &'a Map,
    limits: &'a Limits,
}

/// A template and where its parts stand in the text, if it came as one.
#[derive(Clone, Debug)]
pub(crate) struct TemplateText {
    pub(crate) value: Arc<Value>,
    pub(crate) spans: Option<Spans>,
}

/// How a stack is to be made or changed; `None`: not said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) timeout_mins: Option<i64>,
    pub(crate) disable_rollback: Option<bool>,
    pub(crate) tags: Option<Vec<String>>,
    /// Whether what is not given stays as it is.
    pub(crate) existing: bool,
    /// Parameters that do not stay as they are.
    pub(crate) clear_parameters: BTreeSet<String>,
}

impl<'a> Instantiation<'a> {
    pub(crate) fn new(body: &'a Map, limits: &'a Limits) -> Self {
        Self { body, limits }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.body.get(key).filter(|value| !value.is_null())
    }

    /// The arguments of a create or preview.
    pub(crate) fn arguments(&self) -> Result<Arguments, ApiError> {
        if self.body.contains_key("converge") {
            return Err(ApiError::bad_request(
                "converge flag only supported in stack update (or update preview) request.",
            ));
        }
        self.arguments_of_update()
    }

    /// The arguments of an update.
    pub(crate) fn arguments_of_update(&self) -> Result<Arguments, ApiError> {
        let timeout = self.get("timeout_mins").map(|value| query::integer("timeout_mins", value)).transpose()?;
        let tags = match self.get("tags") {
            None => None,
            Some(Value::Str(list)) => Some(query::tags(list)?),
            Some(_) => return Err(ApiError::new("AttributeError", "tags must be a text")),
        };
        let boolean = |name: &str| match self.body.get(name) {
            None => Ok(None),
            Some(value) => match text::str(value).to_ascii_lowercase().as_str() {
                "true" => Ok(Some(true)),
                "false" => Ok(Some(false)),
                _ => Err(ApiError::new("ValueError", format!("{name} must be true or false"))),
            },
        };
        boolean("converge")?;
        let cleared = self.get("clear_parameters").and_then(Value::as_list).unwrap_or_default();
        Ok(Arguments {
            timeout_mins: timeout.filter(|mins| *mins > 0),
            disable_rollback: boolean("disable_rollback")?,
            tags,
            existing: self.get("existing").is_some_and(Value::is_truthy),
            clear_parameters: cleared.iter().map(text::str).collect(),
        })
    }

    /// The name of a new stack.
    pub(crate) fn stack_name(&self) -> Result<&'a Value, ApiError> {
        self.body.get("stack_name").ok_or_else(|| ApiError::bad_request("No stack name specified"))
    }

    /// The template; `None` if none is given.
    pub(crate) fn template(&self) -> Result<Option<TemplateText>, ApiError> {
        if self.body.contains_key("adopt_stack_data") {
            return Err(ApiError::not_supported("Stack Adopt"));
        }
        if self.get("files_container").is_some() {
            return Err(ApiError::not_implemented("Reading files from a container"));
        }
        match self.body.get("template") {
            Some(Value::Map(template)) => {
                let value = Value::Map(template.clone());
                // Heat measures Python's rendering.
                let size = text::str(&value).chars().count();
                if size > self.limits.template {
                    let limit = self.limits.template;
                    return Err(ApiError::limit(&format!(
                        "Template size ({size} bytes) exceeds maximum allowed size ({limit} bytes)."
                    )));
                }
                Ok(Some(TemplateText { value: Arc::new(value), spans: None }))
            }
            Some(Value::Str(text)) => match source::parse(text, source::ROOT, self.limits.template) {
                Ok(document) => Ok(Some(TemplateText { value: Arc::new(document.value), spans: Some(document.spans) })),
                Err(error) => Err(unreadable("Template", error)),
            },
            Some(Value::Null) => Ok(None),
            Some(_) => Err(ApiError::malformed()),
            None => match self.get("template_url") {
                Some(_) => Err(ApiError::bad_request(
                    "Could not retrieve template: reading templates from URLs is switched off",
                )),
                None => Ok(None),
            },
        }
    }

    /// The template, which must be given.
    pub(crate) fn required_template(&self) -> Result<TemplateText, ApiError> {
        self.template()?.ok_or_else(|| ApiError::bad_request("No template specified"))
    }

    /// What the request says besides the template: environment, parameters and files.
    pub(crate) fn extras(&self) -> Result<Extras, ApiError> {
        let environment_files = match self.get("environment_files") {
            None => Vec::new(),
            Some(Value::List(names)) => names.iter().map(text::str).collect(),
            Some(_) => return Err(ApiError::malformed()),
        };
        // With files named, the environment is not looked at: clients send it merged as well, for older services.
        let environment = self.body.get("environment").filter(|_| environment_files.is_empty());
        let none = Map::new();
        let parameters = match self.body.get("parameters") {
            None => &none,
            Some(Value::Map(parameters)) => parameters,
            Some(_) => return Err(ApiError::malformed()),
        };
        let sections =
            environment::from_request(environment, parameters).map_err(|error| unreadable("Environment", error))?;
        let files = match self.get("files") {
            None => Files::default(),
            Some(Value::Map(files)) => {
                Files(files.iter().map(|(name, content)| (name.clone(), file_text(content))).collect())
            }
            Some(_) => return Err(ApiError::malformed()),
        };
        Ok(Extras { sections, files, environment_files })
    }
}

/// The content of a file; clients send what they have parsed already as data.
fn file_text(content: &Value) -> String {
    match content {
        Value::Str(text) => text.clone(),
        other => text::json(other),
    }
}

/// A `ValueError` of a reader is the client's fault and says so; other errors stay what they are.
fn unreadable(what: &str, error: Diagnostic) -> ApiError {
    if error.class != "ValueError" {
        return error.into();
    }
    let wrapped = ApiError::bad_request(format!("{what} not in valid format: {}", error.message));
    ApiError { diagnostics: vec![error], ..wrapped }
}

/// Environment, parameters and files of a request.
#[derive(Clone, Debug)]
pub(crate) struct Extras {
    sections: Map,
    files: Files,
    environment_files: Vec<String>,
}

impl Extras {
    /// The parameters that the request itself gives.
    pub(crate) fn parameters(&self) -> Map {
        self.sections.get("parameters").and_then(Value::as_map).cloned().unwrap_or_default()
    }

    /// Everything that a new stack is made of.
    pub(crate) fn sources(mut self, template: Arc<Value>) -> Result<Sources, ApiError> {
        self.merge(&template)?;
        let environment = Environment::from_sections(&self.sections)?;
        Ok(Sources { template, environment: Arc::new(environment), files: Arc::new(self.files) })
    }

    /// The same on top of what a stack is made of now (semantics.md §20.1).
    pub(crate) fn sources_over(
        mut self,
        current: Sources,
        template: Option<Arc<Value>>,
        clear: &BTreeSet<String>,
    ) -> Result<Sources, ApiError> {
        let template = template.unwrap_or(current.template);
        let mut files = Files::clone(&current.files);
        files.0.append(&mut self.files.0);
        self.files = files;
        self.merge(&template)?;
        let mut environment = Environment::clone(&current.environment);
        environment.parameters.retain(|name, _| !clear.contains(name));
        environment.load(&self.sections)?;
        let declared = Template::from_value(template.clone())?.parameter_schemata()?;
        environment.parameters.retain(|name, _| declared.contains_key(name));
        Ok(Sources { template, environment: Arc::new(environment), files: Arc::new(self.files) })
    }

    fn merge(&mut self, template: &Arc<Value>) -> Result<(), ApiError> {
        let template = Template::from_value(template.clone())?;
        environment::merge(&self.environment_files, &self.files, &mut self.sections, &template)?;
        Ok(())
    }
}
