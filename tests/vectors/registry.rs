//! Mappings of resource types, hooks, child environments.

use kiln_template::environment::{Environment, Globals, Resolved};
use kiln_value::{Map, Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::error;

/// The resource types in these vectors.
const TYPES: [&str; 5] =
    ["OS::Nova::Server", "OS::Neutron::Net", "OS::Heat::None", "OS::Heat::TestResource", "AWS::EC2::Instance"];

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let mut actual = Map::new();
    let mut set = |key: &str, value: Value| _ = actual.insert(key.to_owned(), value);
    match Environment::from_value(case.input("environment")) {
        Err(problem) => set("environment_error", error(&problem)),
        Ok(mut environment) => {
            set("lookups", list(case, "lookups").iter().map(|pair| lookup(&mut environment, pair)).collect());
            if case.input("hooks").is_truthy() {
                set("hooks", list(case, "hooks").iter().map(|pair| hook(&environment, pair)).collect());
            }
            if case.input("restricted").is_truthy() {
                let restricted = list(case, "restricted").iter().map(|name| {
                    let actions = environment.registry.restricted_actions(name.as_str().unwrap_or_default());
                    Value::List(vec![name.clone(), actions.into_iter().collect()])
                });
                set("restricted_actions", restricted.collect());
            }
            let child = case.input("child");
            if !child.is_null() {
                let given = child.get("params").and_then(Value::as_map);
                match environment.child(given, None, child.str_at("resource_name")) {
                    Ok(child) => set("child_environment", child.to_value()),
                    Err(problem) => set("child_error", error(&problem)),
                }
            }
            if case.input("dump").is_truthy() {
                set("user_environment", environment.to_value());
            }
        }
    }
    case.judge(&Value::Map(actual))
}

fn list<'a>(case: &'a Case, key: &str) -> &'a [Value] {
    case.input(key).as_list().unwrap_or_default()
}

fn pair(value: &Value) -> (&str, &str) {
    let text = |i| value.at(i).and_then(Value::as_str).unwrap_or_default();
    (text(0), text(1))
}

fn lookup(environment: &mut Environment, wanted: &Value) -> Value {
    let globals = Globals::new(TYPES.map(str::to_owned));
    let (resource_type, name) = pair(wanted);
    let mut shown = value!({"type": resource_type, "resource_name": name});
    let found = match environment.resolve(&globals, resource_type, Some(name)) {
        Err(problem) => value!({"error": (error(&problem))}),
        Ok(found) => match found.resolved {
            Resolved::Type(name) => {
                value!({"kind": "class", "implementation_type": name, "user_resource": (found.user)})
            }
            Resolved::Template(name) => value!({"kind": "template", "template": name, "user_resource": (found.user)}),
        },
    };
    if let (Some(shown), Value::Map(found)) = (shown.as_map_mut(), found) {
        shown.extend(found);
    }
    shown
}

fn hook(environment: &Environment, wanted: &Value) -> Value {
    let (name, hook) = pair(wanted);
    value!([name, hook, (environment.registry.has_hook(name, hook))])
}
