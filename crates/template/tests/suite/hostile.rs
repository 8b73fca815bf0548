//! Invalid parameters, environments and constraints result in errors, without panics and in limited time.

use std::collections::BTreeMap;

use kiln_template::constraint::{AcceptAll, Constraint, DataType, check_all};
use kiln_template::environment::{self, Environment, Globals};
use kiln_template::parameter::{Dialect, HotEdition, Parameter, ParameterSchema};
use kiln_template::{Files, Template, source};
use kiln_value::{Map, Value, text, value};
use proptest::prelude::*;
use proptest::sample::select;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            proptest::collection::vec((word(), inner), 0..4).prop_map(Value::from_iter),
        ]
    })
}

/// Words with a meaning in some place.
fn word() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "type",
            "default",
            "constraints",
            "range",
            "length",
            "min",
            "max",
            "modulo",
            "step",
            "offset",
            "allowed_values",
            "allowed_pattern",
            "custom_constraint",
            "description",
            "hidden",
            "immutable",
            "tags",
            "string",
            "number",
            "json",
            "comma_delimited_list",
            "boolean",
            "parameters",
            "parameter_defaults",
            "resource_registry",
            "resources",
            "hooks",
            "restricted_actions",
            "pre-create",
            "update",
            "event_sinks",
            "encrypted_param_names",
            "parameter_merge_strategies",
            "merge",
            "deep_merge",
            "overwrite",
            "A",
            "B*",
            "*",
            "a.yaml",
            "OS::Nova::Server",
            "OS::Nova::*",
            "",
            "1",
            "true",
            "{\"a\": 1}",
            "[a-z",
            "(",
            "a,b",
            "zaqar-queue",
            "target",
        ][..],
    )
}

fn data_type() -> impl Strategy<Value = DataType> {
    select(
        &[DataType::String, DataType::Integer, DataType::Number, DataType::Boolean, DataType::Map, DataType::List][..],
    )
}

proptest! {
    #[test]
    fn constraints(entry in any_value(), value in any_value(), data_type in data_type()) {
        if let Ok(constraint) = Constraint::from_hot(&entry, true) {
            prop_assert!(constraint.to_value().as_map().is_some());
            _ = check_all(&[constraint], &value, data_type.property(), &AcceptAll);
        }
    }

    #[test]
    fn parameters(declared in any_value(), user in any_value(), default in any_value()) {
        let hot = ParameterSchema::from_hot("p", &declared, HotEdition::Tags);
        for schema in [hot, ParameterSchema::from_cfn("p", &declared)].into_iter().flatten() {
            let parameter = Parameter::new("p", schema, Some(user.clone()), Some(default.clone()));
            _ = parameter.validate(&AcceptAll, true);
            _ = (parameter.text(), parameter.validate_view());
        }
    }

    #[test]
    fn every_type_of_parameter(name in select(&["string", "number", "json", "comma_delimited_list", "boolean"][..]), user in any_value()) {
        let schema = ParameterSchema::from_hot("p", &value!({"type": name}), HotEdition::First).unwrap();
        let parameter = Parameter::new("p", schema, Some(user.clone()), None);
        // A value that passes validation has a string form.
        if parameter.validate(&AcceptAll, true).is_ok() {
            prop_assert!(parameter.value().is_ok() && parameter.text().is_ok(), "{}", text::repr(&user));
        }
    }

    #[test]
    fn environments(sections in any_value(), resource_type in word(), name in word()) {
        if let Ok(mut environment) = Environment::from_value(&sections) {
            let globals = Globals::new(["OS::Nova::Server".to_owned()]).with_default_aliases();
            _ = environment.resolve(&globals, resource_type, Some(name));
            _ = environment.registry.has_hook(name, "pre-create");
            let child = environment.child(sections.as_map(), Some(resource_type), Some(name));
            _ = child.map(|child| child.to_stored());
            // The stored form is read back unchanged.
            let again = Environment::from_value(&environment.to_stored()).unwrap();
            prop_assert_eq!(again.to_value(), environment.to_value());
        }
    }

    #[test]
    fn merges(first in any_value(), second in any_value(), initial in any_value()) {
        let template = Template::from_value(value!({
            "heat_template_version": "2021-04-16",
            "parameters": {
                "A": {"type": "string"}, "1": {"type": "number"}, "true": {"type": "json"},
                "a,b": {"type": "comma_delimited_list"}, "merge": {"type": "boolean"},
            },
        })).unwrap();
        let file = |content: &Value| {
            let strategies = value!({"default": "deep_merge"});
            text::json(&value!({"parameter_defaults": content, "parameter_merge_strategies": strategies}))
        };
        let files = BTreeMap::from([("1".to_owned(), file(&first)), ("2".to_owned(), file(&second))]);
        let mut sections = Map::from([("parameters".to_owned(), initial)]);
        _ = environment::merge(&["1".to_owned(), "2".to_owned()], &Files(files), &mut sections, &template);
    }

    #[test]
    fn texts(text in any::<String>(), pieces in proptest::collection::vec(word(), 0..12)) {
        for text in [text, pieces.join(": "), pieces.join("\n- ")] {
            _ = source::parse(&text, source::ROOT, source::MAX_TEMPLATE_SIZE);
            _ = environment::parse(&text);
            _ = kiln_value::Pattern::new(&text).map(|pattern| pattern.matches_all(&text));
        }
    }
}

#[test]
fn large_parameters_are_parsed_once() {
    let many = vec!["item"; 200_000].join(",");
    let schema = ParameterSchema::from_hot("p", &value!({"type": "comma_delimited_list"}), HotEdition::First).unwrap();
    let parameters = kiln_template::parameter::Parameters::new(
        Dialect::Hot,
        None,
        [("p".to_owned(), schema)].into_iter().collect(),
        value!({"p": many}).as_map().unwrap(),
        &Map::new(),
    );
    let read = || parameters.value("p").unwrap().as_list().unwrap();
    assert_eq!(read().len(), 200_000);
    assert!(std::ptr::eq(read(), read()), "a parameter must be parsed once, not at every use");
}
