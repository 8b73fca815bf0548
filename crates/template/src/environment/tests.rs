use kiln_value::{Class, Value, value};

use super::*;

fn environment(sections: &Value) -> Environment {
    Environment::from_value(sections).unwrap()
}

fn globals() -> Globals {
    Globals::new(["OS::Neutron::Net", "OS::Heat::None", "OS::Nova::Server"].map(str::to_owned)).with_default_aliases()
}

fn found(environment: &Environment, resource_type: &str) -> Resolved {
    environment.lookup(&globals(), resource_type, Some("r")).unwrap().resolved
}

#[test]
fn aliases_of_the_service() {
    let plain = Environment::default();
    assert_eq!(found(&plain, "OS::Quantum::Net"), Resolved::Type("OS::Neutron::Net".to_owned()));
    // Entries of the user do not affect aliases of the service.
    let user = environment(&value!({"resource_registry": {"OS::Neutron::Net": "mine.yaml"}}));
    assert_eq!(found(&user, "OS::Quantum::Net"), Resolved::Type("OS::Neutron::Net".to_owned()));
    assert_eq!(found(&user, "OS::Neutron::Net"), Resolved::Template("mine.yaml".to_owned()));
}

#[test]
fn an_alias_of_itself_is_refused() {
    let user = environment(&value!({"resource_registry": {"A": "B", "B": "A"}}));
    assert_eq!(user.lookup(&globals(), "A", None).unwrap_err().class, Class::StackValidationFailed);
}

#[test]
fn followed_aliases_are_remembered() {
    let mut user = environment(&value!({"resource_registry": {"*": "OS::Heat::None"}}));
    for _ in 0..2 {
        let found = user.resolve(&globals(), "a.yaml", None).unwrap();
        assert_eq!(found.resolved, Resolved::Type("OS::Heat::None".to_owned()));
        let remembered = value!({"resources": {}, "*": "OS::Heat::None", "a.yaml": "OS::Heat::None"});
        assert_eq!(user.registry.to_value(), remembered);
    }
}

#[test]
fn many_paths_to_a_missing_type_are_fast() {
    let both = |i: i32| {
        [(format!("t{i}"), Value::from(format!("t{}", i + 1))), (format!("t{i}*"), format!("t{}", i + 1).into())]
    };
    let user = environment(&value!({"resource_registry": ((10..70).flat_map(both).collect::<Value>())}));
    assert_eq!(user.lookup(&globals(), "t10", None).unwrap_err().class, Class::EntityNotFound);
}

#[test]
fn invalid_types_in_templates() {
    let mut plain = Environment::default();
    for (written, message) in [
        (Value::Null, "Non-empty resource type is required for resource \"r\""),
        ("".into(), "Resource \"r\" has no type"),
        (5.into(), "Resource \"r\" type is not a string"),
        ("No::Such".into(), "The Resource Type (No::Such) could not be found."),
    ] {
        let error = plain.implementation(&globals(), &written, "r").unwrap_err();
        assert_eq!((&error.class, error.text.as_str()), (&Class::StackValidationFailed, message));
    }
}

#[test]
fn an_operators_environment() {
    let mut globals = globals();
    globals.load("resource_registry: {My::Net: OS::Neutron::Net}\nparameter_defaults: {p: 1}\n").unwrap();
    let found = Environment::default().lookup(&globals, "My::Net", None).unwrap();
    assert_eq!((found.resolved, found.user), (Resolved::Type("OS::Neutron::Net".to_owned()), false));
    assert_eq!(globals.parameter_defaults.get("p"), Some(&1.into()));
}

#[test]
fn unknown_event_sinks_are_refused() {
    let sinks = environment(&value!({"event_sinks": [{"type": "zaqar-queue", "target": "q"}]})).sinks().unwrap();
    assert_eq!(sinks, [EventSink::ZaqarQueue { target: "q".to_owned(), ttl: 3600 }]);
    for invalid in [
        value!({"type": "x"}),
        value!({"target": "q"}),
        value!({"type": "zaqar-queue"}),
        value!({"type": "zaqar-queue", "target": ""}),
        value!({"type": "zaqar-queue", "target": "q", "ttl": "soon"}),
        value!({"type": "zaqar-queue", "target": "q", "url": "http://x"}),
    ] {
        assert!(Environment::from_value(&value!({"event_sinks": [(invalid.clone())]})).is_err(), "{invalid:?}");
    }
}

#[test]
fn secrets_are_not_printed() {
    let environment =
        environment(&value!({"parameters": {"password": "hunter2"}, "parameter_defaults": {"p": "hunter2"}}));
    let shown = format!("{environment:?}");
    assert!(shown.contains("password") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn parameters_of_the_request_take_precedence() {
    let given = value!({"a": 2});
    let sections = from_request(Some(&"parameters: {a: 1, b: 1}".into()), given.as_map().unwrap()).unwrap();
    assert_eq!(sections.get("parameters"), Some(&value!({"a": 2, "b": 1})));
    assert!(from_request(Some(&value!({"bogus": {}})), given.as_map().unwrap()).is_err());
}
