//! Property schemata and translation rules in the format of the vectors (that of `resource_types.json`).

use indexmap::IndexMap;
use kiln_resource::properties::Schema;
use kiln_resource::property::type_named;
use kiln_resource::translation::{Rule, Source};
use kiln_resource::{Inner, PropertySchema, Translation};
use kiln_template::constraint::Constraint;
use kiln_value::Value;

/// A schema by property name.
pub(crate) fn schema(written: &Value) -> Schema {
    written.as_map().into_iter().flatten().map(|(name, entry)| (name.clone(), property(entry))).collect()
}

/// One property.
pub(crate) fn property(written: &Value) -> PropertySchema {
    let flag = |key: &str, default| written.get(key).and_then(Value::as_bool).unwrap_or(default);
    let kind = written.str_at("type").and_then(type_named).unwrap_or_else(|| panic!("no type in {written:?}"));
    let mut schema = PropertySchema::new(kind);
    schema.required = flag("required", false);
    schema.update_allowed = flag("update_allowed", false);
    schema.immutable = flag("immutable", false);
    schema.implemented = flag("implemented", true);
    schema.allow_conversion = flag("allow_conversion", false);
    schema.default = written.get("default").filter(|d| !d.is_null()).cloned();
    schema.constraints = written
        .get("constraints")
        .and_then(Value::as_list)
        .into_iter()
        .flatten()
        .map(|entry| Constraint::from_hot(entry, true).unwrap_or_else(|error| panic!("{error}: {entry:?}")))
        .collect();
    schema.inner = written.get("schema").and_then(Value::as_map).map(|inner| match inner.get("*") {
        Some(items) => Inner::Items(Box::new(property(items))),
        None => Inner::Members(inner.iter().map(|(name, m)| (name.clone(), property(m))).collect::<IndexMap<_, _>>()),
    });
    schema
}

/// Translation rules. Paths of values are relative to the property of the rule.
pub(crate) fn translation(written: &Value) -> Vec<Translation> {
    written.as_list().into_iter().flatten().map(rule).collect()
}

fn rule(written: &Value) -> Translation {
    let names = |key: &str| -> Vec<String> {
        let names = written.get(key).and_then(Value::as_list).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let source = || match (written.get("value"), written.str_at("value_name")) {
        (Some(value), _) => Source::Value(value.clone()),
        (None, Some(name)) => Source::Sibling(vec![name.to_owned()]),
        (None, None) => Source::Sibling(names("value_path")),
    };
    let rule = match written.str_at("rule") {
        Some("add") => Rule::Add(source()),
        Some("replace") => Rule::Replace(source()),
        Some("delete") => Rule::Delete,
        other => panic!("no rule {other:?}"),
    };
    Translation { path: names("path"), rule, when: None }
}
