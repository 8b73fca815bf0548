//! `OS::Heat::ResourceChain`: members of listed types with the same properties, as a nested stack (semantics.md §15.2).

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_resource::{Context, Driver, Facts, Failure, Nested, Operation, Step};
use kiln_value::{Diagnostic, Map, Value, value};

use super::members;

/// The type's driver. The engine makes and keeps the nested stack; this only says what it should be.
pub(super) struct ResourceChain;

/// Members named by their index, each after the one before unless the chain is concurrent. (Heat holds back a
/// concurrent chain to spare its engines' memory; that is not needed here.)
fn template(facts: &Facts, wanted: &[Vec<Value>]) -> Value {
    let types = facts.property("resources").as_list().unwrap_or_default();
    let concurrent = facts.property("concurrent").is_truthy();
    let names: Vec<String> = (0..types.len()).map(|index| index.to_string()).collect();
    let mut resources = Map::new();
    let mut before: Option<&String> = None;
    for (name, kind) in names.iter().zip(types) {
        let mut member = Map::from([("type".to_owned(), kind.clone())]);
        if let Some(properties) = facts.property("resource_properties").as_map() {
            member.insert("properties".to_owned(), properties.clone().into());
        }
        if let Some(before) = before.filter(|_| !concurrent) {
            member.insert("depends_on".to_owned(), value!([before]));
        }
        resources.insert(name.clone(), member.into());
        before = Some(name);
    }
    value!({
        "heat_template_version": "2015-04-30",
        "resources": resources,
        "outputs": (members::outputs(&names, wanted))
    })
}

#[async_trait]
impl Driver for ResourceChain {
    async fn start(&self, _: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done())
    }

    fn is_pure(&self) -> bool {
        true
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }

    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        Some(Ok(Nested { template: template(facts, wanted), ..Nested::default() }))
    }

    fn nested_attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        refs: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        members::attribute(outputs, refs, name, path)
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
        let made = template(&facts, &[]);
        let expected = value!({
            "0": {"type": "A", "properties": {"p": 1}},
            "1": {"type": "B", "properties": {"p": 1}, "depends_on": ["0"]},
            "2": {"type": "A", "properties": {"p": 1}, "depends_on": ["1"]}
        });
        assert_eq!(made.get("resources"), Some(&expected));
        facts.properties.insert("concurrent".to_owned(), true.into());
        let made = template(&facts, &[]);
        assert!(made.get("resources").unwrap().as_map().unwrap().values().all(|m| m.get("depends_on").is_none()));
    }
}
