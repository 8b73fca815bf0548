//! Templates of resource groups compared with those of Heat (Zed) for the same properties.

use std::sync::Arc;

use kiln_resource::{Driver, Facts, ResourceType};
use kiln_value::{Map, Value};

fn group() -> Arc<dyn Driver> {
    kiln_drivers::driver_for(&ResourceType::new("OS::Heat::ResourceGroup")).unwrap()
}

#[test]
fn templates_are_those_of_heat() {
    let cases = kiln_yaml::json::parse(include_str!("../data/resource_groups.json")).unwrap();
    let cases = cases.as_list().unwrap();
    assert!(cases.len() >= 7);
    for case in cases {
        let map = |key: &str| case.get(key).and_then(Value::as_map).cloned().unwrap_or_else(Map::new);
        let facts = Facts { properties: map("properties"), data: map("data"), ..Facts::default() };
        let wanted = case.get("wanted").and_then(Value::as_list).unwrap();
        let wanted: Vec<Vec<Value>> = wanted.iter().map(|path| path.as_list().unwrap().to_vec()).collect();
        let nested = group().nested_stack().unwrap().nested(&facts, &wanted).unwrap().unwrap();
        assert_eq!(Some(&nested.template), case.get("template"), "{}", case.str_at("name").unwrap());
    }
}
