//! Validation of a stack without a cloud.

mod accepted;
mod newer;
mod without;

use std::sync::Arc;

use kiln_plan::hidden::{mask_errors, mask_errors_of};
use kiln_plan::{Blueprint, Nesting, ResourceTypes, Rules, Sources};
use kiln_resource::ResourceType;
use kiln_resource::constraint::Judge;
use kiln_resource::translation::Answers;
use kiln_template::constraint::AcceptAll;
use kiln_template::{Bound, Template};
use kiln_value::{Diagnostic, Map, Segment, Unknown, Value};
use without::without;

/// How deep templates may be nested in a service by default (`max_nested_stack_depth`).
pub const MAX_DEPTH: u32 = 5;

/// Maximum number of parts of a template that are removed, one after the other, to find further errors.
const MOST_BROKEN: usize = 50;

/// All errors of the template, environment and parameters of a stack, in Heat's order, even if some parts are too
/// broken to build the stack; and the stack, if it can be built. Templates may be nested up to `depth`.
pub fn examine(sources: &Sources, catalog: &ResourceTypes, depth: u32) -> (Option<Blueprint>, Vec<Diagnostic>) {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut whole = sources.clone();
    let mut built = None;
    for round in 0..MOST_BROKEN {
        let sources = with_unknown(&whole, catalog);
        let (is_built, errors) = match Blueprint::build(sources, catalog, None, Nesting::default()) {
            Ok(blueprint) => {
                let errors = mistakes(&blueprint, catalog, depth);
                built = built.or_else(|| (round == 0).then_some(blueprint));
                (true, errors)
            }
            Err(error) => (false, vec![error]),
        };
        // Resources are not checked while a parameter is invalid.
        let hiding = errors.iter().filter(|error| !is_built || is_of_parameter(&whole.template, error));
        let rest = hiding.fold(None, |rest, error| without(rest.as_ref().unwrap_or(&whole), error).or(rest));
        add(&mut found, mask_errors(&whole, errors));
        match rest {
            Some(rest) => whole = rest,
            None if is_built => return (built, found),
            None => break,
        }
    }
    add(&mut found, unbuilt(&whole));
    (built, found)
}

/// The sources with an unknown value for each parameter without a value.
fn with_unknown(sources: &Sources, catalog: &ResourceTypes) -> Sources {
    let mut sources = sources.clone();
    let template = Template::from_value(Arc::clone(&sources.template));
    let Ok(schemata) = template.and_then(|template| template.parameter_schemata()) else { return sources };
    let defaults = catalog.defaults(&sources.environment);
    let environment = Arc::make_mut(&mut sources.environment);
    for name in schemata.iter().filter(|(_, schema)| schema.default.is_none()).map(|(name, _)| name) {
        let is_given = |values: &Map| values.get(name).is_some_and(|value| !value.is_null());
        if !is_given(&environment.parameters) && !is_given(&defaults) {
            environment.parameters.insert(name.clone(), Value::Unknown(Unknown::of(name)));
        }
    }
    sources
}

/// Adds errors that were not found before: a removed part may cause other errors.
fn add(found: &mut Vec<Diagnostic>, more: Vec<Diagnostic>) {
    let before = found.len();
    for error in more {
        let is_same = |known: &Diagnostic| known.says(&error) && known.path == error.path;
        let is_known = |known: &Diagnostic| known.says(&error) || (known.path == error.path && !error.path.is_root());
        let (old, new) = found.split_at(before);
        if !old.iter().any(is_known) && !new.iter().any(is_same) {
            found.push(error);
        }
    }
}

fn is_of_parameter(template: &Value, error: &Diagnostic) -> bool {
    let Ok(read) = Template::from_value(Arc::new(template.clone())) else { return false };
    matches!(error.path.0.first(), Some(Segment::Key(section)) if section == read.words().parameters)
}

/// The errors of a template that cannot be built, as far as they can be found without the types.
fn unbuilt(sources: &Sources) -> Vec<Diagnostic> {
    let nothing = Map::new();
    let Ok(template) = Template::from_value(Arc::clone(&sources.template)) else { return Vec::new() };
    let mut errors = match template.parameters(None, &nothing, &nothing) {
        Ok(parameters) => {
            let bound = Bound::new(Arc::new(template), Arc::new(parameters), Arc::clone(&sources.files));
            bound.validate(&AcceptAll, false)
        }
        Err(error) => vec![error],
    };
    errors.retain(|error| !error.not_known_yet);
    errors
}

/// All errors in Heat's order. Values that only the cloud can check are accepted.
pub fn mistakes(blueprint: &Blueprint, catalog: &ResourceTypes, depth: u32) -> Vec<Diagnostic> {
    judge(blueprint, catalog, &|_, _| None, (false, depth))
}

/// The same, preceded by types that Kiln cannot create. Such a template is valid elsewhere, but cannot be created here.
pub fn obstacles(blueprint: &Blueprint, catalog: &ResourceTypes, depth: u32) -> Vec<Diagnostic> {
    let refusal = |this: &ResourceType, name: &str| catalog.types.refusal(this, name);
    let mut errors: Vec<Diagnostic> = blueprint.unavailable(&refusal).into_iter().collect();
    errors.extend(judge(blueprint, catalog, &refusal, (true, depth)));
    errors
}

fn judge(
    blueprint: &Blueprint,
    catalog: &ResourceTypes,
    unavailable: &dyn Fn(&ResourceType, &str) -> Option<Diagnostic>,
    (unbuilt, max_depth): (bool, u32),
) -> Vec<Diagnostic> {
    let rules = Rules {
        catalog,
        // No time is past.
        custom: &Judge::new(0.0, &catalog.constraints),
        answers: &Answers::default(),
        unavailable,
        // Parameters without a value are unknown: none is missing.
        strict: true,
        values: true,
        max_depth,
        unbuilt,
    };
    let mut errors = blueprint.validate(&rules);
    accepted::add(blueprint, catalog, &mut errors);
    mask_errors_of(blueprint, errors)
}
