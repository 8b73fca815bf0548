//! Hints for the schedulers of Nova and Cinder.

use kiln_resource::Facts;
use kiln_value::{Map, Value};

/// The hints of the property, and with `stack_scheduler_hints` those that name the stack and the resource, under Heat's
/// names, as plug-ins have changed them; `None` without any. The own hints replace given ones of the same name, as in Heat.
pub(crate) fn of(facts: &Facts) -> Option<Map> {
    let hints = facts.scheduler_hints.clone().unwrap_or_else(|| own(facts));
    (!hints.is_empty()).then_some(hints)
}

/// The hints before plug-ins have changed them.
pub(crate) fn own(facts: &Facts) -> Map {
    let given = facts.property("scheduler_hints").as_map();
    let mut hints: Map = given.into_iter().flatten().filter(|(_, hint)| !hint.is_null()).map(pair).collect();
    let stack = &facts.stack;
    if !stack.path.is_empty() {
        let own = [
            ("heat_root_stack_id", stack.root_id.as_str().into()),
            ("heat_stack_id", stack.id.as_str().into()),
            ("heat_stack_name", stack.name.as_str().into()),
            ("heat_path_in_stack", stack.path.iter().map(String::as_str).collect()),
            ("heat_resource_name", facts.name.as_str().into()),
            ("heat_resource_uuid", facts.id.as_str().into()),
        ];
        hints.extend(own.map(|(name, hint): (&str, Value)| (name.to_owned(), hint)));
    }
    hints
}

fn pair((name, hint): (&String, &Value)) -> (String, Value) {
    (name.clone(), hint.clone())
}
