//! Every input has a result without a panic; accepted input is not changed.

use std::sync::LazyLock;

use kiln_resource::constraint::{Judge, OwnConstraints};
use kiln_resource::properties::Judged;
use kiln_resource::translation::{Answers, apply, lookups};
use kiln_resource::{ResourceType, definition, properties, shipped};
use kiln_template::constraint::CustomConstraints;
use kiln_value::{Map, Path, Value};
use proptest::prelude::*;

static TYPES: LazyLock<Vec<ResourceType>> = LazyLock::new(|| shipped::types().unwrap_or_default());

const LOCAL: [&str; 12] = [
    "ip_addr",
    "mac_addr",
    "net_cidr",
    "ip_or_cidr",
    "dns_name",
    "rel_dns_name",
    "dns_domain",
    "cron_expression",
    "timezone",
    "iso_8601",
    "expiration",
    "json_string",
];

/// Values of all kinds, including strings that resemble valid values of constraints.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Float),
        "[ -~é\n]{0,12}".prop_map(Value::from),
        "[0-9a-f:./*,TZ -]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::vec(("[a-z_]{1,8}", inner), 0..4).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

/// Knows all constraints.
fn judge() -> Judge {
    Judge::new(0.0, &OwnConstraints::of(shipped::finders().clone()))
}

/// A type and data for some of its properties, including nested ones.
fn data() -> impl Strategy<Value = (usize, Map)> {
    let values = prop::collection::vec(values(), 1..6);
    (0..TYPES.len(), values, any::<prop::sample::Index>()).prop_map(|(at, values, start)| {
        let names: Vec<&String> = TYPES[at].properties.keys().collect();
        let first = if names.is_empty() { 0 } else { start.index(names.len()) };
        let chosen = names.iter().cycle().skip(first).take(names.len()).zip(values);
        (at, chosen.map(|(name, value)| ((*name).clone(), value)).collect())
    })
}

fn without_nulls(map: &Map) -> Map {
    let given = map.iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| (name.clone(), deeply(value))).collect()
}

fn deeply(value: &Value) -> Value {
    match value {
        Value::Map(map) => without_nulls(map).into(),
        Value::List(items) => items.iter().map(deeply).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn properties_are_validated((at, data) in data()) {
        let this = &TYPES[at];
        lookups(&this.translation, &data);
        let Ok(data) = apply(&this.translation, data, &Answers::new(), &Path::root()) else { return Ok(()) };
        let faults = properties::validate(&this.properties, &data, &|_| Judged::Wholly, &judge(), &Path::root());
        if faults.is_empty() {
            let resolved = properties::resolve(&this.properties, &data);
            prop_assert!(resolved.is_ok(), "valid but {:?}", resolved);
            // Null for a missing value would count as specified: the empty value of the type.
            let given = without_nulls(&resolved.unwrap_or_default());
            // NaN does not equal itself.
            if !format!("{given:?}").contains("nan") {
                let again = without_nulls(&properties::resolve(&this.properties, &given).unwrap_or_default());
                prop_assert_eq!(given, again);
            }
        }
    }

    #[test]
    fn constraints_accept_or_refuse(value in values(), at in 0..LOCAL.len()) {
        let verdict = Judge::default().validate(LOCAL[at], &value);
        prop_assert!(verdict.is_ok() || verdict.is_err_and(|text| text.starts_with("Error validating value '")));
        let finder = shipped::finders().names().nth(at).unwrap_or_default();
        prop_assert!(judge().validate(finder, &value).is_ok());
        prop_assert!(Judge::default().validate("no_such", &value).is_err());
    }

    #[test]
    fn definitions_are_parsed_or_refused(cut in any::<prop::sample::Index>(), put in "[ -~\n]{0,6}") {
        let text = include_str!("../../../../resource-types/OS/Neutron/Port.yaml");
        let at = cut.index(text.len());
        let changed = format!("{}{put}{}", &text[..at], &text[at..]);
        if let Err(errors) = definition::parse("t.yaml", &changed) {
            prop_assert!(!errors.is_empty());
        }
    }
}
