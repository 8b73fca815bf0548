//! Collects a template, its environments and all referenced files for a request.
//!
//! It behaves like python-heatclient 5.3 (`template_utils`): references are rewritten to absolute URLs, and `files`
//! contains the content under that URL; nested templates are sent as JSON of their rewritten value.

use std::collections::HashMap;

use kiln_value::{Map, Spans, Value, text};

use crate::document;
use crate::source::text_of;
use crate::{InputError, Origin, Place, Source, address};

/// The content of a request to create or update a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// The template; `None` keeps the existing one.
    pub template: Option<Value>,
    /// The origin of the template.
    pub origin: Origin,
    /// The origins of nested templates and environments, the latter in the order in which they were given.
    pub others: Vec<Origin>,
    /// The merged environments; later ones take precedence.
    pub environment: Map,
    /// URLs of the environments in the given order; `files` contains them too, so that the service can merge them
    /// itself.
    pub environment_files: Vec<String>,
    /// Contents by URL.
    pub files: Map,
    /// The container of Swift from which the service reads other files.
    pub container: Option<String>,
    /// The parameters that Kiln's service answers by asking the cloud, where they are not given; Heat ignores them.
    pub questions: Map,
}

/// The ends of the types whose resources have nested stacks.
const NESTING: [&str; 5] = ["ResourceGroup", "AutoScalingGroup", "InstanceGroup", "ResourceChain", "::Stack"];

/// A URL that a document refers to.
struct Reference {
    url: String,
    named_in: String,
}

/// Collects files, each once.
struct Gathering<'a> {
    source: &'a Source,
    files: Map,
    documents: Vec<Origin>,
}

impl<'a> Gathering<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, files: Map::new(), documents: Vec::new() }
    }
}

impl Bundle {
    /// Whether resources may have nested stacks: there are files, or a type of Heat that makes some.
    pub fn may_nest(&self) -> bool {
        let template = self.template.as_ref();
        let resources = template.and_then(|template| template.get("resources").or_else(|| template.get("Resources")));
        let mut resources = resources.and_then(Value::as_map).into_iter().flat_map(Map::values);
        let nests = |resource: &Value| {
            let name = resource.str_at("type").or_else(|| resource.str_at("Type"));
            name.is_some_and(|name| NESTING.iter().any(|end| name.ends_with(end)))
        };
        !self.files.is_empty() || resources.any(nests)
    }

    /// Reads a template (path or URL) and environments, and everything that they refer to.
    pub async fn read(source: &Source, template: Option<&str>, environments: &[String]) -> Result<Self, InputError> {
        let mut gathering = Gathering::new(source);
        let (template, origin) = match template {
            Some(name) => {
                let (template, origin) = gathering.template(name).await?;
                (Some(template), origin)
            }
            None => (None, Origin::default()),
        };
        let mut environment = Value::Null;
        let mut environment_files = Vec::new();
        for name in environments {
            let url = address::url_of(name);
            let entries = gathering.environment(&url).await?;
            merge(&mut environment, entries);
            environment_files.push(url);
        }
        let environment = match environment {
            Value::Map(entries) => entries,
            _ => Map::new(),
        };
        let Gathering { files, documents: others, .. } = gathering;
        Ok(Self { template, origin, others, environment, environment_files, files, ..Self::default() })
    }

    /// Reads only the template. The environments and all files are objects of a container, which the service reads by
    /// their names.
    pub async fn in_container(
        source: &Source,
        template: Option<&str>,
        environments: &[String],
        container: &str,
    ) -> Result<Self, InputError> {
        let (template, origin) = match template {
            Some(name) => {
                let (url, text, template, spans) = Gathering::new(source).document(name).await?;
                (Some(template.clone()), Origin::new(url, text, template, spans))
            }
            None => (None, Origin::default()),
        };
        let (environment_files, container) = (environments.to_vec(), Some(container.to_owned()));
        Ok(Self { template, origin, environment_files, container, ..Self::default() })
    }

    /// Sets a hook (`pre-create`, `pre-update`, `pre-delete`) on resources; `nested/inner` is a resource of a nested
    /// stack.
    pub fn set_hooks(&mut self, resources: &[String], hook: &str) {
        for resource in resources {
            let names = resource.split('/').filter(|name| !name.is_empty());
            let path: Vec<&str> = ["resource_registry", "resources"].into_iter().chain(names).collect();
            set_hook(&mut self.environment, &path, hook);
        }
    }
}

fn set_hook(map: &mut Map, path: &[&str], hook: &str) {
    let Some((first, rest)) = path.split_first() else {
        map.insert("hooks".into(), hook.into());
        return;
    };
    let slot = map.entry((*first).to_owned()).or_default();
    if slot.as_map().is_none() {
        *slot = Map::new().into();
    }
    if let Some(inner) = slot.as_map_mut() {
        set_hook(inner, rest, hook);
    }
}

impl Gathering<'_> {
    async fn template(&mut self, name: &str) -> Result<(Value, Origin), InputError> {
        let (url, text, mut template, spans) = self.document(name).await?;
        let mut found = Vec::new();
        absolute_in_template(&mut template, &url, &address::base_of(&url), &mut found);
        let origin = Origin::new(url, text, template.clone(), spans);
        self.documents.push(origin.clone());
        self.fetch(found).await?;
        // The template is no other document.
        self.documents.remove(0);
        Ok((template, origin))
    }

    /// A template as it is: its URL, text, value and positions.
    async fn document(&self, name: &str) -> Result<(String, String, Value, Spans), InputError> {
        let url = address::url_of(name);
        let content = self.source.read(&url).await;
        let content = content.map_err(|reason| InputError::Unreadable { url: url.clone(), reason })?;
        if content.is_empty() {
            return Err(InputError::EmptyTemplate(url));
        }
        let wrong = |reason: String, place, hint| InputError::Template { url: url.clone(), reason, place, hint };
        let text = String::from_utf8(content);
        let text = text.map_err(|error| wrong(error.utf8_error().to_string(), None, None))?;
        let (template, spans) = document::template(&text).map_err(|error| {
            let place = error.span.map(|span| Place { text: text.clone(), span });
            wrong(error.text.clone(), place, error.hints.first().cloned())
        })?;
        Ok((url, text, template, spans))
    }

    async fn environment(&mut self, url: &str) -> Result<Map, InputError> {
        let content = self.source.read(url).await;
        let content = content.map_err(|reason| InputError::Unreadable { url: url.to_owned(), reason })?;
        let wrong = |reason: String, place, hint| InputError::Environment { url: url.to_owned(), reason, place, hint };
        let content = String::from_utf8(content);
        let content = content.map_err(|error| wrong(error.utf8_error().to_string(), None, None))?;
        let (mut environment, spans) = document::environment(&content).map_err(|error| {
            let place = error.span.map(|span| Place { text: content.clone(), span });
            wrong(error.text.clone(), place, error.hints.first().cloned())
        })?;
        let mut found = Vec::new();
        if let Some(registry) = environment.get_mut("resource_registry").and_then(Value::as_map_mut) {
            absolute_in_registry(registry, url, &mut found).map_err(|reason| wrong(reason, None, None))?;
        }
        self.documents.push(Origin::new(url.to_owned(), content, environment.clone().into(), spans));
        self.fetch(found).await?;
        self.files.insert(url.to_owned(), text::json(&environment.clone().into()).into());
        Ok(environment)
    }

    /// Reads the references, and recursively what they refer to. Each URL is read once, so a template that contains
    /// itself is not a problem here; the service rejects it.
    async fn fetch(&mut self, found: Vec<Reference>) -> Result<(), InputError> {
        // A stack with the next reference on top: references of a document are read before the references after it, so
        // that the first failure is the first one in the text.
        let mut waiting: Vec<Reference> = found.into_iter().rev().collect();
        while let Some(reference) = waiting.pop() {
            if self.files.contains_key(&reference.url) {
                continue;
            }
            let Reference { url, named_in } = reference;
            let content = self.source.read_reference(&url, &named_in).await;
            let content = content.map_err(|reason| {
                let origin = self.documents.iter().find(|origin| origin.url == named_in);
                let place =
                    origin.and_then(|origin| Some(Place { text: origin.text.clone(), span: origin.mention(&url)? }));
                InputError::Reference { url: url.clone(), named_in, reason, place }
            })?;
            let mut content = text_of(content);
            if let Ok((mut template, spans)) = document::template(&content) {
                let mut inner = Vec::new();
                absolute_in_template(&mut template, &url, &address::base_of(&url), &mut inner);
                waiting.extend(inner.into_iter().rev());
                let text = std::mem::replace(&mut content, text::json(&template));
                self.documents.push(Origin::new(url.clone(), text, template, spans));
            }
            self.files.insert(url, content.into());
        }
        Ok(())
    }
}

/// Rewrites `get_file: name`, `type: name.yaml` and `TemplateURL: name` everywhere.
fn absolute_in_template(value: &mut Value, document: &str, base: &str, found: &mut Vec<Reference>) {
    match value {
        Value::List(items) => {
            for item in items {
                absolute_in_template(item, document, base, found);
            }
        }
        Value::Map(entries) => {
            for (key, value) in entries {
                match value {
                    Value::Str(name) if refers(key, name) => rewrite(name, document, base, found),
                    value => absolute_in_template(value, document, base, found),
                }
            }
        }
        _ => {}
    }
}

fn refers(key: &str, name: &str) -> bool {
    match key {
        "get_file" => true,
        // The service reads the URL of a nested stack. It cannot read a file of the client, so that is sent.
        "TemplateURL" => !name.contains("://") || name.starts_with("file:"),
        // As in the reference client: only these two, in lower case.
        "type" => [".yaml", ".template"].iter().any(|ending| name.ends_with(ending)),
        _ => false,
    }
}

fn rewrite(name: &mut String, document: &str, base: &str, found: &mut Vec<Reference>) {
    *name = address::join(base, name);
    found.push(Reference { url: name.clone(), named_in: document.to_owned() });
}

/// Rewrites the template names in a registry: of types, and one level below, of single resources.
fn absolute_in_registry(registry: &mut Map, document: &str, found: &mut Vec<Reference>) -> Result<(), String> {
    let base = match registry.get("base_url") {
        Some(Value::Str(base)) => address::with_slash(base.clone()),
        _ => address::base_of(document),
    };
    absolute_in_mappings(registry, document, &base, found)?;
    if let Some(Value::Map(resources)) = registry.get_mut("resources") {
        for mappings in resources.values_mut().filter_map(Value::as_map_mut) {
            let base = match mappings.get("base_url") {
                Some(Value::Str(own)) => address::with_slash(own.clone()),
                _ => base.clone(),
            };
            absolute_in_mappings(mappings, document, &base, found)?;
        }
    }
    Ok(())
}

fn absolute_in_mappings(map: &mut Map, document: &str, base: &str, found: &mut Vec<Reference>) -> Result<(), String> {
    for (key, value) in map {
        match value {
            _ if matches!(key.as_str(), "base_url" | "hooks" | "restricted_actions") => {}
            Value::Map(_) => {}
            // Types such as `OS::Nova::Server` are not files.
            Value::Str(name) if name.contains("::") => {}
            Value::Str(name) => rewrite(name, document, base, found),
            other => {
                let kind = other.kind().python_name();
                return Err(format!("resource_registry: {key} must be the name of a type or a template, not a {kind}"));
            }
        }
    }
    Ok(())
}

/// Merges an environment into another one. An empty section (null) does not remove a map.
fn merge(old: &mut Value, new: Map) {
    if old.as_map().is_none() {
        *old = Map::new().into();
    }
    let Some(old) = old.as_map_mut() else { return };
    for (key, value) in new {
        match value {
            Value::Map(inner) => merge(old.entry(key).or_default(), inner),
            Value::Null if old.get(&key).is_some_and(|v| v.as_map().is_some()) => {}
            value => _ = old.insert(key, value),
        }
    }
}

/// Parameters from `key=value` arguments: a single argument may contain several, separated by `;`, and a repeated key
/// becomes a list.
pub fn parameters(given: &[String]) -> Result<Map, InputError> {
    match given {
        [one] => collect(one.split(';')),
        many => collect(many.iter().map(String::as_str)),
    }
}

fn collect<'a>(given: impl IntoIterator<Item = &'a str>) -> Result<Map, InputError> {
    let mut parameters = Map::new();
    let mut repeated: HashMap<&str, Vec<Value>> = HashMap::new();
    for text in given {
        let (key, value) = text.split_once('=').ok_or_else(|| InputError::Parameter(text.to_owned()))?;
        let values = repeated.entry(key).or_default();
        values.push(value.into());
        let now = if let [single] = values.as_slice() { single.clone() } else { values.clone().into() };
        parameters.insert(key.to_owned(), now);
    }
    Ok(parameters)
}

/// Parameters with the contents of files, from `key=file` arguments relative to the template.
pub async fn file_parameters(source: &Source, given: &[String], template: Option<&str>) -> Result<Map, InputError> {
    let from = template.map(address::url_of).unwrap_or_default();
    let base = if from.is_empty() { address::with_slash(address::url_of(".")) } else { address::base_of(&from) };
    let mut parameters = Map::new();
    for text in given {
        let (key, file) = text.split_once('=').ok_or_else(|| InputError::Parameter(text.clone()))?;
        let url = address::join(&base, file);
        let content = source.read(&url).await;
        let content = content.map_err(|reason| InputError::Reference {
            url: url.clone(),
            named_in: from.clone(),
            reason,
            place: None,
        })?;
        parameters.insert(key.to_owned(), text_of(content).into());
    }
    Ok(parameters)
}
