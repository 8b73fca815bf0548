//! Compares what Kiln has stored of the stacks of a Heat with Heat's tables, field by field, and asks the
//! cloud on request.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use kiln_cloud::Credentials;
use kiln_plan::ResourceTypes;
use kiln_resource::names::{self, KeptNames};
use kiln_resource::translation::Answers;
use kiln_resource::{Resource, ResourceId};
use kiln_stack::load::places;
use kiln_store::{Error, Stack, StackId, TakeOver, TakeOverState, TakenStack, TakenTree};
use kiln_value::Value;

use crate::finding::{below, is_blocked};
use crate::import::Import;
use crate::resource_data::heat_data;
use crate::trees::Selection;
use crate::way_back::WayBack;
use crate::{Change, CloudCheck, CloudFindings, Finding};

/// The comparison of one stack with its nested stacks.
#[derive(Debug)]
pub struct Comparison {
    /// The stack.
    pub record: TakeOver,
    /// What is different in Kiln: after an import nothing, and after the switch what Kiln has changed.
    pub differences: Vec<Change>,
    /// What Heat could not store of it.
    pub findings: Vec<Finding>,
    /// What the cloud says of it, if it was asked.
    pub cloud: Option<CloudFindings>,
}

impl Comparison {
    /// Whether it is as it should be: an imported stack is the same, one of Kiln can go back, and the cloud knows both.
    pub fn is_right(&self) -> bool {
        let is_same = self.differences.is_empty() || self.record.state != TakeOverState::Imported;
        let cloud = self.cloud.as_ref().map_or(&[][..], |cloud| &cloud.findings);
        is_same && !is_blocked(&self.findings) && !is_blocked(cloud)
    }
}

/// Compares the selected stacks that are imported or belong to Kiln; with `cloud`, it is asked about each. `seen` gets each with
/// the number of those behind and of all.
///
/// # Errors
/// Errors of the databases.
pub async fn compare(
    import: &Import<'_>,
    encrypts: bool,
    only: &Selection,
    mut cloud: Option<&mut CloudCheck>,
    mut seen: impl FnMut(Comparison, usize, usize),
) -> Result<(), Error> {
    let mut records = import.store.take_overs(only.project.as_deref()).await?;
    let is_wanted = |record: &TakeOver| {
        let named = |wanted: &String| *wanted == record.name || *wanted == record.root.to_string();
        record.state != TakeOverState::Refused && only.stack.as_ref().is_none_or(named)
    };
    let mut projects: Vec<String> = records.iter().map(|record| record.project.clone()).collect();
    projects.sort();
    projects.dedup();
    let way_back = WayBack::new(import, encrypts, only).await?;
    for project in projects {
        let made = way_back.candidates(&project).await?;
        let known: HashSet<StackId> = records.iter().map(|record| record.root).collect();
        records.extend(made.into_iter().filter(|record| !known.contains(&record.root)));
    }
    records.retain(is_wanted);
    let all = records.len();
    for (index, record) in records.into_iter().enumerate() {
        let prepared = way_back.prepare(&record).await?;
        let differences = match (&prepared.kiln, &prepared.known) {
            (Some(kiln), Some(known)) => differences(&import.converter.types, kiln, known),
            (Some(_), None) => vec![change("", "it is not in Heat")],
            (None, Some(_)) => vec![change("", "it is deleted in Kiln")],
            (None, None) => Vec::new(),
        };
        let cloud = match (&mut cloud, prepared.kiln) {
            (Some(check), Some(kiln)) => Some(check.check(kiln, import.store).await?),
            _ => None,
        };
        seen(Comparison { record, differences, findings: prepared.exported.findings, cloud }, index + 1, all);
    }
    Ok(())
}

fn change(place: &str, what: impl Into<String>) -> Change {
    Change { place: place.to_owned(), what: what.into() }
}

/// The differences between two trees. Values are not shown: they may be secrets.
fn differences(types: &ResourceTypes, kiln: &TakenTree, known: &TakenTree) -> Vec<Change> {
    let mut found = Differences::default();
    // Of a stack that both have, where it is in Kiln.
    let places = places(known.stacks.iter().chain(&kiln.stacks).map(|taken| &taken.stack));
    let stacks: HashMap<StackId, &TakenStack> = known.stacks.iter().map(|one| (one.stack.id, one)).collect();
    let mut left: HashSet<StackId> = stacks.keys().copied().collect();
    for taken in &kiln.stacks {
        left.remove(&taken.stack.id);
        let place = places.get(&taken.stack.id).map_or("", String::as_str);
        match stacks.get(&taken.stack.id) {
            Some(known) => found.stack(place, taken, known),
            None => found.note(place, "this nested stack is not in Heat"),
        }
    }
    for id in left {
        found.note(places.get(&id).map_or("", String::as_str), "this nested stack is only in Heat");
    }
    let rows: HashMap<ResourceId, &Resource> = known.resources.iter().map(|row| (row.id, row)).collect();
    let mut left: HashSet<ResourceId> = rows.keys().copied().collect();
    for row in &kiln.resources {
        left.remove(&row.id);
        let place = below(places.get(&row.stack).map_or("", String::as_str), &row.name);
        match rows.get(&row.id) {
            Some(known) => found.row(&place, &with_names(types, row, known), known),
            None => found.note(&place, "this resource is not in Heat"),
        }
    }
    for row in known.resources.iter().filter(|row| left.contains(&row.id)) {
        found.note(
            &below(places.get(&row.stack).map_or("", String::as_str), &row.name),
            "this resource is only in Heat",
        );
    }
    // Those of deleted nested stacks are not read.
    let events = |tree: &TakenTree| -> Vec<String> {
        let of_live = tree.events.iter().filter(|one| stacks.contains_key(&one.stack));
        of_live.map(|one| one.id.to_string()).collect()
    };
    found.sets("events", events(known).into_iter(), events(kiln).into_iter());
    found.sets(
        "snapshots",
        known.snapshots.iter().map(|one| one.id.to_string()),
        kiln.snapshots.iter().map(|one| one.id.to_string()),
    );
    found.field("", "credentials", &credentials(kiln), &credentials(known));
    found.changes
}

/// A row of Kiln with the names that Heat has stored, instead of their IDs, which Heat does not store.
fn with_names(types: &ResourceTypes, row: &Resource, known: &Resource) -> Resource {
    let mut row = row.clone();
    let (Some(definition), Some(known)) = (&mut row.definition, &known.definition) else { return row };
    let Some(registered) = types.types.get(&known.resource_type) else { return row };
    let names = names::kept(&registered.resource_type.translation, known, known.given(), &Answers::new());
    let names: KeptNames = names.into_iter().filter(|(_, kept)| kept.is_as_given()).collect();
    if !names.is_empty() {
        names::keep(&mut Arc::make_mut(definition).properties, &names);
    }
    row
}

/// The credentials of a tree, without what only Kiln stores.
fn credentials(tree: &TakenTree) -> Option<Value> {
    let exposed: Value = serde_json::from_str(tree.credentials.as_ref()?.1.expose()).ok()?;
    Some(Credentials::from_exposed(&exposed)?.expose())
}

/// Heat's tables in MariaDB have whole seconds.
fn seconds(times: [Option<Timestamp>; 2]) -> [Option<i64>; 2] {
    times.map(|time| time.map(Timestamp::as_second))
}

#[derive(Default)]
struct Differences {
    changes: Vec<Change>,
}

impl Differences {
    fn note(&mut self, place: &str, what: impl Into<String>) {
        self.changes.push(change(place, what));
    }

    fn field<T: PartialEq>(&mut self, place: &str, name: &str, one: &T, other: &T) {
        if one != other {
            self.note(place, format!("{name} differs"));
        }
    }

    fn sets(&mut self, name: &str, heat: impl Iterator<Item = String>, kiln: impl Iterator<Item = String>) {
        let (heat, kiln): (HashSet<String>, HashSet<String>) = (heat.collect(), kiln.collect());
        for (of, what) in
            [(heat.difference(&kiln).count(), "only in Heat"), (kiln.difference(&heat).count(), "not in Heat")]
        {
            if of > 0 {
                self.note("", format!("{of} {name} are {what}"));
            }
        }
    }

    fn stack(&mut self, place: &str, kiln: &TakenStack, known: &TakenStack) {
        let (one, other) = (&kiln.stack, &known.stack);
        self.field(place, "name", &one.name, &other.name);
        self.field(place, "owner", &one.username, &other.username);
        if !one.user_id.is_empty() {
            self.field(place, "ID of the owner", &one.user_id, &other.user_id);
        }
        self.field(place, "place in its tree", &(one.depth, &one.parent), &(other.depth, &other.parent));
        self.field(place, "state", &(one.state, &one.reason), &(other.state, &other.reason));
        self.field(place, "timeout", &one.timeout_mins, &other.timeout_mins);
        self.field(place, "disable_rollback", &one.disable_rollback, &other.disable_rollback);
        self.field(place, "tags", &one.tags, &other.tags);
        self.field(place, "user project", &one.user_project, &other.user_project);
        let times = |stack: &Stack| seconds([Some(stack.created), stack.updated]);
        self.field(place, "times", &times(one), &times(other));
        self.field(place, "template", &kiln.desired.template, &known.desired.template);
        self.field(place, "environment", &kiln.desired.environment, &known.desired.environment);
        self.field(place, "files", &kiln.desired.files, &known.desired.files);
        self.field(place, "previous template", &kiln.previous, &known.previous);
    }

    fn row(&mut self, place: &str, one: &Resource, other: &Resource) {
        let ids = |row: &Resource| (row.physical_id.clone(), row.child, row.replaces, row.replaced_by);
        let required = |row: &Resource| row.requires.iter().copied().collect::<HashSet<_>>();
        self.field(place, "name and type", &(&one.name, &one.resource_type), &(&other.name, &other.resource_type));
        self.field(place, "physical ID", &ids(one), &ids(other));
        self.field(place, "state", &(one.state, &one.reason), &(other.state, &other.reason));
        self.field(place, "definition", &one.definition, &other.definition);
        // Both as Heat stores them: Kiln's own entries are left out.
        let stored = |row: &Resource| {
            let mut metadata = row.metadata.as_map().cloned().unwrap_or_default();
            let data = heat_data(row, &[], &mut metadata);
            (metadata, data)
        };
        let ((metadata, data), (others_metadata, others_data)) = (stored(one), stored(other));
        self.field(place, "metadata", &metadata, &others_metadata);
        self.field(place, "data", &data, &others_data);
        if one.child.is_none() {
            self.field(place, "attributes", &one.attributes, &other.attributes);
        }
        self.field(place, "requirements", &required(one), &required(other));
        let times = |row: &Resource| seconds([Some(row.created), Some(row.updated)]);
        self.field(place, "times", &times(one), &times(other));
    }
}
