//! Diagnostics, completion, definition and hover for environments.

mod ask;
mod sheet;

use kiln_plan::ResourceTypes;
use kiln_template::environment::{Environment, Registry, SECTIONS};
use kiln_template::hint::nearest;
use kiln_value::{Class, Diagnostic, Map, Path, Span, Spans, Value, text};

use super::diagnose::{Level, Trouble};
use crate::page::BEGINNING;
use ask::schemata;
pub use ask::{Neighbour, Origin, complete, definition, hover};
pub use sheet::Sheet;

/// The values of `parameter_merge_strategies`.
const STRATEGIES: [&str; 3] = ["overwrite", "merge", "deep_merge"];

/// Keys of maps in a registry that are not types.
const NO_TYPES: [&str; 3] = ["base_url", "hooks", "restricted_actions"];

/// Whether a text is an environment: it has a section that only environments have, or only sections of environments.
pub fn is_environment(text: &str) -> bool {
    let telling = |line: &str| {
        let name = line.split(':').next().unwrap_or_default();
        name != "parameters" && SECTIONS.contains(&name)
    };
    if text.lines().any(telling) {
        return true;
    }
    let Ok(document) = kiln_yaml::parse(text) else { return false };
    let sections = document.value.as_map();
    sections.is_some_and(|map| !map.is_empty() && map.keys().all(|name| SECTIONS.contains(&name.as_str())))
}

/// All diagnostics of an environment that are possible without its template. `exists` returns whether a file of the
/// registry exists; a parameter that no neighbor declares, but one with nearly the same name, is probably misspelled.
pub fn diagnose(
    text: &str,
    catalog: &ResourceTypes,
    exists: &dyn Fn(&str) -> bool,
    neighbours: &[Neighbour],
) -> Vec<Trouble> {
    let document = match kiln_yaml::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let place = error.position.map_or(BEGINNING, |at| Span { start: at, end: at });
            return vec![Trouble::error(&Diagnostic::new(Class::ValueError, error.message.clone()), place)];
        }
    };
    let (root, spans) = (&document.value, &document.spans);
    let mut environment = Environment::default();
    for (name, entry) in root.get("resource_registry").and_then(Value::as_map).into_iter().flatten() {
        // Errors are reported below.
        _ = environment.registry.load(&Map::from_iter([(name.clone(), entry.clone())]));
    }
    let mut judge = Judge { catalog, exists, root, spans, environment, found: Vec::new() };
    match &document.value {
        Value::Null => {}
        Value::Map(sections) => {
            judge.sections(sections);
            judge.parameters(sections, neighbours);
        }
        _ => judge.error(
            &Path::root(),
            &Diagnostic::new(Class::ValueError, "The environment is not a valid YAML mapping data type."),
        ),
    }
    judge.found
}

struct Judge<'a> {
    catalog: &'a ResourceTypes,
    exists: &'a dyn Fn(&str) -> bool,
    root: &'a Value,
    spans: &'a Spans,
    /// The valid part of the registry, for lookups of types.
    environment: Environment,
    found: Vec<Trouble>,
}

impl Judge<'_> {
    fn error(&mut self, at: &Path, error: &Diagnostic) {
        let spans = self.spans.find(self.root, at);
        let trouble = Trouble::error(error, spans.key.unwrap_or(spans.value));
        self.found.push(Trouble { path: at.clone(), ..trouble });
    }

    fn wrong(&mut self, at: &Path, message: String, hint: Option<String>) {
        let error = Diagnostic::new(Class::ValueError, message);
        self.error(at, &hint.into_iter().fold(error, Diagnostic::hint));
    }

    fn sections(&mut self, sections: &Map) {
        for (name, section) in sections {
            let at = Path::root().key(name.as_str());
            if let Err(error) = kiln_template::environment::validate(&Map::from_iter([(name.clone(), section.clone())]))
            {
                let near =
                    nearest(name, SECTIONS).filter(|near| near != name).map(|near| format!("did you mean {near}?"));
                self.error(&at, &near.into_iter().fold(error, Diagnostic::hint));
                continue;
            }
            match (name.as_str(), section) {
                ("resource_registry", Value::Map(registry)) => self.registry(&at, registry, true),
                ("parameter_merge_strategies", Value::Map(strategies)) => self.strategies(&at, strategies),
                ("event_sinks", Value::List(sinks)) => {
                    for (index, sink) in sinks.iter().enumerate() {
                        let one = Environment { event_sinks: vec![sink.clone()], ..Environment::default() };
                        if let Err(error) = one.sinks() {
                            self.error(&at.index(index), &error);
                        }
                    }
                }
                ("encrypted_param_names", Value::List(_)) => {}
                ("encrypted_param_names" | "event_sinks", _) => {
                    self.wrong(&at, format!("environment section \"{name}\" must be a list"), None);
                }
                (_, Value::Map(_)) => {}
                _ => self.wrong(&at, format!("environment section \"{name}\" must be a map"), None),
            }
        }
    }

    fn parameters(&mut self, sections: &Map, neighbours: &[Neighbour]) {
        let declared = schemata(neighbours);
        let names = || declared.iter().map(|(name, _)| name.as_str());
        for section in ["parameters", "parameter_defaults"] {
            let given = sections.get(section).and_then(Value::as_map);
            for name in given.into_iter().flat_map(Map::keys) {
                let Some(near) = nearest(name, names()).filter(|near| near != name) else { continue };
                if names().any(|declared| declared == name) {
                    continue;
                }
                let at = Path::root().key(section).key(name.as_str());
                let message = format!("No template in this directory declares the parameter {name}.");
                self.wrong(&at, message, Some(format!("did you mean {near}?")));
                // It may belong to a template elsewhere.
                if let Some(trouble) = self.found.last_mut() {
                    trouble.level = Level::Warning;
                }
            }
        }
    }

    fn strategies(&mut self, at: &Path, strategies: &Map) {
        for (name, strategy) in strategies {
            if !strategy.as_str().is_some_and(|word| STRATEGIES.contains(&word)) {
                let message = format!("{} is not a merge strategy", text::repr(strategy));
                let near = strategy.as_str().and_then(|word| nearest(word, STRATEGIES));
                let hint = match near {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("Valid strategies: {}.", STRATEGIES.join(", ")),
                };
                self.wrong(&at.key(name.as_str()), message, Some(hint));
            }
        }
    }

    /// The entries of the registry, or those below `resources` for one resource. With `here`, names of files are
    /// relative to the environment.
    fn registry(&mut self, at: &Path, entries: &Map, here: bool) {
        let here = here && !entries.contains_key("base_url");
        for (name, entry) in entries {
            let at = at.key(name.as_str());
            match entry {
                Value::Map(below) => self.registry(&at, below, here),
                // Each entry is loaded separately, so that one error does not hide others.
                entry => match Registry::default().load(&Map::from_iter([(name.clone(), entry.clone())])) {
                    Err(error) => self.error(&at, &error),
                    Ok(()) if NO_TYPES.contains(&name.as_str()) => {}
                    Ok(()) => self.mapping(&at, entry.as_str().unwrap_or_default(), here),
                },
            }
        }
    }

    /// The mapping of a type: another type, types by a pattern, or a template.
    fn mapping(&mut self, at: &Path, target: &str, here: bool) {
        if target.is_empty() || target.ends_with('*') || target.contains("://") {
            return;
        }
        if !target.contains("::") {
            if here && !(self.exists)(target) {
                self.wrong(at, format!("The file {target} does not exist."), None);
            }
            return;
        }
        let Err(error) = self.environment.implementation(&self.catalog.globals, &target.into(), "") else { return };
        let near = self.catalog.types.suggest(target).map(|near| format!("did you mean {near}?"));
        self.error(at, &near.into_iter().fold(error, Diagnostic::hint));
        // The service may have additional types.
        if let Some(trouble) = self.found.last_mut() {
            trouble.level = Level::Warning;
        }
    }
}
