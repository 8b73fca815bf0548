//! The sources of a nested stack, derived from its parent resource (docs/heat-behaviour.md §14, §15).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{Facts, Nested, StoredDefinition, properties};
use kiln_template::constraint::DataType;
use kiln_template::{Definition, Facade, Files};
use kiln_value::{Class, Diagnostic, Map, Value, text};

use crate::blueprint::{Blueprint, Sources};
use crate::kind::{Kind, Provider};

/// The sources of a nested stack and the data that its parent resource must store.
#[derive(Debug)]
pub struct NestedSources {
    /// The sources.
    pub sources: Sources,
    /// Entries for the driver data of the resource.
    pub data: Map,
    /// The argument of the next call of the driver, when the nested stack has reached these sources ([`Nested::then`]).
    pub then: Option<Value>,
    /// Delay before that.
    pub pause: Duration,
    /// Maximum duration of a create in minutes ([`Nested::timeout_mins`]).
    pub timeout_mins: Option<i64>,
}

/// Adds the definition that a resource shall have to the facts for [`kiln_resource::NestedStack::nested`].
pub fn define(facts: &mut Facts, kind: &Kind, definition: &StoredDefinition) {
    facts.properties.clone_from(&definition.properties);
    let schema = &kind.resource_type().update_policy;
    let given: Map = definition
        .update_policy
        .as_map()
        .into_iter()
        .flatten()
        .filter(|(_, policy)| !policy.is_null())
        .map(|(name, policy)| (name.clone(), policy.clone()))
        .collect();
    // It was valid when it was stored.
    facts.nested.update_policy = properties::resolve(schema, &given).unwrap_or_default();
    facts.nested.update_policy.retain(|name, _| given.contains_key(name));
}

impl Blueprint {
    /// The sources of a resource's nested stack before anything exists; `None` if the resource has no nested stack.
    /// `properties` as in [`Blueprint::provider_sources`].
    ///
    /// # Errors
    /// Errors of the driver and of the child environment.
    pub fn draft_sources(&self, definition: &Definition, properties: &Map) -> Option<Result<Sources, Diagnostic>> {
        let kind = self.kind(&definition.name)?;
        let facts = Facts {
            name: definition.name.clone(),
            resource_type: kind.resource_type().name.clone(),
            properties: properties.clone(),
            ..Facts::default()
        };
        Some(self.nested_sources(definition, &facts)?.map(|nested| nested.sources))
    }

    /// The sources of a resource's nested stack; `None` if the resource has none. The properties in the facts are
    /// resolved, with null for missing values.
    ///
    /// # Errors
    /// Errors of the driver and of the child environment.
    pub fn nested_sources(&self, definition: &Definition, facts: &Facts) -> Option<Result<NestedSources, Diagnostic>> {
        let last = |sources| NestedSources {
            sources,
            data: Map::new(),
            then: None,
            pause: Duration::ZERO,
            timeout_mins: None,
        };
        match self.kind(&definition.name)? {
            Kind::Template(provider) => Some(self.provider_sources(definition, provider, &facts.properties).map(last)),
            Kind::Type(entry) => {
                let nested = entry.driver.nested_stack()?.nested(facts, &self.wanted_paths(&definition.name))?;
                Some(nested.and_then(|mut nested| {
                    let (data, then, pause) = (std::mem::take(&mut nested.data), nested.then.take(), nested.pause);
                    let timeout_mins = nested.timeout_mins;
                    let sources = self.group_sources(definition, nested)?;
                    Ok(NestedSources { sources, data, then, pause, timeout_mins })
                }))
            }
        }
    }

    /// The sources of a template resource's stack; `properties` are resolved, with null for missing values.
    ///
    /// # Errors
    /// `ValueError` for an invalid child environment.
    pub fn provider_sources(
        &self,
        definition: &Definition,
        provider: &Provider,
        properties: &Map,
    ) -> Result<Sources, Diagnostic> {
        let parameters: Map = properties
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let kind = provider.resource_type.properties.get(name).map(|property| property.kind);
                (name.clone(), parameter_value(value, kind))
            })
            .collect();
        // The resource's own entry does not apply inside it. A file with the name of the type may be nested up to the
        // maximum depth.
        let environment = self.sources().environment.child(
            Some(&wrapped(parameters)),
            Some(&definition.resource_type),
            Some(&definition.name),
        )?;
        Ok(Sources {
            template: provider.template.shared(),
            environment: Arc::new(environment),
            files: Arc::clone(&self.sources().files),
        })
    }

    /// The sources of a group's stack.
    ///
    /// # Errors
    /// `ValueError` for an invalid child environment.
    pub fn group_sources(&self, definition: &Definition, nested: Nested) -> Result<Sources, Diagnostic> {
        let parameters = self.bound().parameters();
        let mut given = nested.parameters;
        let mut template = nested.template;
        for name in nested.inherited {
            match parameters.value(name).ok().filter(|value| !value.is_null()) {
                Some(value) => drop(given.insert((*name).to_owned(), value.clone())),
                None => remove_parameter(&mut template, name),
            }
        }
        let mut sections = wrapped(given);
        if !nested.registry.is_empty() {
            sections.insert("resource_registry".to_owned(), nested.registry.into());
        }
        let template = match nested.template_url {
            Some(url) => self.template_at(&url)?,
            None => template,
        };
        let environment = self.sources().environment.child(Some(&sections), None, Some(&definition.name))?;
        let files = if nested.files.is_empty() {
            Arc::clone(&self.sources().files)
        } else {
            let mut files: BTreeMap<String, String> = self.sources().files.0.clone();
            files.extend(nested.files);
            Arc::new(Files(files))
        };
        Ok(Sources { template: Arc::new(template), environment: Arc::new(environment), files })
    }

    /// The template in the file with this URL. An engine never fetches it: the client or the API puts it into the files.
    fn template_at(&self, url: &str) -> Result<Value, Diagnostic> {
        let text = self.sources().files.get(url).ok_or_else(|| {
            let why = "it is not one of the files of the stack";
            Diagnostic::new(Class::ValueError, format!("Could not fetch remote template '{url}': {why}"))
        })?;
        let document = kiln_template::source::parse(text, url, usize::MAX);
        Ok(document.map_err(|error| Diagnostic::new(Class::ValueError, error.to_string()))?.value)
    }

    /// The files and the environment for a stack of another service, as the data in the facts of
    /// [`kiln_resource::TypeRules::takes_sources`]; `parameters` are those of that stack.
    pub fn travelling_sources(&self, parameters: Option<&Map>) -> Result<Map, Diagnostic> {
        let parameters = parameters.cloned().unwrap_or_default();
        let environment = self.sources().environment.child(Some(&wrapped(parameters)), None, None)?;
        let files: Map = self.sources().files.0.iter().map(|(name, text)| (name.clone(), text.into())).collect();
        Ok(Map::from([("files".to_owned(), files.into()), ("environment".to_owned(), environment.to_value())]))
    }

    /// The values of `resource_facade` in a resource's nested stack.
    pub fn facade_of(&self, definition: &Definition) -> Facade {
        let draft = crate::stack_scope::Draft::of(self);
        Facade {
            metadata: definition.metadata.value(&draft).unwrap_or_default(),
            deletion_policy: definition.deletion_policy().as_str().to_owned(),
            update_policy: definition.update_policy.value(&draft).unwrap_or_default(),
        }
    }
}

/// Removes a parameter without a default from a template of HOT, and the entries of maps whose value it is.
fn remove_parameter(template: &mut Value, name: &str) {
    let declared = template.as_map_mut().and_then(|sections| sections.get_mut("parameters")?.as_map_mut());
    let Some(declared) = declared.filter(|all| all.get(name).is_some_and(|one| one.get("default").is_none())) else {
        return;
    };
    declared.shift_remove(name);
    remove_entries(template, &Value::from_iter([("get_param", name)]));
}

fn remove_entries(value: &mut Value, unwanted: &Value) {
    match value {
        Value::Map(entries) => {
            entries.retain(|_, entry| entry != unwanted);
            entries.values_mut().for_each(|entry| remove_entries(entry, unwanted));
        }
        Value::List(items) => items.iter_mut().for_each(|item| remove_entries(item, unwanted)),
        _ => {}
    }
}

/// Wraps parameters into an environment, because a parameter may have the name of a section.
fn wrapped(parameters: Map) -> Map {
    Map::from_iter([("parameters".to_owned(), Value::Map(parameters))])
}

/// Converts a property to a parameter value: lists of maps become `.member.<n>.<key>=<value>` items, and lists are
/// joined with commas.
fn parameter_value(value: &Value, kind: Option<DataType>) -> Value {
    match (value, kind) {
        (Value::List(_), Some(DataType::List)) if let Some(unknown) = value.unknown() => {
            Value::Unknown(unknown.clone())
        }
        (Value::List(items), Some(DataType::List)) => {
            let mut parts = Vec::with_capacity(items.len());
            for (n, item) in items.iter().enumerate() {
                match item {
                    Value::Map(map) => {
                        parts.extend(map.iter().map(|(key, value)| format!(".member.{n}.{key}={}", text::str(value))));
                    }
                    Value::Null => parts.push(String::new()),
                    other => parts.push(text::str(other)),
                }
            }
            parts.join(",").into()
        }
        _ => value.clone(),
    }
}
