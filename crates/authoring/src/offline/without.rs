//! Removes invalid parts of a template, to find errors in the others.

use std::sync::Arc;

use kiln_plan::Sources;
use kiln_template::Template;
use kiln_template::environment::Environment;
use kiln_value::{Diagnostic, Map, Segment, Value, value};

/// A parameter that replaces values which are unknown because their source is invalid.
const UNKNOWN: &str = "kiln: not known";

/// A type that accepts any properties and has any attributes.
const ANY: &str = "OS::Heat::None";

/// The sources without the part that an error is about; `None` if that is unknown or already removed.
pub(super) fn without(sources: &Sources, error: &Diagnostic) -> Option<Sources> {
    let read = Template::from_value(Arc::clone(&sources.template)).ok()?;
    let mut rest = Rest {
        is_hot: read.words().parameters == "parameters",
        read,
        template: Value::clone(&sources.template),
        environment: Environment::clone(&sources.environment),
    };
    match error.path.0.as_slice() {
        [Segment::Key(section)] => rest.without_section(section),
        [Segment::Key(section), Segment::Key(name), inner @ ..] => rest.without_entry(section, name, inner),
        _ => None,
    }?;
    let (template, environment) = (Arc::new(rest.template), Arc::new(rest.environment));
    Some(Sources { template, environment, files: Arc::clone(&sources.files) })
}

/// The remaining sources. The methods return `None` if nothing more can be removed.
struct Rest {
    read: Template,
    is_hot: bool,
    template: Value,
    environment: Environment,
}

impl Rest {
    fn without_section(&mut self, section: &str) -> Option<()> {
        let words = self.read.words();
        if section == words.parameters {
            let named = self.named_parameters();
            return replace(self.template.as_map_mut()?.get_mut(section)?, named.into());
        }
        let sections = self.template.as_map_mut()?;
        if section == words.resources {
            // Outputs would refer to missing resources.
            sections.shift_remove(words.outputs);
            return replace(sections.get_mut(section)?, Map::new().into());
        }
        sections.shift_remove(section).map(|_| ())
    }

    fn without_entry(&mut self, section: &str, name: &str, inner: &[Segment]) -> Option<()> {
        let words = self.read.words();
        if section == words.parameters {
            return self.without_parameter(name);
        }
        if section == words.resources {
            return self.without_part(name, inner);
        }
        let entries = self.template.as_map_mut()?.get_mut(section)?.as_map_mut()?;
        if section == words.conditions {
            return replace(entries.get_mut(name)?, true.into());
        }
        entries.shift_remove(name).map(|_| ())
    }

    /// The parameter keeps its type, and has no value.
    fn without_parameter(&mut self, name: &str) -> Option<()> {
        let (key, types) = if self.is_hot {
            ("type", ["string", "number", "comma_delimited_list", "json", "boolean"])
        } else {
            ("Type", ["String", "Number", "CommaDelimitedList", "Json", "Boolean"])
        };
        let words = self.read.words();
        let entry = self.template.as_map_mut()?.get_mut(words.parameters)?.as_map_mut()?.get_mut(name)?;
        let named = entry.str_at(key).filter(|given| types.contains(given)).unwrap_or(types[0]);
        let stand_in = value!({ (key): named });
        let environment = &mut self.environment;
        let given = environment.parameters.shift_remove(name).is_some();
        let had_value = environment.parameter_defaults.shift_remove(name).is_some() || given;
        replace(entry, stand_in).or(had_value.then_some(()))
    }

    /// A resource without the invalid key or property, or with its name only.
    fn without_part(&mut self, name: &str, inner: &[Segment]) -> Option<()> {
        let words = self.read.words();
        let mut needs_unknown = false;
        let unknown = if self.is_hot { value!({"get_param": UNKNOWN}) } else { value!({"Ref": UNKNOWN}) };
        let entry = self.template.as_map_mut()?.get_mut(words.resources)?.as_map_mut()?.get_mut(name)?;
        let known = [&words.resource_keys()[..], &[words.condition, "external_id"]].concat();
        let is_less = entry.as_map_mut().and_then(|fields| match inner {
            [Segment::Key(key), Segment::Key(property), ..] if key == words.properties => {
                needs_unknown = true;
                replace(fields.get_mut(key)?.as_map_mut()?.get_mut(property)?, unknown)
            }
            [Segment::Key(key), ..] if key == words.resource_type => replace(fields.get_mut(key)?, ANY.into()),
            [Segment::Key(key), ..] => fields.shift_remove(key).map(|_| ()),
            // Unknown keys of a resource with a known type.
            _ if fields.contains_key(words.resource_type) => {
                let before = fields.len();
                fields.retain(|key, _| known.contains(&key.as_str()));
                (fields.len() < before).then_some(())
            }
            _ => None,
        });
        if is_less.is_none() {
            return replace(entry, value!({(words.resource_type): ANY}));
        }
        if needs_unknown {
            let parameters =
                self.template.as_map_mut()?.entry(words.parameters.to_owned()).or_insert_with(|| Map::new().into());
            let kind = if self.is_hot { value!({"type": "string"}) } else { value!({"Type": "String"}) };
            parameters.as_map_mut()?.insert(UNKNOWN.to_owned(), kind);
        }
        is_less
    }

    /// Replaces an invalid section with all parameters that the template reads.
    fn named_parameters(&self) -> Map {
        let words = self.read.words();
        let resources = self.template.get(words.resources);
        let kind = if self.is_hot { value!({"type": "string"}) } else { value!({"Type": "String"}) };
        let mut named = Map::new();
        let mut open = vec![&self.template];
        while let Some(value) = open.pop() {
            match value {
                Value::List(items) => open.extend(items),
                Value::Map(map) => {
                    for (key, inner) in map {
                        let name = match (key.as_str(), inner) {
                            ("get_param" | "Ref", Value::Str(name)) => Some(name),
                            ("get_param", Value::List(path)) => match path.first() {
                                Some(Value::Str(name)) => Some(name),
                                _ => None,
                            },
                            _ => None,
                        };
                        let is_resource = |name: &&String| resources.is_some_and(|all| all.get(name).is_some());
                        if let Some(name) = name.filter(|name| !name.contains("::") && !is_resource(name)) {
                            named.insert(name.clone(), kind.clone());
                        }
                        open.push(inner);
                    }
                }
                _ => {}
            }
        }
        named
    }
}

/// Replaces a value; `None` if it is the same already.
fn replace(place: &mut Value, value: Value) -> Option<()> {
    (*place != value).then(|| *place = value)
}
