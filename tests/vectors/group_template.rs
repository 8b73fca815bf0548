//! Vectors of the kind `group_template`: the nested template of a group.

use kiln_drivers::driver_for;
use kiln_drivers::heat::{chain, deployments};
use kiln_resource::{Facts, properties, shipped};
use kiln_value::{Map, Value, value};

use crate::case::{Case, Outcome};
use crate::expectation::either;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let name = case.input("resource_name").as_str().unwrap_or_default();
    let definition = case.input("template").get("resources").and_then(|resources| resources.get(name));
    let Some(kind) = definition.and_then(|d| d.str_at("type")) else { return Outcome::Failed("no group".to_owned()) };
    let types = shipped::types().unwrap_or_else(|errors| panic!("{errors:?}"));
    let group = types.into_iter().find(|t| t.name == kind).unwrap_or_else(|| panic!("no type {kind}"));
    let given = definition.and_then(|d| d.get("properties")?.as_map()).cloned().unwrap_or_else(Map::new);
    let properties = match properties::resolve(&group.properties, &given) {
        Ok(properties) => properties,
        Err(problem) => return case.judge(&either(Err(problem), "template", "error").into()),
    };
    let facts = Facts {
        name: name.to_owned(),
        resource_type: kind.to_owned(),
        given: given.into_keys().collect(),
        properties,
        ..Facts::default()
    };
    let wanted = wanted(case, name);
    let judge = |template: Value| case.judge(&value!({"template": template}));
    match kind {
        // The concurrency is the number of engines of the reference service.
        "OS::Heat::ResourceChain" => {
            let engines = case.input("engine_count").as_i64().and_then(|count| usize::try_from(count).ok());
            return judge(chain::template(&facts, &wanted, Some(engines.unwrap_or(1))));
        }
        "OS::Heat::SoftwareDeploymentGroup" | "OS::Heat::StructuredDeploymentGroup" => {
            return judge(deployments::template(&facts, kind.trim_end_matches("Group"), &wanted));
        }
        _ => {}
    }
    let driver = driver_for(&group);
    let described = driver.as_ref().and_then(|driver| driver.nested_stack());
    match described.and_then(|described| described.nested(&facts, &wanted)) {
        Some(nested) => case.judge(&either(nested.map(|n| n.template), "template", "error").into()),
        None => Outcome::NotRun,
    }
}

/// The attributes of the group that the outputs of the template read.
fn wanted(case: &Case, group: &str) -> Vec<Vec<Value>> {
    let outputs = case.input("template").get("outputs").and_then(Value::as_map);
    let paths = outputs.into_iter().flatten().filter_map(|(_, output)| output.get("value")?.get("get_attr")?.as_list());
    paths.filter(|path| path.first() == Some(&group.into())).map(|path| path[1..].to_vec()).collect()
}
