//! Every template results in a value or an error.

use std::sync::Arc;

use kiln_template::constraint::AcceptAll;
use kiln_template::{Bound, Expr, Files, Release, Template, Unbuilt, functions};
use kiln_value::{Map, Path, Value, value};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

/// Words with a meaning in the templates below, and some without.
const WORDS: [&str; 22] = [
    "r",
    "q",
    "p",
    "j",
    "c",
    "loop",
    "x",
    "",
    ",",
    "$",
    "%a%",
    "md5",
    "params",
    "template",
    "for_each",
    "permutations",
    "scheme",
    "port",
    "query",
    "expression",
    "keys",
    "metadata",
];

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => select(&WORDS[..]).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => (-3i64..70_000).prop_map(Value::Int),
        1 => any::<f64>().prop_map(Value::Float),
        1 => ".*".prop_map(Value::Str),
    ]
}

fn snippets(release: Release) -> impl Strategy<Value = Value> {
    let names: Vec<&'static str> = functions(release, true).into_iter().map(|function| function.name).collect();
    scalars().prop_recursive(6, 48, 4, move |inner| {
        let calls = (select(names.clone()), inner.clone());
        let maps = vec((select(&WORDS[..]), inner.clone()), 0..4);
        prop_oneof![
            2 => vec(inner, 0..4).prop_map(Value::List),
            2 => maps.prop_map(|entries| entries.into_iter().collect()),
            4 => calls.prop_map(|(name, args)| Value::Map(Map::from_iter([(name.to_owned(), args)]))),
        ]
    })
}

fn template(release: Release, snippet: &Value) -> Value {
    if release == Release::Cfn20100909 {
        value!({
            "AWSTemplateFormatVersion": "2010-09-09",
            "Parameters": {"p": {"Type": "String", "Default": "a,b"}, "j": {"Type": "Json", "Default": {"x": [1]}}},
            "Mappings": {"x": {"r": {"q": 1}}},
            "Conditions": {"c": (snippet.clone()), "loop": {"Fn::Not": ["loop"]}},
            "Resources": {"r": {"Type": "T", "Properties": {"x": (snippet.clone())}}, "q": (snippet.clone())},
            "Outputs": {"o": {"Value": (snippet.clone()), "Condition": (snippet.clone())}},
        })
    } else {
        value!({
            "heat_template_version": (release.name()),
            "parameters": {"p": {"type": "string", "default": "a,b"}, "j": {"type": "json", "default": {"x": [1]}}},
            "conditions": {"c": (snippet.clone()), "loop": {"not": "loop"}},
            "parameter_groups": (snippet.clone()),
            "resources": {
                "r": {"type": "T", "properties": {"x": (snippet.clone())}, "condition": (snippet.clone())},
                "q": (snippet.clone()),
                "x": {"type": "T", "deletion_policy": (snippet.clone()), "metadata": (snippet.clone())},
            },
            "outputs": {"o": {"value": (snippet.clone()), "condition": (snippet.clone())}},
        })
    }
}

fn exercise(release: Release, snippet: &Value) {
    let template = Template::from_value(template(release, snippet)).expect("a version");
    let parameters = template.parameters(None, &Map::new(), &Map::new()).expect("valid parameters");
    let bound = Bound::new(Arc::new(template), Arc::new(parameters), Arc::new(Files::default()));
    for error in bound.validate(&AcceptAll, false) {
        assert!(!error.class.name().is_empty() && !error.to_string().is_empty(), "{error:?}");
    }
    let definitions = bound.definitions().unwrap_or_default();
    let scope = Unbuilt::new(&bound, definitions.keys().map(String::as_str).chain(["r", "q"]));
    for definition in definitions.values() {
        drop((definition.dependencies(&scope), definition.attributes(&scope), definition.validate(&scope)));
    }
    for parse in [Expr::parse, Expr::parse_condition] {
        let Ok(expr) = parse(&bound, snippet, &Path::root()) else { continue };
        drop((expr.validate(&scope, &Path::root()), expr.requires(&scope, ""), expr.attributes(&scope)));
        let value = expr.resolve(&scope);
        let partial = expr.partial(&scope);
        // Known values are the same in both; NaN does not even equal itself.
        if let (Ok(value), Ok(partial)) = (value, partial) {
            assert_eq!(format!("{value:?}"), format!("{:?}", partial.value));
        }
    }
}

proptest! {
    #[test]
    fn hot_never_panics(snippet in snippets(Release::Hot20210416)) {
        exercise(Release::Hot20210416, &snippet);
    }

    #[test]
    fn first_hot_never_panics(snippet in snippets(Release::Hot20130523)) {
        exercise(Release::Hot20130523, &snippet);
    }

    #[test]
    fn cfn_never_panics(snippet in snippets(Release::Cfn20100909)) {
        exercise(Release::Cfn20100909, &snippet);
    }
}
