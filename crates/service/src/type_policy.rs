//! Checks the resource types of a stack against the policy.
//!
//! The policy is checked for the name in the template and for the type that it is mapped to, in nested stacks too. So
//! an alias, a group or a template resource never provides a type that the policy denies.

use std::collections::{BTreeSet, HashSet};

use kiln_identity::Caller;
use kiln_plan::{Blueprint, Draft, Kind, Nesting};
use kiln_template::environment::{Environment, Resolved};
use kiln_template::{Definition, Files, Template, source};
use kiln_value::{Map, Path, Segment, Value, text};

use crate::{Error, Service};

/// The description of a type that is known only while the stack is being created.
const UNDECIDED: &str = "a resource type that is known only while the stack is created";

/// The parameters of a nested stack whose values are known.
#[derive(Clone)]
enum Known {
    /// All except these.
    AllBut(BTreeSet<String>),
    /// None.
    Nothing,
}

impl Known {
    fn all() -> Self {
        Self::AllBut(BTreeSet::new())
    }

    fn is_all(&self) -> bool {
        matches!(self, Self::AllBut(names) if names.is_empty())
    }

    fn has(&self, parameter: &str) -> bool {
        matches!(self, Self::AllBut(names) if !names.contains(parameter))
    }
}

/// The types in a stack and its nested stacks.
struct Declared<'a> {
    environment: &'a Environment,
    files: &'a Files,
}

/// A traversal of a stack and its nested stacks.
struct Walk<'a> {
    service: &'a Service,
    caller: &'a Caller,
    /// Nested stacks that were already checked, so that equal members are checked once.
    seen: HashSet<String>,
}

impl Service {
    /// Rejects a stack with a type that the caller may not use, at any depth.
    pub(crate) fn allow_types(&self, caller: &Caller, blueprint: &Blueprint) -> Result<(), Error> {
        Walk { service: self, caller, seen: HashSet::new() }.stack(blueprint, &Known::all())
    }
}

impl Walk<'_> {
    fn allow(&self, name: &str) -> Result<(), Error> {
        self.service.allow_type(self.caller, name)
    }

    fn stack(&mut self, blueprint: &Blueprint, known: &Known) -> Result<(), Error> {
        for definition in blueprint.definitions().values() {
            self.allow(&definition.resource_type)?;
            let Some(kind) = blueprint.kind(&definition.name) else { continue };
            if let Kind::Type(entry) = kind {
                self.allow(&entry.resource_type.name)?;
            }
            if kind.is_nested() {
                self.nested(blueprint, definition, known)?;
            }
        }
        // Conditions were evaluated with values that may change: resources that they exclude now may be created later.
        if !known.is_all() {
            let sources = blueprint.sources();
            let scope = Declared { environment: &sources.environment, files: &sources.files };
            self.declared(blueprint.bound().template(), &scope, known, &mut BTreeSet::new())?;
        }
        Ok(())
    }

    fn nested(&mut self, blueprint: &Blueprint, definition: &Definition, known: &Known) -> Result<(), Error> {
        let place = Nesting { facade: Some(blueprint.facade_of(definition)), depth: blueprint.place.depth + 1 };
        if place.depth > self.service.options.limits.nested_depth {
            return Ok(());
        }
        let unknown = blueprint.draft_properties(definition, &Draft::of(blueprint)).map(|(_, unknown)| unknown);
        if unknown.as_ref().is_ok_and(|places| places.iter().any(may_name_member)) {
            return self.declared_resource(blueprint, definition);
        }
        let below = match (&unknown, known.is_all()) {
            (Ok(places), true) => Known::AllBut(places.iter().filter_map(first_key).collect()),
            _ => Known::Nothing,
        };
        let (types, identity) = (&self.service.backends.resource_types, blueprint.identity.clone());
        let built = blueprint
            .shown_sources(definition)
            .and_then(|sources| sources.map(|sources| Blueprint::build(sources, types, identity, place)).transpose());
        match built {
            Ok(Some(nested)) => {
                let sources = nested.sources();
                let environment = text::json(&sources.environment.to_stored());
                let key = format!("{}{environment}{}", text::json(&sources.template), below.is_all());
                if self.seen.insert(key) {
                    // A group passes its members' properties in their template, not as parameters.
                    let is_group = matches!(blueprint.kind(&definition.name), Some(Kind::Type(_)));
                    let below = if is_group && !below.is_all() { Known::Nothing } else { below };
                    self.stack(&nested, &below)?;
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            // Its content is unknown; if it is invalid, the validation reports it.
            Err(_) => self.declared_resource(blueprint, definition),
        }
    }

    /// The types that a resource with a nested stack names, if its properties are not fully known.
    fn declared_resource(&self, blueprint: &Blueprint, definition: &Definition) -> Result<(), Error> {
        let template = blueprint.bound().template();
        let words = template.words();
        let resource = template.as_value().get(words.resources).and_then(|all| all.get(&definition.name));
        let properties = resource.and_then(|resource| resource.get(words.properties));
        let scope = Declared { environment: &blueprint.sources().environment, files: &blueprint.sources().files };
        let (declared, name) = (&definition.resource_type, &definition.name);
        let properties = properties.map(|value| value.as_map().ok_or(value));
        match properties {
            // A function in place of all properties.
            Some(Err(_)) => self.allow_any(),
            Some(Ok(map)) => {
                self.declared_type(declared, name, Some(map), &scope, &Known::Nothing, &mut BTreeSet::new())
            }
            None => self.declared_type(declared, name, None, &scope, &Known::Nothing, &mut BTreeSet::new()),
        }
    }

    /// Every type in a template, regardless of conditions.
    fn declared(
        &self,
        template: &Template,
        scope: &Declared<'_>,
        known: &Known,
        seen: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        let words = template.words();
        let resources = template.as_value().get(words.resources).and_then(Value::as_map);
        for (name, resource) in resources.into_iter().flatten() {
            let Some(declared) = resource.str_at(words.resource_type) else { continue };
            let properties = resource.get(words.properties).and_then(Value::as_map);
            self.declared_type(declared, name, properties, scope, known, seen)?;
        }
        Ok(())
    }

    fn declared_type(
        &self,
        declared: &str,
        resource: &str,
        properties: Option<&Map>,
        scope: &Declared<'_>,
        known: &Known,
        seen: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        self.allow(declared)?;
        let catalog = &self.service.backends.resource_types;
        let mut environment = scope.environment.clone();
        let Ok(found) = environment.implementation(&catalog.globals, &declared.into(), resource) else { return Ok(()) };
        match found.resolved {
            Resolved::Type(name) => {
                self.allow(&name)?;
                let is_group = catalog.types.get(&name).is_some_and(|entry| entry.resource_type.nested);
                for member in properties.filter(|_| is_group).map(members).unwrap_or_default() {
                    match member {
                        Value::Str(kind) => self.declared_type(kind, resource, None, scope, known, seen)?,
                        // A known parameter was already checked with the member itself.
                        other if parameter_of(other).is_some_and(|name| known.has(name)) => {}
                        _ => self.allow_any()?,
                    }
                }
            }
            Resolved::Template(url) => {
                let text = scope.files.get(&url).or_else(|| catalog.files.get(&url));
                if let Some(text) = text.filter(|_| seen.insert(url.clone()))
                    && let Ok(document) = source::parse(text, &url, usize::MAX)
                    && let Ok(template) = Template::from_value(document.value)
                {
                    self.declared(&template, scope, &Known::Nothing, seen)?;
                }
            }
        }
        Ok(())
    }

    /// Rejects a caller who is denied any type.
    fn allow_any(&self) -> Result<(), Error> {
        let mut names = self.service.backends.resource_types.types.names();
        let denied = names.any(|name| !self.service.policy.allows_type(name, self.caller));
        if denied { Err(Error::Forbidden(UNDECIDED.to_owned())) } else { Ok(()) }
    }
}

/// The definitions of members in the properties of a group: `resource_def` or `resource`, or the `resources` of a
/// chain.
fn members(properties: &Map) -> Vec<&Value> {
    let mut found = Vec::new();
    for name in ["resource_def", "resource"] {
        match properties.get(name) {
            // A function in place of the whole definition.
            Some(value @ Value::Map(map)) => found.push(map.get("type").unwrap_or(value)),
            Some(value) => found.push(value),
            None => {}
        }
    }
    match properties.get("resources") {
        Some(Value::List(kinds)) => found.extend(kinds),
        Some(value) => found.push(value),
        None => {}
    }
    found
}

/// The name of the parameter, if a value consists only of a parameter.
fn parameter_of(value: &Value) -> Option<&str> {
    let map = value.as_map().filter(|map| map.len() == 1)?;
    map.get("get_param").or_else(|| map.get("Ref"))?.as_str()
}

fn first_key(path: &Path) -> Option<String> {
    match path.0.first()? {
        Segment::Key(key) => Some(key.clone()),
        Segment::Index(_) => None,
    }
}

/// Whether an unknown value may determine the type of a group's members.
fn may_name_member(place: &Path) -> bool {
    let key = |index: usize| match place.0.get(index) {
        Some(Segment::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    match (key(0), key(1)) {
        (Some("resource_def" | "resource"), second) => second.is_none_or(|second| second == "type"),
        (first, _) => first == Some("resources"),
    }
}
