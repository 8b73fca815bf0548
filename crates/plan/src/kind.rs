//! The kind of a resource's type: a registered type or a template.

use std::sync::Arc;

use kiln_resource::{Group, NestedStack, PropertySchema, RegisteredType, ResourceType};
use kiln_template::constraint::DataType;
use kiln_template::environment::{Environment, Resolved};
use kiln_template::parameter::ParameterSchema;
use kiln_template::{Definition, Files, Template};
use kiln_value::{Class, Diagnostic, Map, Path, Subject, Value};

use crate::ResourceTypes;

/// The stored implementation of template resources. In Heat they all have the same class: another template is an update
/// of the nested stack, not a replacement.
pub const TEMPLATE: &str = "template";

/// The kind of a resource's type.
#[derive(Clone)]
pub enum Kind {
    /// A registered type.
    Type(Arc<RegisteredType>),
    /// A template that is used as a type.
    Template(Arc<Provider>),
}

/// A template used as a type (docs/heat-behaviour.md §14).
#[derive(Clone, Debug)]
pub struct Provider {
    /// The name of the template in the files.
    pub url: String,
    /// Its type: a property for each parameter, an attribute for each output.
    pub resource_type: ResourceType,
    /// The template.
    pub template: Arc<Template>,
}

impl Kind {
    /// The kind of a resource's type in an environment; `at` is the position of the type in the template.
    pub(crate) fn of(
        definition: &Definition,
        environment: &mut Environment,
        files: &Files,
        catalog: &ResourceTypes,
        at: &Path,
    ) -> Result<Self, Diagnostic> {
        let name = &definition.resource_type;
        let types = &catalog.types;
        let found =
            environment.implementation(&catalog.globals, &Value::from(name), &definition.name).map_err(|error| {
                match types.suggest(name) {
                    Some(near) => error.at(at.clone()).hint(format!("did you mean {near}?")),
                    None => error.at(at.clone()),
                }
            })?;
        match found.resolved {
            Resolved::Template(url) => {
                if let Some(text) = files.get(&url) {
                    Provider::new(&url, name, text).map(|p| p.with_defaults(&environment.parameter_defaults))
                } else if let Some(text) = catalog.files.get(&url) {
                    // The type must not change with the operator's environment.
                    if !found.user {
                        environment.registry.load(&Map::from_iter([(name.clone(), Value::from(&url))]))?;
                    }
                    Provider::new(&url, name, text).map(|p| p.with_defaults(&environment.parameter_defaults))
                } else {
                    let text = format!("Could not fetch remote template \"{url}\": Invalid URL scheme ");
                    let hint = "include the template in \"files\" under this name";
                    Err(Diagnostic::invalid(text).at(at.clone()).hint(hint))
                }
            }
            Resolved::Type(found) => {
                if let Some(entry) = types.get(&found) {
                    Ok(Self::Type(Arc::clone(entry)))
                } else {
                    let text = format!("The Resource Type ({name}) could not be found.");
                    let error = Diagnostic::invalid(text).at(at.clone());
                    Err(error.about(Subject::ResourceType(name.to_owned())))
                }
            }
        }
    }

    /// The type.
    pub fn resource_type(&self) -> &ResourceType {
        match self {
            Self::Type(entry) => &entry.resource_type,
            Self::Template(provider) => &provider.resource_type,
        }
    }

    /// The registered type, if it is one.
    pub fn entry(&self) -> Option<&Arc<RegisteredType>> {
        match self {
            Self::Type(entry) => Some(entry),
            Self::Template(_) => None,
        }
    }

    /// The stored implementation, used to detect that a type name has a new meaning.
    pub fn implementation(&self) -> &str {
        match self {
            Self::Type(entry) => &entry.resource_type.name,
            Self::Template(_) => TEMPLATE,
        }
    }

    /// The description of the nested stack, if it is a registered type.
    pub fn nested_stack(&self) -> Option<&dyn NestedStack> {
        self.entry()?.driver.nested_stack()
    }

    /// The rules of a group, if it is one.
    pub fn group(&self) -> Option<&dyn Group> {
        self.nested_stack()?.group()
    }

    /// Whether the members of the nested stack are in the order of their age ([`Group::members_by_age`]).
    pub fn members_by_age(&self) -> bool {
        self.group().is_some_and(Group::members_by_age)
    }

    /// Whether the resource has a nested stack.
    pub fn is_nested(&self) -> bool {
        self.resource_type().nested
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kind({})", self.resource_type().name)
    }
}

impl Provider {
    /// Reads a template as a type called `name`.
    ///
    /// # Errors
    /// Errors in the text or version of the template.
    pub fn new(url: &str, name: &str, text: &str) -> Result<Self, Diagnostic> {
        let document = kiln_template::source::parse(text, url, usize::MAX).map_err(|error| in_file(error, url))?;
        let template = Template::from_value(document.value).map_err(|error| in_file(error, url))?;
        let mut resource_type = ResourceType::new(name);
        resource_type.nested = true;
        resource_type.open_attributes = true;
        for (name, schema) in template.parameter_schemata().map_err(|error| in_file(error, url))? {
            resource_type.properties.insert(name, property_of(&schema));
        }
        Ok(Self { url: url.to_owned(), resource_type, template: Arc::new(template) })
    }
}

impl Provider {
    /// Parameters with a default in the environment are optional.
    fn with_defaults(mut self, defaults: &Map) -> Kind {
        for (name, property) in &mut self.resource_type.properties {
            property.required &= !defaults.contains_key(name);
        }
        Kind::Template(Arc::new(self))
    }
}

/// Reports an error in a template as an error of the resource that uses it.
fn in_file(mut error: Diagnostic, url: &str) -> Diagnostic {
    error.file = Some(url.to_owned());
    error.class = Class::StackValidationFailed;
    error
}

/// The property for a parameter. The parameter keeps its own default.
fn property_of(parameter: &ParameterSchema) -> PropertySchema {
    let mut property = PropertySchema::new(parameter.typed.data_type);
    property.description = parameter.description.as_ref().map(kiln_value::text::str);
    property.required = parameter.default.is_none();
    property.update_allowed = true;
    property.allow_conversion = matches!(property.kind, DataType::Map | DataType::List);
    property.constraints.clone_from(&parameter.constraints);
    property
}
