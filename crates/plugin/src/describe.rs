//! Starts plug-ins and asks what they offer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::constraint::{ConstraintCheck, is_taken};
use kiln_resource::{Driver, ResourceType, SchedulerHints, definition};
use kiln_value::{Map, Value, text, value};

use crate::constraint::PluginConstraints;
use crate::driver::{METHODS, PluginDriver};
use crate::plugin::Plugin;
use crate::program::Program;
use crate::scheduler_hints::PluginHints;

/// The version of the protocol.
const PROTOCOL: i64 = 1;

/// Shortest limit of `describe`: it includes the start of the program.
const START: Duration = Duration::from_secs(10);

/// The keys of a definition that only types in files have.
const OF_FILES: [&str; 4] = ["driver", "rest", "nested", "signals"];

/// A resource type of a plug-in.
pub struct Offered {
    /// The type.
    pub resource_type: ResourceType,
    /// Calls the plug-in.
    pub driver: Arc<dyn Driver>,
}

/// What all plug-ins offer.
#[derive(Default)]
pub struct Plugins {
    /// The types.
    pub types: Vec<Offered>,
    /// The custom constraints by name, with what checks them.
    pub constraints: Vec<(String, Arc<dyn ConstraintCheck>)>,
    /// What changes the hints for schedulers, in the order of the programs.
    pub scheduler_hints: Vec<Arc<dyn SchedulerHints>>,
}

/// Starts the programs and asks each what it offers. `limit`: longest time of a call.
///
/// # Errors
/// The first program that cannot be started or does not describe itself correctly, with the reason; a name that two
/// plug-ins offer.
pub async fn start(programs: Vec<Program>, limit: Duration) -> Result<Plugins, String> {
    let mut offers = Offers::default();
    for (line, described) in described(programs, limit, limit.max(START)).await {
        offers.add(described).map_err(|why| format!("{line}: {why}"))?;
    }
    Ok(offers.into_plugins())
}

/// The same for tools that only need the schemas: what those programs offer that describe themselves within `limit`, and
/// for each other program, its command line with the reason.
pub async fn schemas(programs: Vec<Program>, limit: Duration) -> (Plugins, Vec<String>) {
    let mut offers = Offers::default();
    let mut problems = Vec::new();
    for (line, described) in described(programs, limit, limit).await {
        if let Err(why) = offers.add(described) {
            problems.push(format!("{line}: {why}"));
        }
    }
    (offers.into_plugins(), problems)
}

type Described = Result<(Arc<Plugin>, Description), String>;

/// Asks all programs at the same time; the results are in their order, with the command lines.
async fn described(programs: Vec<Program>, limit: Duration, longest: Duration) -> Vec<(String, Described)> {
    let asked: Vec<_> = programs
        .into_iter()
        .map(|program| (program.to_string(), tokio::spawn(describe(program, limit, longest))))
        .collect();
    let mut found = Vec::with_capacity(asked.len());
    for (line, described) in asked {
        found.push((line, described.await.unwrap_or_else(|error| Err(format!("describe: {error}")))));
    }
    found
}

/// What the plug-ins offer so far, each name with that of its plug-in.
#[derive(Default)]
struct Offers {
    names: BTreeSet<String>,
    types: BTreeMap<String, (String, Offered)>,
    constraints: BTreeMap<String, (String, Arc<dyn ConstraintCheck>)>,
    scheduler_hints: Vec<Arc<dyn SchedulerHints>>,
}

impl Offers {
    /// Adds what a plug-in offers, or nothing of it if something is wrong.
    fn add(&mut self, described: Described) -> Result<(), String> {
        let (plugin, description) = described?;
        let name = plugin.name.clone();
        if self.names.contains(&name) {
            return Err(format!("another plug-in is named {name} too"));
        }
        let types = description.types(&plugin)?;
        let mut own = BTreeSet::new();
        for offered in &types {
            let type_name = offered.resource_type.name.as_str();
            if let Some((other, _)) = self.types.get(type_name) {
                return Err(format!("plug-in {other} defines {type_name} too"));
            }
            if !own.insert(type_name) {
                return Err(format!("it defines {type_name} twice"));
            }
        }
        for constraint in &description.constraints {
            if is_taken(constraint) {
                return Err(format!("Kiln has a constraint {constraint}"));
            }
            if let Some((other, _)) = self.constraints.get(constraint) {
                return Err(format!("plug-in {other} defines the constraint {constraint} too"));
            }
        }
        for offered in types {
            let type_name = offered.resource_type.name.clone();
            tracing::info!(plugin = name, resource_type = type_name, "a resource type of a plug-in");
            self.types.insert(type_name, (name.clone(), offered));
        }
        if description.scheduler_hints {
            self.scheduler_hints.push(Arc::new(PluginHints(Arc::clone(&plugin))));
        }
        let check: Arc<dyn ConstraintCheck> = Arc::new(PluginConstraints::new(plugin));
        for constraint in description.constraints {
            self.constraints.insert(constraint, (name.clone(), Arc::clone(&check)));
        }
        self.names.insert(name);
        Ok(())
    }

    fn into_plugins(self) -> Plugins {
        Plugins {
            types: self.types.into_values().map(|(_, offered)| offered).collect(),
            constraints: self.constraints.into_iter().map(|(name, (_, check))| (name, check)).collect(),
            scheduler_hints: self.scheduler_hints,
        }
    }
}

/// What a plug-in says about itself.
struct Description {
    types: Vec<Map>,
    constraints: Vec<String>,
    /// Whether it changes the hints for schedulers.
    scheduler_hints: bool,
}

/// `limit`: of later calls; `longest`: of this one.
async fn describe(program: Program, limit: Duration, longest: Duration) -> Described {
    let plugin = Plugin::new(program.to_string(), program, limit);
    let params = value!({"protocol": PROTOCOL, "kiln": (env!("CARGO_PKG_VERSION"))});
    let result = plugin.call("describe", params, longest).await;
    // The name is that of the program here, which the caller adds.
    let result = result.map_err(|error| {
        let text = error.failure("", "describe").message;
        text.replacen("Plug-in , method describe: ", "describe: ", 1)
    })?;
    let (name, description) = read(&result).map_err(|why| format!("describe: {why}"))?;
    Ok((Arc::new(plugin.named(name)), description))
}

/// The name of a plug-in, and what it offers.
fn read(result: &Value) -> Result<(String, Description), String> {
    const KEYS: [&str; 5] = ["protocol", "name", "resource_types", "constraints", "scheduler_hints"];
    let entries = result.as_map().ok_or("the result is no object")?;
    if let Some(key) = entries.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("the result has an unknown key {key}"));
    }
    match entries.get("protocol").and_then(Value::as_i64) {
        Some(PROTOCOL) => {}
        _ => return Err(format!("protocol must be {PROTOCOL}")),
    }
    let name = entries.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() || name.len() > 64 || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        return Err("name must have 1 to 64 letters, digits, dots, dashes or underscores".to_owned());
    }
    let list = |key: &str| match entries.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::List(items)) => Ok(items.clone()),
        Some(_) => Err(format!("{key} must be a list")),
    };
    let types = list("resource_types")?;
    let types = types.into_iter().map(|item| match item {
        Value::Map(entries) => Ok(entries),
        other => Err(format!("resource_types: {} is no object", text::json(&other))),
    });
    let constraints = list("constraints")?;
    let constraints = constraints.into_iter().map(|item| match item {
        Value::Str(name) if !name.is_empty() => Ok(name),
        other => Err(format!("constraints: {} is no name", text::json(&other))),
    });
    let scheduler_hints = match entries.get("scheduler_hints") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(changes)) => *changes,
        Some(_) => return Err("scheduler_hints must be true or false".to_owned()),
    };
    let description = Description {
        types: types.collect::<Result<_, _>>()?,
        constraints: constraints.collect::<Result<_, _>>()?,
        scheduler_hints,
    };
    Ok((name.to_owned(), description))
}

impl Description {
    fn types(&self, plugin: &Arc<Plugin>) -> Result<Vec<Offered>, String> {
        self.types.iter().map(|entries| offered(plugin, entries.clone())).collect()
    }
}

fn offered(plugin: &Arc<Plugin>, mut entries: Map) -> Result<Offered, String> {
    let name = entries.get("type").and_then(Value::as_str).unwrap_or("a type without a name").to_owned();
    let methods = entries.shift_remove("methods");
    let methods = methods_of(methods.as_ref()).map_err(|why| format!("{name}: {why}"))?;
    if let Some(key) = OF_FILES.iter().find(|key| entries.contains_key(**key)) {
        return Err(format!("{name}: types of plug-ins have no key {key}"));
    }
    let mut resource_type = definition::of_value(&name, &entries.into()).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })?;
    resource_type.signals = methods.contains("signal");
    let needs = |method: &str, why: &str| {
        if methods.contains(method) { Ok(()) } else { Err(format!("{name}: {why}, but it has no method {method}")) }
    };
    if let Some((property, _)) = resource_type.properties.iter().find(|(_, schema)| schema.update_allowed) {
        needs("update", &format!("property {property} can be updated"))?;
    }
    if !resource_type.attributes.is_empty() || resource_type.open_attributes {
        needs("attributes", "the type has attributes")?;
    }
    let driver = Arc::new(PluginDriver::new(Arc::clone(plugin), name, methods));
    Ok(Offered { resource_type, driver })
}

/// The methods that a type lists.
fn methods_of(given: Option<&Value>) -> Result<BTreeSet<String>, String> {
    let listed = given.and_then(Value::as_list).ok_or("methods must be a list of names")?;
    let mut methods = BTreeSet::new();
    for method in listed {
        let known = method.as_str().filter(|name| METHODS.iter().any(|(known, _)| known == name));
        let known = known.ok_or_else(|| format!("methods: Kiln calls no method {}", text::json(method)))?;
        methods.insert(known.to_owned());
    }
    match METHODS.iter().find(|(name, is_needed)| *is_needed && !methods.contains(*name)) {
        Some((name, _)) => Err(format!("methods: every type needs {name}")),
        None => Ok(methods),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(result: &Value) -> Result<Vec<String>, String> {
        let (name, description) = read(result)?;
        let program = Program::parse("/bin/true").unwrap();
        let plugin = Arc::new(Plugin::new(name, program, Duration::from_secs(1)));
        Ok(description.types(&plugin)?.into_iter().map(|offered| offered.resource_type.name).collect())
    }

    fn with(entry: Value) -> Value {
        value!({"protocol": 1, "name": "acme", "resource_types": [entry]})
    }

    #[test]
    fn descriptions_are_read() {
        let entry = value!({
            "type": "Acme::Thing", "summary": "A thing.", "methods": ["create", "delete", "update", "attributes"],
            "properties": {"size": {"type": "integer", "update": true}}, "attributes": {"state": "string"},
        });
        assert_eq!(told(&with(entry)).unwrap(), ["Acme::Thing"]);
        assert_eq!(told(&value!({"protocol": 1, "name": "a"})).unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let minimal = |key: &str, value: Value| {
            let mut entry = value!({"type": "A::B", "summary": "A b.", "methods": ["create", "delete"]});
            entry.as_map_mut().unwrap().insert(key.to_owned(), value);
            with(entry)
        };
        for (result, why) in [
            (value!([]), "the result is no object"),
            (value!({"protocol": 2, "name": "a"}), "protocol must be 1"),
            (
                value!({"protocol": 1, "name": "a b"}),
                "name must have 1 to 64 letters, digits, dots, dashes or underscores",
            ),
            (value!({"protocol": 1, "name": "a", "lifecycle": true}), "the result has an unknown key lifecycle"),
            (
                value!({"protocol": 1, "name": "a", "scheduler_hints": ["OS::Nova::Server"]}),
                "scheduler_hints must be true or false",
            ),
            (minimal("methods", value!(["create"])), "A::B: methods: every type needs delete"),
            (
                minimal("methods", value!(["create", "delete", "adopt"])),
                "A::B: methods: Kiln calls no method \"adopt\"",
            ),
            (minimal("signals", true.into()), "A::B: types of plug-ins have no key signals"),
            (
                minimal("properties", value!({"x": {"type": "string", "update": true}})),
                "A::B: property x can be updated, but it has no method update",
            ),
            (
                minimal("attributes", value!({"x": "string"})),
                "A::B: the type has attributes, but it has no method attributes",
            ),
        ] {
            assert_eq!(told(&result).unwrap_err(), why);
        }
        let odd = minimal("properties", value!({"x": {"type": "strin", "requird": true}}));
        let lines = told(&odd).unwrap_err();
        assert!(lines.contains("A::B: properties.x.requird: unknown key requird; did you mean required?"), "{lines}");
        assert!(lines.contains("A::B: properties.x.type: "), "{lines}");
    }
}
