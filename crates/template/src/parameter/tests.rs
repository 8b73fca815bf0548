use indexmap::IndexMap;
use kiln_value::{Map, Value, value};

use super::*;
use crate::constraint::AcceptAll;

fn parameters(declared: &Value, user: &Value) -> Parameters {
    let schemata: IndexMap<_, _> = declared
        .as_map()
        .unwrap()
        .iter()
        .map(|(name, declared)| (name.clone(), ParameterSchema::from_hot(name, declared, HotEdition::Tags).unwrap()))
        .collect();
    Parameters::new(Dialect::Hot, None, schemata, user.as_map().unwrap(), &Map::new())
}

#[test]
fn all_errors_are_reported_the_first_as_in_heat() {
    let declared = value!({"n": {"type": "number"}, "s": {"type": "string"}, "ok": {"type": "json", "default": {}}});
    let errors = parameters(&declared, &value!({"n": "x", "other": 1})).validate(&AcceptAll, true);
    let classes: Vec<_> = errors.iter().map(|e| e.class.name()).collect();
    assert_eq!(classes, ["UnknownUserParameter", "StackValidationFailed", "UserParameterMissing"]);
}

#[test]
fn texts_as_a_stack_shows_them() {
    let declared = value!({
        "l": {"type": "comma_delimited_list"},
        "j": {"type": "json"},
        "b": {"type": "boolean", "default": "yes"},
        "secret": {"type": "string", "hidden": true, "default": "x"},
    });
    let texts = parameters(&declared, &value!({"l": ["a", 1, null], "j": {"k": [1]}})).texts();
    let wanted = value!({
        "OS::stack_id": null, "OS::project_id": null, "OS::stack_name": null,
        "l": "a,1,None", "j": "{\"k\": [1]}", "b": "True", "secret": "******",
    });
    assert_eq!(Value::Map(texts), wanted);
}

#[test]
fn secrets_are_not_printed() {
    let declared = value!({"p": {"type": "string", "hidden": true}});
    let shown = format!("{:?}", parameters(&declared, &value!({"p": "hunter2"})));
    assert!(shown.contains("******") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_name_of_a_secret_is_no_value() {
    let errors = |kind: &str, given: &Value| {
        let parameters = parameters(&value!({"p": {"type": kind, "hidden": true}}), &value!({"p": given}));
        let errors = parameters.validate(&AcceptAll, true);
        errors.into_iter().map(|error| error.text.clone()).collect::<Vec<_>>()
    };
    let refused = "Parameter 'p' is invalid: Kiln does not read values from vault:a#b";
    assert_eq!(errors("string", &value!({"secret": "vault:a#b"})), [refused]);
    for (kind, given) in [
        ("json", value!({"secret": "vault:a#b"})),
        ("string", value!({"secret": "s3cret"})),
        ("string", value!({"secret": "vault:a#b", "more": 1})),
        ("string", value!("vault:a#b")),
    ] {
        assert_eq!(errors(kind, &given), [""; 0]);
    }
}

#[test]
fn an_immutable_parameter_may_not_change() {
    let declared = value!({"p": {"type": "string", "immutable": true, "default": "a"}});
    let (old, new) = (parameters(&declared, &value!({"p": "b"})), parameters(&declared, &value!({})));
    assert_eq!(old.immutable_modified(&new, &Map::new()), ["p"]);
    let given = value!({"p": "b"});
    assert!(old.immutable_modified(&new, given.as_map().unwrap()).is_empty());
}

#[test]
fn unknown_words_of_a_schema_have_hints() {
    for (declared, hint) in [
        (value!({"type": "strnig"}), "did you mean string?"),
        (value!({"type": "string", "defualt": "x"}), "did you mean default?"),
        (value!({"type": "string", "tags": ["x"]}), "a newer version of templates has tags"),
        (value!({"type": "string", "constraints": [{"lenght": {"min": 1}}]}), "did you mean length?"),
        (value!({"type": "string", "constraints": [{"length": {"mni": 1}}]}), "did you mean min?"),
    ] {
        let error = ParameterSchema::from_hot("p", &declared, HotEdition::First).unwrap_err();
        assert_eq!(error.hints, [hint], "{error}");
    }
}
