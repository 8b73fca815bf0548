//! What can be told of a stack without a cloud.

use kiln_plan::{Blueprint, ResourceTypes, Rules};
use kiln_resource::ResourceType;
use kiln_resource::translation::Answers;
use kiln_template::constraint::AcceptAll;
use kiln_value::Diagnostic;

/// Everything that is wrong, in Heat's order. What only the cloud knows counts as right.
pub fn mistakes(blueprint: &Blueprint, catalog: &ResourceTypes) -> Vec<Diagnostic> {
    judge(blueprint, catalog, &|_, _| None)
}

/// The same, and first the types that Kiln cannot create: those keep a stack from being created here, and may be right
/// elsewhere.
pub fn obstacles(blueprint: &Blueprint, catalog: &ResourceTypes) -> Vec<Diagnostic> {
    let refusal = |this: &ResourceType, name: &str| catalog.types.refusal(this, name);
    let mut errors: Vec<Diagnostic> = blueprint.unavailable(&refusal).into_iter().collect();
    errors.extend(judge(blueprint, catalog, &refusal));
    errors
}

fn judge(
    blueprint: &Blueprint,
    catalog: &ResourceTypes,
    unavailable: &dyn Fn(&ResourceType, &str) -> Option<Diagnostic>,
) -> Vec<Diagnostic> {
    let rules = Rules {
        catalog,
        custom: &AcceptAll,
        answers: &Answers::default(),
        unavailable,
        strict: false,
        values: true,
        max_depth: 5,
    };
    let mut errors = blueprint.validate(&rules);
    forgive_missing(&mut errors, blueprint.parameters().schemata().keys());
    errors
}

/// A value that only a create must give is not wrong here, wherever it is used.
pub(crate) fn forgive_missing<'n>(errors: &mut Vec<Diagnostic>, parameters: impl IntoIterator<Item = &'n String>) {
    let missing = parameters.into_iter().map(|name| format!("The Parameter ({name}) was not provided."));
    let missing: Vec<String> = missing.collect();
    errors.retain(|error| !missing.iter().any(|text| error.message.contains(text)));
}
