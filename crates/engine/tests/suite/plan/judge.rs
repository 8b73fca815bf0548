//! Compares a plan with the actual changes.

use std::collections::{BTreeMap, BTreeSet};

use kiln_engine::preview::{PlannedChange, PlannedResource, Preview};
use kiln_resource::Resource;
use kiln_store::{EventQuery, StackId, Store};
use kiln_value::{Map, Value};

use super::Outputs;

/// The rows of a tree, by their paths of names.
pub(crate) type Rows = BTreeMap<String, Row>;

/// A row and the number of its updates.
pub(crate) struct Row {
    resource: Resource,
    updates: usize,
}

impl std::ops::Deref for Row {
    type Target = Resource;

    fn deref(&self) -> &Resource {
        &self.resource
    }
}

/// Reads the rows of a tree.
pub(crate) async fn rows(store: &dyn Store, stack: StackId) -> Rows {
    let mut found = Rows::new();
    let mut open = vec![(String::new(), stack)];
    while let Some((path, stack)) = open.pop() {
        let query = EventQuery {
            stacks: vec![stack],
            actions: vec!["UPDATE".to_owned()],
            statuses: vec!["COMPLETE".to_owned()],
            ..EventQuery::default()
        };
        let events = store.events(&query).await.expect("read");
        for resource in store.resources(stack).await.expect("read") {
            let path = format!("{path}/{}", resource.name);
            open.extend(resource.child.map(|child| (path.clone(), child)));
            let updates = events.iter().filter(|event| event.resource_name == resource.name).count();
            found.insert(path, Row { resource, updates });
        }
    }
    found
}

/// Errors of the plan about outputs.
pub(crate) fn outputs(preview: &Preview, before: &Outputs, after: &Outputs) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut planned = BTreeSet::new();
    for output in &preview.outputs {
        planned.insert(&output.name);
        let is_known = |value: &Option<Value>| value.as_ref().is_none_or(|value| value.unknown().is_none());
        if output.before.as_ref() != before.get(&output.name) {
            wrong.push(format!("output {} was {:?}: {output:?}", output.name, before.get(&output.name)));
        }
        if is_known(&output.after) && output.after.as_ref() != after.get(&output.name) {
            wrong.push(format!("output {} is {:?}: {output:?}", output.name, after.get(&output.name)));
        }
    }
    for (name, old) in before.iter().filter(|(name, _)| !planned.contains(name)) {
        if after.get(name).is_some_and(|new| new != old) {
            wrong.push(format!("output {name} changed from {old:?} to {:?}, which was not planned", after.get(name)));
        }
    }
    wrong
}

/// The actual change of a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Untouched,
    Changed,
    Replaced,
    Added,
    Deleted,
}

/// The result of the comparison.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Errors of the plan.
    pub(crate) wrong: Vec<String>,
    /// Number of resources with a certain prediction.
    pub(crate) certain: usize,
    /// Number of resources with an uncertain prediction.
    pub(crate) undecided: usize,
    /// Whether it predicted a failure.
    pub(crate) refuses: bool,
}

impl Verdict {
    /// The predicted failures.
    pub(crate) fn refused(preview: &Preview) -> Vec<String> {
        let mut found = Vec::new();
        for entry in &preview.entries {
            if let PlannedChange::Refused(text) = &entry.change {
                found.push(format!("{}: {text}", entry.name));
            }
            found.extend(entry.nested.iter().flat_map(Self::refused));
        }
        found
    }

    /// Compares a plan with the rows before and after the update.
    pub(crate) fn of(preview: &Preview, before: &Rows, after: &Rows) -> Self {
        let mut verdict = Self { refuses: !Self::refused(preview).is_empty(), ..Self::default() };
        verdict.stack(preview, "", before, after);
        verdict
    }

    fn stack(&mut self, preview: &Preview, path: &str, before: &Rows, after: &Rows) {
        let named: BTreeSet<&str> = preview.entries.iter().map(|entry| entry.name.as_str()).collect();
        let inside =
            |key: &&String| key.rsplit_once('/').is_some_and(|(front, name)| front == path && !named.contains(name));
        for key in before.keys().chain(after.keys()).filter(inside) {
            self.wrong.push(format!("{key} is not in the plan"));
        }
        for entry in &preview.entries {
            self.entry(entry, &format!("{path}/{}", entry.name), before, after);
        }
    }

    fn entry(&mut self, entry: &PlannedResource, path: &str, before: &Rows, after: &Rows) {
        let outcome = match (before.get(path), after.get(path)) {
            (None, Some(_)) => Outcome::Added,
            (Some(_), None) => Outcome::Deleted,
            (Some(old), Some(new)) if old.id != new.id => Outcome::Replaced,
            (Some(_), Some(new)) if new.child.is_some() => {
                let inner = |rows: &Rows| -> Vec<(String, _, _)> {
                    let prefix = format!("{path}/");
                    let inside = rows.iter().filter(|(key, row)| key.starts_with(&prefix) && row.child.is_none());
                    inside.map(|(key, row)| (key.clone(), row.id, said(row))).collect()
                };
                let given = |rows: &Rows| rows.get(path).map(|row| said(row));
                if inner(before) == inner(after) && given(before) == given(after) {
                    Outcome::Untouched
                } else {
                    Outcome::Changed
                }
            }
            (Some(old), Some(new)) if said(old) == said(new) && old.updates == new.updates => Outcome::Untouched,
            (Some(_), Some(_)) => Outcome::Changed,
            (None, None) => return self.wrong.push(format!("{path} never was, planned {:?}", entry.change)),
        };
        let right = allows(&entry.change, outcome);
        if let PlannedChange::Undecided { .. } = entry.change {
            self.undecided += 1;
        } else {
            self.certain += 1;
        }
        if !right {
            self.wrong.push(format!("{path} ({}): {outcome:?}, planned {:?}", entry.resource_type, entry.change));
        }
        if let (PlannedChange::Updated(changed), Some(row)) = (&entry.change, after.get(path)) {
            for (name, value) in changed.iter().filter(|(_, value)| value.unknown().is_none() && !value.is_null()) {
                let now = row.properties().get(name).cloned().unwrap_or_default();
                if now != *value {
                    self.wrong.push(format!("{path}: {name} is {now:?}, planned {value:?}"));
                }
            }
        }
        // A replaced nested stack is a different one: the names in it occur in both.
        if let (Some(nested), false) = (&entry.nested, outcome == Outcome::Replaced) {
            self.stack(nested, path, before, after);
        }
    }
}

/// The definition of a row's object, without its dependencies.
fn said(row: &Resource) -> (Map, Value) {
    (row.properties().clone(), row.metadata.clone())
}

fn allows(change: &PlannedChange, outcome: Outcome) -> bool {
    match change {
        PlannedChange::Unchanged => outcome == Outcome::Untouched,
        PlannedChange::Updated(_) => outcome == Outcome::Changed,
        PlannedChange::Replaced(_) => outcome == Outcome::Replaced,
        PlannedChange::Added => outcome == Outcome::Added,
        PlannedChange::Deleted => outcome == Outcome::Deleted,
        PlannedChange::Refused(_) => true,
        PlannedChange::Undecided { at_least, at_most, .. } => {
            allows(at_least, outcome)
                || allows(at_most, outcome)
                || (**at_most != PlannedChange::Unchanged && outcome == Outcome::Changed)
        }
    }
}
