//! `OS::Heat::ResourceChain`: a nested stack with members of listed types and equal properties (docs/heat-behaviour.md
//! §15.2).

use indexmap::IndexMap;
use kiln_resource::{Facts, Nested, NestedStack, TypeRules, size_limit};
use kiln_value::{Diagnostic, Map, Value, value};

use super::members;

/// The type's driver. The engine creates and updates the nested stack; the driver only describes it.
pub(super) struct ResourceChain;

/// Members named by their index, each after the one before, in a concurrent chain after the one `limit` before. (Heat
/// takes the number of its engines, to spare their memory; that is not needed here.)
pub fn template(facts: &Facts, wanted: &[Vec<Value>], limit: Option<usize>) -> Value {
    let types = facts.property("resources").as_list().unwrap_or_default();
    let limit = if facts.property("concurrent").is_truthy() { limit } else { Some(1) };
    let names: Vec<String> = (0..types.len()).map(|index| index.to_string()).collect();
    let mut resources = Map::new();
    for (index, (name, kind)) in names.iter().zip(types).enumerate() {
        let mut member = Map::from([("type".to_owned(), kind.clone())]);
        if let Some(properties) = facts.property("resource_properties").as_map() {
            member.insert("properties".to_owned(), properties.clone().into());
        }
        if let Some(before) = limit.and_then(|limit| names.get(index.checked_sub(limit)?)) {
            member.insert("depends_on".to_owned(), value!([before]));
        }
        resources.insert(name.clone(), member.into());
    }
    members::template(resources, members::outputs(&names, wanted, false))
}

impl TypeRules for ResourceChain {}

impl NestedStack for ResourceChain {
    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let members = facts.property("resources").as_list().unwrap_or_default().len();
        let fits = size_limit::check_group(members, facts.property("resource_properties").size());
        Some(fits.map(|()| Nested { template: template(facts, wanted, None), ..Nested::default() }))
    }

    fn draft_needs(&self) -> &'static [&'static str] {
        &["resources", "resource_properties"]
    }

    fn attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        refs: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        members::attribute(outputs, refs, name, path, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_each_member_to_the_one_before() {
        let mut facts = Facts::default();
        facts.properties.insert("resources".to_owned(), value!(["A", "B", "A"]));
        facts.properties.insert("resource_properties".to_owned(), value!({"p": 1}));
        let made = template(&facts, &[], None);
        let expected = value!({
            "0": {"type": "A", "properties": {"p": 1}},
            "1": {"type": "B", "properties": {"p": 1}, "depends_on": ["0"]},
            "2": {"type": "A", "properties": {"p": 1}, "depends_on": ["1"]}
        });
        assert_eq!(made.get("resources"), Some(&expected));
        facts.properties.insert("concurrent".to_owned(), true.into());
        let made = template(&facts, &[], None);
        assert!(made.get("resources").unwrap().as_map().unwrap().values().all(|m| m.get("depends_on").is_none()));
        let made = template(&facts, &[["resource.1".into()].into()], Some(2));
        let last = made.get("resources").unwrap().get("2").unwrap();
        assert_eq!(last.get("depends_on"), Some(&value!(["0"])));
        assert_eq!(made.get("outputs"), Some(&value!({"resource.1": {"value": {"get_resource": "1"}}})));
    }
}
