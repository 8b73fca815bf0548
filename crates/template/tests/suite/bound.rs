//! Templates with parameters: definitions, dependencies, conditions, outputs and unknown values.

use std::fmt::Write as _;
use std::sync::Arc;

use kiln_template::constraint::AcceptAll;
use kiln_template::{Bound, DeletionPolicy, Expr, Files, Scope, Template, Unbuilt, Wanted};
use kiln_value::{Class, Diagnostic, Map, Path, Value, value};

fn bound(template: Value) -> Bound {
    let template = Template::from_value(template).expect("a version");
    let parameters = template.parameters(None, &Map::new(), &Map::new()).expect("valid parameters");
    Bound::new(Arc::new(template), Arc::new(parameters), Arc::new(Files::default()))
}

fn unbuilt(bound: &Bound) -> Unbuilt<'_> {
    Unbuilt::new(bound, bound.definitions().expect("valid definitions").into_keys())
}

fn message(result: Result<impl Sized, Diagnostic>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn dependencies_omit_disabled_resources_and_refuse_unknown_ones() {
    let bound = bound(value!({
        "heat_template_version": "2021-04-16",
        "conditions": {"never": false},
        "resources": {
            "net": {"type": "OS::Neutron::Net"},
            "extra": {"type": "OS::Neutron::Net", "condition": "never"},
            "server": {
                "type": "OS::Nova::Server",
                "depends_on": ["extra", "net"],
                "properties": {
                    "a": {"list_join": ["", [{"get_attr": ["port", "fixed_ips", 0, "ip"]}]]},
                    "b": {"if": ["never", {"get_resource": "extra"}, {"get_resource": "port"}]},
                },
            },
            "port": {"type": "OS::Neutron::Port", "metadata": {"net": {"get_resource": "net"}}},
            "wrong": {"type": "OS::Heat::None", "depends_on": "nowhere"},
        },
    }));
    let scope = unbuilt(&bound);
    let definitions = bound.definitions().unwrap();
    assert_eq!(definitions.keys().collect::<Vec<_>>(), ["net", "server", "port", "wrong"]);
    let server = &definitions["server"];
    assert_eq!(server.requires(&scope).unwrap().iter().collect::<Vec<_>>(), ["extra", "net", "port"]);
    assert_eq!(server.dependencies(&scope).unwrap().iter().collect::<Vec<_>>(), ["net", "port"]);
    assert_eq!(definitions["port"].dependencies(&scope).unwrap().iter().collect::<Vec<_>>(), ["net"]);
    let path = vec![value!(0), value!("ip")];
    assert_eq!(server.attributes_of("port", &scope), [Wanted::One { name: value!("fixed_ips"), path }]);
    assert_eq!(
        message(definitions["wrong"].dependencies(&scope)),
        "The specified reference \"nowhere\" (in wrong) is incorrect."
    );
}

#[test]
fn an_external_resource_is_retained_and_has_no_dependencies() {
    let bound = bound(value!({
        "heat_template_version": "newton",
        "resources": {
            "a": {"type": "T", "external_id": "id", "properties": {"x": {"get_resource": "b"}}, "deletion_policy": "delete"},
            "b": {"type": "T", "external_id": "id", "depends_on": "a"},
        },
    }));
    let definitions = bound.definitions().unwrap();
    assert_eq!(definitions["a"].deletion_policy, Some(DeletionPolicy::Delete));
    assert_eq!(definitions["a"].deletion_policy(), DeletionPolicy::Retain);
    assert!(definitions["a"].requires(&unbuilt(&bound)).unwrap().is_empty());
    let refused = definitions["b"].requires(&unbuilt(&bound)).unwrap_err();
    assert_eq!(refused.class, Class::InvalidExternalResourceDependency);
    assert_eq!(refused.text, "Invalid dependency with external T resource: id");
}

#[test]
fn values_that_depend_on_unbuilt_resources_are_unknown() {
    let bound = bound(value!({
        "heat_template_version": "2021-04-16",
        "parameters": {"name": {"type": "string", "default": "web"}},
        "resources": {"port": {"type": "T"}},
    }));
    let scope = unbuilt(&bound);
    let snippet = value!({
        "name": {"get_param": "name"},
        "gone": {"if": [false, "x"]},
        "nets": [{"if": [false, "x"]}, {"port": {"get_resource": "port"}}],
        "ip": {"if": [true, {"deep": {"get_attr": ["port", "ip"]}}, "x"]},
        "part": {"str_split": [",", {"get_attr": ["port", "ips"]}, 5]},
        "joined": {"list_join": ["-", ["a", {"get_attr": ["port", "ip"]}]]},
        "broken": {"str_replace": {"template": {"get_attr": ["port", "ip"]}, "params": {"a": "b"}}},
    });
    let partial = Expr::parse(&bound, &snippet, &Path::root()).unwrap().partial(&scope).unwrap();
    let expected = value!({
        "name": "web",
        "nets": [{"port": "port"}],
        "ip": {"deep": null},
        "part": null,
        "joined": "a-",
        "broken": null,
    });
    assert_eq!(partial.value, Some(expected));
    let unknown: Vec<_> = partial.unknown.iter().map(Path::to_string).collect();
    assert_eq!(unknown, ["nets[0].port", "ip.deep", "part", "joined", "broken"]);

    let wrong = Expr::parse(&bound, &value!({"a": {"str_split": ["", "b"]}}), &Path::root()).unwrap();
    let error = wrong.partial(&scope).unwrap_err();
    assert_eq!((&*error.text, error.path.to_string()), ("empty separator", "a.str_split".to_owned()));
}

#[test]
fn errors_have_the_location_of_the_innermost_call() {
    let bound = bound(value!({
        "heat_template_version": "2021-04-16",
        "resources": {
            "r": {"type": "T", "properties": {"x": [{"list_join": ["", [{"get_resource": "nowhere"}]]}]}},
        },
        "outputs": {"o": {"value": {"get_attr": ["nowhere", "x"]}}},
    }));
    let scope = unbuilt(&bound);
    let definition = &bound.definitions().unwrap()["r"];
    let place = "resources.r.properties.x[0].list_join[1][0].get_resource";
    assert_eq!(definition.properties.value(&scope).unwrap_err().path.to_string(), place);
    assert_eq!(definition.requires(&scope).unwrap_err().path.to_string(), place);
    let output = &bound.outputs().unwrap()["o"];
    let error = output.validate(&scope).unwrap_err();
    assert_eq!(error.path.to_string(), "outputs.o.value.get_attr");
    assert_eq!(
        error.to_string(),
        "outputs.o.value.get_attr: The specified reference \"nowhere\" (in unknown) is incorrect."
    );
    assert!(output.requires(&scope).is_empty());

    let removed = Expr::parse(&bound, &value!({"a": [{"Ref": {"Ref": "x"}}]}), &Path::root().key("p")).unwrap();
    let error = removed.validate(&scope, &Path::root().key("p")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "p.a[0].Ref: The template version is invalid: The function Ref is not supported in this version of HOT."
    );
}

#[test]
fn conditions_are_evaluated_on_demand() {
    let bound = bound(value!({
        "heat_template_version": "2021-04-16",
        "conditions": {
            "broken": {"equals": [{"get_param": "nowhere"}, 1]},
            "shielded": {"or": [true, "broken"]},
            "tick": {"not": "tock"},
            "tock": {"not": "tick"},
        },
    }));
    let conditions = bound.conditions().unwrap();
    assert!(conditions.holds(&bound, "shielded").unwrap());
    // A failure is not cached: every caller gets the cause.
    for _ in 0..2 {
        assert_eq!(message(conditions.holds(&bound, "broken")), "The Parameter (nowhere) was not provided.");
    }
    for name in ["tick", "tock"] {
        let circular = format!("Condition validation error: Circular definition for condition \"{name}\"");
        assert_eq!(message(conditions.holds(&bound, name)), circular);
    }
    assert_eq!(message(conditions.holds(&bound, "none")), "Invalid condition \"none\"");
}

#[test]
fn a_bound_template_is_shared_by_threads() {
    let bound = bound(value!({
        "heat_template_version": "2021-04-16",
        "conditions": {"a": {"not": "b"}, "b": {"not": "c"}, "c": {"and": ["d", "d"]}, "d": {"equals": [1, 1]}},
    }));
    std::thread::scope(|threads| {
        let decide = || bound.conditions().unwrap().holds(&bound, "a").unwrap();
        let decided: Vec<_> = (0..8).map(|_| threads.spawn(decide)).collect();
        assert!(decided.into_iter().all(|thread| thread.join().unwrap()));
    });
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let nest = |levels: usize| {
        (0..levels)
            .fold(value!("x"), |inner, i| if i % 2 == 0 { value!([inner]) } else { value!({"list_concat": inner}) })
    };
    let bound = bound(value!({"heat_template_version": "2021-04-16"}));
    let scope = Unbuilt::empty(&bound);
    let deep = Expr::parse(&bound, &nest(190), &Path::root()).unwrap();
    deep.validate(&scope, &Path::root()).unwrap();
    assert!(deep.requires(&scope, "").unwrap().is_empty());
    assert!(deep.partial(&scope).is_err(), "a string is not a list");
    assert!(message(Expr::parse(&bound, &nest(250), &Path::root())).ends_with("nested too deeply"));
}

#[test]
fn a_long_chain_of_conditions_is_an_error_not_a_crash() {
    let mut conditions = Map::new();
    for i in 0..2000 {
        conditions.insert(format!("c{i}"), value!({"not": (format!("c{}", i + 1))}));
    }
    conditions.insert("c2000".to_owned(), value!(true));
    let bound = bound(value!({"heat_template_version": "2021-04-16", "conditions": (Value::Map(conditions))}));
    let conditions = bound.conditions().unwrap();
    assert!(message(conditions.holds(&bound, "c0")).ends_with("is nested too deeply"));
    assert!(!conditions.holds(&bound, "c1901").unwrap());
    // Conditions that are already evaluated do not count.
    assert!(!conditions.holds(&bound, "c1801").unwrap());
}

#[test]
fn functions_that_multiply_their_arguments_have_a_budget() {
    let bound = bound(value!({"heat_template_version": "2021-04-16"}));
    let scope = Unbuilt::empty(&bound);
    let many: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    let list = Value::from(many);
    let wide = value!({"repeat": {"template": "%a%%b%%c%", "for_each": {"%a%": (list.clone()), "%b%": (list.clone()), "%c%": list}}});
    let tall = (0..10).fold(
        value!("aaaaaaaaaa"),
        |inner, _| value!({"str_replace": {"template": inner, "params": {"a": "aaaaaaaaaa"}}}),
    );
    let mut names = String::new();
    for (snippet, name) in [(wide, "repeat"), (tall, "str_replace")] {
        let expr = Expr::parse(&bound, &snippet, &Path::root()).unwrap();
        assert_eq!(message(expr.value(&scope)), format!("The result of \"{name}\" is too large"));
        write!(names, "{name} ").unwrap();
    }
    assert_eq!(names, "repeat str_replace ");
}

/// A copy costs as much as a new value: a list of a thousand calls may read the same file.
#[test]
fn values_that_are_read_again_and_again_have_a_budget() {
    let files = Files([("f".to_owned(), "x".repeat(100_000))].into());
    let template = Template::from_value(value!({
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string", "default": ("y".repeat(100_000))}},
    }));
    let template = Arc::new(template.unwrap());
    let parameters = Arc::new(template.parameters(None, &Map::new(), &Map::new()).unwrap());
    let bound = Bound::new(template, parameters, Arc::new(files));
    let scope = Unbuilt::empty(&bound);
    let (file, parameter) = (value!({"get_file": "f"}), value!({"get_param": "p"}));
    for (call, name) in [(&file, "get_file"), (&parameter, "get_param")] {
        let resolve = |snippet: &Value| Expr::parse(&bound, snippet, &Path::root()).unwrap().value(&scope);
        let many = |number: usize| Value::from(vec![call.clone(); number]);
        assert!(resolve(&many(100)).is_ok());
        assert_eq!(message(resolve(&many(1000))), format!("The result of \"{name}\" is too large"));
        let joined = value!({"list_join": ["", (many(1000))]});
        assert!(message(resolve(&joined)).ends_with("is too large"));
    }
}

#[test]
fn a_parameter_is_in_one_group_only() {
    let groups = |groups: Value| {
        Template::from_value(value!({
            "heat_template_version": "2021-04-16",
            "parameters": {"a": {"type": "string"}, "b": {"type": "string"}},
            "parameter_groups": groups,
        }))
        .unwrap()
        .parameter_groups()
    };
    let good = groups(value!([{"label": "L", "parameters": ["a"]}, {"parameters": ["b", "OS::stack_id"]}])).unwrap();
    assert_eq!(good[0].label, Some(value!("L")));
    assert_eq!(good[1].parameters, ["b", "OS::stack_id"]);
    for (wrong, text) in [
        (value!({"a": 1}), "parameter_groups: The parameter_groups should be a list."),
        (value!([{"label": "L"}]), "parameter_groups.L: The parameters must be provided for each parameter group."),
        (
            value!([{"label": "L", "parameters": "a"}]),
            "parameter_groups.L: The parameters of parameter group should be a list.",
        ),
        (
            value!([{"parameters": ["a"]}, {"label": "M", "parameters": ["a"]}]),
            "parameter_groups.M: The a parameter must be assigned to one parameter group only.",
        ),
        (
            value!([{"label": "L", "parameters": ["c"]}]),
            "parameter_groups.L: The grouped parameter c does not reference a valid parameter.",
        ),
    ] {
        assert_eq!(message(groups(wrong)), format!("Parameter Groups error: {text}"));
    }
    assert!(groups(Value::Null).unwrap().is_empty());
}

#[test]
fn an_emptied_template_keeps_its_parameters() {
    let template = Template::from_value(value!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"p": {"Type": "String", "Default": "v"}},
        "Resources": {"r": {"Type": "T"}},
        "Outputs": {"o": {"Value": {"Ref": "r"}}},
    }))
    .unwrap();
    let emptied = template.emptied();
    assert_eq!(emptied.resource_names().count(), 0);
    assert_eq!(emptied.version(), template.version());
    assert!(emptied.parameter_schemata().unwrap().contains_key("p"));
    let bound = bound(emptied.as_value().clone());
    assert!(bound.definitions().unwrap().is_empty());
    assert!(bound.outputs().unwrap().is_empty());
    assert!(unbuilt(&bound).resource("r").is_none());
}

#[test]
fn all_errors_are_reported_the_first_as_in_heat() {
    let bound = bound(value!({
        "heat_template_version": "2021-04-16",
        "parameters": {"size": {"type": "number"}, "web": {"type": "string", "default": "x"}},
        "conditions": {"big": {"equals": [{"get_param": "size"}, 1]}, "odd": 5},
        "resource": {},
        "resources": {
            "web": {"type": "T"},
            "a/b": {"type": "T"},
            "c": {"type": "T", "propertys": {}},
            "d": {"type": "T", "deletion_policy": "Keep"},
            "e": {"type": "T", "condition": "odd"},
            "f": {"type": "T", "properties": {"x": {"if": ["bigg", 1, 2]}}},
        },
        "outputs": {"o": {}},
    }));
    let errors = bound.validate(&AcceptAll, true);
    let shown: Vec<_> =
        errors.iter().map(|error| (error.path.to_string(), error.hints.first().map_or("", String::as_str))).collect();
    let shown: Vec<_> = shown.iter().map(|(path, hint)| (path.as_str(), *hint)).collect();
    assert_eq!(
        shown,
        [
            ("resource", "did you mean resources?"),
            ("parameters.size", ""),
            ("conditions.odd", ""),
            ("resources.c", "did you mean properties?"),
            ("resources.d.deletion_policy", ""),
            ("resources.f.properties.x.if", "did you mean big?"),
            ("resources.a/b", ""),
            ("resources.web", ""),
            ("outputs.o", ""),
        ]
    );
    assert_eq!(errors[0].text, "The template section is invalid: resource");
    assert_eq!(errors[1].class, Class::UserParameterMissing);
    assert_eq!(errors[7].text, "Duplicate names {'web'}");
}

#[test]
fn what_functions_make_of_hidden_texts_is_found() {
    let bound = bound(value!({
        "heat_template_version": "2021-04-16",
        "parameters": {"secret": {"type": "string", "default": "marlin"}, "open": {"type": "string", "default": "cod"}},
        "conditions": {"never": false},
    }));
    let scope = Unbuilt::empty(&bound);
    let derived = |snippet: Value| {
        let snippet = Expr::parse(&bound, &snippet, &Path::root()).unwrap();
        snippet.derived(&snippet.value(&scope).unwrap(), &scope, &|text| text.contains("marlin"))
    };
    let upper =
        |parameter: &str| value!({"yaql": {"expression": "$.data.toUpper()", "data": {"get_param": (parameter)}}});
    assert_eq!(derived(value!({"get_param": "secret"})), [""; 0]);
    assert_eq!(derived(upper("open")), [""; 0]);
    assert_eq!(derived(upper("secret")), ["MARLIN"]);
    assert_eq!(derived(value!({"str_split": ["l", {"get_param": "secret"}]})), ["mar", "in"]);
    // Without the items that are missing, and only what is made of the parameter.
    let parts = value!([{"if": ["never", "x"]}, "y", {"deep": (upper("secret"))}]);
    assert_eq!(derived(parts), ["MARLIN"]);
    let merged = value!({"map_merge": [{"a": "shown", "b": {"get_param": "open"}}, {"c": (upper("secret"))}]});
    assert_eq!(derived(merged), ["MARLIN"]);
    assert_eq!(derived(value!({"if": ["never", "x", (upper("secret"))]})), ["MARLIN"]);
}
