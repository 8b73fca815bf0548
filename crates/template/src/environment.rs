//! Environments: parameter values, mappings of resource types, hooks and event sinks.
//!
//! Behavior and messages of Heat's `engine/environment.py`, `common/environment_format.py` and
//! `common/environment_util.py`; see docs/heat-behaviour.md §12.

mod child;
mod global;
mod lookup;
mod merge;
mod registry;
mod sections;
#[cfg(test)]
mod tests;

pub use global::Globals;
pub use lookup::{Found, Resolved};
pub use merge::merge;
pub use registry::{HOOKS, RESTRICTED_ACTIONS, Registry};
pub use sections::{SECTIONS, fill, from_request, parse, validate};

use std::fmt;

use kiln_value::{Class, Diagnostic, Map, Value, text};

/// The environment of one stack. `Debug` omits the values of parameters, which may be secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Environment {
    /// The user's values of the template's parameters.
    pub parameters: Map,
    /// Replace the defaults of templates, also in nested stacks.
    pub parameter_defaults: Map,
    /// The parameters whose values are stored encrypted. Never visible to clients.
    pub encrypted_param_names: Vec<Value>,
    /// Mappings of resource types, hooks and restricted actions.
    pub registry: Registry,
    /// Where events are sent in addition to the database.
    pub event_sinks: Vec<Value>,
}

/// A destination of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSink {
    /// A Zaqar queue.
    ZaqarQueue {
        /// The name of the queue.
        target: String,
        /// Lifetime of a message in seconds.
        ttl: i64,
    },
}

/// Default lifetime of an event in Zaqar, in seconds.
const DEFAULT_TTL: i64 = 3600;

impl Environment {
    /// Creates an environment from sections. In a map without a `parameters` section, all keys that are not sections
    /// are parameters.
    ///
    /// Errors: `InvalidBreakPointHook`, `InvalidRestrictedAction`; `ValueError` for a section of the wrong type.
    pub fn from_sections(sections: &Map) -> Result<Self, Diagnostic> {
        const NO_PARAMETERS: [&str; 4] =
            ["parameter_defaults", "encrypted_param_names", "event_sinks", "resource_registry"];
        let mut environment = Self {
            parameters: if sections.contains_key("parameters") {
                map_of(sections, "parameters")?
            } else {
                let flat = sections.iter().filter(|(key, _)| !NO_PARAMETERS.contains(&key.as_str()));
                flat.map(|(key, value)| (key.clone(), value.clone())).collect()
            },
            parameter_defaults: map_of(sections, "parameter_defaults")?,
            encrypted_param_names: list_of(sections, "encrypted_param_names")?,
            registry: Registry::default(),
            event_sinks: list_of(sections, "event_sinks")?,
        };
        environment.registry.load(&map_of(sections, "resource_registry")?)?;
        environment.sinks()?;
        Ok(environment)
    }

    /// Adds the sections of another environment, which take precedence.
    ///
    /// Errors: as [`Environment::from_sections`].
    pub fn load(&mut self, sections: &Map) -> Result<(), Diagnostic> {
        self.registry.load(&map_of(sections, "resource_registry")?)?;
        self.parameters.extend(map_of(sections, "parameters")?);
        self.parameter_defaults.extend(map_of(sections, "parameter_defaults")?);
        self.event_sinks.extend(list_of(sections, "event_sinks")?);
        self.sinks().map(drop)
    }

    /// The response of `GET …/environment`. Values of hidden parameters are not masked here.
    pub fn to_value(&self) -> Value {
        kiln_value::value!({
            "resource_registry": (self.registry.to_value()),
            "parameters": (self.parameters.clone()),
            "parameter_defaults": (self.parameter_defaults.clone()),
            "event_sinks": (self.event_sinks.clone()),
        })
    }

    /// The stored form: the response and the names of encrypted parameters.
    pub fn to_stored(&self) -> Value {
        let mut stored = self.to_value();
        if let Some(sections) = stored.as_map_mut() {
            sections.insert("encrypted_param_names".to_owned(), Value::List(self.encrypted_param_names.clone()));
        }
        stored
    }

    /// The event sinks.
    ///
    /// Errors: `StackValidationFailed` for a sink of an unknown type, with unknown keys or without a target.
    pub fn sinks(&self) -> Result<Vec<EventSink>, Diagnostic> {
        self.event_sinks.iter().map(sink).collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("parameters", &self.parameters.keys())
            .field("parameter_defaults", &self.parameter_defaults.keys())
            .field("encrypted_param_names", &self.encrypted_param_names)
            .field("registry", &self.registry)
            .field("event_sinks", &self.event_sinks)
            .finish()
    }
}

fn sink(declared: &Value) -> Result<EventSink, Diagnostic> {
    let invalid = |problem: String| Err(Diagnostic::invalid(problem));
    if declared.str_at("type") != Some("zaqar-queue") {
        let kind = declared.get("type").map(text::repr).unwrap_or_default();
        return invalid(format!("Invalid event sink type {kind}, valid types are: zaqar-queue."));
    }
    let known = |key: &&String| !matches!(key.as_str(), "type" | "target" | "ttl");
    if let Some(key) = declared.as_map().and_then(|sink| sink.keys().find(known)) {
        return invalid(format!("An event sink of type zaqar-queue has no {key}."));
    }
    let target = declared.str_at("target").filter(|target| (1..=64).contains(&target.chars().count()));
    let Some(target) = target else {
        return invalid(
            "An event sink of type zaqar-queue needs a target: the name of a queue, up to 64 characters.".to_owned(),
        );
    };
    let ttl = match declared.get("ttl") {
        None | Some(Value::Null) => DEFAULT_TTL,
        Some(ttl) => match ttl.as_i64().filter(|ttl| *ttl > 0) {
            Some(ttl) => ttl,
            None => {
                return invalid(format!(
                    "The ttl of an event sink must be a number of seconds, not {}.",
                    text::repr(ttl)
                ));
            }
        },
    };
    Ok(EventSink::ZaqarQueue { target: target.to_owned(), ttl })
}

fn map_of(sections: &Map, name: &str) -> Result<Map, Diagnostic> {
    match sections.get(name) {
        None => Ok(Map::new()),
        Some(Value::Map(section)) => Ok(section.clone()),
        Some(_) => Err(Diagnostic::new(Class::ValueError, format!("environment section \"{name}\" must be a map"))),
    }
}

fn list_of(sections: &Map, name: &str) -> Result<Vec<Value>, Diagnostic> {
    match sections.get(name) {
        None => Ok(Vec::new()),
        Some(Value::List(section)) => Ok(section.clone()),
        Some(_) => Err(Diagnostic::new(Class::ValueError, format!("environment section \"{name}\" must be a list"))),
    }
}
