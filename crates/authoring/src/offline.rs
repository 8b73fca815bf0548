//! What can be told of a stack without a cloud.

use std::sync::Arc;

use kiln_plan::{Blueprint, Draft, Nesting, ResourceTypes, Rules, Sources};
use kiln_resource::ResourceType;
use kiln_resource::translation::Answers;
use kiln_template::constraint::AcceptAll;
use kiln_template::{Bound, Template};
use kiln_value::{Diagnostic, Map, Path, Segment, Value, value};

/// Parts of a template that are set aside, one after the other, to see what else is wrong.
const MOST_BROKEN: usize = 50;

/// Everything that is wrong with what a stack is made of, in Heat's order: also where parts are so broken that no stack
/// can be built of them. The stack, if it can be built.
pub fn examine(sources: &Sources, catalog: &ResourceTypes) -> (Option<Blueprint>, Vec<Diagnostic>) {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut whole = sources.clone();
    for _ in 0..MOST_BROKEN {
        let error = match Blueprint::build(whole.clone(), catalog, None, Nesting::default()) {
            Ok(blueprint) => {
                add(&mut found, mistakes(&blueprint, catalog));
                let is_whole = Arc::ptr_eq(&whole.template, &sources.template);
                return (is_whole.then_some(blueprint), found);
            }
            Err(error) => error,
        };
        let rest = without(&whole.template, &error);
        if !error.not_known_yet {
            add(&mut found, vec![error]);
        }
        match rest {
            Some(template) => whole.template = Arc::new(template),
            None => break,
        }
    }
    add(&mut found, unbuilt(&whole));
    (None, found)
}

/// Adds what was not found before.
fn add(found: &mut Vec<Diagnostic>, more: Vec<Diagnostic>) {
    for error in more {
        let is_known =
            |known: &Diagnostic| known.message == error.message || (known.path == error.path && !error.path.is_root());
        if !found.iter().any(is_known) {
            found.push(error);
        }
    }
}

/// The template without what an error is about; `None` if that cannot be told, or has been set aside already.
fn without(template: &Value, error: &Diagnostic) -> Option<Value> {
    let read = Template::from_value(Arc::new(template.clone())).ok()?;
    let words = read.words();
    let mut rest = template.clone();
    let sections = rest.as_map_mut()?;
    if error.not_known_yet {
        // A condition that cannot be decided: all is taken to be there.
        let mut stripped = false;
        for section in [words.resources, words.outputs] {
            let Some(entries) = sections.get_mut(section).and_then(Value::as_map_mut) else { continue };
            for (_, entry) in entries.iter_mut() {
                stripped |= entry.as_map_mut().is_some_and(|entry| entry.shift_remove(words.condition).is_some());
            }
        }
        return stripped.then_some(rest);
    }
    let (section, name) = match error.path.0.as_slice() {
        [Segment::Key(section)] => (section.as_str(), None),
        [Segment::Key(section), Segment::Key(name), ..] => (section.as_str(), Some(name.as_str())),
        _ => return None,
    };
    let Some(name) = name else {
        let is_ours = [words.resources, words.parameters, words.outputs].contains(&section);
        return if is_ours { None } else { sections.shift_remove(section).map(|_| rest) };
    };
    let entries = sections.get_mut(section)?.as_map_mut()?;
    let stand_in = match section {
        _ if section == words.resources => value!({(words.resource_type): "OS::Heat::None"}),
        _ if section == words.parameters && section == "parameters" => value!({"type": "string"}),
        _ if section == words.parameters => value!({"Type": "String"}),
        _ if section == words.conditions => true.into(),
        _ => return entries.shift_remove(name).map(|_| rest),
    };
    let entry = entries.get_mut(name)?;
    if *entry == stand_in {
        return None;
    }
    *entry = stand_in;
    Some(rest)
}

/// What is wrong with a template that cannot be built, as far as it can be told without the types.
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
    errors.extend(undefined_in_outputs(blueprint));
    errors
}

/// Outputs that read a parameter which there is not: the service accepts them, and shows an error in the place of their
/// values for ever.
fn undefined_in_outputs(blueprint: &Blueprint) -> Vec<Diagnostic> {
    let draft = Draft::of(blueprint);
    let words = blueprint.bound().template().words();
    let undefined = blueprint.outputs().values().filter_map(|output| {
        let error = output.value.partial(&draft).err()?;
        let at = Path::root().key(words.outputs).key(output.name.as_str()).key(words.value);
        (error.class == "UserParameterMissing").then(|| error.at(at))
    });
    undefined.collect()
}
