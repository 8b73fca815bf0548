//! Determines the possible results of a decision that depends on unknown values.

use kiln_plan::Decision;
use kiln_resource::Resource;
use kiln_stack::gather::{Answer, Question};
use kiln_value::{Map, Value};

use super::{Awaited, PlannedChange, PlannedResource, Preview};

/// The maximum decision, and the planned change: what happens if unknown values are the current ones, and if they are
/// not.
pub(super) async fn weigh(question: Question) -> (Answer, PlannedChange) {
    let held = question.subject.row.as_ref().and_then(|row| row.definition.clone());
    let given = &question.subject.definition;
    let parts = [&Value::Map(given.properties.clone()), &Value::Map(given.metadata.clone()), &given.update_policy];
    let open = parts.iter().any(|part| part.unknown().is_some());
    let (Some(held), true) = (held, open) else {
        let answer = question.answer().await;
        let change = change_of(&answer.decision);
        return (answer, change);
    };
    let awaited = given
        .properties
        .iter()
        .filter_map(|(name, value)| {
            Some(Awaited { property: name.clone(), place: value.unknown()?.place().to_owned() })
        })
        .collect();
    let mut best = question.clone();
    let assume = |value: &Map, held: &Map| match Value::Map(value.clone()).assuming(&Value::Map(held.clone())) {
        Value::Map(map) => map,
        _ => Map::new(),
    };
    let definition = &mut best.subject.definition;
    definition.properties = assume(&definition.properties, held.given());
    definition.metadata = assume(&definition.metadata, &held.metadata);
    definition.update_policy = definition.update_policy.assuming(&held.update_policy);
    let at_least = change_of(&best.answer().await.decision);
    let answer = question.answer().await;
    let change = undecided(at_least, change_of(&answer.decision), awaited);
    (answer, change)
}

/// The change is certain if minimum and maximum are equal.
pub(super) fn undecided(at_least: PlannedChange, at_most: PlannedChange, awaited: Vec<Awaited>) -> PlannedChange {
    if std::mem::discriminant(&at_least) == std::mem::discriminant(&at_most) {
        return at_most;
    }
    PlannedChange::Undecided { at_least: Box::new(at_least), at_most: Box::new(at_most), awaited }
}

pub(super) fn change_of(decision: &Decision) -> PlannedChange {
    match decision {
        Decision::Create { .. } => PlannedChange::Added,
        Decision::Keep { .. } => PlannedChange::Unchanged,
        Decision::Update { changed, .. } => PlannedChange::Updated(changed.clone()),
        Decision::Replace { why, .. } => PlannedChange::Replaced(why.clone()),
        Decision::Refuse { failure } | Decision::Restrict { failure } => {
            PlannedChange::Refused(failure.message.clone())
        }
    }
}

/// The change of a resource with a nested stack: it is updated if its own properties or anything in the nested stack
/// changes. The engine updates it in any case.
pub(super) fn change_of_stack(
    changed: &Map,
    row: Option<&Resource>,
    change: PlannedChange,
    preview: &Preview,
) -> PlannedChange {
    let held = row.map(|row| row.properties().clone()).unwrap_or_default();
    let assumed = Value::Map(changed.clone()).assuming(&Value::Map(held.clone()));
    let certain = assumed
        .as_map()
        .is_some_and(|assumed| assumed.iter().any(|(name, value)| held.get(name).unwrap_or(&Value::Null) != value));
    if certain {
        return change;
    }
    match change_of_contents(preview) {
        PlannedChange::Unchanged if !changed.is_empty() => {
            let awaited = changed
                .iter()
                .filter_map(|(name, value)| {
                    Some(Awaited { property: name.clone(), place: value.unknown()?.place().to_owned() })
                })
                .collect();
            undecided(PlannedChange::Unchanged, PlannedChange::Updated(changed.clone()), awaited)
        }
        PlannedChange::Updated(_) => PlannedChange::Updated(changed.clone()),
        inside => inside,
    }
}

/// Whether anything in a nested stack changes.
fn change_of_contents(preview: &Preview) -> PlannedChange {
    let updated = || PlannedChange::Updated(Map::new());
    if preview.is_unchanged() {
        return PlannedChange::Unchanged;
    }
    let awaited: Vec<Awaited> = preview
        .entries
        .iter()
        .filter_map(|entry| match &entry.change {
            PlannedChange::Undecided { at_least, awaited, .. } if at_least.is_unchanged() => Some(awaited.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let open = |entry: &&PlannedResource| matches!(&entry.change, PlannedChange::Undecided { at_least, .. } if at_least.is_unchanged());
    let certain = preview.entries.iter().filter(|entry| !entry.change.is_unchanged()).any(|entry| !open(&entry));
    if certain { updated() } else { undecided(PlannedChange::Unchanged, updated(), awaited) }
}
