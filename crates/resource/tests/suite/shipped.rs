//! The shipped definition files: all exist, and each matches Heat's type.

use std::collections::BTreeSet;
use std::path::Path;

use indexmap::IndexMap;
use kiln_resource::property::type_name;
use kiln_resource::translation::{Rule, Source};
use kiln_resource::{
    AttributeSchema, Inner, PropertySchema, ResourceType, SupportStatus, Translation, definition, shipped,
};
use kiln_value::{Map, Value, value};

fn reference() -> Map {
    let text = include_str!("../data/resource_types.json");
    kiln_yaml::json::parse(text).unwrap().as_map().unwrap().clone()
}

fn types() -> Vec<ResourceType> {
    shipped::types().unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    })
}

#[test]
fn all_files_are_compiled_in() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../resource-types");
    let found: BTreeSet<String> = definition::load(&directory).unwrap().into_iter().map(|t| t.name).collect();
    let compiled: BTreeSet<String> = types().into_iter().map(|t| t.name).collect();
    assert_eq!(found, compiled, "the files in resource-types/");
    for name in found {
        let file = directory.join(name.replace("::", "/")).with_extension("yaml");
        assert!(file.is_file(), "{name} is not in {}", file.display());
    }
}

#[test]
fn all_types_match_heat() {
    let reference = reference();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for resource_type in types() {
        let Some(expected) = reference.get(&resource_type.name) else { continue };
        seen += 1;
        let actual = facts(&resource_type);
        for key in expected.as_map().unwrap().keys().chain(actual.as_map().unwrap().keys()) {
            let (wanted, got) = (expected.get(key), actual.get(key));
            let same = if key == "translation_rules" {
                // An additional finder is harmless: Heat looks the name up when it creates the object.
                let (wanted, got) = (wanted.map(rules_in).unwrap_or_default(), got.map(rules_in).unwrap_or_default());
                wanted.is_subset(&got) && got.difference(&wanted).all(|rule| rule.starts_with("find "))
            } else {
                wanted == got
            };
            if !same {
                wrong.push(format!("{} {key}\n  wanted {wanted:?}\n  got    {got:?}", resource_type.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, reference.len(), "a type of Heat has no file");
}

/// Every type, property (also in maps and lists) and attribute has a description of one sentence.
#[test]
fn everything_is_described_in_one_short_sentence() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for this in types() {
        let mut look = |place: &str, text: Option<&str>| {
            seen += 1;
            if let Some(fault) = fault(text) {
                wrong.push(format!("{} {place}: {fault}", this.name));
            }
        };
        look("summary", Some(&this.summary));
        descriptions("properties", &this.properties, &mut look);
        descriptions("update_policy", &this.update_policy, &mut look);
        for (name, attribute) in &this.attributes {
            look(&format!("attributes.{name}"), attribute.description.as_deref());
        }
    }
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The error in a description.
fn fault(text: Option<&str>) -> Option<String> {
    let Some(text) = text else { return Some("no description".to_owned()) };
    let length = text.chars().count();
    if length > 160 {
        return Some(format!("{length} characters are too many: {text}"));
    }
    if !text.ends_with('.') || text.contains(". ") || text.contains('\n') || text.trim() != text {
        return Some(format!("not one sentence with a full stop: {text}"));
    }
    None
}

fn descriptions(path: &str, schema: &IndexMap<String, PropertySchema>, look: &mut impl FnMut(&str, Option<&str>)) {
    for (name, property) in schema {
        let path = format!("{path}.{name}");
        look(&path, property.description.as_deref());
        // Items of a list are not properties: they are described with the list. Their members are properties.
        let mut inner = property.inner.as_ref();
        while let Some(Inner::Items(items)) = inner {
            inner = items.inner.as_ref();
        }
        if let Some(Inner::Members(members)) = inner {
            descriptions(&path, members, look);
        }
    }
}

/// The API returns the descriptions of properties, also in lists, and of attributes.
#[test]
fn descriptions_are_shown() {
    let server = types().into_iter().find(|t| t.name == "OS::Nova::Server").unwrap();
    let described = |value: &Value, path: &[&str]| {
        let found = path.iter().try_fold(value, |value, key| value.get(key)).and_then(Value::as_str);
        assert_eq!(fault(found), None, "{path:?}");
    };
    let view = server.schema_view(true);
    described(&view, &["description"]);
    described(&view, &["properties", "flavor", "description"]);
    let extra = ["properties", "networks", "schema", "*", "schema", "port_extra_properties"];
    described(&view, &[&extra[..], &["schema", "mac_address", "description"]].concat());
    described(&view, &["attributes", "networks", "description"]);
    described(&view, &["attributes", "show", "description"]);
    let hot = server.template_view(kiln_resource::view::TemplateKind::Hot);
    described(&hot, &["parameters", "flavor", "description"]);
    described(&hot, &["outputs", "networks", "description"]);
    let cfn = server.template_view(kiln_resource::view::TemplateKind::Cfn);
    described(&cfn, &["Parameters", "flavor", "Description"]);
    described(&cfn, &["Outputs", "networks", "Description"]);
}

/// A type in the form of the reference, without default values.
fn facts(this: &ResourceType) -> Value {
    let mut facts = Map::from([
        ("class".to_owned(), this.class.as_str().into()),
        ("always_replace_on_check_failed".to_owned(), this.replace_on_check_failed.into()),
        ("physical_resource_name_limit".to_owned(), this.physical_name_limit.into()),
        ("support_status".to_owned(), status(&this.support)),
    ]);
    let mut put = |key: &str, value: Value| {
        if value.is_truthy() {
            facts.insert(key.to_owned(), value);
        }
    };
    put("client_service_types", this.service.iter().collect());
    put("required_service_extension", this.extension.clone().into());
    put("policy_check_str", this.policy.as_ref().map(|rule| format!("rule:{rule}")).into());
    put("requires_deferred_auth", this.deferred_auth.into());
    put("is_stack_resource", this.nested.into());
    put("has_handle_signal", this.signals.into());
    put("properties", properties(&this.properties));
    put("update_policy", properties(&this.update_policy));
    put("attributes", this.attributes.iter().map(|(name, a)| (name.clone(), attribute(a))).collect());
    let own = this.translation.iter().filter(|rule| rule.when.is_none());
    put("translation_rules", own.map(rule).collect());
    facts.into()
}

fn status(support: &SupportStatus) -> Value {
    let mut view = value!({"status": (support.status.name()), "version": (support.version.clone())});
    if let (Some(previous), Some(map)) = (&support.previous, view.as_map_mut()) {
        map.insert("previous_status".to_owned(), status(previous));
    }
    view
}

fn properties(schema: &IndexMap<String, PropertySchema>) -> Value {
    schema.iter().map(|(name, schema)| (name.clone(), property(schema))).collect()
}

fn property(schema: &PropertySchema) -> Value {
    let mut facts = Map::from([("type".to_owned(), type_name(schema.kind).into())]);
    let mut put = |wanted: bool, key: &str, value: Value| {
        if wanted {
            facts.insert(key.to_owned(), value);
        }
    };
    put(schema.required, "required", true.into());
    put(schema.update_allowed, "update_allowed", true.into());
    put(schema.immutable, "immutable", true.into());
    put(!schema.implemented, "implemented", false.into());
    put(schema.default.is_some(), "default", schema.default.clone().into());
    let constraints: Value = schema.constraints.iter().map(kiln_template::constraint::Constraint::to_value).collect();
    put(constraints.is_truthy(), "constraints", constraints);
    put(schema.support != SupportStatus::default(), "support_status", status(&schema.support));
    match &schema.inner {
        Some(Inner::Items(items)) => put(true, "schema", value!({"*": (property(items))})),
        Some(Inner::Members(members)) => put(true, "schema", properties(members)),
        None => {}
    }
    facts.into()
}

fn attribute(schema: &AttributeSchema) -> Value {
    let mut facts = value!({"type": (schema.kind.map(type_name)), "live": (schema.live)});
    if let (true, Some(map)) = (schema.support != SupportStatus::default(), facts.as_map_mut()) {
        map.insert("support_status".to_owned(), status(&schema.support));
    }
    facts
}

fn rule(rule: &Translation) -> Value {
    let path: Value = rule.path.iter().collect();
    match &rule.rule {
        Rule::Find(finder) => value!({"rule": "resolve", "path": path, "finder": finder}),
        Rule::Replace(Source::Sibling(source)) => {
            value!({"rule": "replace", "path": path, "value_path": (source.iter().collect::<Value>())})
        }
        Rule::Delete => value!({"rule": "delete", "path": path}),
        other => panic!("{other:?} is not in the reference"),
    }
}

/// Rules as comparable strings, without order: the source of replacements, and the service of finders.
fn rules_in(rules: &Value) -> BTreeSet<String> {
    let text = |rule: &Value| {
        let path = rule.get("path");
        match rule.str_at("rule") {
            Some("replace") => {
                let name = rule.get("value_name").into_iter().cloned();
                let path_of_value = rule.get("value_path").and_then(Value::as_list).into_iter().flatten().cloned();
                let deeper = rule.get("custom_value_path").and_then(Value::as_list).into_iter().flatten().cloned();
                let source: Vec<Value> = name.chain(path_of_value).chain(deeper).collect();
                format!("replace {path:?} {source:?}")
            }
            Some("resolve") => {
                let service = match (rule.str_at("client"), rule.str_at("finder")) {
                    // All finders of the SDK are for Neutron.
                    (Some("openstack"), _) => "neutron",
                    (Some(client), _) => client,
                    (None, finder) => finder.and_then(|f| f.split('.').next()).unwrap_or_default(),
                };
                format!("find {path:?} {service}")
            }
            other => format!("{other:?} {path:?}"),
        }
    };
    rules.as_list().into_iter().flatten().map(text).collect()
}

/// A key without a value has no meaning, except in a default.
#[test]
fn generated_templates_hold_no_nulls() {
    fn nulls(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Null => found.push(at.to_owned()),
            Value::Map(map) => map
                .iter()
                .filter(|(key, _)| !key.eq_ignore_ascii_case("default"))
                .for_each(|(key, value)| nulls(value, &format!("{at}.{key}"), found)),
            Value::List(items) => items.iter().for_each(|value| nulls(value, at, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for kind in kiln_resource::shipped::types().unwrap() {
        for form in [kiln_resource::view::TemplateKind::Hot, kiln_resource::view::TemplateKind::Cfn] {
            nulls(&kind.template_view(form), &kind.name, &mut found);
        }
    }
    assert!(found.is_empty(), "{} nulls: {:?}", found.len(), found.first());
}
