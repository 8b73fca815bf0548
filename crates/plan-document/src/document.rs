//! The document.

use std::collections::BTreeMap;

use kiln_value::Value;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Check, Decision, Entry, Estimate, Risk, Verdict};

/// The number of the format. Fields are added without a new number; a field that changes its meaning has one.
pub const FORMAT: u32 = 1;

/// What a request does to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is created.
    Create,
    /// It is updated.
    Update,
    /// It is deleted.
    Delete,
}

/// A resource that seems to have another name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renamed {
    /// Its name in the stack.
    pub from: String,
    /// Its name in the template of the request.
    pub to: String,
}

/// What a request would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanDocument {
    /// The number of the format.
    pub format: u32,
    /// The request.
    pub action: Action,
    /// The name of the stack.
    pub stack: String,
    /// The ID of the stack, if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_id: Option<String>,
    /// What the plan was computed from: an update names it (`if_version`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of resources by their risk.
    pub totals: Totals,
    /// The resources of the whole tree: each one before the resources of its nested stack, siblings by name.
    pub resources: Vec<Entry>,
    /// The outputs of the stack that change, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// The snapshots that are deleted with the stack, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<DeletedSnapshot>,
    /// What its pre-flight has found; empty if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<Check>,
    /// Resources that are deleted and created again under another name, with an equal definition: with these moves in the template
    /// they keep their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<Renamed>,
    /// How long it takes; none if nothing is known, or nothing changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Box<Estimate>>,
}

impl PlanDocument {
    /// A plan; sorts its parts.
    pub fn new(action: Action, stack: String, mut resources: Vec<Entry>, mut outputs: Vec<Output>) -> Self {
        resources.sort_by_cached_key(|entry| {
            let path: Vec<String> = entry.path.split('/').map(str::to_owned).collect();
            (path, entry.former)
        });
        outputs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut totals = Totals::default();
        for entry in &resources {
            *totals.of_mut(entry.risk) += 1;
        }
        Self {
            format: FORMAT,
            action,
            stack,
            stack_id: None,
            version: None,
            totals,
            resources,
            outputs,
            snapshots: Vec::new(),
            preflight: Vec::new(),
            renamed: Vec::new(),
            estimate: None,
        }
    }

    /// Whether certainly nothing changes.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty() && self.snapshots.is_empty() && self.resources.iter().all(Entry::is_unchanged)
    }

    /// The former paths of the resources that have moved, and of all in their nested stacks, by their present paths.
    pub fn moved_paths(&self) -> BTreeMap<&str, String> {
        let mut moved = BTreeMap::new();
        // Parents come first.
        for entry in self.resources.iter().filter(|entry| !entry.former) {
            let parent = entry.parent.as_deref();
            let above = parent.and_then(|parent| moved.get(parent).cloned());
            if above.is_some() || entry.moved_from.is_some() {
                let name = entry.moved_from.as_deref().unwrap_or_else(|| entry.name());
                let above = above.or_else(|| parent.map(str::to_owned));
                let path = above.map_or_else(|| name.to_owned(), |above| format!("{above}/{name}"));
                moved.insert(entry.path.as_str(), path);
            }
        }
        moved
    }

    /// Whether the request would fail.
    pub fn is_refused(&self) -> bool {
        self.resources.iter().any(|entry| entry.decision.at_most == Decision::Refuse)
    }

    /// The failures of its pre-flight: the request would fail because of them.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.preflight.iter().filter(|one| one.verdict == Verdict::Fail)
    }

    /// The highest risk.
    pub fn risk(&self) -> Risk {
        if !self.snapshots.is_empty() {
            return Risk::DataLoss;
        }
        self.resources.iter().map(|entry| entry.risk).max().unwrap_or_default()
    }
}

/// The number of resources by their risk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Something is lost.
    pub data_loss: usize,
    /// An object is deleted, and perhaps created anew.
    pub replacement: usize,
    /// An object is away for a time.
    pub interruption: usize,
    /// Something is created or updated.
    pub change: usize,
    /// Nothing changes.
    pub none: usize,
}

impl Totals {
    fn of_mut(&mut self, risk: Risk) -> &mut usize {
        match risk {
            Risk::DataLoss => &mut self.data_loss,
            Risk::Replacement => &mut self.replacement,
            Risk::Interruption => &mut self.interruption,
            Risk::Change => &mut self.change,
            Risk::None => &mut self.none,
        }
    }

    /// The number of resources with a risk.
    pub fn of(mut self, risk: Risk) -> usize {
        *self.of_mut(risk)
    }
}

/// An output that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its value before; none if it is new.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value afterwards, as far as it is known; none if it is removed.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A snapshot that is deleted with its stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeletedSnapshot {
    /// Its ID.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A null is a value too.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;
    use crate::{Bounds, Downtime, Loss, Property, Side};

    fn entry(path: &str, decision: Decision) -> Entry {
        Entry {
            decision: Bounds::certain(decision),
            risk: Risk::of(Bounds::certain(decision), false, Downtime::None, true),
            ..Entry::kept(path.to_owned(), "OS::Heat::Value".to_owned())
        }
    }

    #[test]
    fn a_plan_is_sorted_and_counted_and_survives_its_json() {
        let lost = Loss { kind: "volume".to_owned(), what: "the volume's data".to_owned() };
        let side = |value: Value| Some(Side::from(value));
        let property =
            Property::new("list".to_owned(), side(value!([1, {"name": "a"}])), side(value!([{"known_after": "b"}])));
        let volume = Entry {
            lost: vec![lost],
            properties: vec![property],
            risk: Risk::DataLoss,
            ..entry("v", Decision::Replace)
        };
        let outputs = ["b", "a"].map(|name| Output { name: name.to_owned(), before: Some(Value::Null), after: None });
        let entries = ["w-1/a", "w/0", "w", "w-1", "w/1"].map(|path| entry(path, Decision::Keep));
        let twice = [Entry { former: true, ..entry("w/1", Decision::Delete) }, entry("w/1", Decision::Create), volume];
        let entries = entries.into_iter().chain(twice).collect();
        let plan = PlanDocument::new(Action::Update, "s".to_owned(), entries, outputs.to_vec());
        let paths: Vec<&str> = plan.resources.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["v", "w", "w/0", "w/1", "w/1", "w/1", "w-1", "w-1/a"]);
        assert_eq!(plan.resources[5].decision.at_most, Decision::Delete);
        assert_eq!(plan.totals, Totals { data_loss: 1, replacement: 1, interruption: 0, change: 1, none: 5 });
        assert_eq!((plan.risk(), plan.outputs[0].name.as_str()), (Risk::DataLoss, "a"));
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<PlanDocument>(&json).unwrap(), plan);
    }

    #[test]
    fn the_risk_is_that_of_the_most_that_may_happen() {
        let may = Bounds { at_least: Decision::Keep, at_most: Decision::Delete };
        assert_eq!(Risk::of(may, false, Downtime::None, true), Risk::Replacement);
        assert_eq!(Risk::of(may, true, Downtime::None, true), Risk::DataLoss);
        // Nothing in the cloud is deleted.
        assert_eq!(Risk::of(may, false, Downtime::None, false), Risk::Change);
        let update = Bounds::certain(Decision::Update);
        assert_eq!(Risk::of(update, false, Downtime::Restart, true), Risk::Interruption);
        assert_eq!(Risk::of(update, false, Downtime::None, true), Risk::Change);
        assert!(Risk::DataLoss > Risk::Replacement && Risk::ALL.iter().rev().is_sorted());
    }
}
