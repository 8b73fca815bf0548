//! Vectors of the kind `update_diff`: the effect of changed properties.

use kiln_resource::ResourceType;
use kiln_resource::change::{Comparison, compare};
use kiln_value::{Map, value};

use crate::case::{Case, Outcome};
use crate::expectation::error;
use crate::schema;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let mut resource_type = ResourceType::new("Test::Type");
    resource_type.properties = schema::schema(case.input("schema"));
    let data = |key: &str| case.input(key).as_map().cloned().unwrap_or_default();
    let actual = match compare(&resource_type, "res", &data("before"), &data("after")) {
        Comparison::Unchanged => value!({"decision": "nothing", "changed": (Map::new())}),
        Comparison::Update { changed } => value!({"decision": "update", "changed": changed}),
        Comparison::Replace { .. } => value!({"decision": "replace"}),
        Comparison::Error(problem) => value!({"decision": "error", "error": (error(&problem))}),
    };
    case.judge(&actual)
}
