//! Errors that the service accepts: it finds them too late, or shows them in place of a value.

use std::collections::HashMap;

use kiln_plan::{Blueprint, Draft, Kind, Provider, ResourceTypes};
use kiln_resource::{constraint, shipped};
use kiln_template::constraint::Rule;
use kiln_template::hint::nearest;
use kiln_template::{Bound, Facade, ResourceView, Scope};
use kiln_value::{Class, Diagnostic, Map, Path, Value};

use super::newer;

/// Adds all of them to the errors that the service reports.
pub(super) fn add(blueprint: &Blueprint, catalog: &ResourceTypes, errors: &mut Vec<Diagnostic>) {
    add_unknown_constraints(blueprint, catalog, errors);
    errors.extend(undefined_in_conditions(blueprint));
    errors.extend(missing_outputs(blueprint));
    errors.extend(undefined_in_outputs(blueprint));
    errors.extend(newer::errors(blueprint.bound().template()));
}

/// Custom constraints of parameters that do not exist: the service refuses every value. It has refused a default, to which
/// the reason is added.
fn add_unknown_constraints(blueprint: &Blueprint, catalog: &ResourceTypes, errors: &mut Vec<Diagnostic>) {
    let own = &catalog.constraints;
    let is_known = |name: &str| own.get(name).is_some() || own.is_of_cloud(name) || constraint::is_taken(name);
    let words = blueprint.bound().template().words();
    for (parameter, schema) in blueprint.parameters().schemata() {
        for constraint in &schema.constraints {
            let Rule::Custom(name) = &constraint.rule else { continue };
            if is_known(name) {
                continue;
            }
            let text = format!("there is no custom constraint \"{name}\"");
            let near = nearest(name, shipped::finders().names()).map(|near| format!("did you mean {near}?"));
            if let Some(refused) = errors.iter_mut().find(|error| error.parameter() == Some(parameter)) {
                refused.hints.push(near.map_or_else(|| text.clone(), |near| format!("{text}; {near}")));
                continue;
            }
            let at = Path::root().key(words.parameters).key(parameter.as_str()).key("constraints");
            let error = Diagnostic::invalid(format!("Parameter '{parameter}' is invalid: {text}"));
            errors.push(near.into_iter().fold(error.at(at), Diagnostic::hint));
        }
    }
}

/// Conditions that read a parameter which is not defined: the service finds it when a resource uses them.
fn undefined_in_conditions(blueprint: &Blueprint) -> Vec<Diagnostic> {
    let bound = blueprint.bound();
    let Ok(conditions) = bound.conditions() else { return Vec::new() };
    let undefined = conditions.names().filter_map(|name| {
        let error = conditions.holds(bound, name).err()?;
        let at = Path::root().key(bound.template().words().conditions).key(name);
        (error.class == Class::UserParameterMissing).then(|| if error.path.is_root() { error.at(at) } else { error })
    });
    undefined.collect()
}

/// Attributes of nested templates that are none of their outputs.
fn missing_outputs(blueprint: &Blueprint) -> Vec<Diagnostic> {
    let draft = Draft::of(blueprint);
    let nested = blueprint.definitions().keys().filter_map(|name| match blueprint.kind(name)? {
        Kind::Template(provider) => Some((name.as_str(), Nested { inner: draft.resource(name)?, provider })),
        Kind::Type(_) => None,
    });
    let scope = WithOutputs { draft: &draft, nested: nested.collect() };
    if scope.nested.is_empty() {
        return Vec::new();
    }
    let of_resources = blueprint.definitions().values().flat_map(|definition| {
        let known = definition.errors(&draft);
        definition.errors(&scope).into_iter().filter(move |error| !known.contains(error)).collect::<Vec<_>>()
    });
    let of_outputs = blueprint.outputs().values().filter_map(|output| {
        output.validate(&draft).ok()?;
        output.validate(&scope).err()
    });
    of_resources.chain(of_outputs).collect()
}

/// A draft in which nested templates have only the attributes that they define.
struct WithOutputs<'a> {
    draft: &'a Draft<'a>,
    nested: HashMap<&'a str, Nested<'a>>,
}

struct Nested<'a> {
    inner: &'a dyn ResourceView,
    provider: &'a Provider,
}

impl Scope for WithOutputs<'_> {
    fn bound(&self) -> &Bound {
        self.draft.bound()
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        match self.nested.get(name) {
            Some(nested) => Some(nested),
            None => self.draft.resource(name),
        }
    }

    fn facade(&self) -> Option<Facade> {
        self.draft.facade()
    }
}

impl ResourceView for Nested<'_> {
    fn reference_id(&self) -> Value {
        self.inner.reference_id()
    }

    fn action(&self) -> &str {
        self.inner.action()
    }

    fn status(&self) -> &str {
        self.inner.status()
    }

    fn has_attribute(&self, name: &str) -> bool {
        let template = &self.provider.template;
        let outputs = template.as_value().get(template.words().outputs);
        outputs.is_some_and(|outputs| outputs.get(name).is_some()) || name == "show" || name.starts_with("resource.")
    }

    fn attribute(&self, name: &str, path: &[Value]) -> Option<Value> {
        self.inner.attribute(name, path)
    }

    fn attributes(&self) -> Map {
        self.inner.attributes()
    }
}

/// Outputs that read a missing parameter: the service always shows an error instead of their values.
fn undefined_in_outputs(blueprint: &Blueprint) -> Vec<Diagnostic> {
    let draft = Draft::of(blueprint);
    let words = blueprint.bound().template().words();
    let undefined = blueprint.outputs().values().filter_map(|output| {
        let error = output.value.partial(&draft).err()?;
        let at = Path::root().key(words.outputs).key(output.name.as_str()).key(words.value);
        (error.class == Class::UserParameterMissing).then(|| error.at(at))
    });
    undefined.collect()
}
