//! Checks that a template matches the type that it replaces (docs/heat-behaviour.md §14).

use std::borrow::Cow;

use kiln_resource::ResourceType;
use kiln_template::constraint::DataType;
use kiln_template::environment::{Environment, Resolved};
use kiln_template::{Definition, Template};
use kiln_value::{Diagnostic, Value};

use crate::ResourceTypes;
use crate::blueprint::Sources;
use crate::kind::Provider;

/// The interface of a type: of the registry, or of another template that replaces the type.
struct Facade<'a> {
    resource_type: Cow<'a, ResourceType>,
    attributes: Vec<String>,
}

impl<'a> Facade<'a> {
    /// The type that a template replaces; `None` if there is no other type with its name.
    fn of(
        definition: &Definition,
        provider: &Provider,
        sources: &'a Sources,
        catalog: &'a ResourceTypes,
    ) -> Option<Self> {
        let name = &definition.resource_type;
        if let Some(entry) = catalog.types.get(name) {
            let attributes = entry.resource_type.attributes.keys().filter(|name| *name != "show").cloned().collect();
            return Some(Self { resource_type: Cow::Borrowed(&entry.resource_type), attributes });
        }
        // An entry for a single resource replaces the general one, and the user's entry that of the operator.
        let operators = Environment::default();
        let urls = [&*sources.environment, &operators].into_iter().filter_map(|environment| {
            match environment.lookup(&catalog.globals, name, None).ok()?.resolved {
                Resolved::Template(url) if url != provider.url => Some(url),
                _ => None,
            }
        });
        let mut templates = urls.filter_map(|url| {
            let text = sources.files.get(&url).or_else(|| catalog.files.get(&url))?;
            Provider::new(&url, name, text).ok()
        });
        let facade = templates.next()?;
        let attributes = outputs(&facade.template);
        Some(Self { resource_type: Cow::Owned(facade.resource_type), attributes })
    }
}

/// The names of the outputs of a template.
fn outputs(template: &Template) -> Vec<String> {
    let outputs = template.as_value().get(template.words().outputs).and_then(Value::as_map);
    outputs.map(|outputs| outputs.keys().cloned().collect()).unwrap_or_default()
}

/// The first difference between the template and the type that it replaces.
pub(crate) fn error(
    definition: &Definition,
    provider: &Provider,
    sources: &Sources,
    catalog: &ResourceTypes,
) -> Option<Diagnostic> {
    let Facade { resource_type: facade, attributes } = Facade::of(definition, provider, sources, catalog)?;
    let fail = |text: String| Some(Diagnostic::invalid(text));
    for (name, wanted) in &facade.properties {
        match provider.resource_type.properties.get(name) {
            None if wanted.required => {
                return fail(format!("Required property {name} for facade {} missing in provider", facade.name));
            }
            Some(given) if !fits(wanted.kind, given.kind) => {
                return fail(format!(
                    "Property {name} type mismatch between facade {} ({}) and provider ({})",
                    facade.name,
                    wanted.kind.property_name(),
                    given.kind.property_name(),
                ));
            }
            _ => {}
        }
    }
    for (name, property) in &provider.resource_type.properties {
        if property.required && !facade.properties.contains_key(name) {
            return fail(format!("Provider requires property {name} unknown in facade {}", facade.name));
        }
    }
    let outputs = outputs(&provider.template);
    let missing = attributes.iter().find(|name| !outputs.contains(name))?;
    fail(format!("Attribute {missing} for facade {} missing in provider", facade.name))
}

fn fits(wanted: DataType, given: DataType) -> bool {
    wanted == given || (wanted == DataType::Integer && given == DataType::Number) || wanted == DataType::Any
}
