//! Vectors of the kind `schema_to_template`: parameters and properties of a provider template.

use kiln_resource::view::{TemplateKind, parameters_and_properties};
use kiln_value::value;

use crate::case::{Case, Outcome};
use crate::schema;

/// Runs a vector.
pub(crate) fn run(case: &Case) -> Outcome {
    let kind = match case.input("template_type").as_str() {
        Some("hot") => TemplateKind::Hot,
        _ => TemplateKind::Cfn,
    };
    let (parameters, properties) = parameters_and_properties(&schema::schema(case.input("schema")), kind);
    case.judge(&value!({"parameters": parameters, "properties": properties}))
}
