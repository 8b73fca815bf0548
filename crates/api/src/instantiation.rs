//! The body of a request that creates, updates, previews or validates a stack: converts JSON to the input of the use
//! cases.

use std::collections::BTreeSet;

use kiln_identity::Caller;
use kiln_resource::Converge;
use kiln_service::{CreateStack, Limits, Service, Settings, StackContent, TemplateText, UpdateStack};
use kiln_template::Files;
use kiln_template::environment;
use kiln_topology::question::{Questions, Wanted};
use kiln_value::{Class, Diagnostic, Map, Path, Span, Value, text};

use crate::error::ApiError;
use crate::http::query;

/// The body of a request, read step by step: each step fails with Heat's error.
pub(crate) struct Instantiation<'a> {
    body: &'a Map,
    limits: &'a Limits,
    /// The text at `template_url`, which was read before.
    read: Option<String>,
    /// The files of the request and of its container.
    files: Files,
}

impl<'a> Instantiation<'a> {
    /// Reads what the body only refers to: the template at a URL, and the files in a container. Without permission for
    /// the call nothing must be read, so this comes after the check of the policy.
    pub(crate) async fn gather(body: &'a Map, service: &'a Service, caller: &Caller) -> Result<Self, ApiError> {
        let limits = &service.options.limits;
        let mut gathered = Self { body, limits, read: None, files: Files::default() };
        let is_inline = ["adopt_stack_data", "template"].iter().any(|key| body.contains_key(*key));
        if let Some(url) = gathered.get("template_url").filter(|_| !is_inline) {
            gathered.read = Some(service.template_at(&text::str(url)).await?);
        }
        gathered.files = gathered.files_of_body()?;
        if let Some(container) = gathered.get("files_container") {
            service.add_container(caller, &text::str(container), &mut gathered.files).await?;
        }
        Ok(gathered)
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.body.get(key).filter(|value| !value.is_null())
    }

    /// A stack to create or preview.
    pub(crate) fn create(&self) -> Result<CreateStack, ApiError> {
        if self.body.contains_key("converge") {
            return Err(ApiError::bad_request(
                "converge flag only supported in stack update (or update preview) request.",
            ));
        }
        let settings = self.settings()?;
        let name = self.body.get("stack_name").ok_or_else(|| ApiError::bad_request("No stack name specified"))?;
        let adopt = self.adopted()?;
        let template = match &adopt {
            Some(data) => self.adopted_template(data)?,
            None => self.required_template()?,
        };
        let content = self.content()?;
        let Value::Str(name) = name else {
            let shown = text::str(name);
            return Err(ApiError::new(
                Class::StackValidationFailed,
                format!("Invalid stack name {shown}, must be a string"),
            ));
        };
        Ok(CreateStack { name: name.clone(), template, content, settings, adopt })
    }

    /// An update of a stack; with `patch`, missing parts do not change.
    pub(crate) fn update(&self, patch: bool) -> Result<UpdateStack, ApiError> {
        let settings = self.settings()?;
        let cleared = self.get("clear_parameters").and_then(Value::as_list).unwrap_or_default();
        let clear_parameters: BTreeSet<String> = cleared.iter().map(text::str).collect();
        let template = if patch { self.template()? } else { Some(self.required_template()?) };
        let revision = self.get("revision").map(text::str);
        if revision.is_some() && !patch {
            return Err(ApiError::bad_request("revision is only supported in requests with PATCH."));
        }
        let existing = patch || self.get("existing").is_some_and(Value::is_truthy);
        Ok(UpdateStack {
            template,
            content: self.content()?,
            settings,
            existing,
            revision,
            clear_parameters,
            ..UpdateStack::default()
        })
    }

    /// An error with the places of wrong values of parameters, which are in the environment and not in the template.
    pub(crate) fn placed(&self, error: impl Into<ApiError>) -> ApiError {
        let mut error = error.into();
        for diagnostic in &mut error.diagnostics {
            let Some(name) = diagnostic.parameter().map(str::to_owned) else { continue };
            let given = self.body.get("parameters").and_then(|given| given.get(&name)).is_some();
            match self.environment_of(&name).filter(|_| !given) {
                Some((file, place)) => (diagnostic.file, diagnostic.span) = (Some(file), place),
                // The place is that of the declaration.
                None if given => diagnostic.span = None,
                None => {}
            }
        }
        error
    }

    /// The environment that gives the value of a parameter, and the place in its text.
    fn environment_of(&self, parameter: &str) -> Option<(String, Option<Span>)> {
        let files = self.get("environment_files").and_then(Value::as_list).unwrap_or_default();
        let texts = files.iter().rev().filter_map(|name| {
            let name = text::str(name);
            let text = self.files.get(&name)?.to_owned();
            Some((name, Value::Str(text)))
        });
        let of_body = self.get("environment").filter(|_| files.is_empty());
        let mut environments: Vec<(String, Value)> = texts.collect();
        environments.extend(of_body.map(|environment| ("environment".to_owned(), environment.clone())));
        ["parameters", "parameter_defaults"].into_iter().find_map(|section| {
            let path = Path::root().key(section).key(parameter);
            environments.iter().find_map(|(name, environment)| match environment {
                Value::Str(text) => {
                    let document = kiln_yaml::parse(text).ok()?;
                    document.value.get(section)?.get(parameter)?;
                    let spans = document.spans.find(&document.value, &path);
                    Some((name.clone(), Some(spans.key.unwrap_or(spans.value))))
                }
                other => other.get(section)?.get(parameter).map(|_| (name.clone(), None)),
            })
        })
    }

    fn settings(&self) -> Result<Settings, ApiError> {
        let timeout = self.get("timeout_mins").map(|value| query::integer("timeout_mins", value)).transpose()?;
        let tags = match self.get("tags") {
            None => None,
            Some(Value::Str(list)) => Some(query::tags(list)?),
            Some(_) => return Err(ApiError::new(Class::AttributeError, "tags must be a text")),
        };
        let boolean = |name: &str| match self.body.get(name) {
            None => Ok(None),
            Some(value) => match text::str(value).to_ascii_lowercase().as_str() {
                "true" => Ok(Some(true)),
                "false" => Ok(Some(false)),
                _ => Err(ApiError::new(Class::ValueError, format!("{name} must be true or false"))),
            },
        };
        // Clients send 0 for no timeout of their own.
        let timeout_mins = timeout.filter(|mins| *mins > 0);
        Ok(Settings {
            timeout_mins,
            disable_rollback: boolean("disable_rollback")?,
            tags,
            converge: self.converge()?,
            if_version: self.get("if_version").map(text::str),
            preflight: boolean("preflight")?.unwrap_or(false),
        })
    }

    /// The resources to compare with their objects: all, none, or those with these paths. Heat knows only all or none.
    fn converge(&self) -> Result<Option<Converge>, ApiError> {
        let Some(given) = self.body.get("converge") else { return Ok(None) };
        let wrong = || ApiError::new(Class::ValueError, "converge must be true, false or a list of paths of resources");
        if given.as_list().is_some() {
            return query::texts(given).map(Converge::only).map(Some).ok_or_else(wrong);
        }
        match text::str(given).to_ascii_lowercase().as_str() {
            "true" => Ok(Some(Converge::all())),
            "false" => Ok(Some(Converge::default())),
            _ => Err(wrong()),
        }
    }

    /// The data to adopt: a JSON or YAML text, or a map.
    fn adopted(&self) -> Result<Option<Map>, ApiError> {
        let parsed = match self.body.get("adopt_stack_data") {
            None => return Ok(None),
            Some(Value::Str(text)) => kiln_yaml::parse(text).map_err(|error| unadoptable(&error.to_string()))?.value,
            Some(other) => other.clone(),
        };
        match parsed {
            Value::Map(data) => Ok(Some(data)),
            other => {
                let text = format!("Unexpected adopt data \"{}\". Adopt data must be a dict.", text::str(&other));
                Err(ApiError::bad_request(text))
            }
        }
    }

    /// The template of adopted data.
    fn adopted_template(&self, data: &Map) -> Result<TemplateText, ApiError> {
        match data.get("template") {
            Some(Value::Map(template)) => Ok(TemplateText::of_map(template.clone(), self.limits)?),
            Some(_) => Err(ApiError::malformed()),
            None => Err(unadoptable("'template'")),
        }
    }

    /// The template; `None` if it is missing.
    fn template(&self) -> Result<Option<TemplateText>, ApiError> {
        if self.body.contains_key("adopt_stack_data") {
            return Err(ApiError::not_supported("Stack Adopt"));
        }
        let text = match self.body.get("template") {
            Some(Value::Map(template)) => return Ok(Some(TemplateText::of_map(template.clone(), self.limits)?)),
            Some(Value::Str(text)) => Some(text),
            Some(Value::Null) => None,
            Some(_) => return Err(ApiError::malformed()),
            None => self.read.as_ref(),
        };
        let parsed = text.map(|text| TemplateText::parse(text, self.limits));
        parsed.transpose().map_err(|error| unreadable("Template", error))
    }

    fn files_of_body(&self) -> Result<Files, ApiError> {
        match self.get("files") {
            None => Ok(Files::default()),
            Some(Value::Map(files)) => {
                Ok(Files(files.iter().map(|(name, content)| (name.clone(), file_text(content))).collect()))
            }
            Some(_) => Err(ApiError::malformed()),
        }
    }

    /// The template, which is required.
    pub(crate) fn required_template(&self) -> Result<TemplateText, ApiError> {
        self.template()?.ok_or_else(|| ApiError::bad_request("No template specified"))
    }

    /// Environment, parameters and files.
    pub(crate) fn content(&self) -> Result<StackContent, ApiError> {
        let environment_files = match self.get("environment_files") {
            None => Vec::new(),
            Some(Value::List(names)) => names.iter().map(text::str).collect(),
            Some(_) => return Err(ApiError::malformed()),
        };
        // If environment files are named, the environment is ignored: clients also send it merged, for older services.
        let environment = self.body.get("environment").filter(|_| environment_files.is_empty());
        let none = Map::new();
        let parameters = match self.body.get("parameters") {
            None => &none,
            Some(Value::Map(parameters)) => parameters,
            Some(_) => return Err(ApiError::malformed()),
        };
        let sections =
            environment::from_request(environment, parameters).map_err(|error| unreadable("Environment", error))?;
        let questions = self.questions()?;
        Ok(StackContent { sections, files: self.files.clone(), environment_files, questions })
    }

    /// The parameters that the cloud answers, where they are not given. Heat ignores them.
    fn questions(&self) -> Result<Questions, ApiError> {
        let asked = match self.get("questions") {
            None => return Ok(Questions::new()),
            Some(asked) => asked.as_map().ok_or_else(ApiError::malformed)?,
        };
        let read = |(parameter, wanted): (&String, &Value)| match Wanted::from_value(wanted) {
            Some(wanted) => Ok((parameter.clone(), wanted)),
            None => Err(ApiError::bad_request(format!("Invalid question for the parameter {parameter}."))),
        };
        asked.iter().map(read).collect()
    }
}

fn unadoptable(why: &str) -> ApiError {
    ApiError::bad_request(format!("Invalid adopt data: {why}"))
}

/// The content of a file; clients send parsed content as data.
fn file_text(content: &Value) -> String {
    match content {
        Value::Str(text) => text.clone(),
        other => text::json(other),
    }
}

/// A `ValueError` of a reader is a client error; other errors do not change.
fn unreadable(what: &str, error: Diagnostic) -> ApiError {
    if error.class != Class::ValueError {
        return error.into();
    }
    let wrapped = ApiError::bad_request(format!("{what} not in valid format: {error}"));
    ApiError { diagnostics: vec![error], ..wrapped }
}
