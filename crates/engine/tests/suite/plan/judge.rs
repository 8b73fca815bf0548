//! Compares a plan with the actual changes.

use std::collections::{BTreeMap, BTreeSet};

use kiln_plan::MISSING;
use kiln_plan_document::Action;
use kiln_resource::{Resource, State};
use kiln_store::{EventQuery, StackId, Store};
use kiln_value::{Map, Value};
use kiln_view::plan_document::Plan;
use kiln_view::preview::{PlannedChange, PlannedResource, Preview};

use super::world::{Meanings, Noun};
use super::{Outputs, Seen};

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
        // A failed update leaves rows that it would have created.
        let rows = store.resources(stack).await.expect("read").into_iter().filter(|row| row.state != State::INIT);
        for resource in rows {
            let path = format!("{path}/{}", resource.name);
            open.extend(resource.child.map(|child| (path.clone(), child)));
            let updates = events.iter().filter(|event| event.resource_name == resource.name).count();
            found.insert(path, Row { resource, updates });
        }
    }
    found
}

/// Resources whose objects do not have the names and sizes that were given: what they read is up to date.
pub(crate) fn stale(after: &Seen) -> Vec<String> {
    let mut stale = Vec::new();
    for (path, row) in &after.rows {
        let Some(object) = row.physical_id.as_ref().and_then(|id| after.objects.get(id)) else { continue };
        for key in ["name", "size"] {
            let text = |value: Option<&Value>| value.map(kiln_value::text::str).unwrap_or_default();
            let given = text(row.properties().get(key));
            if !given.is_empty() && given != text(object.get(key)) {
                stale.push(format!("{path}: its object has the {key} {}, not {given}", text(object.get(key))));
            }
        }
    }
    stale
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
            found.extend(entry.nested.iter().flat_map(|nested| Self::refused(nested)));
        }
        found
    }

    /// Compares a plan with the rows and objects before and after the update.
    pub(crate) fn of(preview: &Preview, before: &Seen, after: &Seen, today: &Meanings, converge: bool) -> Self {
        let mut verdict = Self { refuses: !Self::refused(preview).is_empty(), ..Self::default() };
        verdict.document(preview, before);
        verdict.stack(preview, "", false, &before.rows, &after.rows);
        verdict.objects(preview, "", before, after, today, converge);
        verdict
    }

    /// Every row that there was is in the document of the plan, and every row below another one after it.
    fn document(&mut self, preview: &Preview, before: &Seen) {
        let Plan(document) = Plan::of(preview, Action::Update);
        let mut listed = BTreeSet::new();
        for entry in &document.resources {
            if entry.parent.as_ref().is_some_and(|parent| !listed.contains(&format!("/{parent}"))) {
                self.wrong.push(format!("{} is before its parent in the document", entry.path));
            }
            listed.insert(format!("/{}", entry.path));
        }
        for path in before.rows.keys().filter(|path| !listed.contains(*path)) {
            self.wrong.push(format!("{path} is not in the document"));
        }
    }

    /// Compares a plan with the objects: what it says is lost, kept, or has other values.
    fn objects(
        &mut self,
        preview: &Preview,
        path: &str,
        before: &Seen,
        after: &Seen,
        today: &Meanings,
        converge: bool,
    ) {
        for entry in &preview.entries {
            let path = format!("{path}/{}", entry.name);
            let id = |rows: &Rows| rows.get(&path).and_then(|row| row.physical_id.clone());
            let old = id(&before.rows).and_then(|id| Some((before.objects.get(&id)?, after.objects.get(&id))));
            if let Some((old, now)) = old {
                self.object(entry, &path, old, now, converge);
            } else if entry.lost.is_some()
                && let PlannedChange::Replaced(why) = &entry.change
                && why.iter().any(|reason| reason == MISSING)
            {
                self.wrong.push(format!("{path}: its object is gone, and yet something is lost: {:?}", entry.lost));
            }
            let is_new = id(&before.rows) != id(&after.rows);
            if let (true, Some(row), Some(id)) = (is_new, after.rows.get(&path), id(&after.rows))
                && let Some(server) = after.objects.get(&id).filter(|_| row.resource_type == "OS::Nova::Server")
            {
                for (noun, key) in [(Noun::Image, "image"), (Noun::Flavor, "flavor")] {
                    let given =
                        row.definition.as_ref().and_then(|held| held.given().get(key)?.as_str()).unwrap_or_default();
                    let means = today.get(&(noun, given.to_owned())).map_or(given, String::as_str);
                    if part(server, key) != means {
                        self.wrong
                            .push(format!("{path}: new with the {key} {}, not {given}: {means}", part(server, key)));
                    }
                }
            }
            if let Some(nested) = &entry.nested {
                self.objects(nested, &path, before, after, today, converge);
            }
        }
    }

    /// Compares a plan with an object before and after.
    fn object(&mut self, entry: &PlannedResource, path: &str, old: &Value, now: Option<&Value>, converge: bool) {
        let goes = matches!(entry.change, PlannedChange::Replaced(_) | PlannedChange::Deleted);
        let is_kept = now.is_some();
        if goes && is_kept != entry.is_retained {
            self.wrong.push(format!("{path}: its object is kept: {is_kept}; planned {:?}", entry.change));
        }
        let is_server = entry.resource_type == "OS::Nova::Server";
        let has_data = is_server || entry.resource_type == "OS::Cinder::Volume";
        let is_rebuilt = now.is_some_and(|now| is_server && part(now, "image") != part(old, "image"));
        let is_saved = entry
            .row
            .as_ref()
            .is_some_and(|row| row.definition.as_ref().is_some_and(|held| held.deletion_policy == "Snapshot"));
        let is_lost = has_data && (!is_kept && !is_saved || is_rebuilt);
        let is_certain = !matches!(entry.change, PlannedChange::Undecided { .. });
        if is_certain && is_lost != entry.lost.is_some() {
            self.wrong.push(format!("{path}: lost {is_lost}, planned {:?} with {:?}", entry.change, entry.lost));
        }
        if entry.change == PlannedChange::Unchanged {
            for key in ["name", "image", "flavor", "size", "network_id"] {
                if now.is_none_or(|now| now.get(key) != old.get(key)) {
                    self.wrong.push(format!("{path}: its {key} changed, which was not planned"));
                }
            }
        }
        let has_live = matches!(entry.change, PlannedChange::Updated(_) | PlannedChange::Replaced(_));
        if converge && has_live && !is_server {
            let before = entry.before();
            for key in ["name", "size"].into_iter().filter(|key| before.get(*key).is_some_and(Value::is_truthy)) {
                let shown = before.get(key).map(kiln_value::text::str).unwrap_or_default();
                let live = old.get(key).map(kiln_value::text::str).unwrap_or_default();
                if live != shown {
                    self.wrong.push(format!("{path}: {key} was {live}, shown as {shown}"));
                }
            }
        }
    }

    /// With `is_open`, the plan does not know which resources the stack will have.
    fn stack(&mut self, preview: &Preview, path: &str, is_open: bool, before: &Rows, after: &Rows) {
        let named: BTreeSet<&str> = preview.entries.iter().map(|entry| entry.name.as_str()).collect();
        let inside =
            |key: &&String| key.rsplit_once('/').is_some_and(|(front, name)| front == path && !named.contains(name));
        for key in before.keys().chain(after.keys().filter(|_| !is_open)).filter(inside) {
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
        // A failed resource is in order again, although nothing is done with its object.
        let is_mended = before
            .get(path)
            .zip(after.get(path))
            .is_some_and(|(old, new)| old.state.failed() && outcome == Outcome::Changed && said(old) == said(new));
        let right = allows(&entry.change, outcome) || (is_mended && allows(&entry.change, Outcome::Untouched));
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
            let is_open = matches!(entry.change, PlannedChange::Undecided { .. });
            self.stack(nested, path, is_open, before, after);
        }
    }
}

/// The ID of the image or flavor of a server.
fn part<'a>(server: &'a Value, key: &str) -> &'a str {
    server.get(key).and_then(|part| part.str_at("id")).unwrap_or_default()
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
                || (**at_most == PlannedChange::Deleted && outcome == Outcome::Replaced)
        }
    }
}
