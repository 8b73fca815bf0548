//! `OS::Heat::ResourceGroup`: a nested stack with any number of members from one definition (docs/heat-behaviour.md
//! §15.1).

use std::collections::BTreeSet;

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Nested, Operation, Step};
use kiln_value::{Diagnostic, Map, Value, text};

use super::members;

/// The names that removal policies have taken out, kept in the resource's data as Heat keeps them.
const SKIPPED: &str = "name_blacklist";

/// Whatever the limit of resources is: a template with so many members fills the memory of an engine.
const MOST_MEMBERS: usize = 50_000;

/// The members that there are, name to reference id, which the engine puts into the data of the facts.
const MEMBERS: &str = "members";

/// The nested template of a group: members called `names`, and outputs for the `wanted` attributes (name and path).
pub fn template(definition: &Value, index_var: &str, names: &[String], wanted: &[Vec<Value>]) -> Value {
    let members = names.iter().map(|name| (name.clone(), member(definition, index_var, name, false))).collect();
    members::template(members, members::outputs(names, wanted, true))
}

/// The first `count` numbers that are not skipped, as names.
pub fn names(count: usize, skipped: &BTreeSet<String>) -> Vec<String> {
    (0_u64..).map(|n| n.to_string()).filter(|name| !skipped.contains(name)).take(count).collect()
}

/// A member: the definition with the index in its properties' values, and without those that are null unless these are
/// kept.
fn member(definition: &Value, index_var: &str, name: &str, keep_nulls: bool) -> Value {
    let mut member = Map::from([("type".to_owned(), definition.get("type").cloned().unwrap_or_default())]);
    if let Some(properties) = definition.get("properties").and_then(Value::as_map) {
        let given = properties.iter().filter(|(_, value)| keep_nulls || !value.is_null());
        let indexed: Map = given.map(|(key, value)| (key.clone(), with_index(value, index_var, name))).collect();
        member.insert("properties".to_owned(), indexed.into());
    }
    if let Some(metadata) = definition.get("metadata").filter(|m| !m.is_null()) {
        member.insert("metadata".to_owned(), metadata.clone());
    }
    member.into()
}

fn with_index(value: &Value, index_var: &str, name: &str) -> Value {
    match value {
        Value::Str(text) => text.replace(index_var, name).into(),
        Value::List(items) => items.iter().map(|item| with_index(item, index_var, name)).collect(),
        Value::Map(map) => map.iter().map(|(key, v)| (key.clone(), with_index(v, index_var, name))).collect(),
        other => other.clone(),
    }
}

/// The names that are skipped: those remembered (unless the policies' mode is to forget them) and those that the
/// removal policies name, by name or by reference id.
fn skipped(facts: &Facts) -> BTreeSet<String> {
    let remembered = remembered(facts);
    let members = facts.data.get(MEMBERS).and_then(Value::as_map);
    let mut skipped = match facts.property("removal_policies_mode").as_str() {
        Some("update") => BTreeSet::new(),
        _ => remembered.clone(),
    };
    let policies = facts.property("removal_policies").as_list().unwrap_or_default();
    let entries = policies.iter().filter_map(|policy| policy.get("resource_list")?.as_list()).flatten();
    for entry in entries {
        let name = text::str(entry);
        let is_name = remembered.contains(&name)
            || facts.physical_id.is_none()
            || members.is_some_and(|members| members.contains_key(&name));
        if is_name {
            skipped.insert(name);
        } else if let Some((name, _)) = members.into_iter().flatten().find(|(_, reference)| *reference == entry) {
            skipped.insert(name.clone());
        }
    }
    skipped
}

fn count(facts: &Facts) -> Result<usize, Diagnostic> {
    let count = facts.property("count").as_i64().unwrap_or_default();
    usize::try_from(count).map_err(|_| Diagnostic::new("ValueError", format!("A group cannot have {count} members.")))
}

fn index_var(facts: &Facts) -> &str {
    facts.property("index_var").as_str().unwrap_or("%index%")
}

fn remembered(facts: &Facts) -> BTreeSet<String> {
    let names = facts.data.get(SKIPPED).and_then(Value::as_str).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The type's driver. The engine makes and keeps the nested stack; this only says what it should be.
pub(super) struct ResourceGroup;

#[async_trait]
impl Driver for ResourceGroup {
    async fn start(&self, _: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done())
    }

    /// Nothing is made outside.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let removed = || remembered(cx.facts).into_iter().collect::<Value>();
        Ok(names.iter().filter(|n| **n == "removed_rsrc_list").map(|n| ((*n).to_owned(), removed())).collect())
    }

    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let count = match count(facts) {
            Ok(count) if count > MOST_MEMBERS => {
                let text = format!("Request limit exceeded: A group cannot have more than {MOST_MEMBERS} members.");
                return Some(Err(Diagnostic::new("RequestLimitExceeded", text)));
            }
            Ok(count) => count,
            Err(error) => return Some(Err(error)),
        };
        let index_var = index_var(facts);
        let skipped = skipped(facts);
        let template = template(facts.property("resource_def"), index_var, &names(count, &skipped), wanted);
        let skipped: Vec<String> = skipped.into_iter().collect();
        let data = Map::from([(SKIPPED.to_owned(), skipped.join(",").into())]);
        Some(Ok(Nested { template, data, ..Nested::default() }))
    }

    fn members(&self, facts: &Facts) -> Option<usize> {
        count(facts).ok()
    }

    /// One member with all that is given for it; a group without members has nothing to validate.
    fn nested_draft(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        match count(facts) {
            Ok(0) => None,
            Ok(_) => {
                let names = names(1, &skipped(facts));
                let definition = facts.property("resource_def");
                let member = |name: &String| (name.clone(), member(definition, index_var(facts), name, true));
                let template = members::template(names.iter().map(member).collect(), Map::new());
                Some(Ok(Nested { template, ..Nested::default() }))
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn nested_attribute(
        &self,
        facts: &Facts,
        outputs: &Map,
        refs: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        match name {
            "removed_rsrc_list" => Some(remembered(facts).into_iter().collect()),
            _ => members::attribute(outputs, refs, name, path, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    fn group(count: i64, data: &Value, policies: &Value) -> Facts {
        let properties = value!({
            "count": count,
            "index_var": "%index%",
            "resource_def": {"type": "OS::Heat::Value", "properties": {"value": "v-%index%", "type": null}, "metadata": null},
            "removal_policies": (policies.clone()),
            "removal_policies_mode": "append"
        });
        Facts {
            name: "grp".to_owned(),
            properties: properties.as_map().unwrap().clone(),
            data: data.as_map().unwrap().clone(),
            ..Facts::default()
        }
    }

    #[test]
    fn makes_members_and_the_outputs_that_are_read() {
        let facts = group(2, &value!({}), &value!([]));
        let wanted = [
            vec!["refs".into()],
            vec!["value".into()],
            vec!["attributes".into(), "value".into()],
            vec!["resource.1.value".into()],
        ];
        let nested = ResourceGroup.nested(&facts, &wanted).unwrap().unwrap();
        let expected = value!({
            "heat_template_version": "2015-04-30",
            "resources": {
                "0": {"type": "OS::Heat::Value", "properties": {"value": "v-0"}},
                "1": {"type": "OS::Heat::Value", "properties": {"value": "v-1"}}
            },
            "outputs": {
                "refs": {"value": [{"get_resource": "0"}, {"get_resource": "1"}]},
                "value": {"value": [{"get_attr": ["0", "value"]}, {"get_attr": ["1", "value"]}]},
                "attributes, value": {"value": {"0": {"get_attr": ["0", "value"]}, "1": {"get_attr": ["1", "value"]}}},
                "resource.1.value": {"value": {"get_attr": ["1", "value"]}},
                "refs_map": {"value": {"0": {"get_resource": "0"}, "1": {"get_resource": "1"}}}
            }
        });
        assert_eq!(nested.template, expected);
    }

    #[test]
    fn refuses_a_negative_count() {
        assert!(ResourceGroup.nested(&group(-1, &value!({}), &value!([])), &[]).unwrap().is_err());
    }

    #[test]
    fn jumps_over_removed_members() {
        let mut facts = group(
            3,
            &value!({"members": {"0": "a", "1": "b", "2": "c"}}),
            &value!([{"resource_list": ["1", "c", "9"]}]),
        );
        facts.physical_id = Some("nested".to_owned());
        let nested = ResourceGroup.nested(&facts, &[]).unwrap().unwrap();
        let names: Vec<&String> = nested.template.get("resources").unwrap().as_map().unwrap().keys().collect();
        assert_eq!(names, ["0", "3", "4"]);
        assert_eq!(nested.data.get("name_blacklist"), Some(&"1,2".into()));
    }

    #[test]
    fn reads_attributes_of_the_nested_stack() {
        let facts = group(2, &value!({"name_blacklist": "1"}), &value!([]));
        let outputs = value!({"value": ["x", "y"], "resource.0.value, k": 5});
        let refs = IndexMap::from([("0".to_owned(), "a".into()), ("2".to_owned(), "b".into())]);
        let read = |name: &str, path: &[Value]| {
            ResourceGroup.nested_attribute(&facts, outputs.as_map().unwrap(), &refs, name, path)
        };
        assert_eq!(read("refs", &[]), Some(value!(["a", "b"])));
        assert_eq!(read("refs", &[1.into()]), Some("b".into()));
        assert_eq!(read("refs", &[2.into()]), Some(Value::Null));
        assert_eq!(read("resource.2", &[]), Some("b".into()));
        assert_eq!(read("resource.0.value", &["k".into()]), Some(5.into()));
        assert_eq!(read("value", &[]), Some(value!(["x", "y"])));
        assert_eq!(read("value", &[1.into()]), Some("y".into()));
        assert_eq!(read("removed_rsrc_list", &[]), Some(value!(["1"])));
        assert_eq!(read("attributes", &[]), None);
        assert_eq!(read("nothing", &[]), None);
    }
}
