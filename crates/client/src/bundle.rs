//! A template, its environments and everything they name, gathered into what a request carries.
//!
//! Behaviour of python-heatclient 5.3 (`template_utils`): references are rewritten to absolute URLs, and what stands
//! there travels in `files` under that URL; nested templates as the JSON of their own rewritten value.

use std::collections::HashMap;

use kiln_value::{Map, Value, text};

use crate::source::text_of;
use crate::{InputError, Origin, Source, address, document};

/// What is sent to make or change a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// The template; `None` keeps the existing one.
    pub template: Option<Value>,
    /// Where the template came from.
    pub origin: Origin,
    /// The environments, merged, the last counts most.
    pub environment: Map,
    /// URLs of the environments in the order given; each is in `files` too, so that the service can merge them itself.
    pub environment_files: Vec<String>,
    /// Contents by URL.
    pub files: Map,
}

/// A URL that was found in a document.
struct Reference {
    url: String,
    named_in: String,
}

/// Gathers files, each once.
struct Gathering<'a> {
    source: &'a Source,
    files: Map,
}

impl Bundle {
    /// Reads a template (path or URL) and environments, and all that they refer to.
    pub async fn read(source: &Source, template: Option<&str>, environments: &[String]) -> Result<Self, InputError> {
        let mut gathering = Gathering { source, files: Map::new() };
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
        Ok(Self { template, origin, environment, environment_files, files: gathering.files })
    }

    /// Sets a hook (`pre-create`, `pre-update`, `pre-delete`) on resources; `nested/inner` names one of a nested stack.
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
        let url = address::url_of(name);
        let content = self.source.read(&url).await;
        let content = content.map_err(|reason| InputError::Unreadable { url: url.clone(), reason })?;
        if content.is_empty() {
            return Err(InputError::EmptyTemplate(url));
        }
        let wrong = |reason| InputError::Template { url: url.clone(), reason };
        let text = String::from_utf8(content).map_err(|error| wrong(error.utf8_error().to_string()))?;
        let (mut template, spans) = document::template(&text).map_err(wrong)?;
        let mut found = Vec::new();
        absolute_in_template(&mut template, &url, &address::base_of(&url), &mut found);
        self.fetch(found).await?;
        Ok((template, Origin { url, text, spans }))
    }

    async fn environment(&mut self, url: &str) -> Result<Map, InputError> {
        let content = self.source.read(url).await;
        let content = content.map_err(|reason| InputError::Unreadable { url: url.to_owned(), reason })?;
        let wrong = |reason| InputError::Environment { url: url.to_owned(), reason };
        let content = String::from_utf8(content).map_err(|error| wrong(error.utf8_error().to_string()))?;
        let mut environment = document::environment(&content).map_err(wrong)?;
        let mut found = Vec::new();
        if let Some(registry) = environment.get_mut("resource_registry").and_then(Value::as_map_mut) {
            absolute_in_registry(registry, url, &mut found).map_err(wrong)?;
        }
        self.fetch(found).await?;
        self.files.insert(url.to_owned(), text::json(&environment.clone().into()).into());
        Ok(environment)
    }

    /// Reads what was found, and what that refers to, until all is there. A template that contains itself ends here
    /// like any other: each URL is read once; to refuse it is the service's part.
    async fn fetch(&mut self, found: Vec<Reference>) -> Result<(), InputError> {
        // The next stands last: each is read before what stands behind it, so that the first that fails is the first
        // in the text.
        let mut waiting: Vec<Reference> = found.into_iter().rev().collect();
        while let Some(reference) = waiting.pop() {
            if self.files.contains_key(&reference.url) {
                continue;
            }
            let Reference { url, named_in } = reference;
            let content = self.source.read_reference(&url, &named_in).await;
            let content = content.map_err(|reason| InputError::Reference {
                url: url.clone(),
                named_in: named_in.clone(),
                reason,
            })?;
            let mut content = text_of(content);
            if let Ok((mut template, _)) = document::template(&content) {
                let mut inner = Vec::new();
                absolute_in_template(&mut template, &url, &address::base_of(&url), &mut inner);
                waiting.extend(inner.into_iter().rev());
                content = text::json(&template);
            }
            self.files.insert(url, content.into());
        }
        Ok(())
    }
}

/// Rewrites `get_file: name` and `type: name.yaml` wherever they stand.
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
        // As the reference client asks: only these two, in lower case.
        "type" => [".yaml", ".template"].iter().any(|ending| name.ends_with(ending)),
        _ => false,
    }
}

fn rewrite(name: &mut String, document: &str, base: &str, found: &mut Vec<Reference>) {
    *name = address::join(base, name);
    found.push(Reference { url: name.clone(), named_in: document.to_owned() });
}

/// Rewrites the template names of a registry: those of types, and those of single resources one level down.
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
            // Types such as `OS::Nova::Server` are no files.
            Value::Str(name) if name.contains("::") => {}
            Value::Str(name) => rewrite(name, document, base, found),
            other => {
                let kind = other.kind().python_name();
                return Err(format!("resource_registry: {key} must name a type or a template, not a {kind}"));
            }
        }
    }
    Ok(())
}

/// Lays one environment over another. An empty section (null) does not wipe out a map.
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

/// Parameters from `key=value` texts: a lone text may hold several with `;` between, and a key given more than
/// once becomes a list.
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

/// Parameters whose values are the contents of files, from `key=file` texts relative to the template.
pub async fn file_parameters(source: &Source, given: &[String], template: Option<&str>) -> Result<Map, InputError> {
    let from = template.map(address::url_of).unwrap_or_default();
    let base = if from.is_empty() { address::with_slash(address::url_of(".")) } else { address::base_of(&from) };
    let mut parameters = Map::new();
    for text in given {
        let (key, file) = text.split_once('=').ok_or_else(|| InputError::Parameter(text.clone()))?;
        let url = address::join(&base, file);
        let content = source.read(&url).await;
        let content =
            content.map_err(|reason| InputError::Reference { url: url.clone(), named_in: from.clone(), reason })?;
        parameters.insert(key.to_owned(), text_of(content).into());
    }
    Ok(parameters)
}
