//! Environments: parameter values, mappings of resource types, hooks, event sinks.
//!
//! Behavior and texts of Heat's `engine/environment.py`, `common/environment_format.py` and
//! `common/environment_util.py`; docs/heat-behaviour.md §12.

mod child;
mod glob;
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

use kiln_value::{Diagnostic, Map, Value, text};

/// The environment of one stack. Its `Debug` names parameters without their values, which may be secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Environment {
    /// What the user gave for the template's parameters.
    pub parameters: Map,
    /// Values in place of the defaults of templates, in nested stacks too.
    pub parameter_defaults: Map,
    /// The parameters whose values are stored encrypted. Never shown.
    pub encrypted_param_names: Vec<Value>,
    /// What resource types stand for, hooks and restricted actions.
    pub registry: Registry,
    /// Where events go besides the database.
    pub event_sinks: Vec<Value>,
}

/// A place that events are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSink {
    /// A Zaqar queue.
    ZaqarQueue {
        /// The queue's name.
        target: String,
        /// Seconds that a message is kept.
        ttl: i64,
    },
}

/// Seconds that Zaqar keeps an event unless the environment says otherwise.
const DEFAULT_TTL: i64 = 3600;

impl Environment {
    /// From sections. A map without a `parameters` section is taken as parameters itself, save for what is a section.
    ///
    /// Errors: `InvalidBreakPointHook`, `InvalidRestrictedAction`; `ValueError` for a section that is not of its type.
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

    /// Adds the sections of another environment on top of this one.
    ///
    /// Errors: as [`Environment::from_sections`].
    pub fn load(&mut self, sections: &Map) -> Result<(), Diagnostic> {
        self.registry.load(&map_of(sections, "resource_registry")?)?;
        self.parameters.extend(map_of(sections, "parameters")?);
        self.parameter_defaults.extend(map_of(sections, "parameter_defaults")?);
        self.event_sinks.extend(list_of(sections, "event_sinks")?);
        self.sinks().map(drop)
    }

    /// What `GET …/environment` shows. Values of hidden parameters are not masked here.
    pub fn to_value(&self) -> Value {
        kiln_value::value!({
            "resource_registry": (self.registry.to_value()),
            "parameters": (self.parameters.clone()),
            "parameter_defaults": (self.parameter_defaults.clone()),
            "event_sinks": (self.event_sinks.clone()),
        })
    }

    /// What is stored: what is shown and the names of encrypted parameters.
    pub fn to_stored(&self) -> Value {
        let mut stored = self.to_value();
        if let Some(sections) = stored.as_map_mut() {
            sections.insert("encrypted_param_names".to_owned(), Value::List(self.encrypted_param_names.clone()));
        }
        stored
    }

    /// The event sinks.
    ///
    /// Errors: `ValueError` for a sink of no known type or without a target.
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
    let invalid = |problem: String| Err(Diagnostic::new("ValueError", problem));
    match (declared.str_at("type"), declared.str_at("target")) {
        (Some("zaqar-queue"), Some(target)) => {
            let ttl = declared.get("ttl").and_then(Value::as_i64).unwrap_or(DEFAULT_TTL);
            Ok(EventSink::ZaqarQueue { target: target.to_owned(), ttl })
        }
        (Some("zaqar-queue"), None) => invalid("An event sink of type zaqar-queue needs a target.".to_owned()),
        _ => {
            let kind = declared.get("type").map(text::repr).unwrap_or_default();
            invalid(format!("Invalid event sink type {kind}, valid types are: zaqar-queue."))
        }
    }
}

fn map_of(sections: &Map, name: &str) -> Result<Map, Diagnostic> {
    match sections.get(name) {
        None => Ok(Map::new()),
        Some(Value::Map(section)) => Ok(section.clone()),
        Some(_) => Err(Diagnostic::new("ValueError", format!("environment section \"{name}\" must be a map"))),
    }
}

fn list_of(sections: &Map, name: &str) -> Result<Vec<Value>, Diagnostic> {
    match sections.get(name) {
        None => Ok(Vec::new()),
        Some(Value::List(section)) => Ok(section.clone()),
        Some(_) => Err(Diagnostic::new("ValueError", format!("environment section \"{name}\" must be a list"))),
    }
}
